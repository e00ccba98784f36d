"""The adapter for NATS JetStream keeps the contract of the port, on a real server of its own."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prober.brokers.base import BrokerSession, FlowControlSettings, Received
from prober.brokers.nats import NatsSubscriber
from prober.cli.observe import observe_once
from prober.cli.process import ExitCode
from prober.config.sections import Observe
from prober.core.findings import Kind
from prober.core.verdict import Verdict
from prober.errors import BrokerUnavailable, NotThere
from tests.contract.context import WAIT_S, Closed, Notebook, Opened

nats = pytest.importorskip("nats", reason="needs the extra nats: `make lock`, then the set-up")

ACK_DEADLINE_S = 2
SUBJECTS = "orders.>"


@dataclass
class Nats:
    """A server, and a client that publishes."""

    port: int
    folder: Path
    client: Any = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts it, perhaps again on what it had stored."""
        command = [program(), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        async with asyncio.timeout(WAIT_S):
            while True:
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                        return
                await asyncio.sleep(0.05)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def publish(self, *texts: str, subject: str = "orders.k", headers: dict[str, str] | None = None) -> list[str]:
        stored = [await self.client.jetstream().publish(subject, text.encode(), headers=headers) for text in texts]
        return [str(each.seq) for each in stored]

    def subscriber(self, stream: str = "ORDERS", messages_max: int = 1000) -> NatsSubscriber:
        flow = FlowControlSettings(messages_max)
        return NatsSubscriber(self.address, stream, SUBJECTS, "observer", flow, ACK_DEADLINE_S)


def program() -> str:
    """The server, beside the interpreter or on the PATH."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        pytest.skip("needs nats-server")
    return found


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Nats]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = Nats(free.getsockname()[1], folder)
    await server.start()
    server.client = await nats.connect(server.address, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=quiet)
    await server.client.jetstream().add_stream(name="ORDERS", subjects=[SUBJECTS])
    try:
        yield server
    finally:
        await server.client.close()
        server.kill()


async def quiet(_error: Exception) -> None:
    """What the publisher's client complains about while the server is away."""


async def test_each_subject_arrives_in_order_as_it_was_published(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        notebook, subscriber = Notebook(), server.subscriber()
        await server.publish("before anybody listened")
        await subscriber.start(notebook)
        for number in range(20):
            for key in range(3):
                await server.publish(str(number), subject=f"orders.{key}", headers={"seq": str(number)})
        await notebook.until(lambda: len(notebook.messages) >= 60)
        await subscriber.close()
        for key in range(3):
            assert notebook.texts(f"orders.{key}") == [str(number) for number in range(20)]
        ids = [int(received.message_id) for received in notebook.messages]
        assert ids == sorted(set(ids))
        last = notebook.messages[-1]
        assert (last.attributes, last.delivery_attempt) == ({"seq": "19"}, 1)
        assert last.publish_time is not None
        assert 1_600_000_000 * 10**9 < last.publish_time < 10_000_000_000 * 10**9
        assert isinstance(notebook.reported[0], Opened)
        assert isinstance(notebook.reported[-1], Closed)


async def test_what_is_nacked_is_redelivered_alone(tmp_path: Path) -> None:
    """Unlike Pub/Sub: what follows it is not redelivered."""
    refused: list[str] = []

    def refuse_the_second_once(session: BrokerSession, received: Received) -> None:
        if received.data == b"2" and not refused:
            refused.append(received.message_id)
            session.nack(received)
        else:
            session.ack(received)

    async with serving(tmp_path) as server:
        notebook, subscriber = Notebook(refuse_the_second_once), server.subscriber()
        await subscriber.start(notebook)
        ids = await server.publish("1", "2", "3")
        await notebook.until(lambda: len(notebook.messages) == 4)
        await subscriber.close()
        assert [received.message_id for received in notebook.messages].count(ids[1]) == 2
        assert [received.delivery_attempt for received in notebook.messages if received.data == b"2"] == [1, 2]
        assert notebook.texts("orders.k").count("3") == 1


async def test_no_more_is_outstanding_than_was_allowed(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        notebook, subscriber = Notebook(lambda _session, _received: None), server.subscriber(messages_max=2)
        await subscriber.start(notebook)
        await server.publish(*"12345")
        await notebook.until(lambda: len(notebook.messages) == 4)  # the first two again, when their deadline has passed
        await subscriber.close()
        assert [received.data for received in notebook.messages[:4]] == [b"1", b"2", b"1", b"2"]


async def test_another_connection_is_another_session_and_nothing_is_missing(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        notebook, subscriber = Notebook(), server.subscriber()
        await subscriber.start(notebook)
        await server.publish("1", "2")
        await notebook.until(lambda: len(notebook.messages) == 2)
        server.kill()
        await notebook.until(lambda: any(isinstance(what, Closed) for what in notebook.reported))
        await server.start()
        await notebook.until(lambda: len(notebook.sessions) == 2)
        await server.publish("3", "4")
        await notebook.until(lambda: {"3", "4"} <= set(notebook.texts("orders.k")))
        await subscriber.close()
        first, second = notebook.sessions
        assert first.name != second.name
        assert first.subscriber == second.subscriber


async def test_a_stream_that_is_not_there_is_reported(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        with pytest.raises(NotThere, match="has no stream NONE"):
            await server.subscriber("NONE").start(Notebook())


async def test_a_server_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prober.brokers.nats.OPEN_TIMEOUT_S", 1.0)
    away = NatsSubscriber("nats://127.0.0.1:1", "ORDERS", SUBJECTS, "observer", FlowControlSettings(), ACK_DEADLINE_S)
    with pytest.raises(BrokerUnavailable, match="cannot be reached"):
        await away.start(Notebook())
    await away.close()


async def test_a_stream_is_observed(tmp_path: Path) -> None:
    """Messages redelivered alone, and two that their publisher exchanged: the order of first deliveries is verified, nothing else."""
    async with serving(tmp_path) as server:
        wanted = Observe(topic="ORDERS", sequence="attributes.seq", duration=timedelta(minutes=5))
        stop = asyncio.Event()
        observing = asyncio.create_task(observe_once(wanted, server.address, {}, stop=stop))
        about = server.client.jetstream()
        async with asyncio.timeout(WAIT_S):
            while not await about.consumers_info("ORDERS"):
                await asyncio.sleep(0.05)
        for seq in (*range(1, 12), 13, 12, 14):
            await server.publish("{}", headers={"seq": str(seq)})
        async with asyncio.timeout(WAIT_S):
            while (await about.consumers_info("ORDERS"))[0].ack_floor.stream_seq < 14:
                await asyncio.sleep(0.05)
        stop.set()
        seen = await observing
    assert seen.stream.counts["received"] == 14
    assert [made.finding.kind for made in seen.result.findings if made.finding.kind in KINDS_OF_ORDER] == [
        Kind.PUBLISHED_OUT_OF_ORDER
    ]
    assert (seen.result.verdict, seen.exit_code) == (Verdict.PASS, ExitCode.FAIL)
    assert "ORDERS: FAIL" in seen.as_text()
    assert "NATS kept the order" in seen.as_text()
    assert "Pub/Sub" not in seen.as_text() + seen.as_json()
    assert "key orders.k" in seen.as_text()


KINDS_OF_ORDER = {Kind.PUBLISHED_OUT_OF_ORDER, Kind.DELIVERED_OUT_OF_ORDER, Kind.REDELIVERY_SKIP, Kind.REDELIVERY_STALL}


async def test_no_such_stream_is_reported(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        seen = await observe_once(Observe(topic="NOTHING"), server.address, {})
    assert seen.exit_code is ExitCode.UNKNOWN
    assert "has no stream NOTHING" in seen.as_text()
