"""Publishing: three outcomes, in order, in time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from google.cloud.pubsub_v1.publisher.exceptions import PublishToPausedOrderingKeyException  # type: ignore[import-untyped]

from prober.brokers.base import Confirmed, Outcome, Outgoing, Rejected, Unknown, Vantage
from prober.brokers.endpoint import Endpoint
from tests.contract.conftest import Service
from tests.contract.context import PROJECT, WAIT_S, Notebook, connect, nothing_left
from tests.contract.places import dead_server, silent_server

TOPIC = f"{PROJECT}/topics/nowhere"
DEADLINE_S = 0.5
LATE_S = DEADLINE_S + 10.0


async def test_messages_published_together_are_confirmed_in_order(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        publisher = context.broker.publisher(context.topic)
        first = await publisher.publish([Outgoing("k", b"%d" % n) for n in range(20)], WAIT_S)
        second = await publisher.publish([Outgoing("k", b"20", {"a": "b"})], WAIT_S)
        without_key = await publisher.publish([Outgoing("", b"no key")], WAIT_S)
        outcomes = [*first, *second, *without_key]
        assert all(isinstance(outcome, Confirmed) for outcome in outcomes)
        ids = [outcome.message_id for outcome in outcomes if isinstance(outcome, Confirmed)]
        assert len(set(ids)) == 22
        notebook = Notebook()
        await context.subscribe(notebook)
        await notebook.until(lambda: len(notebook.messages) >= 22)
        assert notebook.texts("k") == [str(n) for n in range(21)]
        assert [message.message_id for message in notebook.messages if message.ordering_key == "k"] == ids[:21]


async def test_nothing_to_publish_is_nothing(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        assert list(await context.broker.publisher(context.topic).publish([], WAIT_S)) == []


async def test_a_missing_topic_rejects(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        outcomes = await context.broker.publisher(TOPIC).publish([Outgoing("k", b"1"), Outgoing("k", b"2")], WAIT_S)
        assert [type(outcome) for outcome in outcomes] == [Rejected, Rejected]


async def test_a_key_can_be_resumed_after_a_rejection(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        publisher = context.broker.publisher(context.topic)
        (refused,) = await publisher.publish([Outgoing("k", b"")], WAIT_S)
        assert isinstance(refused, Rejected)
        await publisher.resume("k")
        await publisher.resume("k")
        await publisher.resume("never seen")
        (accepted,) = await publisher.publish([Outgoing("k", b"1")], WAIT_S)
        assert isinstance(accepted, Confirmed)
        assert publisher.unexplained_stops == 0


async def test_a_key_that_the_library_stops_without_a_failed_publish_is_counted_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service.context(Vantage.LIBRARY) as context:
        publisher: Any = context.broker.publisher(context.topic)
        assert isinstance((await publisher.publish([Outgoing("k", b"1")], WAIT_S))[0], Confirmed)
        paused: Future[str] = Future()
        paused.set_exception(PublishToPausedOrderingKeyException(b"k"))
        with monkeypatch.context() as patched:
            patched.setattr(publisher._client, "publish", lambda *_, **__: paused)
            (stopped,) = await publisher.publish([Outgoing("k", b"2")], WAIT_S)
        await publisher.resume("k")
        (accepted,) = await publisher.publish([Outgoing("k", b"2")], WAIT_S)
        assert isinstance(stopped, Rejected)
        assert isinstance(accepted, Confirmed)
        assert publisher.unexplained_stops == 1


async def test_a_key_that_was_not_resumed_stays_paused_in_the_library(service: Service) -> None:
    async with service.context(Vantage.LIBRARY) as context:
        publisher = context.broker.publisher(context.topic)
        await publisher.publish([Outgoing("k", b"")], WAIT_S)
        (paused, other) = await publisher.publish([Outgoing("k", b"1"), Outgoing("l", b"1")], WAIT_S)
        assert isinstance(paused, Rejected)
        assert "PausedOrderingKey" in paused.reason
        assert publisher.unexplained_stops == 0
        assert isinstance(other, Confirmed)


async def test_what_waited_behind_a_rejected_message_was_never_sent(service: Service) -> None:
    """A batch of the client has 100 messages: the first batch fails, those behind it are cancelled, and the client still works."""
    async with service.context(Vantage.LIBRARY) as context:
        publisher = context.broker.publisher(context.topic)
        outcomes = await publisher.publish([Outgoing("k", b"" if n == 0 else b"x") for n in range(250)], WAIT_S)
        assert all(isinstance(outcome, Rejected) for outcome in outcomes)
        assert "never sent" in str(outcomes[-1])
        assert publisher.unexplained_stops == 0
        await publisher.resume("k")
        (accepted,) = await publisher.publish([Outgoing("k", b"1")], WAIT_S)
        assert isinstance(accepted, Confirmed)


async def test_a_key_of_1024_bytes_is_taken_and_a_longer_one_refused(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        publisher = context.broker.publisher(context.topic)
        (longest,) = await publisher.publish([Outgoing("k" * 1024, b"1")], WAIT_S)
        (longer,) = await publisher.publish([Outgoing("k" * 1025, b"1")], WAIT_S)
        assert isinstance(longest, Confirmed)
        # The emulator has no such limit.
        assert isinstance(longer, Confirmed if service.is_emulator else Rejected)


async def test_a_reserved_attribute_is_refused_by_the_library_before_it_is_sent(service: Service) -> None:
    async with service.context(Vantage.LIBRARY) as context:
        (outcome,) = await context.broker.publisher(context.topic).publish([Outgoing("k", b"1", {"timeout": "5"})], WAIT_S)
        assert outcome == Rejected("never sent: the client library takes no attribute named timeout")


@pytest.mark.parametrize("server", [dead_server, silent_server])
async def test_without_an_answer_the_outcome_is_unknown_in_time(
    server: Callable[[], AbstractAsyncContextManager[str]], vantage: Vantage
) -> None:
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
    async with server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        publisher = broker.publisher(TOPIC)
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcomes = await publisher.publish([Outgoing("k", b"1"), Outgoing("l", b"2")], DEADLINE_S)
        assert loop.time() - began < LATE_S
        assert [type(outcome) for outcome in outcomes] == [Unknown, Unknown]
        await broker.close()
    await nothing_left(tasks, threads)


def was_not_started(vantage: Vantage, outcome: Outcome) -> bool:
    """Whether the program of the external vantage did not take commands yet."""
    return vantage is Vantage.EXTERNAL and isinstance(outcome, Rejected) and outcome.reason.startswith("never sent")


async def test_closing_ends_a_publish_that_waits(vantage: Vantage) -> None:
    async with silent_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        publisher = broker.publisher(TOPIC)
        publishing = asyncio.create_task(publisher.publish([Outgoing("k", b"1")], 30))
        await asyncio.sleep(0.1)
        await publisher.close()
        (outcome,) = await asyncio.wait_for(publishing, 10)
        assert isinstance(outcome, Unknown) or was_not_started(vantage, outcome)
        (after,) = await publisher.publish([Outgoing("k", b"1")], 30)
        assert isinstance(after, Rejected)
        await publisher.close()
        await broker.close()


async def test_closing_ends_a_publish_that_was_not_sent_yet(vantage: Vantage) -> None:
    """The client library waits a moment for more messages, and sends what it has when it is stopped."""
    async with silent_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        publisher = broker.publisher(TOPIC)
        publishing = asyncio.create_task(publisher.publish([Outgoing("k", b"1")], 30))
        await asyncio.sleep(0)
        await publisher.close()
        (outcome,) = await asyncio.wait_for(publishing, 10)
        assert isinstance(outcome, Unknown) or was_not_started(vantage, outcome)
        await broker.close()


async def test_a_cancelled_publish_leaves_nothing_behind(vantage: Vantage) -> None:
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
    async with silent_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        publishing = asyncio.create_task(broker.publisher(TOPIC).publish([Outgoing("k", b"1")], 30))
        await asyncio.sleep(0.1)
        publishing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await publishing
        await broker.close()
    await nothing_left(tasks, threads)
