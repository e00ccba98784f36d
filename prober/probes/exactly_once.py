"""`exactly_once`: confirmed acknowledgements are final, held messages stay.

The service must redeliver neither an acknowledged message nor one that a subscriber holds.

On each key a message is held back while more are published one by one, so that the service repeatedly continues with the key while messages
of it are outstanding. Then the held messages are answered, in four ways that take turns:

    in order      all messages are acknowledged in order.
    out of order  the last is acknowledged first, which the service may refuse, then all in order.
    refused       the first is nacked; all are redelivered and acknowledged. Through a client library the last is nacked.
    expired       the lease of the first expires; otherwise like `refused`.

Then all streams break while a burst of each key is held; on every other key the first message is nacked just before. A message that a
subscriber can no longer answer is redelivered when its lease expires. Meanwhile more messages are published, and every key has to continue.
The last message of every other key is nacked once.

Finally the probe waits for redeliveries of messages whose acknowledgement was confirmed: for longer than a message may be in transit.
Through a client library the transit time has no bound, so a new subscriber waits: all its messages were sent after it joined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from math import inf
from typing import Final

from prober.brokers.base import Subscriber
from prober.errors import NotSupported
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import (
    CHECK_TARGET,
    NOTHING_NACKED,
    NOTHING_REDELIVERED,
    Experiment,
    SubscriptionPlan,
    Workload,
    opportunities_of_order,
)
from prober.slo.indicators import Indicator

CONFIRMS_S: Final = 10.0
"""Longest wait for the first confirmation, in seconds; without it, the target has no exactly-once delivery."""
COMES_S: Final = 1.0
"""Longest wait for a message before the next is published, in seconds."""
HOLD_S: Final = 1.5
"""Time for which a burst is held after its last message, in seconds."""
LEASE_S: Final = 1
ANSWERS_S: Final = 0.5
"""Wait for the answer of the service to acknowledgements, in seconds."""
ANSWERED_S: Final = 15.0
"""Longest wait for the first message of all keys, and for the receipt and acknowledgement of all messages, in seconds."""
RECOVERS_S: Final = 30.0
"""Longest wait for a key to continue after its stream broke, in seconds. The checker verifies messages still pending then."""
LISTENS_S: Final = 2.0
"""Final wait for redeliveries, in seconds, beyond the longest transit time of a message."""
LISTENS_AGAIN_S: Final = 7.0
"""Final wait of a new subscriber, in seconds."""


class Way(IntEnum):
    """Way in which the held messages of a burst are answered."""

    IN_ORDER = 0
    OUT_OF_ORDER = 1
    REFUSED = 2
    EXPIRED = 3


class Trial:
    """One key of a run. `held`: the messages being held; `last`: the highest sequence number acknowledged in order."""

    def __init__(self, number: int) -> None:
        self.key = f"exactly-once-{number}"
        self.held: list[Delivery] = []
        self.holds = False
        self.last = 0
        self.came = asyncio.Event()
        self._patience_s = COMES_S
        self._way = Way.IN_ORDER
        self._again = 0

    def decide(self, delivery: Delivery) -> None:
        """Hold a delivery, provoke its redelivery, or acknowledge it."""
        if self.holds:
            self.held.append(delivery)
        elif delivery.seq == self._again:
            self._again = 0
            self._let_redeliver(delivery)
        else:
            self._ack(delivery)
        self.came.set()

    async def comes(self) -> None:
        """Wait for the next message. A client library delivers no second message of a key before the first is answered."""
        if not await comes_within(self._patience_s, self.came) and self.held:
            self._patience_s = 0.0
        self.came.clear()

    async def let_go(self, way: Way, end: int) -> None:
        """Answer the held messages of a burst that ends with message `end`.

        Later deliveries are acknowledged at once. A client library delivers the messages that it buffers behind a nacked message before the
        redelivery. So the last message is nacked there.
        """
        held, self.held, self.holds, self._way = self.held, [], False, way
        if way in (Way.REFUSED, Way.EXPIRED):
            if len(held) > 1:
                self._let_redeliver(held[0])
                return
            self._again = end
        elif way is Way.OUT_OF_ORDER and len(held) > 1:
            held[-1].ack()
            await asyncio.sleep(ANSWERS_S)
        for delivery in held:
            self.decide(delivery)

    def refuse_first(self) -> None:
        """Nack the first held message."""
        if self.held:
            self.held.pop(0).nack()

    def answer_after_break(self, refused: int) -> None:
        """Answer the held messages whose session is still open; acknowledge redeliveries.

        The message with number `refused` is nacked once.
        """
        held, self.held, self.holds, self._way, self._again = self.held, [], False, Way.REFUSED, refused
        for delivery in held:
            if not delivery.session.is_over:
                self.decide(delivery)

    def _ack(self, delivery: Delivery) -> None:
        self.last = max(self.last, delivery.seq)
        delivery.ack()

    def _let_redeliver(self, delivery: Delivery) -> None:
        if self._way is Way.REFUSED:
            delivery.nack()
        else:
            delivery.shorten_lease(LEASE_S)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish and hold messages on all keys concurrently, then wait for redeliveries.

    If the first message of a key does not arrive, the run ends, and the checker reports it. Raises NotSupported if all first messages
    arrive and no acknowledgement is confirmed.
    """
    trials = {trial.key: trial for trial in map(Trial, workload.numbers)}
    awaited, all_came = set(trials), asyncio.Event()

    def decide(delivery: Delivery) -> None:
        trials[delivery.key].decide(delivery)
        awaited.discard(delivery.key)
        if not awaited:
            all_came.set()

    subscribers = [await context.subscribe(decide) for _ in range(workload.subscribers)]
    await asyncio.gather(*(context.publish(key, 1, workload.sizes) for key in trials))
    if not await comes_within(ANSWERED_S, all_came):
        return
    if not await comes_within(CONFIRMS_S, context.confirmed):
        raise NotSupported(f"the target confirmed no acknowledgement within {CONFIRMS_S:g} s: it has no exactly-once delivery")
    published = await asyncio.gather(*(_rounds(context, trial, turn, workload) for turn, trial in enumerate(trials.values())))
    await _break(context, dict(zip(trials.values(), published, strict=True)), subscribers, workload)
    if context.resources.bounds.delivery_delay_max_s < inf:
        await asyncio.sleep(context.resources.bounds.delivery_delay_max_s + LISTENS_S)
        return
    await asyncio.sleep(ANSWERS_S)
    await asyncio.gather(*(subscriber.close() for subscriber in subscribers))
    await context.subscribe(decide)
    await asyncio.sleep(LISTENS_AGAIN_S)


