"""Unary pull: each response a session of its own."""

from __future__ import annotations

import asyncio

import pytest

from prober.brokers.base import Received, Session, Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint
from prober.errors import BrokerUnavailable, NotThere
from tests.contract.conftest import Service
from tests.contract.places import dead_server
from tests.contract.stage import PROJECT, WAIT_S, Got, Notebook, Opened


async def test_a_response_is_a_session(service: Service, vantage: Vantage) -> None:
    held: list[tuple[Session, Received]] = []
    async with service.stage(vantage) as stage:
        await stage.publish("k", ["1", "2", "3"])
        notebook = Notebook(lambda session, received: held.append((session, received)))
        puller = stage.broker.puller(stage.subscription)
        began = asyncio.get_running_loop().time()
        assert await puller.pull(notebook, 2, WAIT_S)
        assert [type(what) for what in notebook.told] == [Opened, Got, Got]
        opened = notebook.told[0]
        assert isinstance(opened, Opened)
        assert opened.invoked_t is not None
        assert began <= opened.invoked_t <= asyncio.get_running_loop().time()
        assert opened.session.name == opened.session.subscriber
        assert notebook.texts("k") == ["1", "2"]
        # Of a key only one batch may be outstanding.
        assert not await puller.pull(notebook, 2, 0.5)
        for session, received in held:
            session.ack(received)
        assert await puller.pull(notebook, 2, WAIT_S)
        assert notebook.texts("k") == ["1", "2", "3"]
        assert len({session.name for session in notebook.sessions}) == 2


async def test_what_is_refused_comes_again_by_pull(service: Service, vantage: Vantage) -> None:
    async with service.stage(vantage) as stage:
        await stage.publish("k", ["1"])
        notebook = Notebook(lambda session, received: session.nack(received))
        puller = stage.broker.puller(stage.subscription)
        assert await puller.pull(notebook, 2, WAIT_S)
        assert await puller.pull(notebook, 2, WAIT_S)
        assert notebook.texts("k") == ["1", "1"]


async def test_what_was_acknowledged_before_closing_is_sent(service: Service, vantage: Vantage) -> None:
    async with service.stage(vantage) as stage:
        await stage.publish("k", ["1", "2"])
        notebook = Notebook()
        puller = stage.broker.puller(stage.subscription)
        assert await puller.pull(notebook, 1, WAIT_S)
        await puller.close()
        assert await stage.broker.puller(stage.subscription).pull(notebook, 1, WAIT_S)
        assert notebook.texts("k") == ["1", "2"]


async def test_a_missing_subscription_is_not_there(service: Service, vantage: Vantage) -> None:
    async with service.stage(vantage) as stage:
        with pytest.raises(NotThere):
            await stage.broker.puller(f"{PROJECT}/subscriptions/nowhere").pull(Notebook(), 1, WAIT_S)


async def test_closing_ends_a_pull_that_waits(service: Service, vantage: Vantage) -> None:
    async with service.stage(vantage) as stage:
        puller = stage.broker.puller(stage.subscription)
        waiting = asyncio.create_task(puller.pull(Notebook(), 1, 30))
        await asyncio.sleep(0.1)
        await puller.close()
        with pytest.raises(BrokerUnavailable, match="closed on our side"):
            await asyncio.wait_for(waiting, 10)
        with pytest.raises(BrokerUnavailable, match="closed on our side"):
            await puller.pull(Notebook(), 1, 30)


async def test_nobody_answers(vantage: Vantage) -> None:
    async with dead_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        with pytest.raises(BrokerUnavailable):
            await broker.puller(f"{PROJECT}/subscriptions/any").pull(Notebook(), 1, WAIT_S)
        await broker.close()
