"""Each method on the embedded server over gRPC and REST, and on Google's emulator: one result, but for the listed differences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from prober.embedded.calls import METHODS
from prober.embedded.rest import HTTP_RULES
from tests.compat.requests import Names, requests
from tests.compat.services import STREAMING_PULL, TRANSPORTS, Outcome, Server, changes
from tests.integration.embedded import Running

PAGE: Final = Path("docs/emulator.md")
_CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "UpdateTopic": ("full: 200 -> 400",),
    "DeleteTopic": ("full, after: ListSnapshots",),
    "ListTopicSubscriptions": ("empty: 404 -> 200",),
    "ListTopicSnapshots": ("empty: 404 -> 200",),
    "DetachSubscription": ("empty: 404 -> 501", "full: 200 -> 501"),
    "CreateSnapshot": ("full: labels", "full, after: ListSnapshots"),
    "UpdateSnapshot": ("empty: 404 -> 501", "full: 200 -> 501"),
    "Seek": ("full: 200 -> 501",),
    "ListSchemas": ("full: schemas",),
    "ListSchemaRevisions": ("full: schemas",),
    "SetIamPolicy": ("empty: 404 -> 501", "full: 200 -> 501"),
    "GetIamPolicy": ("empty: 404 -> 501", "full: 200 -> 501"),
    "TestIamPermissions": ("empty: 200 -> 501", "full: 200 -> 501"),
}
DIFFERENCES: Final = {(method, transport): found for method, found in _CHANGES.items() for transport in TRANSPORTS}
"""(Method, transport): how the result of Google's emulator differs from that of the embedded server, as `changes` writes it."""

UNSET: Final = frozenset({"state", "expirationPolicy", "x-goog-version"})
"""Fields that the embedded server sets in resources, as the service does, and Google's emulator does not."""


@pytest.fixture(scope="module")
def embedded(server: Running) -> Server:
    return Server(server.address, server.server.rest_address)


@pytest.fixture(scope="module")
def emulator(emulator_address: str) -> Server:
    return Server(emulator_address, emulator_address)


@pytest.mark.parametrize("method", METHODS)
def test_the_result_over_rest_is_that_over_grpc(embedded: Server, method: str) -> None:
    over_grpc = embedded.outcome("grpc", method)
    assert embedded.outcome("rest", method) == over_grpc
    assert "code" not in over_grpc["full"], "the request must succeed where everything exists that it names"


@pytest.mark.parametrize(
    ("method", "transport"), [*((method, transport) for method in METHODS for transport in TRANSPORTS), (STREAMING_PULL, "grpc")]
)
def test_the_result_of_googles_emulator(embedded: Server, emulator: Server, method: str, transport: str) -> None:
    expected, found = embedded.outcome(transport, method), emulator.outcome(transport, method)
    assert tuple(changes(_comparable(expected), _comparable(found))) == DIFFERENCES.get((method, transport), ())


def test_fields_that_googles_emulator_does_not_set(embedded: Server, emulator: Server) -> None:
    for method in ("CreateTopic", "CreateSubscription"):
        assert _fields(embedded.outcome("grpc", method)) & UNSET
        assert not _fields(emulator.outcome("grpc", method)) & UNSET
    assert _fields(embedded.outcome("grpc", "CreateSubscription")) >= UNSET


def test_every_method_has_a_rule_and_a_request() -> None:
    assert set(METHODS) == {rule.method for rule in HTTP_RULES}
    assert {*METHODS, STREAMING_PULL} == set(requests(Names("projects/p")))


@pytest.mark.parametrize("method", _CHANGES)
def test_a_difference_is_documented(method: str) -> None:
    assert f"| `{method}` | {'; '.join(_CHANGES[method])} |" in PAGE.read_text(encoding="utf-8")


def _comparable(outcome: Outcome) -> Outcome:
    return {place: _set_by_both(value) for place, value in outcome.items()}


def _set_by_both(value: Any) -> Any:
    """Without fields that one of the servers does not set, messages of errors, and what is empty then."""
    if isinstance(value, dict):
        inner = {name: _set_by_both(one) for name, one in value.items() if name not in UNSET | {"message"}}
        return {name: one for name, one in inner.items() if one != {}}
    return [_set_by_both(one) for one in value] if isinstance(value, list) else value


def _fields(value: Any) -> frozenset[str]:
    """Every name of a field in a result."""
    if isinstance(value, dict):
        return frozenset(value).union(*map(_fields, value.values()))
    return frozenset().union(*map(_fields, value)) if isinstance(value, list) else frozenset()
