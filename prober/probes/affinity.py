"""`affinity`: while messages of a key are outstanding, the key stays at one subscriber.

Subscribers join and leave while bursts are published. Of each burst the first message is held back until the next burst has begun to
come, so each burst after the first meets a key of which a message is provably outstanding. Everything else is acknowledged after a
moment. Now and then all of a key is acknowledged before the next burst, so that it falls idle, which is when it may move.

A subscriber that leaves takes the proof along: messages of its stream may have been lost before. So half of the subscribers stay to the
end. The others leave one after the other, and new ones join in their place; while the second half of the bursts is published none leaves.

In some runs every other key *rests* after its first burst: all of it is acknowledged, and the next burst comes only when that has
provably been applied. Meanwhile subscribers leave. Only such a key is known to be idle; a moment after an acknowledgement that is unknown.

At the wire one of the subscribers that stay allows few outstanding messages (`Allowance`), which must not slow down the others. How far the
service keeps to that is counted and never verified. While as many messages are unacknowledged as a stream allows, "the server stops sending
more messages" (reference, StreamingPullRequest, `max_outstanding_messages`). What was acknowledged is not outstanding from the moment at
which that was sent on, so the count is rather too low. More messages than allowed are not reported as a violation: when the service
restarts a key elsewhere, it no longer counts the messages held here, and the probe may see that later or never.

How soon a subscriber that joins has keys is measured and never verified, for keys need not move to it.
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
"""How often a key falls idle before its next burst."""
HOLD_S: Final = 1.5
"""How long to wait for the rest of a burst while its first message is held back. A client library delivers it only after that."""
RESTING_RUNS: Final = 0.1
"""In how many runs keys rest: it costs time and no messages."""
RESTS_EVERY: Final = 2
"""Every so manieth key rests in such a run."""
SETTLED_S: Final = 1.0
"""How much longer a key rests than an acknowledgement may take to be applied."""
BESIDE_REST_S: Final = 10.0
"""How long the rest of a run takes, at the most: if the next one may begin before that, no key rests."""
ALLOWED: Final = 16
"""How many messages the subscriber with the small limit allows: more than are held back there, fewer than come at once."""
REDELIVERED_SHARE: Final = 0.08
"""Share of messages redelivered after a subscriber left, on the embedded server."""
REACHED: Final = "flow_control_reached"
EXCEEDED: Final = "flow_control_exceeded"


class Bursts:
    """The bursts of one key: the first message of the latest is held back.

    begun       how many were published.
    at          the subscriber to which a message came last.
    """

    def __init__(self, context: ProbeContext, key: str, workload: Workload, answered: Callable[[Delivery], None]) -> None:
        self._context, self._key, self._workload, self._answered = context, key, workload, answered
        self.begun = 0
        self.at = ""
        self._held: Delivery | None = None
        self._holds = True
        self._came = asyncio.Event()

    async def begin(self) -> None:
        """Publishes the first one; at the end all of it is acknowledged."""
        await self._publish(1)
        self._release()
        await asyncio.sleep(3.0 * self._workload.ack_after_s)

    async def rest(self) -> None:
        """Waits until the key is provably idle, and publishes the others.

        It counts whether the key stayed at its subscriber.
        """
        await asyncio.sleep(self._context.resources.bounds.ack_settled_s + SETTLED_S)
        before = self.at
        await self._publish(2)
        if before == self.at:
            self._context.count("idle_keys_stayed")
        await self.publish()

    async def publish(self) -> None:
        """Publishes all that were not yet, one after the other."""
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
            self._holds = False  # it does not come, or not before what is held is answered: that holds up nothing but the run
            self._release()

    def decide(self, delivery: Delivery) -> None:
        """Holds the first message of a burst back, and acknowledges the one that was held; anything else after a moment."""
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
    """Publishes on all keys while subscribers come and go."""
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
        members = [await context.subscribe(decide)]  # what the service sends is not seen
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
    """Whether keys rest in this run: now and then, if it is known how long, and there is time for it."""
    rest_s = context.resources.bounds.ack_settled_s + SETTLED_S
    return context.random.random() < RESTING_RUNS and rest_s + BESIDE_REST_S <= workload.free_s and isfinite(rest_s)


def traffic(workload: Workload) -> Traffic:
    """Every message comes once, and some again at another subscriber."""
    published = workload.messages
    return Traffic(workload.keys * workload.bursts, published, round(published * (1 + REDELIVERED_SHARE)))


def opportunities(workload: Workload) -> dict[str, int]:
    """One for each burst of the second half that meets what is held, on average."""
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
    """Counts how often a subscriber that allows so many outstanding messages on a stream had as many, and how often more."""

    def __init__(self, context: ProbeContext, messages_max: int) -> None:
        self._count, self._messages_max = context.count, messages_max
        self._outstanding: dict[str, set[str]] = {}

    def take(self, delivery: Delivery) -> None:
        """A message came to the subscriber. One that came before and was not answered is one message."""
        outstanding = self._outstanding.setdefault(delivery.session.name, set())
        known = len(outstanding)
        outstanding.add(delivery.received.message_id)
        if len(outstanding) > known >= self._messages_max - 1:
            self._count(REACHED if known < self._messages_max else EXCEEDED)

    def release(self, delivery: Delivery) -> None:
        """A message was answered; of another subscriber it changes nothing."""
        self._outstanding.get(delivery.session.name, set()).discard(delivery.received.message_id)


class Joiners:
    """The subscribers that join in a run."""

    def __init__(self, context: ProbeContext, decide: Decide) -> None:
        self._context, self._decide = context, decide
        self._joined = 0
        self._served: dict[str, float] = {}

    async def join(self) -> Subscriber:
        """Adds one. Raises as `ProbeContext.subscribe` does."""
        asked_t = self._context.recording.now()

        def decide(delivery: Delivery) -> None:
            if delivery.session.subscriber not in self._served:
                self._served[delivery.session.subscriber] = self._context.recording.now() - asked_t
            self._decide(delivery)

        self._joined += 1
        return await self._context.subscribe(decide)

    def measure(self, holders: Collection[str]) -> None:
        """Tells the figures of the run, given the last subscriber of each key."""
        if not self._joined:
            return
        measured = self._context.recording.measured
        measured(Figure.JOINERS_SERVED, len(self._served) / self._joined)
        measured(Figure.KEYS_AT_JOINERS, sum(holder in self._served for holder in holders) / len(holders))
        if self._served:
            measured(Figure.JOINER_SERVED_AFTER, median(self._served.values()))
