"""The control plane: finds what is equal, refuses what is not, and never deletes what is not ours."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from prober.brokers.admin import ServiceAdmin
from prober.brokers.base import SubscriptionSettings, TopicSettings, Vantage
from prober.brokers.call_errors import CallWatch, nobody_asks
from prober.brokers.connection import open_async_channel
from prober.brokers.endpoint import Endpoint
from prober.errors import BrokerError, BrokerUnavailable, ConnectionGivenUp, NotOurs, NotThere, RequestRefused
from tests.contract.conftest import Service
from tests.contract.context import LABELS, PROJECT, Notebook, connect
from tests.contract.places import dead_server, silent_server

FAR_FUTURE = 4_000_000_000.0
CLOSED_WITHIN_S = 10.0  # less than the deadline of the call
OTHER_LABELS = {"made-by": "somebody-else"}


async def test_what_exists_as_asked_for_is_found(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        await context.broker.admin.create_topic(context.topic, TopicSettings(LABELS))
        await context.broker.admin.create_subscription(context.subscription, context.settings)


async def test_a_topic_of_others_is_not_ours(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        with pytest.raises(NotOurs, match="label made-by is 'contract-test', wanted is 'somebody-else'"):
            await context.broker.admin.create_topic(context.topic, TopicSettings(OTHER_LABELS))


@pytest.mark.parametrize(
    "change",
    [
        {"ordering": False},
        {"ack_deadline_s": 20},
        {"exactly_once": True},
        {"filter": 'attributes.a = "b"'},
        {"labels": OTHER_LABELS},
        {"retry_minimum_backoff_s": 1.0},
        {"message_retention_s": 86_400.0},
        {"dead_letter_topic": f"{PROJECT}/topics/letters"},
        {"topic": f"{PROJECT}/topics/letters"},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_subscription_with_other_settings_is_not_ours(service: Service, change: dict[str, object]) -> None:
    async with service.context(Vantage.WIRE) as context:
        await context.broker.admin.create_topic(f"{PROJECT}/topics/letters", TopicSettings(LABELS))
        with pytest.raises(NotOurs, match="exists with other settings"):
            await context.broker.admin.create_subscription(context.subscription, replace(context.settings, **change))  # type: ignore[arg-type]


async def test_every_setting_is_taken_and_found_again(service: Service) -> None:
    async with service.context(Vantage.WIRE) as context:
        letters = f"{PROJECT}/topics/letters"
        await context.broker.admin.create_topic(letters, TopicSettings(LABELS))
        name = f"{PROJECT}/subscriptions/full-{uuid.uuid4().hex}"
        settings = SubscriptionSettings(
            context.topic,
            ordering=True,
            ack_deadline_s=30,
            exactly_once=True,
            filter='attributes.a = "b"',
            dead_letter_topic=letters,
            dead_letter_max_attempts=7,
            retry_minimum_backoff_s=1.5,
            retry_maximum_backoff_s=20,
            message_retention_s=86_400.0,
            labels=LABELS,
        )
        for _ in range(2):
            await context.broker.admin.create_subscription(name, settings)
        with pytest.raises(NotOurs, match="dead-letter attempts is 7, wanted is 5"):
            await context.broker.admin.create_subscription(name, replace(settings, dead_letter_max_attempts=0))
        assert await context.broker.admin.delete(name, LABELS)


async def test_a_subscription_to_no_topic(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        with pytest.raises(NotThere):
            await context.broker.admin.create_subscription(
                f"{PROJECT}/subscriptions/lost", SubscriptionSettings(f"{PROJECT}/topics/nowhere")
            )


async def test_only_what_carries_all_labels_is_deleted(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        admin = context.broker.admin
        for name in (context.subscription, context.topic):
            assert not await admin.delete(name, OTHER_LABELS)
            assert not await admin.delete(name, {**LABELS, "more": "asked"})
            with pytest.raises(ValueError, match="everything would match"):
                await admin.delete(name, {})
        assert {context.subscription, context.topic} <= set(await admin.owned(PROJECT, LABELS))
        for name in (context.subscription, context.topic):
            assert await admin.delete(name, LABELS)
            assert not await admin.delete(name, LABELS)


async def test_all_subscriptions_are_listed_with_their_labels(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        found = await context.broker.admin.subscriptions(PROJECT)
        assert found[context.subscription] == LABELS
        assert context.topic not in found
        assert await context.broker.admin.subscriptions("projects/empty") == {}


async def test_what_is_neither_topic_nor_subscription_is_not_deleted(service: Service) -> None:
    async with service.context(Vantage.WIRE) as context:
        for name in ("topic", "projects/p/snapshots/s", "projects/p/topics/", "projects/p/topics/t/u"):
            with pytest.raises(ValueError, match="not the full name"):
                await context.broker.admin.delete(name, LABELS)


async def test_what_is_owned_is_found_over_many_pages(service: Service) -> None:
    mine = {"owner": uuid.uuid4().hex}
    async with service.context(Vantage.WIRE) as context, paging_admin(context.address) as admin:
        topics = [f"{PROJECT}/topics/paged-{uuid.uuid4().hex}" for _ in range(5)]
        for topic in topics:
            await admin.create_topic(topic, TopicSettings(mine))
        assert sorted(await admin.owned(PROJECT, mine)) == sorted(topics)
        assert await admin.owned("projects/empty", mine) == []
        with pytest.raises(ValueError, match="everything would match"):
            await admin.owned(PROJECT, {})
        for topic in topics:
            assert await admin.delete(topic, mine)


@asynccontextmanager
async def paging_admin(address: str) -> AsyncIterator[ServiceAdmin]:
    """An admin that asks for two things at a time."""
    channel = open_async_channel(Endpoint(address, secure=False), None)
    yield ServiceAdmin(channel, CallWatch(nobody_asks), timeout_s=5, page_size=2)
    await channel.close()


async def test_a_seek_into_the_future_drops_the_backlog(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        await context.publish("k", ["1", "2"])
        seek = context.broker.admin.seek(context.subscription, FAR_FUTURE)
        if service.is_emulator:
            with pytest.raises(BrokerError, match="UNIMPLEMENTED"):
                await seek
            return
        await seek
        notebook = Notebook()
        await context.subscribe(notebook)
        await asyncio.sleep(0.3)
        assert notebook.messages == []


async def test_a_subscription_is_looked_at_listed_and_changed_and_keeps_its_ordering(service: Service) -> None:
    async with service.context(Vantage.WIRE) as context:
        admin = context.broker.admin
        await admin.look(context.topic)
        await admin.look(context.subscription)
        await admin.list_some(PROJECT)
        with pytest.raises(NotThere):
            await admin.look(f"{PROJECT}/topics/nowhere")
        await admin.update_subscription(context.subscription, message_retention_s=86_400.0)
        await admin.create_subscription(context.subscription, replace(context.settings, message_retention_s=86_400.0))
        with pytest.raises(RequestRefused, match="INVALID_ARGUMENT"):
            await admin.update_subscription(context.subscription, ordering=False)


async def test_nobody_answers(vantage: Vantage) -> None:
    async with dead_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        with pytest.raises(BrokerUnavailable, match="is the target running"):
            await broker.admin.create_topic(f"{PROJECT}/topics/any", TopicSettings(LABELS))
        with pytest.raises(BrokerUnavailable):
            await broker.admin.delete(f"{PROJECT}/topics/any", LABELS)
        await broker.close()


async def test_a_call_that_waits_when_the_connection_is_closed_ends(vantage: Vantage) -> None:
    async with silent_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        waiting = asyncio.create_task(broker.admin.create_topic(f"{PROJECT}/topics/any", TopicSettings(LABELS)))
        await asyncio.sleep(0.1)
        await broker.close()
        with pytest.raises(ConnectionGivenUp, match="the prober closed the connection"):
            await asyncio.wait_for(waiting, CLOSED_WITHIN_S)
