"""An hour of a stream that others publish, recorded by the probe `observe` from the embedded server in virtual time, with hot keys in it.

Nothing of the history is made up: what others publish goes through the servicer to the probe, and the writer writes what that records.
Beside it the probe `hot_key` loads a key of its own, and `ordering` publishes the same on all keys, of which none is hot.

Whoever publishes has a consumer, who never acknowledges one of the accounts: that shows nowhere, since the probe has a subscription of
its own.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession

from prober.brokers.base import (
    BrokerSession,
    Confirmed,
    FlowControlSettings,
    Outgoing,
    Received,
    SubscriptionSettings,
    TopicSettings,
)
from prober.brokers.endpoint import local_endpoint
from prober.brokers.push.endpoint import PushEndpoint
from prober.brokers.wire import WireBroker
from prober.clock import on_machine
from prober.config.loading import load
from prober.config.models import Config, Schedule
from prober.config.sections import Observe
from prober.embedded.faults import parse_fault
from prober.probes.catalogue import ProbeName
from prober.reports.reader import ReportReader
from prober.runs.handover import CheckpointsInMemory
from prober.simulation.network import Network
from prober.simulation.network_conditions import CALM
from prober.simulation.prober import SimulatedProber
from prober.simulation.service import SimulatedService
from prober.simulation.virtual_time import STARTED_AT, VirtualTime
from prober.simulation.world import recorded
from prober.slo.hot_keys import HotKeyClass
from spark_jobs import hot_keys, slo_burn
from spark_jobs.history import History
from spark_jobs.work import Exit, Reports, Work

DAY: Final = STARTED_AT.date() + timedelta(days=1)
HOUR_S: Final = 3600.0
TOPIC: Final = "orders"
KEYS: Final = 200
SKEWED, BUSY, STUCK, LATE, UNWORKED = "acct-skewed", "acct-busy", "acct-stuck", "acct-late", "acct-unworked"
"""Of `STUCK` the service gives out nothing for a quarter of an hour, of `LATE` for nine minutes; `UNWORKED` is up to its consumer."""
BUSY_AT_S, BUSY_MESSAGES, BUSY_BYTES = 1_215, 25, 2_000_000
"""From five seconds after a full minute on."""
LARGE_BYTES, RATE = 190_000, 10.0
"""What the probe `hot_key` publishes: up to 1.9 MB a second, for a minute."""


def configured() -> Config:
    config = load(None, {"ORDERING_PROBER_INSTANCE": "simulated"})
    (target,) = config.targets
    schedule = {"schedule": Schedule(interval=timedelta(hours=2))}
    known = {name: settings.model_copy(update=schedule) for name, settings in target.probes.items()}
    observe = Observe(topic=TOPIC, group="ordering_key", sequence="attributes.seq", duration=timedelta(minutes=57))
    ordering = known[ProbeName.ORDERING]
    probes = {
        ProbeName.OBSERVE: ordering.model_copy(update={"observe": observe}),
        ProbeName.HOT_KEY: known[ProbeName.HOT_KEY].model_copy(
            update={"messages": 150, "sizes": (LARGE_BYTES,), "rate": RATE, "keys": 1}
        ),
        ProbeName.ORDERING: ordering,
    }
    return config.model_copy(update={"targets": (target.model_copy(update={"probes": probes}),)})


class Consumer:
    """Somebody who works off all accounts but one, of whose orders it keeps those that came."""

    def __init__(self) -> None:
        self.kept = set[str]()

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None: ...

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None: ...

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None: ...

    def unanswered(self, session: BrokerSession, received: Received) -> None: ...

    def received(self, session: BrokerSession, received: Received) -> None:
        if received.ordering_key == UNWORKED:
            self.kept.add(received.message_id)
        else:
            session.ack(received)


class Shop:
    """Somebody who publishes orders: a few a second, three of ten on one account, and 50 MB within half a minute on another."""

    def __init__(self, network: Network, topic: str) -> None:
        self._broker = WireBroker(local_endpoint("simulated:1"), None, open_channel=network.open_channel)
        self._topic, self._rng, self._numbers = topic, Random(7), dict[str, int]()
        self.sent, self.consumer = 0, Consumer()

    async def open(self) -> None:
        await self._broker.admin.create_topic(self._topic, TopicSettings())
        billing = f"projects/{self._topic.split('/')[1]}/subscriptions/billing"
        await self._broker.admin.create_subscription(billing, SubscriptionSettings(self._topic, ack_deadline_s=600))
        self._subscriber = self._broker.subscriber(billing, "billing", FlowControlSettings(), 600)
        await self._subscriber.start(self.consumer)
        self._publisher = self._broker.publisher(self._topic)

    async def trade(self, seconds: int) -> None:
        for second in range(seconds):
            await self._order(SKEWED if self._rng.random() < 0.3 else f"acct-{self._rng.randrange(KEYS)}")
            if second % 10 == 0:
                for key in (STUCK, LATE, UNWORKED):
                    await self._order(key)
            if BUSY_AT_S <= second < BUSY_AT_S + BUSY_MESSAGES:
                await self._order(BUSY, BUSY_BYTES)
            await asyncio.sleep(1.0)
        await self._publisher.close()
        await self._subscriber.close()
        await self._broker.close()

    async def _order(self, key: str, size: int = 200) -> None:
        self._numbers[key] = number = self._numbers.get(key, 0) + 1
        message = Outgoing(key, bytes(size), {"seq": str(number)})
        assert isinstance((await self._publisher.publish([message], 60.0))[0], Confirmed)
        self.sent += 1


async def hour(location: str) -> Shop:
    """Records it."""
    config = configured()
    pushes = PushEndpoint("", 0, "simulated")
    stalls = [parse_fault(f"stall_key:key={key},start=600,for={seconds}") for key, seconds in ((STUCK, 900), (LATE, 540))]
    service = SimulatedService(stalls, CALM, Random(1), pushes.app())
    shop = Shop(service.network, f"projects/{config.targets[0].project}/topics/{TOPIC}")
    await shop.open()
    await asyncio.sleep(60.0)  # until it is the next day
    async with recorded(location, "observed") as sinks:
        prober = SimulatedProber(config, service.network, pushes, sinks, CheckpointsInMemory())
        prober.start()
        await asyncio.sleep(20.0)
        await shop.trade(3_300)
        await asyncio.sleep(300.0)
        await prober.stop()
        assert prober.faults == []
    await service.stop()
    return shop


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Shop]:
    folder = tmp_path_factory.mktemp("observed")
    loop = VirtualTime()
    with on_machine(loop.machine(7)), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return folder, runner.run(hour(str(folder / "history")))


@pytest.fixture(scope="module")
def work(spark: SparkSession, orders: tuple[Path, Shop]) -> Work:
    folder, _ = orders
    now = (datetime.combine(DAY, datetime.min.time(), STARTED_AT.tzinfo) + timedelta(days=1, hours=2)).timestamp()
    return Work(spark, History(spark, str(folder / "history")), Reports(spark, str(folder / "reports")), DAY, now)


def test_the_hot_keys_of_a_recorded_hour(work: Work, orders: tuple[Path, Shop]) -> None:
    folder, shop = orders
    outcome = hot_keys.run(work)
    assert outcome.exit is Exit.FAIL, outcome.line
    report = ReportReader(str(folder / "reports")).hot_keys(DAY)
    assert report is not None
    observed = [one for one in report.keys if one.topic.endswith(TOPIC)]
    found = {one.key: one for one in observed}
    assert {key: one.heat for key, one in found.items()} == {
        SKEWED: HotKeyClass.SKEWED,
        BUSY: HotKeyClass.THROUGHPUT_BOUND,
        STUCK: HotKeyClass.STALLED,
        LATE: HotKeyClass.CONSUMER_BOUND,
    }
    assert HotKeyClass.CONSUMER_BOUND in found[STUCK].reasons
    assert {key for key, one in found.items() if "no subscriber is the reason" in one.advice} == {STUCK, LATE}
    assert len(shop.consumer.kept) > 300, "and their consumer was slow indeed"
    (spread,) = [one for one in report.subscriptions if one.topic.endswith(TOPIC)]
    assert spread.messages == shop.sent
    assert [one.heat for one in report.keys if "hot_key" in one.subscription] == [HotKeyClass.THROUGHPUT_BOUND]
    assert not [one for one in report.keys if "ordering" in one.subscription.rpartition("/")[2]]


def test_budgets_of_a_recorded_hour(work: Work, orders: tuple[Path, Shop]) -> None:
    """What others publish is verified, and counts for no objective about publishes or latency."""
    folder, _ = orders
    outcome = slo_burn.run(work)
    assert outcome.exit in (Exit.PASS, Exit.FAIL), outcome.line
    report = ReportReader(str(folder / "reports")).slo_burn(DAY)
    assert report is not None
    assert not [one for one in report.spenders if one.by == "probe" and one.value == ProbeName.OBSERVE]
