"""Clients that connect and then do little: they are not waited for, and take nothing from anybody else."""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import httpx
import pytest
from fastapi import FastAPI, Response
from pydantic import SecretStr

from api import middleware
from api.app import create_app
from prober.config.models import Api
from prober.serving import server
from prober.serving.server import listen, serve
from tests.unit.api.asking import EUROPE, view

WAIT_S = 30.0
SOON_S = 0.2
"""What the server waits in these tests."""
HALF = b"GET /healthz HTTP/1.1\r\nHost: prober\r\n"
POST = b"POST /api/v1/probes/ordering/runs HTTP/1.1\r\nHost: prober\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
RIGHT = b"Authorization: Bearer t\r\n\r\n"

Stream: TypeAlias = tuple[StreamReader, StreamWriter]


class Running:
    """A server, and connections to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.AsyncClient(base_url=url, timeout=WAIT_S)

    async def connected(self, said: bytes = b"") -> Stream:
        """A connection over which this has been sent."""
        url = httpx.URL(self.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(said)
        return reader, writer

    async def answers(self) -> None:
        """It answers everybody else."""
        for path in ("/healthz", "/readyz", "/api/v1/status"):
            assert (await self.client.get(path)).status_code == 200


def run(test: Callable[[Running], Coroutine[None, None, None]], *, large: bytes = b"") -> None:
    """Runs a test against a server; `/large` answers with so much."""

    async def running() -> None:
        async with _served(large) as served:
            await asyncio.wait_for(test(served), WAIT_S)

    asyncio.run(running())


@asynccontextmanager
async def _served(large: bytes) -> AsyncIterator[Running]:
    asked = view(EUROPE)
    asked.settings = Api(token=SecretStr("t"))
    asked.tell()
    app: FastAPI = create_app(asked, asked.archive, asked.settings)
    app.add_api_route("/large", lambda: Response(large))
    announced: asyncio.Queue[str] = asyncio.Queue()
    serving = asyncio.create_task(serve(app, await listen("127.0.0.1", 0), announce=announced.put_nowait))
    served = Running(await announced.get())
    try:
        yield served
    finally:
        await served.client.aclose()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def rest(stream: Stream) -> bytes:
    """What still comes until the server closes."""
    said = b""
    with suppress(ConnectionError):
        while part := await stream[0].read(1 << 16):
            said += part
    stream[1].close()
    return said


async def drips(stream: Stream, said: bytes) -> bytes:
    """What comes while something is sent again and again, until the server closes."""
    answer = asyncio.create_task(rest(stream))
    with suppress(ConnectionError):
        while not answer.done():
            stream[1].write(said)
            await stream[1].drain()
            await asyncio.sleep(SOON_S / 10)  # as a slow client does
    return await answer


async def sends_without_end(writer: StreamWriter) -> None:
    """Raises ConnectionError as soon as the server has closed."""
    while True:
        writer.write(b"X")
        await writer.drain()
        await asyncio.sleep(SOON_S / 10)  # as a slow client does


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server waits for nobody."""
    monkeypatch.setattr(server, "WAIT_MAX_S", SOON_S)
    monkeypatch.setattr(middleware, "BODY_WAIT_MAX_S", SOON_S)


def test_everybody_is_answered_beside_400_idle_connections() -> None:
    async def test(served: Running) -> None:
        idle = [await served.connected(said) for said in (b"", HALF) for _ in range(200)]
        await served.answers()
        for _, writer in idle:
            writer.close()

    run(test)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("said", [b"", HALF], ids=["nothing", "half"])
def test_who_asks_for_nothing_is_not_waited_for(said: bytes) -> None:
    async def test(served: Running) -> None:
        assert await rest(await served.connected(said)) == b""

    run(test)


@pytest.mark.usefixtures("impatient")
def test_who_goes_on_with_half_a_request_is_not_waited_for() -> None:
    async def test(served: Running) -> None:
        assert await drips(await served.connected(HALF), b"X: y\r\n") == b""

    run(test)


