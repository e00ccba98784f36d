from __future__ import annotations

import asyncio
from typing import Any

import google.auth
import pytest
from google.auth import exceptions as auth_exceptions

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.connection import credentials_for
from prober.brokers.endpoint import EMULATOR_VARIABLE, Endpoint, local_endpoint, parse_endpoint, resolve_endpoint
from prober.errors import ConfigError, PermissionRefused


@pytest.mark.parametrize(
    ("text", "address", "secure"),
    [
        ("global", "pubsub.googleapis.com:443", True),
        ("europe-west1", "europe-west1-pubsub.googleapis.com:443", True),
        ("northamerica-northeast2", "northamerica-northeast2-pubsub.googleapis.com:443", True),
        ("pubsub.europe-west3.rep.googleapis.com", "pubsub.europe-west3.rep.googleapis.com:443", True),
        ("us-east1-pubsub.googleapis.com:443", "us-east1-pubsub.googleapis.com:443", True),
        ("localhost:8085", "localhost:8085", False),
        (" 127.0.0.1:8085\n", "127.0.0.1:8085", False),
        ("[::1]:8085", "[::1]:8085", False),
        ("evil-googleapis.com:443", "evil-googleapis.com:443", False),
        ("googleapis.com.example:443", "googleapis.com.example:443", False),
    ],
)
def test_what_names_an_endpoint(text: str, address: str, secure: bool) -> None:
    assert parse_endpoint(text) == Endpoint(address, secure)


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("europe-west1", "europe-west1"),
        ("us-east1-pubsub.googleapis.com", "us-east1"),
        ("pubsub.europe-west3.rep.googleapis.com:443", "europe-west3"),
        ("global", ""),
        ("staging-pubsub.googleapis.com", ""),
        ("localhost:8085", ""),
        ("us-east1-pubsub.googleapis.com.example:443", ""),
    ],
)
def test_which_region_is_published_in_is_known_only_where_the_address_names_it(text: str, region: str) -> None:
    assert parse_endpoint(text).region == region


def test_an_emulator_is_in_no_region_whatever_its_name() -> None:
    assert resolve_endpoint("global", {EMULATOR_VARIABLE: "us-east1-pubsub.googleapis.com:443"}).region == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not an address"),
        ("localhost", "has no port"),
        ("http://localhost:8085", "is a URL: write HOST:PORT without http://"),
        ("localhost:0", "has port 0"),
        ("localhost:65536", "has port 65536"),
        ("localhost:port", "is not an address"),
        ("a b:1", "is not an address"),
        ("::1", "is not an address"),
    ],
)
def test_what_does_not(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_endpoint(text)


def test_the_command_line_wins_over_the_variable_and_both_over_the_configuration() -> None:
    emulator = {EMULATOR_VARIABLE: "localhost:1"}
    assert resolve_endpoint("global", {}) == Endpoint("pubsub.googleapis.com:443", secure=True)
    assert resolve_endpoint("global", {EMULATOR_VARIABLE: ""}).secure
    assert resolve_endpoint("global", emulator) == Endpoint("localhost:1", secure=False)
    assert resolve_endpoint("global", emulator, "localhost:2") == Endpoint("localhost:2", secure=False)
    assert resolve_endpoint("global", emulator, "europe-west1").secure


def test_what_the_variable_names_is_an_emulator_whatever_its_name() -> None:
    assert resolve_endpoint("global", {EMULATOR_VARIABLE: "fake.googleapis.com:443"}) == Endpoint(
        "fake.googleapis.com:443", secure=False
    )


def test_a_mistake_in_the_variable_is_said_to_be_there() -> None:
    with pytest.raises(ConfigError, match=f"{EMULATOR_VARIABLE}: endpoint 'localhost' has no port"):
        resolve_endpoint("global", {EMULATOR_VARIABLE: "localhost"})


def test_credentials_are_not_even_looked_for_without_encryption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google.auth, "default", lambda **_: pytest.fail("looked for credentials"))

    async def scenario() -> None:
        for vantage in Vantage:
            broker = await connect(Endpoint("127.0.0.1:1", secure=False), vantage)
            await broker.close()

    asyncio.run(scenario())


def test_without_credentials_google_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: object) -> None:
        errors: Any = auth_exceptions  # its constructors have no types
        raise errors.DefaultCredentialsError("none\nhere")

    monkeypatch.setattr(google.auth, "default", none)
    with pytest.raises(PermissionRefused, match=r"gcloud auth application-default login.*\(none here\)"):
        asyncio.run(credentials_for(parse_endpoint("global")))


def test_credentials_are_asked_for_with_the_scope_of_pubsub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def default(**how: object) -> tuple[object, str]:
        asked.append(how)
        return object(), "project"

    monkeypatch.setattr(google.auth, "default", default)
    assert asyncio.run(credentials_for(parse_endpoint("global"))) is not None
    assert asked == [{"default_scopes": ["https://www.googleapis.com/auth/pubsub"]}]


def test_a_peer_is_what_is_configured_and_what_wins_over_the_configuration_is_its_own() -> None:
    configured = resolve_endpoint("europe-west1", {}, peer="us-central1")
    assert (configured.region, configured.peer and configured.peer.region) == ("europe-west1", "us-central1")
    for named in (
        resolve_endpoint("europe-west1", {EMULATOR_VARIABLE: "localhost:1"}, peer="us-central1"),
        resolve_endpoint("europe-west1", {}, "localhost:1", "us-central1"),
        local_endpoint("localhost:1", paired=True),
    ):
        assert (named.address, named.peer) == ("localhost:1", Endpoint("localhost:1", secure=False))
    assert resolve_endpoint("europe-west1", {EMULATOR_VARIABLE: "localhost:1"}).peer is None
