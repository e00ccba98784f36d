"""`affinity`: while messages of a key are outstanding, the key stays at one subscriber.

Subscribers join and leave while bursts are published. Each message is held for a while before it is acknowledged, so that most of the
time something is outstanding on every key; now and then a key falls idle, which is when it may move.
"""

from __future__ import annotations

import asyncio

from prober.brokers.base import Subscriber
from prober.config.models import ProbeName
from prober.config.workloads import BURSTS
from prober.probes.context import Decide, Delivery, Experiment, ProbeContext, Workload
from prober.probes.cost import Traffic

JOIN_SHARE = 0.6
REDELIVERED_SHARE = 0.08
"""Of the messages, about so many come again since a subscriber left that held them; measured on the embedded server."""


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publishes on all keys while subscribers come and go."""

    def acknowledge_late(delivery: Delivery) -> None:
        context.later(context.random.uniform(0.5, 1.5) * workload.ack_after_s, delivery.ack)

    members = [await context.subscribe(acknowledge_late) for _ in range(2)]
    publishing = asyncio.gather(*(_bursts(context, f"affinity-{number}", workload) for number in workload.numbers))
    try:
        while not publishing.done():
            await asyncio.sleep(2 * workload.ack_after_s)
            await _change(context, members, acknowledge_late, workload.subscribers)
    finally:
        await publishing


async def _change(context: ProbeContext, members: list[Subscriber], decide: Decide, members_max: int) -> None:
    """One subscriber joins, or the oldest leaves."""
    if len(members) < members_max and context.random.random() < JOIN_SHARE:
        members.append(await context.subscribe(decide))
    elif len(members) > 1:
        await members.pop(0).close()


async def _bursts(context: ProbeContext, key: str, workload: Workload) -> None:
    for _ in range(workload.bursts):
        await context.publish(key, workload.burst_messages, workload.sizes)
        await asyncio.sleep(context.random.choice((0.5, 1.0, 3.0)) * workload.ack_after_s)


def traffic(workload: Workload) -> Traffic:
    """Every message comes once, and some again at another subscriber."""
    published = PROBE.messages(workload)
    return Traffic(workload.keys * workload.bursts, published, round(published * (1 + REDELIVERED_SHARE)))


PROBE = Experiment(
    name="affinity",
    promise="While messages of a key are outstanding, the key stays at one subscriber.",
    act=act,
    workload=Workload(bursts=BURSTS[ProbeName.AFFINITY], burst_messages=4, subscribers=4, ack_after_s=0.2),
    requires={
        "deliveries_among_several": "there were never two subscribers at once",
        "sessions_closed": "no subscriber left",
    },
)