@pytest.mark.usefixtures("impatient")
def test_who_asks_for_nothing_more_is_not_waited_for() -> None:
    async def test(served: Running) -> None:
        said = await rest(await served.connected(HALF + b"\r\n"))
        assert said.startswith(b"HTTP/1.1 200")

    run(test)


@pytest.mark.usefixtures("impatient")
def test_a_body_has_its_time_however_its_parts_come() -> None:
    async def test(served: Running) -> None:
        said = await drips(await served.connected(POST + RIGHT), b" ")
        assert said.startswith(b"HTTP/1.1 408")
        assert b"application/problem+json" in said
        assert b"the body did not come within" in said

    run(test)


@pytest.mark.usefixtures("impatient")
def test_a_body_that_nobody_reads_is_not_waited_for() -> None:
    async def test(served: Running) -> None:
        assert (await drips(await served.connected(POST + b"\r\n"), b" ")).startswith(b"HTTP/1.1 401")

    run(test)


@pytest.mark.usefixtures("impatient")
def test_who_does_not_read_is_not_waited_for() -> None:
    async def test(served: Running) -> None:
        stream = await served.connected(b"GET /large HTTP/1.1\r\nHost: prober\r\n\r\n")
        stream[1].transport.pause_reading()  # type: ignore[attr-defined]
        with pytest.raises(ConnectionError):
            await sends_without_end(stream[1])
        stream[1].close()
        await served.answers()

    run(test, large=bytes(32 << 20))


@pytest.mark.usefixtures("impatient")
def test_who_reads_slowly_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(served: Running) -> None:
        reader, writer = await served.connected(b"GET /large HTTP/1.1\r\nHost: prober\r\n\r\n")
        read = await reader.readuntil(b"\r\n\r\n")
        assert b"200 OK" in read
        left = 32 << 20
        while left:
            left -= len(await reader.readexactly(min(left, 1 << 20)))
            await asyncio.sleep(SOON_S / 10)  # as a slow client does; takes longer than the server waits for one that reads nothing
        writer.close()

    run(test, large=bytes(32 << 20))


def test_the_end_does_not_wait_for_bodies(caplog: pytest.LogCaptureFixture) -> None:
    """Which uvicorn would do, and then log each as an error of the application."""
    with socket.socket() as client:

        async def test(served: Running) -> None:
            url = httpx.URL(served.url)
            client.connect((url.host, url.port))
            client.sendall(POST + RIGHT + b"{")
            await served.answers()

        run(test)
        assert client.recv(1) == b""
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_many_that_connect_at_once_are_taken_in_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    open_at_once: list[int] = []
    made = server.HttpConnection.connection_made

    def noted(self: server.HttpConnection, transport: asyncio.Transport) -> None:
        made(self, transport)
        open_at_once.append(len(self.connections))

    monkeypatch.setattr(server.HttpConnection, "connection_made", noted)

    async def test(served: Running) -> None:
        url = httpx.URL(served.url)
        together = [socket.create_connection((url.host, url.port)) for _ in range(200)]  # while the server does nothing
        await served.answers()
        for one in together:
            one.close()

    run(test)
    assert max(open_at_once) <= 3 + 2 * server.ACCEPTED_AT_ONCE < len(open_at_once)


def test_the_longest_idle_connection_goes_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)

    async def test(served: Running) -> None:
        first = await served.connected(HALF + b"\r\n")
        assert b"alive" in await first[0].readuntil(b"}")  # idle only since now
        others = [await served.connected() for _ in range(2)]
        newest = await served.connected(HALF + b"\r\n")
        assert b"alive" in await newest[0].readuntil(b"}")
        assert await rest(first) == b""
        for reader, writer in others:
            writer.write(HALF + b"\r\n")
            assert b"alive" in await reader.readuntil(b"}")
        for _, writer in (*others, newest):
            writer.close()

    run(test)
