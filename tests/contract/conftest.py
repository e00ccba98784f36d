"""Every contract test runs from all vantages, on Google's emulator and on the embedded server.

The program of the external vantage is on the wire. By day it does what it does on the embedded server only: its protocol is the same
on the emulator, which the wire is tested on, too.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import pytest

from prober.brokers.base import Vantage
from prober.brokers.endpoint import EMULATOR_VARIABLE
from tests.contract.context import WAIT_S, OwnBroker, own_broker
from tests.integration.embedded import running

TEST_TIMEOUT_S = 300.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine function runs in an event loop of its own, and has to end in time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        async with asyncio.timeout(TEST_TIMEOUT_S):
            await pyfuncitem.obj(**arguments)

    asyncio.run(run())
    return True


def pytest_itemcollected(item: pytest.Item) -> None:
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    if (params.get("service"), params.get("vantage")) == ("emulator", Vantage.EXTERNAL):
        item.add_marker(pytest.mark.nightly)


@pytest.fixture(autouse=True)
def _no_inherited_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's client prefers this variable to any endpoint; the adapters must not need it, nor be led astray by it."""
    monkeypatch.setenv(EMULATOR_VARIABLE, "127.0.0.1:1")


@pytest.fixture(scope="session")
def embedded_address() -> Iterator[str]:
    with running() as server:
        yield server.address


@pytest.fixture
def refused_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscriber that has to be refused waits for that as long as it takes, and not for half a second."""
    monkeypatch.setattr("prober.brokers.subscriber.OPEN_GRACE_S", WAIT_S)
    monkeypatch.setattr("prober.brokers.subscriber.REFUSAL_GRACE_S", WAIT_S)


@dataclass(frozen=True)
class Service:
    """Where a contract test runs; shared by all of them."""

    name: str
    address: str

    @property
    def is_emulator(self) -> bool:
        return self.name == "emulator"

    def context(self, vantage: Vantage) -> AbstractAsyncContextManager[OwnBroker]:
        """A broker on this service, and the certainty that nothing of it is left when the test is over."""
        return own_broker(self.address, vantage)


@pytest.fixture(params=["emulator", "embedded"])
def service(request: pytest.FixtureRequest) -> Service:
    return Service(request.param, request.getfixturevalue(f"{request.param}_address"))


@pytest.fixture(params=list(Vantage), ids=str)
def vantage(request: pytest.FixtureRequest) -> Vantage:
    assert isinstance(request.param, Vantage)
    return request.param


@pytest.fixture(autouse=True)
def _errors_in_threads_are_errors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What goes wrong in a callback of the event loop or in a thread fails the test that it belongs to.

    One thing is not ours: gRPC finishes calls that were cancelled in the background, and stumbles when their event loop, that of an
    earlier test, is closed by then.
    """
    problems: list[str] = []

    def note(_: object, context: dict[str, object]) -> None:
        if "PollerCompletionQueue" not in str(context.get("handle")):
            problems.append(str(context))

    monkeypatch.setattr(asyncio.BaseEventLoop, "default_exception_handler", note)
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: problems.append(str(unraisable)))
    yield
    assert problems == []
