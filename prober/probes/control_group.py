"""`control_group`: cost and benefit of ordering, on one topic with two subscriptions that differ in nothing else.

Bursts are published on keys. Both subscriptions are consumed in the same way, and every message is acknowledged at once. The ordered
subscription is verified like any other. The unordered one guarantees no order, so it is not verified; its deliveries are measured. Beside
each burst the same messages are published without a key: the difference between the two requests is the cost of a key for the publisher
(`paired_publishing`).

*Price.* Each message arrives on both subscriptions and forms a pair. Its extra latency on the ordered subscription is averaged over each
burst, since the messages of a burst travel together; over bursts the interval is Student's t (`prober.slo.confidence`). The price in
availability is the share of messages in time on the unordered subscription only, minus the share of messages in time on the ordered
subscription only.

*Benefit.* The work of a consumer that would have to restore the order of the unordered subscription: the reordered share and the extent of
RFC 4737, and the numbers of messages that a resequencer would have passed on at once, held back, and stopped waiting for
(`prober.ordering`).

Pairs are messages of bursts whose publishing was confirmed completely. Of a message that was published again, the first copy received
counts, on either subscription.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, NamedTuple

from prober.brokers.base import Confirmed, Outcome, Outgoing
from prober.core.events import Delivered
from prober.ordering.measurement import OrderMeasurement
from prober.probes.context import Delivery, ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import (
    CHECK_TARGET,
    NOTHING_DELIVERED,
    Company,
    Experiment,
    SubscriptionPlan,
    Workload,
    opportunities_of_order,
)
from prober.probes.payload import Stamp
from prober.probes.publishing import unsettled
from prober.probes.unverified import UnverifiedTap
from prober.slo.confidence import Difference, mean_difference, share_difference
from prober.slo.figures import Figure

UNORDERED: Final = "unordered"
IN_TIME_S: Final = 5.0
"""Longest latency of an available message, in seconds; also the longest wait of a resequencer for a missing message."""
IDLE_S: Final = 600.0
LOOK_S: Final = 0.05

Message = tuple[str, int]


class Burst(NamedTuple):
    """Messages of a key that were published together, and their intended send time."""

    sent_t: float
    messages: tuple[Message, ...]


class Pairs:
    """Times of the first receipt of each message on either subscription, in seconds of one clock."""

    def __init__(self) -> None:
        self.bursts: list[Burst] = []
        self.ordered: dict[Message, float] = {}
        self.unordered: dict[Message, float] = {}

    @property
    def complete(self) -> bool:
        """Whether every message arrived on both subscriptions."""
        return all(message in self.ordered and message in self.unordered for burst in self.bursts for message in burst.messages)

    def latency(self) -> Difference | None:
        """Return the extra latency on the ordered subscription.

        None with fewer than two bursts that arrived on both.
        """
        came = self.came
        late_s = (
            [self.ordered[message] - self.unordered[message] for message in burst.messages if message in came]
            for burst in self.bursts
        )
        return mean_difference([fmean(each) for each in late_s if each])

    @property
    def came(self) -> set[Message]:
        """Messages that arrived on both subscriptions."""
        return self.ordered.keys() & self.unordered.keys()

    def availability(self) -> Difference | None:
        """Return the excess of the share of messages not in time on the ordered subscription; None without messages."""
        timely = [
            (self._in_time(self.ordered, message, burst.sent_t), self._in_time(self.unordered, message, burst.sent_t))
            for burst in self.bursts
            for message in burst.messages
        ]
        only = Counter(timely)
        return share_difference(only[False, True], only[True, False], len(timely)) if timely else None

    @staticmethod
    def _in_time(came: dict[Message, float], message: Message, sent_t: float) -> bool:
        return message in came and came[message] - sent_t <= IN_TIME_S


class _Twins:
    """Messages published, and their deliveries on both subscriptions."""

    def __init__(self, context: ProbeContext) -> None:
        self.pairs = Pairs()
        self._context = context
        self._order = OrderMeasurement(IN_TIME_S, IDLE_S)
        self._publishing = PairedPublishing(context)

    def decide(self, delivery: Delivery) -> None:
        self.pairs.ordered.setdefault((delivery.key, delivery.seq), self._context.now())
        delivery.ack()

    def read(self, key: str, stamp: Stamp) -> None:
        now = self._context.now()
        self.pairs.unordered.setdefault((key, stamp.seq), now)
        self._order.observe(Delivered(now, UNORDERED, key, "", stamp.epoch, stamp.seq, ""))
        self._context.count("unordered_deliveries")

    async def publish(self, key: str, workload: Workload) -> None:
        length = workload.burst_messages
        first = 1
        async for due_t in self._context.ticks(workload.bursts, workload.ack_after_s):
            messages = tuple((key, seq) for seq in range(first, first + length))
            first += length
            if await self._publishing.publish(key, length, workload.sizes, due_t) == length:
                self.pairs.bursts.append(Burst(due_t, messages))

    async def settle(self) -> None:
        late_t = self._context.now() + IN_TIME_S
        while not self.pairs.complete and self._context.now() < late_t:
            await asyncio.sleep(LOOK_S)

    def tell(self) -> None:
        recording, count, pairs = self._context.recording, self._context.count, self.pairs
        count("pairs", len(pairs.came))
        self._tell_interval(pairs.latency(), Figure.ORDER_LATENCY, Figure.ORDER_LATENCY_LOW, Figure.ORDER_LATENCY_HIGH)
        unavailable = Figure.ORDER_UNAVAILABILITY, Figure.ORDER_UNAVAILABILITY_LOW, Figure.ORDER_UNAVAILABILITY_HIGH
        self._tell_interval(pairs.availability(), *unavailable)
        slower = Figure.KEY_PUBLISH_LATENCY, Figure.KEY_PUBLISH_LATENCY_LOW, Figure.KEY_PUBLISH_LATENCY_HIGH
        self._tell_interval(self._publishing.pairs.latency(), *slower)
        failing = Figure.KEY_PUBLISH_FAILURES, Figure.KEY_PUBLISH_FAILURES_LOW, Figure.KEY_PUBLISH_FAILURES_HIGH
        self._tell_interval(self._publishing.pairs.availability(), *failing)
        report = self._order.report()
        arrivals = [each.arrivals for each in report.streams]
        for name in ("in_order", "early", "late", "duplicates", "gave_up"):
            count(f"unordered_{name}", sum(getattr(each, name) for each in arrivals))
        if report.received:
            recording.measured(Figure.UNORDERED_REORDERED, report.reordered_ratio)
            recording.measured(Figure.UNORDERED_HELD_BACK, sum(each.early for each in arrivals) / report.received)
            recording.measured(Figure.UNORDERED_EXTENT, report.extent_max)

    def _tell_interval(self, difference: Difference | None, *figures: Figure) -> None:
        for figure, value in zip(figures, difference or (), strict=False):
            self._context.recording.measured(figure, value)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish, consume on both subscriptions, and measure the differences."""
    twins = _Twins(context)
    for _ in range(workload.subscribers):
        await context.subscribe(twins.decide)
        await context.attach(UnverifiedTap(context.epoch, twins.read), at=UNORDERED)
    await asyncio.gather(*(twins.publish(f"twin-{number}", workload) for number in workload.numbers))
    await twins.settle()
    twins.tell()


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once with a key and once without, on both subscriptions."""
    return Traffic(2 * workload.keys * workload.bursts, 2 * workload.messages, 4 * workload.messages, unrecorded=workload.messages)


PROBE = Experiment(
    name="control_group",
    guarantee="Order holds; what it costs and what it buys is measured against a twin subscription without ordering.",
    act=act,
    workload=Workload(keys=8, bursts=5, burst_messages=8, subscribers=2, ack_after_s=0.2),
    interval_s=300.0,
    least={"messages": 2},
    traffic=traffic,
    opportunities=opportunities_of_order,
    simulated={"keys": range(3, 7)},
    requires={
        "deliveries_first": NOTHING_DELIVERED,
        "pairs": f"no message was delivered on both subscriptions, so latencies were not compared; {CHECK_TARGET}",
    },
    subscriptions=(SubscriptionPlan(), SubscriptionPlan(UNORDERED, ordering=False)),
    company=Company.NONE,
)


# --- pairs of publish requests that differ in the ordering key only: the cost of a key for its publisher ----------------------


class Answer(NamedTuple):
    """End of a request: whether all of it was confirmed, and its duration in seconds."""

    confirmed: bool
    took_s: float


@dataclass(frozen=True, slots=True)
class RequestPairs:
    """Answers to requests with a key and without, pair by pair."""

    answers: list[tuple[Answer, Answer]] = field(default_factory=list)

    def latency(self) -> Difference | None:
        """Return the extra duration of a request with a key, in seconds; None with fewer than two confirmed pairs."""
        confirmed = [(keyed, keyless) for keyed, keyless in self.answers if keyed.confirmed and keyless.confirmed]
        return mean_difference([keyed.took_s - keyless.took_s for keyed, keyless in confirmed])

    def availability(self) -> Difference | None:
        """Return the excess of the share of failed requests with a key; None without pairs."""
        only = Counter((keyed.confirmed, keyless.confirmed) for keyed, keyless in self.answers)
        return share_difference(only[False, True], only[True, False], len(self.answers)) if self.answers else None


class PairedPublishing:
    """Publishes bursts with a key and without, side by side. Belongs to the event loop; raises no BrokerError.

    Both requests of a pair are sent at the same time, in random order. They contain equally many messages of the same length. Messages with
    a key are recorded, and published again until every outcome is settled; messages without a key are neither. Only the first attempt of
    each counts. A pair shares the minute, the connection and the state of the prober, so only the key differs.
    """

    def __init__(self, context: ProbeContext) -> None:
        self.pairs = RequestPairs()
        self._context = context

    async def publish(self, key: str, count: int, sizes: Sequence[int], intended_t: float) -> int:
        """Publish the next messages of a key, and as many without a key.

        Return how many messages with a key were confirmed in the end.
        """
        publishing = self._context.publishing
        seqs = publishing.next_seqs(key, count)
        keyless = [self._without_key(key, seq, sizes[seq % len(sizes)]) for seq in seqs]
        requests = {
            True: self._timed(publishing.attempt(key, seqs, sizes, intended_t)),
            False: self._timed(publishing.attempt("", (), beside=keyless)),
        }
        is_first = self._context.random.random() < 0.5
        first, second = await asyncio.gather(requests[is_first], requests[not is_first])
        (outcomes, answer), (others, other) = (first, second) if is_first else (second, first)
        self.pairs.answers.append((answer, other))
        self._context.count("publish_pairs")
        self._context.count("publishes_without_key", sum(isinstance(outcome, Confirmed) for outcome in others))
        if answer.confirmed:
            return len(outcomes)
        confirmed = sum(isinstance(outcome, Confirmed) for outcome in outcomes)
        await publishing.resume(key)
        return confirmed + await publishing.settle(key, unsettled(seqs, [outcomes]), sizes, intended_t, generation=1)

    async def _timed(self, attempt: Awaitable[Sequence[Outcome]]) -> tuple[Sequence[Outcome], Answer]:
        began_t = self._context.now()
        outcomes = await attempt
        return outcomes, Answer(all(isinstance(one, Confirmed) for one in outcomes), self._context.now() - began_t)

    def _without_key(self, key: str, seq: int, size: int) -> Outgoing:
        """Return a message as long as its twin, including the twin's key and attributes."""
        attributes = Stamp(self._context.epoch, seq).attributes(key, b"")
        around = len(key) + sum(len(name) + len(value) for name, value in attributes.items())
        return Outgoing("", self._context.random.randbytes(size + around))
