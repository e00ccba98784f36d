"""`affinity`: while messages of a key are outstanding, the key stays at one subscriber.

Subscribers join and leave while bursts are published. The first message of each burst is held back until the next burst starts to arrive.
So every burst after the first arrives while a message of its key is provably outstanding. All other messages are acknowledged after a
moment. Sometimes all messages of a key are acknowledged before its next burst: the key becomes idle and may move.

After a subscriber has left, nothing is provable about its keys: messages of its stream may have been lost before. So half of the
subscribers stay until the end. The others leave one after the other, and new subscribers replace them. No subscriber leaves while the
second half of the bursts is published.

In some runs every other key *rests* after its first burst: the whole burst is acknowledged, and the next burst is published only after the
acknowledgements have provably been applied. Meanwhile subscribers leave. Only a rested key is known to be idle: shortly after an
acknowledgement, its effect is unknown.

At the wire, one of the subscribers that stay allows few outstanding messages (`Allowance`), which must not slow down the others. Compliance
with this limit is counted and never verified. While as many messages are unacknowledged as a stream allows, "the server stops sending more
messages" (reference, StreamingPullRequest, `max_outstanding_messages`). A message stops being outstanding when its acknowledgement is sent,
so the count is too low rather than too high. An excess is not a violation: when the service restarts a key at another subscriber, it no
longer counts the messages held here, and the probe may see the restart later or never.

The time until a new subscriber receives its first message is measured and never verified, since keys need not move to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from math import isfinite
from statistics import median
from typing import Final

from prober.brokers.base import FlowControlSettings, Subscriber
from prober.probes.context import Decide, Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import CHECK_TARGET, ONE_SUBSCRIBER, Company, Experiment, Workload, each_key
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

IDLE_SHARE: Final = 0.2
"""Share of bursts after which all messages of the key are acknowledged before the next burst."""
HOLD_S: Final = 1.5
"""Longest wait for the rest of a burst while its first message is held, in seconds. A client library delivers it only afterwards."""
RESTING_RUNS: Final = 0.1
"""Share of runs in which keys rest. A rest takes time and no messages."""
RESTS_EVERY: Final = 2
"""Every `RESTS_EVERY`th key rests in a run with resting keys."""
SETTLED_S: Final = 1.0
"""Extra rest of a key, in seconds, beyond the longest time until an acknowledgement is applied."""
BESIDE_REST_S: Final = 10.0
"""Upper bound on the duration of a run apart from the rest, in seconds. No key rests if the next run may start earlier."""
ALLOWED: Final = 16
"""Limit of the subscriber that allows few messages: more than are held back there, fewer than arrive at once."""
REDELIVERED_SHARE: Final = 0.08
"""Share of messages redelivered after a subscriber left, on the embedded server."""
REACHED: Final = "flow_control_reached"
EXCEEDED: Final = "flow_control_exceeded"


class Bursts:
    """Bursts of one key; the first message of the latest burst is held back.

    begun  number of bursts published so far.
    at     subscriber that received the latest message of the key.
    """

    def __init__(self, context: ProbeContext, key: str, workload: Workload, answered: Callable[[Delivery], None]) -> None:
        self._context, self._key, self._workload, self._answered = context, key, workload, answered
        self.begun = 0
        self.at = ""
        self._held: Delivery | None = None
        self._holds = True
        self._came = asyncio.Event()

    async def begin(self) -> None:
        """Publish the first burst; then acknowledge all of it."""
        await self._publish(1)
        self._release()
        await asyncio.sleep(3.0 * self._workload.ack_after_s)

    async def rest(self) -> None:
        """Wait until the key is provably idle, then publish the other bursts.

        Count whether the key stayed at its subscriber.
        """
        await asyncio.sleep(self._context.resources.bounds.ack_settled_s + SETTLED_S)
        before = self.at
        await self._publish(2)
        if before == self.at:
            self._context.count("idle_keys_stayed")
        await self.publish()

    async def publish(self) -> None:
        """Publish the remaining bursts one after the other."""
        await self._publish(self._workload.bursts)
        self._holds = False
        self._release()

    async def _publish(self, count: int) -> None:
        workload, dice = self._workload, self._context.random
        while self.begun < count:
            self.begun += 1
            self._came.clear()
            await self._context.publish(self._key, workload.burst_messages, workload.sizes)
            await self._until_it_came()
            if dice.random() < IDLE_SHARE:
                self._release()
                await asyncio.sleep(3.0 * workload.ack_after_s)
            else:
                await asyncio.sleep(dice.uniform(0.5, 1.5) * workload.ack_after_s)

    async def _until_it_came(self) -> None:
        if not await comes_within(HOLD_S, self._came) and self._holds:
            self._holds = (
                False  # the rest does not arrive, or only after the held message is answered: only this run would wait for it
            )
            self._release()

    def decide(self, delivery: Delivery) -> None:
        """Hold the first message of a burst and acknowledge the one held before; acknowledge all others after a moment."""
        self.at = delivery.session.subscriber
        length = self._workload.burst_messages
        first, latest = 1 + (delivery.seq - 1) // length * length, 1 + (self.begun - 1) * length
        if delivery.seq == latest and self._holds:
            held, self._held = self._held, delivery
            if held is not None and held.seq < delivery.seq:
                self._acknowledge_late(held)
        else:
            self._acknowledge_late(delivery)
        if first == latest and delivery.seq == latest + length - 1:
            self._came.set()

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._acknowledge_late(held)

    def _acknowledge_late(self, delivery: Delivery) -> None:
        after_s = self._context.random.uniform(0.5, 1.5) * self._workload.ack_after_s
        self._context.later(after_s, partial(self._acknowledge, delivery))

    def _acknowledge(self, delivery: Delivery) -> None:
        self._answered(delivery)
        delivery.ack()


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish on all keys while subscribers join and leave."""
    allowance = Allowance(context, ALLOWED)
    keys = {key: Bursts(context, key, workload, allowance.release) for key in (f"affinity-{n}" for n in workload.numbers)}
    all_keys = list(keys.values())
    resting = all_keys[1::RESTS_EVERY] if _rests(context, workload) else []
    busy = [bursts for bursts in all_keys if bursts not in resting]

    def decide(delivery: Delivery) -> None:
        keys[delivery.key].decide(delivery)

    def decide_within(delivery: Delivery) -> None:
        allowance.take(delivery)
        decide(delivery)

    joiners = Joiners(context, decide)
    count = max(2, workload.subscribers)
    if isfinite(context.resources.bounds.ack_settled_s):
        members = [await context.subscribe(decide_within, FlowControlSettings(messages_max=ALLOWED))]
    else:
        members = [await context.subscribe(decide)]  # a library hides the messages that the service sends
    members += [await context.subscribe(decide) for _ in range(count - 1)]
    await asyncio.gather(*(bursts.begin() for bursts in resting))
    left = False
    publishing = asyncio.gather(*(bursts.publish() for bursts in busy), *(bursts.rest() for bursts in resting))
    try:
        while not publishing.done():
            await asyncio.sleep(workload.ack_after_s)
            begun = sum(bursts.begun for bursts in busy) / len(busy)
            if len(members) < count:
                members.append(await joiners.join())
            elif not left or begun <= workload.bursts / 2:
                left = True
                await members.pop(count // 2).close()
    finally:
        await publishing
    joiners.measure([bursts.at for bursts in all_keys])


def _rests(context: ProbeContext, workload: Workload) -> bool:
    """Return whether keys rest in this run: at random, if the length of a rest is known and the schedule leaves time."""
    rest_s = context.resources.bounds.ack_settled_s + SETTLED_S
    return context.random.random() < RESTING_RUNS and rest_s + BESIDE_REST_S <= workload.free_s and isfinite(rest_s)


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once, and some redelivered to another subscriber."""
    published = workload.messages
    return Traffic(workload.keys * workload.bursts, published, round(published * (1 + REDELIVERED_SHARE)))


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the average number of bursts, of the second half, that arrive while a message is held."""
    return {"opportunities_affinity": round(workload.keys * (workload.bursts // 2) * (1 - IDLE_SHARE))}


PROBE = Experiment(
    name="affinity",
    guarantee="While messages of a key are outstanding, the key stays at one subscriber.",
    act=act,
    workload=Workload(keys=20, bursts=8, burst_messages=10, subscribers=4, ack_after_s=0.2),
    least={"subscribers": 2},
    traffic=traffic,
    opportunities=opportunities,
    feeds={Indicator.AFFINITY: each_key},
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(2, 6), "subscribers": range(2, 6)},
    requires={
        "deliveries_among_several": ONE_SUBSCRIBER,
        "sessions_closed": f"no stream was closed, so a change of subscribers was not exercised; {CHECK_TARGET}",
    },
    company=Company.BURSTS,
)


class Allowance:
    """Counts how often a subscriber reached or exceeded its limit of outstanding messages on a stream."""

    def __init__(self, context: ProbeContext, messages_max: int) -> None:
        self._count, self._messages_max = context.count, messages_max
        self._outstanding: dict[str, set[str]] = {}

    def take(self, delivery: Delivery) -> None:
        """Count a received message. A redelivery of an unanswered message is the same message."""
        outstanding = self._outstanding.setdefault(delivery.session.name, set())
        known = len(outstanding)
        outstanding.add(delivery.received.message_id)
        if len(outstanding) > known >= self._messages_max - 1:
            self._count(REACHED if known < self._messages_max else EXCEEDED)

    def release(self, delivery: Delivery) -> None:
        """Remove an answered message; ignore messages of other subscribers."""
        self._outstanding.get(delivery.session.name, set()).discard(delivery.received.message_id)


class Joiners:
    """Subscribers that join during a run, and the time until each receives a message."""

    def __init__(self, context: ProbeContext, decide: Decide) -> None:
        self._context, self._decide = context, decide
        self._joined = 0
        self._served: dict[str, float] = {}

    async def join(self) -> Subscriber:
        """Add a subscriber. Raises as `ProbeContext.subscribe` does."""
        asked_t = self._context.recording.now()

        def decide(delivery: Delivery) -> None:
            if delivery.session.subscriber not in self._served:
                self._served[delivery.session.subscriber] = self._context.recording.now() - asked_t
            self._decide(delivery)

        self._joined += 1
        return await self._context.subscribe(decide)

    def measure(self, holders: Collection[str]) -> None:
        """Record the measurements of the run. `holders`: the last subscriber of each key."""
        if not self._joined:
            return
        measured = self._context.recording.measured
        measured(Figure.JOINERS_SERVED, len(self._served) / self._joined)
        measured(Figure.KEYS_AT_JOINERS, sum(holder in self._served for holder in holders) / len(holders))
        if self._served:
            measured(Figure.JOINER_SERVED_AFTER, median(self._served.values()))
