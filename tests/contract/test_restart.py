"""A server that goes away and comes back."""

from __future__ import annotations

import asyncio

from prober.brokers.base import (
    Broker,
    Confirmed,
    FlowControlSettings,
    Outgoing,
    SubscriptionSettings,
    TopicSettings,
    Unknown,
    Vantage,
)
from prober.brokers.endpoint import Endpoint
from prober.embedded.server import EmbeddedServer
from prober.errors import BrokerUnavailable
from tests.contract.context import LABELS, PROJECT, WAIT_S, Notebook, connect

TOPIC, SUBSCRIPTION = f"{PROJECT}/topics/restart", f"{PROJECT}/subscriptions/restart"


async def created(broker: Broker) -> bool:
    """Creates topic and subscription; False while there is no server."""
    try:
        await broker.admin.create_topic(TOPIC, TopicSettings(LABELS))
        await broker.admin.create_subscription(SUBSCRIPTION, SubscriptionSettings(TOPIC, labels=LABELS))
    except BrokerUnavailable:
        return False
    return True


async def test_a_restarted_server_is_found_again(vantage: Vantage) -> None:
    notebook = Notebook()
    async with EmbeddedServer() as server:
        address = server.address
        broker = await connect(Endpoint(address, secure=False), vantage)
        assert await created(broker)
        await broker.subscriber(SUBSCRIPTION, "one", FlowControlSettings(), 10).start(notebook)
        publisher = broker.publisher(TOPIC)
        (before,) = await publisher.publish([Outgoing("before", b"1")], WAIT_S)
        assert isinstance(before, Confirmed)
        await notebook.until(lambda: len(notebook.messages) == 1)
    (meanwhile,) = await publisher.publish([Outgoing("meanwhile", b"1")], 0.3)
    assert isinstance(meanwhile, Unknown)
    await notebook.until(lambda: bool(notebook.closings))
    async with EmbeddedServer(port=int(address.rpartition(":")[2])):
        # The server forgets everything. The subscriber may have met it before the subscription was there again.
        while not await created(broker):
            await asyncio.sleep(0.1)
        for number in range(100):
            if len({message.ordering_key for message in notebook.messages} - {"before", "meanwhile"}) > 0:
                break
            await publisher.publish([Outgoing(f"after {number}", b"1")], 1)
            await asyncio.sleep(0.1)
        await notebook.until(lambda: any(message.ordering_key.startswith("after") for message in notebook.messages))
        assert len({session.name for session in notebook.sessions}) == len(notebook.sessions) >= 2
        await broker.close()
    assert len(notebook.closings) == len(notebook.sessions)