async def _rounds(context: ProbeContext, trial: Trial, turn: int, workload: Workload) -> int:
    """Publish, hold and answer each burst but the last, each in another way than the one before.

    Return the number of messages published.
    """
    published = 1
    await _acknowledged(trial, published)
    for number in range(workload.bursts - 1):
        published += await _hold(context, trial, workload, _held(workload, number))
        await trial.let_go(_way(turn, number), published)
        await _acknowledged(trial, published)
    return published


async def _hold(context: ProbeContext, trial: Trial, workload: Workload, count: int) -> int:
    """Publish `count` messages one by one and hold them. Return the number of messages published."""
    trial.holds, published = True, 0
    for _ in range(count):
        trial.came.clear()
        published += await context.publish(trial.key, 1, workload.sizes)
        await trial.comes()
    await asyncio.sleep(HOLD_S)
    return published


async def _break(
    context: ProbeContext, published: Mapping[Trial, int], subscribers: Iterable[Subscriber], workload: Workload
) -> None:
    """Break all streams while the last burst is held, and wait until every key has continued.

    `published`: number of messages published so far, by key.
    """
    held = await asyncio.gather(*(_hold(context, trial, workload, workload.burst_messages - 1) for trial in published))
    for trial in list(published)[::2]:
        trial.refuse_first()
    await asyncio.gather(*(subscriber.break_stream() for subscriber in subscribers))
    last = {trial: published[trial] + more for trial, more in zip(published, held, strict=True)}
    for turn, trial in enumerate(last):
        trial.answer_after_break(last[trial] + 1 if turn % 2 else 0)
        last[trial] += await context.publish(trial.key, 1, workload.sizes)
    recovered = await asyncio.gather(*(_acknowledged(trial, count, RECOVERS_S) for trial, count in last.items()))
    context.count("keys_recovered", sum(recovered))


async def _acknowledged(trial: Trial, last: int, limit_s: float = ANSWERED_S) -> bool:
    """Wait until the message with number `last` is acknowledged. Return whether it is; if not, the checker reports it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            while trial.last < last:
                trial.came.clear()
                await trial.came.wait()
    return trial.last >= last


def _way(turn: int, number: int) -> Way:
    """Return the way in which a burst of a key is answered."""
    return Way((turn + number) % len(Way))


def _held(workload: Workload, number: int) -> int:
    """Return the number of held messages of a burst. The first message of all is not held: it tests for confirmations."""
    return workload.burst_messages - (number == 0)


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run.

    Every message is delivered once. A burst is delivered again as a whole if its first message is nacked or expires, or its stream breaks.
    """
    bursts = [(turn, number) for turn in range(workload.keys) for number in range(workload.bursts - 1)]
    again = sum(_held(workload, number) for turn, number in bursts if _way(turn, number) in (Way.REFUSED, Way.EXPIRED))
    last = 2 * (workload.keys // 2)  # nacked once, and redelivered with those whose lease ends
    broken = workload.keys * (workload.burst_messages - 1) + last
    return Traffic(workload.messages, workload.messages, workload.messages + again + broken)


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run.

    Every message is confirmed; for half of the keys the confirmation of the last burst follows the break of streams so closely that it need
    not be final. All messages of a burst but the first arrive while the first is held.
    """
    behind = sum(_held(workload, number) - 1 for number in range(workload.bursts - 1)) + workload.burst_messages - 2
    return opportunities_of_order(workload) | {
        "opportunities_confirmed": workload.messages - workload.keys // 2 * workload.burst_messages,
        "opportunities_outstanding": workload.keys * behind,
    }


PROBE = Experiment(
    name="exactly_once",
    guarantee="With exactly-once delivery a confirmed acknowledgement is final, and what is outstanding is not redelivered.",
    act=act,
    workload=Workload(keys=8, bursts=3, burst_messages=8, subscribers=2),
    interval_s=120.0,
    least={"messages": 3, "keys": 3},
    traffic=traffic,
    opportunities=opportunities,
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(3, 7)},
    requires={
        "acks_confirmed": (
            "the target confirmed no acknowledgement, so exactly-once delivery was not verified; if this persists, check that the "
            "subscription has exactly-once delivery"
        ),
        "nacks": NOTHING_NACKED,
        "rewinds": NOTHING_REDELIVERED,
        "keys_recovered": f"no key went on after its stream had broken, so that case was not verified; {CHECK_TARGET}",
    },
    subscriptions=(SubscriptionPlan(exactly_once=True),),
)
