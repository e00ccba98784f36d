"""Unary pull: each pull a session of its own, reported from its request to its end, answered or not."""

from __future__ import annotations

import asyncio

import pytest

from prober.brokers.base import BrokerSession, Received, Vantage
from prober.brokers.endpoint import Endpoint
from prober.errors import BrokerUnavailable, ConnectionGivenUp, NotThere
from tests.contract.conftest import Service
from tests.contract.context import PROJECT, WAIT_S, Closed, Got, Notebook, Opened, connect
from tests.contract.places import dead_server, silent_server


async def test_a_response_is_a_session(service: Service, vantage: Vantage) -> None:
    held: list[tuple[BrokerSession, Received]] = []
    async with service.context(vantage) as context:
        await context.publish("k", ["1", "2", "3"])
        notebook = Notebook(lambda session, received: held.append((session, received)))
        puller = context.broker.puller(context.subscription)
        assert await puller.pull(notebook, 2, WAIT_S)
        assert [type(what) for what in notebook.reported] == [Opened, Got, Got, Closed]
        assert not notebook.closings[0].lost
        (session,) = notebook.sessions
        assert session.name == session.subscriber
        assert session.flow is None
        assert notebook.texts("k") == ["1", "2"]
        # Of a key only one batch may be outstanding. Some services answer with nothing, others not at all.
        assert not await puller.pull(notebook, 2, 0.5)
        assert len(notebook.closings) == 2
        for session, received in held:
            session.ack(received)
        assert await puller.pull(notebook, 2, WAIT_S)
        assert notebook.texts("k") == ["1", "2", "3"]
        assert len({session.name for session in notebook.sessions}) == 3
        assert [closing.session for closing in notebook.closings] == notebook.sessions
        assert not notebook.closings[2].lost


async def test_what_is_nacked_is_redelivered_by_pull(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        await context.publish("k", ["1"])
        notebook = Notebook(lambda session, received: session.nack(received))
        puller = context.broker.puller(context.subscription)
        assert await puller.pull(notebook, 2, WAIT_S)
        assert await puller.pull(notebook, 2, WAIT_S)
        assert notebook.texts("k") == ["1", "1"]


async def test_what_was_acknowledged_before_closing_is_sent(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        await context.publish("k", ["1", "2"])
        notebook = Notebook()
        puller = context.broker.puller(context.subscription)
        assert await puller.pull(notebook, 1, WAIT_S)
        await puller.close()
        assert await context.broker.puller(context.subscription).pull(notebook, 1, WAIT_S)
        assert notebook.texts("k") == ["1", "2"]


async def test_a_missing_subscription_is_not_there(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        with pytest.raises(NotThere):
            await context.broker.puller(f"{PROJECT}/subscriptions/nowhere").pull(notebook, 1, WAIT_S)
        assert reported_lost(notebook) == 1


def reported_lost(notebook: Notebook) -> int:
    """How many pulls there were, of which each ended without an answer."""
    assert [type(what) for what in notebook.reported] == [Opened, Closed] * len(notebook.sessions)
    assert all(closing.lost and closing.reason for closing in notebook.closings)
    return len(notebook.sessions)


async def test_closing_ends_a_pull_that_waits(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        puller = context.broker.puller(context.subscription)
        notebook = Notebook()
        waiting = asyncio.create_task(puller.pull(notebook, 1, 30))
        await asyncio.sleep(0.1)
        await puller.close()
        with pytest.raises(ConnectionGivenUp, match="the prober closed the connection"):
            await asyncio.wait_for(waiting, 10)
        with pytest.raises(ConnectionGivenUp, match="the prober closed the connection"):
            await puller.pull(notebook, 1, 30)
        assert reported_lost(notebook) == 1  # the second was never sent


async def test_a_pull_that_its_caller_gives_up_is_reported_as_lost(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        waiting = asyncio.create_task(context.broker.puller(context.subscription).pull(notebook, 1, 30))
        await notebook.until(lambda: bool(notebook.sessions))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert reported_lost(notebook) == 1


async def test_a_pull_that_is_not_answered_in_time_is_reported_as_lost(vantage: Vantage) -> None:
    async with silent_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        notebook = Notebook()
        assert not await broker.puller(f"{PROJECT}/subscriptions/any").pull(notebook, 1, 0.3)
        assert reported_lost(notebook) == 1
        await broker.close()


async def test_nobody_answers(vantage: Vantage) -> None:
    async with dead_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        notebook = Notebook()
        with pytest.raises(BrokerUnavailable):
            await broker.puller(f"{PROJECT}/subscriptions/any").pull(notebook, 1, WAIT_S)
        assert reported_lost(notebook) == 1
        await broker.close()
