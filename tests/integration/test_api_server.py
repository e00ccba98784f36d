"""The web server for real: it says where it listens, leaves signals alone, ends when it is asked to, and complains in one line."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from fastapi import FastAPI

from api.app import create_app
from prober.config.loading import load
from prober.errors import ConfigError
from prober.serving.server import listen, serve, serve_until, stop_signals
from tests.unit.api.asking import EUROPE, view

WAIT_S = 20.0


def app() -> FastAPI:
    """On an empty store."""
    asked = view(EUROPE)
    asked.tell()
    return create_app(asked, asked.archive, asked.settings)


@asynccontextmanager
async def running(host: str = "127.0.0.1") -> AsyncIterator[str]:
    """A server on a free port; its URL."""
    announced: asyncio.Queue[str] = asyncio.Queue()
    serving = asyncio.create_task(serve(app(), await listen(host, 0), announce=announced.put_nowait))
    try:
        yield await asyncio.wait_for(announced.get(), WAIT_S)
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(serving, WAIT_S)


def failure(host: str, port: int) -> str:
    """The complaint of a server that cannot listen."""

    async def trying() -> None:
        (await asyncio.wait_for(listen(host, port), WAIT_S)).close()

    with pytest.raises(ConfigError) as failed:
        asyncio.run(trying())
    return str(failed.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_it_answers_where_it_says(host: str) -> None:
    async def asking() -> None:
        async with running(host) as url, httpx.AsyncClient(base_url=url, timeout=WAIT_S) as client:
            assert (await client.get("/healthz")).json() == {"alive": True}
            assert "STARTING" in (await client.get("/")).text
            head = await client.head("/")
            assert (head.status_code, head.content) == (200, b"")
            assert "server" not in head.headers

    asyncio.run(asking())


def test_it_ends_when_asked_and_the_port_is_free_again() -> None:
    async def asking() -> tuple[str, int]:
        async with running() as url, httpx.AsyncClient(timeout=WAIT_S) as client:
            await client.get(f"{url}healthz")  # leaves a connection open
            address = httpx.URL(url)
            assert address.port
        return address.host, address.port

    with socket.create_server(asyncio.run(asking())):
        pass


def test_signals_are_left_to_the_service() -> None:
    async def asking() -> list[object]:
        async with running():
            return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    before = signal.getsignal(signal.SIGTERM)
    during = asyncio.run(asking())
    assert during[1] == before
    assert "uvicorn" not in repr(during)


@pytest.mark.parametrize(("number", "usual"), [(signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)])
def test_a_signal_ends_it(number: signal.Signals, usual: signal.Handlers) -> None:
    async def serving() -> None:
        with stop_signals() as stop:
            await asyncio.wait_for(
                serve_until(stop, app(), await listen("127.0.0.1", 0), announce=lambda _: os.kill(os.getpid(), number)), WAIT_S
            )

    before = signal.signal(number, usual)  # whoever runs the tests in the background has interrupts ignored
    try:
        asyncio.run(serving())
        assert signal.getsignal(number) == usual
    finally:
        signal.signal(number, before)


def test_an_answer_does_not_wait_for_acknowledgements() -> None:
    """A body that follows its headers by itself would wait 40 ms for the client's delayed ACK (Nagle's algorithm)."""

    async def connected() -> int:
        with await listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                return accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    assert asyncio.run(connected()) != 0


def test_a_taken_port_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert failure("127.0.0.1", port) == f"port {port} is taken; name another with api.port or ORDERING_PROBER_API__PORT"


def test_an_address_that_is_not_ours_is_one_clear_line() -> None:
    reserved_for_documentation = "192.0.2.1"
    complaint = failure(reserved_for_documentation, 0)
    assert complaint.startswith("cannot listen on 192.0.2.1: ")
    assert complaint.endswith("; name an address of this machine with api.host or ORDERING_PROBER_API__HOST")


def test_the_variables_that_it_names_exist() -> None:
    api = load(None, {"ORDERING_PROBER_API__PORT": "9090", "ORDERING_PROBER_API__HOST": "0.0.0.0"}).api
    assert (api.port, api.host) == (9090, "0.0.0.0")
