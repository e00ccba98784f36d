"""A broker lives for months, what it makes for minutes: what was closed is forgotten, and what is open is closed with the broker."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from google.cloud.pubsub_v1.subscriber._protocol.leaser import Leaser  # type: ignore[import-untyped]
from google.pubsub_v1 import types

from prober.brokers.base import Confirmed, FlowControlSettings, Outgoing, Rejected, TopicSettings, Vantage
from prober.brokers.endpoint import Endpoint
from prober.brokers.subscriber import OPEN_TIMEOUT_S
from prober.errors import ConnectionGivenUp, NotThere
from tests.contract.conftest import Service
from tests.contract.context import LABELS, PROJECT, WAIT_S, Closed, Notebook, Opened, OwnBroker, connect, nothing_left
from tests.contract.places import dead_server

MISSING = f"{PROJECT}/subscriptions/nowhere"


async def a_publisher(context: OwnBroker) -> weakref.ref[Any]:
    publisher = context.broker.publisher(context.topic)
    await publisher.publish([Outgoing("k", b"1")], WAIT_S)
    await publisher.close()
    return weakref.ref(publisher)


async def a_puller(context: OwnBroker) -> weakref.ref[Any]:
    await context.publish("k", ["1"])
    puller = context.broker.puller(context.subscription)
    assert await puller.pull(Notebook(), 1, WAIT_S)
    await puller.close()
    return weakref.ref(puller)


async def a_subscriber(context: OwnBroker) -> weakref.ref[Any]:
    await context.publish("k", ["1"])
    notebook = Notebook()
    subscriber = await context.subscribe(notebook)
    await notebook.until(lambda: len(notebook.messages) == 1)
    await subscriber.close()
    return weakref.ref(subscriber)


@pytest.mark.parametrize("use", [a_publisher, a_puller, a_subscriber])
async def test_what_was_closed_is_forgotten(
    service: Service, vantage: Vantage, use: Callable[[OwnBroker], Awaitable[weakref.ref[Any]]]
) -> None:
    async with service.context(vantage) as context:
        await forgotten(await use(context))


@pytest.mark.usefixtures("refused_late")
async def test_what_did_not_start_is_forgotten(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        subscriber = context.broker.subscriber(MISSING, "one", FlowControlSettings(), 10)
        with pytest.raises(NotThere):
            await subscriber.start(Notebook())
        reference = weakref.ref(subscriber)
        del subscriber
        await forgotten(reference)


@pytest.mark.usefixtures("refused_late")
async def test_what_is_refused_while_it_starts_leaves_no_thread(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client starts the thread that keeps leases after the one that opens the stream: here it is slower than the refusal."""
    start, stop, stopped = Leaser.start, Leaser.stop, threading.Event()

    def start_late(leaser: Leaser) -> None:
        stopped.wait(0.3)
        start(leaser)

    def tell_stop(leaser: Leaser) -> None:
        stop(leaser)
        stopped.set()

    monkeypatch.setattr(Leaser, "start", start_late)
    monkeypatch.setattr(Leaser, "stop", tell_stop)
    async with service.context(Vantage.LIBRARY) as context:
        with pytest.raises(NotThere):
            await context.broker.subscriber(MISSING, "one", FlowControlSettings(), 10).start(Notebook())


async def forgotten(reference: weakref.ref[Any]) -> None:
    """Waits until nobody knows of it any more."""
    async with asyncio.timeout(WAIT_S):
        while reference() is not None:
            await asyncio.sleep(0.02)  # threads let go of what they called
            gc.collect()


async def test_what_is_open_is_closed_with_the_broker(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        broker = await connect(Endpoint(context.address, secure=False), vantage)
        notebook = Notebook()
        await broker.subscriber(context.subscription, "one", FlowControlSettings(), 10).start(notebook)
        publisher, puller = broker.publisher(context.topic), broker.puller(context.subscription)
        await broker.close()
        await broker.close()
        assert [type(what) for what in notebook.reported] == [Opened, Closed]
        (outcome,) = await publisher.publish([Outgoing("k", b"1")], WAIT_S)
        assert isinstance(outcome, Rejected)
        with pytest.raises(ConnectionGivenUp, match="the prober closed the connection"):
            await puller.pull(Notebook(), 1, WAIT_S)
        with pytest.raises(ConnectionGivenUp, match="the prober closed the connection"):
            await broker.admin.create_topic(context.topic, TopicSettings(LABELS))
        with pytest.raises(ConnectionGivenUp, match="the prober closed the connection"):
            await broker.subscriber(context.subscription, "two", FlowControlSettings(), 10).start(notebook)
        assert [type(what) for what in notebook.reported] == [Opened, Closed]


@pytest.mark.parametrize("delay_s", [0, 0.01, 0.1])
async def test_closing_ends_a_start(service: Service, vantage: Vantage, delay_s: float) -> None:
    """At each stage of it: before anything was asked, when it was, and when the other side is silent."""
    async with service.context(vantage) as context:
        broker = await connect(Endpoint(context.address, secure=False), vantage)
        notebook = Notebook()
        starting = asyncio.create_task(broker.subscriber(context.subscription, "one", FlowControlSettings(), 10).start(notebook))
        await asyncio.sleep(delay_s)
        await broker.close()
        (result,) = await asyncio.gather(starting, return_exceptions=True)
        # It may have been open already.
        assert result is None or "the prober closed the connection" in str(result)
        assert len(notebook.sessions) == len(notebook.closings)


async def test_closing_ends_a_start_that_waits_for_a_connection(vantage: Vantage) -> None:
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
    async with dead_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        starting = asyncio.create_task(broker.subscriber(MISSING, "one", FlowControlSettings(), 10).start(Notebook()))
        await asyncio.sleep(0.1)
        await broker.close()
        with pytest.raises(ConnectionGivenUp, match="the prober closed the connection"):
            await asyncio.wait_for(starting, OPEN_TIMEOUT_S / 2)
    await nothing_left(tasks, threads)


async def test_a_subscriber_is_started_once(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        subscriber = await context.subscribe(Notebook())
        with pytest.raises(RuntimeError, match="started once"):
            await subscriber.start(Notebook())


async def test_no_two_brokers_share_a_connection(vantage: Vantage) -> None:
    """It carries a limited number of streams, and one that waits before it connects again would make the other wait."""
    peers: list[str] = []

    async def publish(_: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        peers.append(context.peer())
        return bytes(types.PublishResponse.serialize(types.PublishResponse(message_ids=["1"])))

    server = grpc.aio.server()
    handlers: dict[str, Any] = {"Publish": grpc.unary_unary_rpc_method_handler(publish)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("google.pubsub.v1.Publisher", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    brokers = [await connect(Endpoint(f"127.0.0.1:{port}", secure=False), vantage) for _ in range(2)]
    for broker in brokers:
        assert await broker.publisher(f"{PROJECT}/topics/any").publish([Outgoing("k", b"1")], WAIT_S) == [Confirmed("1")]
    assert len(peers) == len(set(peers)) == 2
    for broker in brokers:
        await broker.close()
    await server.stop(None)
