"""`isolation`: delay of other keys by an unacknowledged key, a slow key or another subscription.

Phases follow each other. Between them the probe waits until all messages of the other keys have arrived, and until the slow consumer is
done.

    before       messages of all keys are acknowledged on receipt.
    held         the messages of one key are held, within leases that the client extends, as a slow subscriber would.
    sibling      the messages of a second subscription of the topic, the sibling, are held. Both receive the same messages.
    restarts     the key is held again, twice as many messages are published, and the subscribers are replaced one after the other.
    slow         a slow consumer (`slow_consumer`) processes the messages of a key one after the other, and extends their leases.
                 `processing` sets the slow keys and their times: by default only the held key is slow.
    after        as before.

The service may delay other keys meanwhile ("unacknowledged messages of a key can delay other keys", above all when traffic changes), and no
document limits the time of a delivery, so the delay is measured and not verified. The *delay* of a message of another key is its latency
beyond that of 90 % of the messages sent before and after; it is never negative. Delays while the key or the sibling was held, or one key
was slow, count for the indicator. Delays during restarts do not: the probe moves the keys itself. Delays with slow consumers of all keys do
not either: no key is unaffected. A message that never arrives has no delay; the checker reports it. The sibling is neither recorded nor
verified.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from prober.brokers.base import BrokerSession, Received, Subscriber
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import (
    CHECK_TARGET,
    Company,
    Experiment,
    Processing,
    SubscriptionPlan,
    Workload,
    opportunities_of_order,
)
from prober.probes.ordering import without_flow_limit
from prober.probes.payload import Stamp
from prober.probes.slow_consumer import PROCESSING_S, SlowConsumer, processing_times
from prober.probes.unverified import UnverifiedTap
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

SIBLING: Final = "sibling"
"""Name of the second subscription."""
SETTLE_S: Final = 10.0
"""Longest wait for outstanding messages at the end of a phase, in seconds."""
USUAL_SHARE: Final = 0.9
SLOWEST_SHARE: Final = 0.99


class Phase(IntEnum):
    """Phase of a run in which a message was sent."""

    BEFORE = 0
    HELD = 1
    SIBLING = 2
    RESTARTS = 3
    SLOW = 4
    AFTER = 5

    @property
    def load(self) -> int:
        """Number of messages published in the phase, relative to the other phases, in the same time."""
        return 2 if self is Phase.RESTARTS else 1


PARTS: Final = sum(phase.load for phase in Phase)
"""Number of parts into which the bursts are divided."""
FIGURES: Final = {
    Phase.BEFORE: Figure.LATENCY_BEFORE_HOLD,
    Phase.HELD: Figure.LATENCY_DURING_HOLD,
    Phase.SIBLING: Figure.LATENCY_DURING_SIBLING_HOLD,
    Phase.RESTARTS: Figure.LATENCY_DURING_RESTARTS,
    Phase.SLOW: Figure.LATENCY_WHILE_SLOW,
    Phase.AFTER: Figure.LATENCY_AFTER_HOLD,
}


class Receipt(NamedTuple):
    """Send and receive time of a message of another key, in seconds of the recorder's clock."""

    sent_t: float
    received_t: float

    @property
    def latency_s(self) -> float:
        """Time from the intended send to the receipt, in seconds."""
        return self.received_t - self.sent_t


