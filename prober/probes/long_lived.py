"""`long_lived`: order holds for days, also of messages that waited for subscribers.

Other probes publish in bursts to topics that are renewed every few hours, and receive at once. Here the topic, its subscription and its
keys stay for a week. At its end, after closing its subscribers, a run publishes on each key for the next run (`handover`). The next run,
minutes or days later, in this process or another, receives these messages first and publishes more behind them: all must arrive, in order.

Waiting messages are taken over once. A prober that is killed during a run leaves messages unknown to the next run, which acknowledges them
and starts with its own messages. Without waiting messages, a run publishes first and subscribes `REST_S` later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from prober.clock import random_name
from prober.core.events import Event, Published, PublishEvent
from prober.errors import CheckpointUnavailable
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.experiment import NOTHING_DELIVERED, Company, Experiment, Workload, opportunities_of_order
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

REST_S: Final = 6.0
"""Shortest waiting time of messages if no earlier run has published any, in seconds."""
SETTLE_S: Final = 30.0
"""Longest wait of the probe for the receipt of all messages, in seconds; the run waits for later ones as for any probe."""


class _Receipts:
    """Acknowledged messages, and whether all have been received."""

    def __init__(self, ack_after_s: float, expected: int) -> None:
        self._ack_after_s, self._expected = ack_after_s, expected
        self._acked: set[tuple[str, int]] = set()
        self.complete = asyncio.Event()

    def received(self, delivery: Delivery) -> None:
        delivery.context.later(self._ack_after_s, lambda: self._ack(delivery))

    def _ack(self, delivery: Delivery) -> None:
        delivery.ack()
        self._acked.add((delivery.key, delivery.seq))
        if len(self._acked) >= self._expected:
            self.complete.set()


async def act(context: ProbeContext, workload: Workload) -> None:
    """Receive the waiting messages, publish more, and hand over to the next run if all were received."""
    keys = [f"long-lived-{number}" for number in workload.numbers]
    waiting = await _waiting(context, keys, workload)
    receipts = _Receipts(workload.ack_after_s, workload.messages)
    subscribers = [await context.subscribe(receipts.received) for _ in range(workload.subscribers)]
    confirmed = sum(await asyncio.gather(*(_bursts(context, key, workload) for key in keys)))
    context.count("messages_behind", confirmed)
    if waiting + confirmed == workload.messages and await comes_within(SETTLE_S, receipts.complete):
        await asyncio.gather(*(subscriber.close() for subscriber in subscribers))
        await _hand_over(context, keys, workload)


async def _waiting(context: ProbeContext, keys: Sequence[str], workload: Workload) -> int:
    """Take over the waiting messages, or publish them. Return the number of confirmed messages."""
    handover = context.handover
    published = () if handover is None else await handover.take()
    if handover is not None:
        context.recording.measured(Figure.LONG_LIVED_AGE, handover.age_s)
    if handover is None or not published:
        confirmed = await asyncio.gather(*(_burst(context, key, workload) for key in keys))
        await asyncio.sleep(REST_S)
        return sum(confirmed)
    context.recording.measured(Figure.LONG_LIVED_WAITED, handover.waited_s)
    now = context.now()
    for event in published:
        context.record(replace(event, t=now))  # as if published now: no subscriber waited for it before
    context.publishing.go_on(published)
    confirmed_messages = {(event.key, event.seq) for event in published if isinstance(event, Published)}
    context.count("messages_taken_over", len(confirmed_messages))
    return len(confirmed_messages)


async def _bursts(context: ProbeContext, key: str, workload: Workload) -> int:
    """Publish all bursts but the first, which waited. Return the number of confirmed messages."""
    return sum([await _burst(context, key, workload) for _ in range(workload.bursts - 1)])


async def _burst(context: ProbeContext, key: str, workload: Workload) -> int:
    return await context.publish(key, workload.burst_messages, workload.sizes)


async def _hand_over(context: ProbeContext, keys: Sequence[str], workload: Workload) -> None:
    """Publish messages on each key for the next run, which records them."""
    if context.handover is None:
        return
    epoch, published = f"{PROBE.name}-{random_name(12)}", list[Event]()
    publishing = context.publishing_as(epoch, published.append)
    try:
        await asyncio.gather(*(publishing.publish(key, workload.burst_messages, workload.sizes) for key in keys))
    finally:
        await publishing.close()
    try:
        await context.handover.leave(epoch, [event for event in published if isinstance(event, PublishEvent)])
    except CheckpointUnavailable:
        context.count("handovers_failed")  # the next run receives messages without a record of their publishes


PROBE = Experiment(
    name="long_lived",
    guarantee="Order holds on keys that live for days, also of messages that waited while nobody subscribed.",
    act=act,
    workload=Workload(keys=10, bursts=3, burst_messages=10, subscribers=2),
    interval_s=300.0,
    opportunities=opportunities_of_order,
    disturbs=frozenset({Indicator.PUBLISH_LATENCY, Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(1, 5), "messages": range(1, 6), "subscribers": range(1, 4)},
    requires={
        "deliveries_first": NOTHING_DELIVERED,
        "messages_behind": (
            "the target confirmed no publish behind the messages that waited, so their order was not verified; if this persists, check "
            "the topic's quota and the permission to publish"
        ),
    },
    long_lived=True,
    company=Company.BURSTS,
)
