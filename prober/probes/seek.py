"""`seek`: after a seek back, to a snapshot or forward, all messages of each key arrive, in order.

Two bursts are published and acknowledged, with a snapshot between them. Then, without other activity,

    back        a seek goes to a time between the bursts: the whole second burst is redelivered.
    snapshot    a seek goes to the snapshot: the same.
    forward     seeks go back and then forward behind both: only messages published afterwards are delivered.

A seek takes a while to settle, and until then the state is unknown. So the probe consumes no messages meanwhile, and no seek starts before
the acknowledgements have provably been applied: then both deliveries and missing messages are verified. A delivery of a message that a seek
skipped is counted (`sought_past_came`) and is no finding.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from prober.brokers.base import Subscriber
from prober.core.events import Sought
from prober.errors import BrokerError, NotSupported
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import CHECK_TARGET, Experiment, SubscriptionPlan, Workload, opportunities_of_order
from prober.probes.resources import OURS
from prober.slo.indicators import Indicator

COMES_S: Final = 20.0
"""Longest wait for all messages, in seconds; if they do not arrive, the seeks end, and the checker waits for them."""
GAP_S: Final = 1.0
"""Pause between two bursts, in seconds, so that a time lies between them by any clock of the service."""
MARGIN_S: Final = 0.2
_NANOSECONDS: Final = 1e9


class Journal:
    """Received messages, all acknowledged.

    awaited  messages that must still arrive, by key and sequence number.
    past     messages that a seek skipped.
    """

    def __init__(self, context: ProbeContext) -> None:
        self._context = context
        self._came = asyncio.Event()
        self.awaited: set[tuple[str, int]] = set()
        self.past: set[tuple[str, int]] = set()
        self.publish_times: dict[tuple[str, int], int] = {}
        self.last_ack_t = 0.0

    def decide(self, delivery: Delivery) -> None:
        """Note and acknowledge a delivery."""
        place = delivery.key, delivery.seq
        if delivery.received.publish_time is not None:
            self.publish_times.setdefault(place, delivery.received.publish_time)
        if place in self.past:
            self._context.count("sought_past_came")
        self.last_ack_t = self._context.now()
        delivery.ack()
        self.awaited.discard(place)
        if not self.awaited:
            self._came.set()

    async def all_come(self) -> bool:
        """Wait for all awaited messages. Return whether they arrived."""
        self._came.clear()
        if self.awaited:
            await comes_within(COMES_S, self._came)
        return not self.awaited

    def times_of(self, places: set[tuple[str, int]]) -> list[float]:
        """Return the publish times of messages as reported by the service, in seconds since 1970."""
        return [self.publish_times[place] / _NANOSECONDS for place in places if place in self.publish_times]


class Consumption:
    """The subscribers of the run, which open and close together."""

    def __init__(self, context: ProbeContext, journal: Journal, subscribers: int) -> None:
        self._context, self._journal, self._number = context, journal, subscribers
        self._open: list[Subscriber] = []

    async def begin(self) -> None:
        """Open all subscribers."""
        self._open = [await self._context.subscribe(self._journal.decide) for _ in range(self._number)]

    async def pause(self) -> None:
        """Wait until every acknowledgement has been applied, then close all subscribers."""
        applied_t = self._journal.last_ack_t + self._context.resources.bounds.ack_lag_max_s + MARGIN_S
        await asyncio.sleep(max(0.0, applied_t - self._context.now()))
        await asyncio.gather(*(subscriber.close() for subscriber in self._open))

    async def seek(self, to: float | str, since_t: float | None = None) -> None:
        """Seek, and wait until the seek has settled.

        `since_t`: messages published since then are provably redelivered.
        """
        await self.ask(to, since_t)
        await asyncio.sleep(self._context.resources.seek_settles_s + MARGIN_S)

    async def ask(self, to: float | str, since_t: float | None = None) -> None:
        """Seek without waiting. From the request until `seek_settles_s` after the answer, the state is unknown."""
        self._sought(None)
        subscription, admin = self._context.resources.subscription, self._context.admin
        await (admin.seek_to_snapshot(subscription, to) if isinstance(to, str) else admin.seek(subscription, to))
        self._sought(since_t)

    def _sought(self, since_t: float | None) -> None:
        resources = self._context.resources
        self._context.record(Sought(self._context.now(), resources.subscription, resources.seek_settles_s, since_t))


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish, and seek back and forth, as long as all messages arrive."""
    snapshot = f"{context.resources.subscription.replace('/subscriptions/', '/snapshots/')}-{context.epoch}"
    try:
        await _back_and_forth(context, workload, snapshot)
    finally:
        with suppress(BrokerError):
            await context.admin.delete_snapshot(snapshot)


async def _back_and_forth(context: ProbeContext, workload: Workload, snapshot: str) -> None:
    journal = Journal(context)
    consumption = Consumption(context, journal, workload.subscribers)
    await consumption.begin()
    first = await _publish(context, journal, workload, 0)
    if not await journal.all_come():
        return
    await context.admin.create_snapshot(snapshot, context.resources.subscription, OURS)
    await asyncio.sleep(GAP_S)
    since_t = context.now()
    second = await _publish(context, journal, workload, 1)
    if not await journal.all_come():
        return
    before, behind = journal.times_of(first), journal.times_of(second)
    if not before or not behind:
        raise NotSupported("the target does not say when messages were published")
    between = (max(before) + min(behind)) / 2
    if min(behind) - max(before) < GAP_S / 2:
        return  # a message was stored late, or the clocks of the service differ: the effect of a seek is unknown
    for to in (between, snapshot):
        await consumption.pause()
        await consumption.seek(to, since_t)
        journal.awaited |= second
        await consumption.begin()
        if not await journal.all_come():
            return
    await consumption.pause()
    await consumption.ask(between)
    await consumption.seek(max(behind) + GAP_S / 2)
    journal.past = second
    await consumption.begin()
    await _publish(context, journal, workload, 2)
    await journal.all_come()


async def _publish(context: ProbeContext, journal: Journal, workload: Workload, number: int) -> set[tuple[str, int]]:
    """Publish one burst on each key. Return its messages."""
    keys = [f"seek-{key}" for key in workload.numbers]
    seqs = range(number * workload.burst_messages + 1, (number + 1) * workload.burst_messages + 1)
    places = {(key, seq) for key in keys for seq in seqs}
    journal.awaited |= places
    await asyncio.gather(*(context.publish(key, workload.burst_messages, workload.sizes) for key in keys))
    return places


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once, and those of the second burst twice more."""
    return Traffic(workload.keys * workload.bursts, workload.messages, workload.messages + _brought_back(workload))


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run: one for each message that a seek restores."""
    return opportunities_of_order(workload) | {"opportunities_seek": _brought_back(workload)}


def _brought_back(workload: Workload) -> int:
    return 2 * workload.keys * workload.burst_messages


PROBE = Experiment(
    name="seek",
    guarantee="After a seek, to a time or a snapshot, the messages of a key come in order, and all of them.",
    act=act,
    workload=Workload(keys=20, bursts=3, burst_messages=15, subscribers=1),
    interval_s=600.0,
    least={"messages": 2},
    traffic=traffic,
    opportunities=opportunities,
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(3, 7)},
    requires={
        "seeks": (
            f"the messages of the run were not delivered within {COMES_S:g} s, so no seek was exercised; if this persists, reduce messages "
            "of the probe, or give the prober more CPU"
        ),
        "opportunities_seek": f"no message was delivered that a seek had to bring back, so seeking was not verified; {CHECK_TARGET}",
    },
    subscriptions=(SubscriptionPlan(retain_acked=True),),
)
