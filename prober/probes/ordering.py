"""`ordering`: messages of a key are received in the order in which the service received them; none is lost, duplicated or invented.

Several subscribers share a subscription. On each key, bursts are published faster than they are acknowledged, so that messages are always
outstanding while more arrive. Every message is acknowledged after a moment. Flow control allows each subscriber all published messages:
otherwise a backlog caused by the probe would be measured as the service's.

Beside each burst a few messages without a key are published. All of them must be delivered; their order is not guaranteed.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from prober.brokers.base import FlowControlSettings
from prober.probes.context import Delivery, ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import (
    NOTHING_DELIVERED,
    ONE_SUBSCRIBER,
    Company,
    Experiment,
    Workload,
    each_message,
    opportunities_of_order,
)
from prober.slo.indicators import Indicator

WITHOUT_KEY_SHARE: Final = 5
"""Number of messages of a key per message without a key."""


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish bursts on all keys at once, and acknowledge all messages."""
    # Slower than the bursts follow each other, and well within the lease.
    ack_after_s = min(max(workload.ack_after_s, 1.5 * workload.period_s), context.resources.ack_deadline_s / 3)

    def acknowledge_soon(delivery: Delivery) -> None:
        context.later(ack_after_s, delivery.ack)

    for _ in range(workload.subscribers):
        await context.subscribe(acknowledge_soon, without_flow_limit(workload))
    keys = {f"ordering-{number}": workload.burst_messages for number in workload.numbers} | {"": without_key(workload)}
    await asyncio.gather(*(_bursts(context, key, length, workload) for key, length in keys.items()))


def without_flow_limit(workload: Workload) -> FlowControlSettings:
    """Return flow control that a run of this size never exhausts, even with all keys at one subscriber; at least the default."""
    usual = FlowControlSettings()
    return replace(usual, messages_max=max(usual.messages_max, traffic(workload).published))


async def _bursts(context: ProbeContext, key: str, length: int, workload: Workload) -> None:
    async for due_t in context.ticks(workload.bursts, workload.period_s):
        await context.publish(key, length, workload.sizes, due_t)


def without_key(workload: Workload) -> int:
    """Return the number of messages without a key in a burst."""
    return max(1, workload.burst_messages // WITHOUT_KEY_SHARE)


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once; those without a key are one more request per burst."""
    messages = workload.messages + workload.bursts * without_key(workload)
    return Traffic((workload.keys + 1) * workload.bursts, messages, messages)


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run; messages without a key may be lost, but have no order."""
    return opportunities_of_order(workload) | {"publishes_confirmed": traffic(workload).published}


PROBE = Experiment(
    name="ordering",
    guarantee="Messages of a key are received in the order in which the service received them, and all messages are received.",
    act=act,
    workload=Workload(keys=10, bursts=5, burst_messages=20, rate=500.0, subscribers=3),
    interval_s=10.0,
    least={"messages": 2, "subscribers": 2},
    paced=True,
    traffic=traffic,
    opportunities=opportunities,
    feeds=dict.fromkeys(
        (Indicator.ORDER, Indicator.COMPLETENESS, Indicator.PUBLISH_AVAILABILITY, Indicator.PUBLISH_LATENCY), each_message
    ),
    simulated={"keys": range(2, 7), "messages": range(2, 13), "rate": (0.0, 50.0, 500.0), "subscribers": range(2, 6)},
    requires={
        "publishes_confirmed": (
            "the target confirmed no publish, so nothing was verified; if this persists, check the topic's quota and the permission "
            "to publish"
        ),
        "deliveries_first": NOTHING_DELIVERED,
        "deliveries_among_several": ONE_SUBSCRIBER,
    },
    company=Company.NONE,
)