def delays_s(held: Sequence[Receipt], usual: Sequence[Receipt]) -> list[float]:
    """Return the delay of each held message in seconds. `usual`: the messages sent before and after; not empty."""
    usual_s = _quantile([receipt.latency_s for receipt in usual], USUAL_SHARE)
    return [max(0.0, receipt.latency_s - usual_s) for receipt in held]


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is not exceeded by this share of the values; there is at least one."""
    return sorted(values)[ceil(share * len(values)) - 1]


class _Sibling(UnverifiedTap):
    """The second subscription: acknowledges its messages, or holds them."""

    def __init__(self, context: ProbeContext) -> None:
        super().__init__(context.epoch)
        self.something_held = asyncio.Event()
        self._context, self._holding = context, False
        self._held: list[tuple[BrokerSession, Received]] = []

    def of_run(self, session: BrokerSession, received: Received, stamp: Stamp) -> None:
        self._context.count("sibling_deliveries")
        if self._holding:
            self._held.append((session, received))
            self.something_held.set()
            self._context.count("sibling_deliveries_held")
        else:
            session.ack(received)

    def hold(self) -> None:
        self._holding = True

    def let_go(self) -> None:
        """Acknowledge the held messages, and all from now on."""
        self._holding = False
        held, self._held = self._held, []
        for session, received in held:
            session.ack(received)


class _Phases:
    """Sent and received messages of the other keys by phase, and the held messages of the held key."""

    def __init__(self, context: ProbeContext, key: str, workload: Workload) -> None:
        self.key = key
        self.sibling = _Sibling(context)
        self.slow = SlowConsumer(context, processing_times(workload, key, context.random))
        self.phase = Phase.BEFORE
        self.receipts: dict[Phase, list[Receipt]] = {phase: [] for phase in Phase}
        self._context = context
        self._published: dict[str, int] = {}
        self._sent: dict[tuple[str, int], tuple[Phase, float]] = {}
        self._holding = False
        self._held: list[Delivery] = []
        self._nothing_pending, self._something_held = asyncio.Event(), asyncio.Event()

    def decide(self, delivery: Delivery) -> None:
        """Hold messages of the held key while the phase requires it; acknowledge all others."""
        if delivery.key == self.key and self._holding:
            self._held.append(delivery)
            self._something_held.set()
            self._context.count("deliveries_held")
            return
        if (sent := self._sent.pop((delivery.key, delivery.seq), None)) is not None:
            phase, sent_t = sent
            self.receipts[phase].append(Receipt(sent_t, self._context.now()))
            if not self._sent:
                self._nothing_pending.set()
        if self.phase is Phase.SLOW:
            self.slow.take(delivery)
        else:
            delivery.ack()

    def begin(self, phase: Phase) -> None:
        """Start a phase: messages sent from now on belong to it."""
        self.phase, self._holding = phase, phase in (Phase.HELD, Phase.RESTARTS)
        self._something_held.clear()
        if phase is Phase.SIBLING:
            self.sibling.hold()

    async def publish(self, key: str, workload: Workload) -> None:
        length, load = workload.burst_messages, self.phase.load
        async for due_t in self._context.ticks(load * workload.bursts // PARTS, workload.ack_after_s / load):
            first = self._published.get(key, 0) + 1
            self._published[key] = first + length - 1
            if key != self.key:
                self._sent |= {(key, seq): (self.phase, due_t) for seq in range(first, first + length)}
                self._nothing_pending.clear()
            seqs = range(first, first + length)
            if self.phase is Phase.SLOW:
                self.slow.expect(key, seqs, due_t)
            if await self._context.publish(key, length, workload.sizes, due_t) < length:
                self.slow.give_up(key, seqs)

    async def settle(self) -> None:
        """Acknowledge the held messages, and wait for those of the other keys.

        First wait until a message is held. Each wait is bounded.
        """
        if self._holding:
            await comes_within(SETTLE_S, self._something_held)
        if self.phase is Phase.SIBLING:
            await comes_within(SETTLE_S, self.sibling.something_held)
        self.sibling.let_go()
        self._holding = False
        held, self._held = self._held, []
        for delivery in held:
            delivery.ack()
        if self._sent:
            await comes_within(SETTLE_S, self._nothing_pending)
        if self.phase is Phase.SLOW:
            await self._finish_slowly()

    async def _finish_slowly(self) -> None:
        """Let the slow consumer continue for a bounded time, and record its results."""
        slow, context = self.slow, self._context
        context.recording.measured(Figure.SLOW_BACKLOG, slow.backlog)
        context.count("messages_cut_short", await slow.finish(PROCESSING_S))
        context.count("messages_processed_slowly", slow.processed)
        context.count("slow_consumer_redeliveries", slow.redelivered)
        context.recording.measured(Figure.SLOW_OLDEST, slow.oldest_s)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish on all keys through all phases, then measure the delay of the other keys."""
    keys = [f"isolation-{number}" for number in workload.numbers]
    phases = _Phases(context, keys[0], workload)
    await context.attach(phases.sibling, without_flow_limit(workload), SIBLING)
    flow = without_flow_limit(workload)
    subscribers = [await context.subscribe(phases.decide, flow) for _ in range(workload.subscribers)]
    for phase in Phase:
        phases.begin(phase)
        publishing = [phases.publish(key, workload) for key in keys]
        if phase is Phase.RESTARTS:
            publishing.append(_restart(context, subscribers, phases, workload))
        await asyncio.gather(*publishing)
        await phases.settle()
    _measure(context, phases, workload)


async def _restart(context: ProbeContext, subscribers: Sequence[Subscriber], phases: _Phases, workload: Workload) -> None:
    """Replace the subscribers one after the other; each new subscriber joins before the old one leaves."""
    every_s = workload.ack_after_s * (workload.bursts // PARTS) / (len(subscribers) + 1)
    for subscriber in subscribers:
        await asyncio.sleep(every_s)
        await context.subscribe(phases.decide, without_flow_limit(workload))
        await subscriber.close()
        context.count("subscribers_restarted")


def _measure(context: ProbeContext, phases: _Phases, workload: Workload) -> None:
    receipts = phases.receipts
    for phase, figure in FIGURES.items():
        if receipts[phase]:
            context.recording.measured(figure, median(receipt.latency_s for receipt in receipts[phase]))
    usual = receipts[Phase.BEFORE] + receipts[Phase.AFTER]
    if not usual:
        return
    others_of_slow = receipts[Phase.SLOW] if workload.processing is Processing.SLOW_KEY else []
    held = receipts[Phase.HELD] + receipts[Phase.SIBLING] + others_of_slow
    for receipt, delay_s in zip(held, delays_s(held, usual), strict=True):
        context.recording.took(Indicator.HEAD_OF_LINE_DELAY, delay_s, receipt.sent_t, receipt.received_t)
    context.count("delays_measured", len(held))
    if restarts := delays_s(receipts[Phase.RESTARTS], usual):
        context.recording.measured(Figure.DELAY_DURING_RESTARTS, _quantile(restarts, SLOWEST_SHARE))


def delayed(workload: Workload) -> int:
    """Return the messages of a burst on keys that are not held; at least 1. One key is held in each part."""
    return max(1, workload.keys - workload.parts) * workload.burst_messages


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once on both subscriptions.

    The redelivery of messages held by a replaced subscriber is not counted.
    """
    return Traffic(workload.keys * workload.bursts, workload.messages, 2 * workload.messages)


PROBE = Experiment(
    name="isolation",
    guarantee="A key that is not acknowledged, or slowly, or another subscription does not hold up others: measured, since it may.",
    act=act,
    workload=Workload(keys=9, bursts=42, burst_messages=2, subscribers=2, ack_after_s=0.5, processing_s=1.5),
    interval_s=300.0,
    least={"keys": 2},
    traffic=traffic,
    opportunities=opportunities_of_order,
    feeds={Indicator.HEAD_OF_LINE_DELAY: delayed},
    disturbs=frozenset({Indicator.END_TO_END_LATENCY, Indicator.OLDEST_UNACKED_MESSAGE_AGE}),
    requires={
        "deliveries_held": f"no message was held, so the delay of other keys was not measured; {CHECK_TARGET}",
        "sibling_deliveries_held": f"no message was held on the second subscription, so its effect was not measured; {CHECK_TARGET}",
        "messages_processed_slowly": f"no message was processed slowly, so slow consumers were not tested; {CHECK_TARGET}",
        "delays_measured": (
            "no message of other keys was delivered while one was held, or none before and after, so their delay was not measured; "
            "if this persists, set keys of the probe to 2 or more, or give the prober more CPU"
        ),
    },
    subscriptions=(SubscriptionPlan(), SubscriptionPlan(SIBLING, unverified=True)),
    company=Company.QUIET,
)
