"""`ordering`: messages of a key are received in the order in which the service received them; none is lost, doubled or made up.

Several subscribers share a subscription. On each key, bursts are published faster than they are acknowledged, so that something is
always outstanding while more arrives. Every message is acknowledged after a moment. Each subscriber takes all that is published: a
backlog of the probe's own making would be measured as the service's.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from prober.brokers.base import FlowControlSettings
from prober.probes.context import Delivery, ProbeContext
from prober.probes.experiment import NOTHING_DELIVERED, ONE_SUBSCRIBER, Experiment, Workload, chances_of_order, each_message
from prober.slo.indicators import Indicator


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publishes bursts on all keys at once, and acknowledges what comes."""
    # Slower than the bursts follow each other, and well within the lease.
    ack_after_s = min(max(workload.ack_after_s, 1.5 * workload.period_s), context.resources.ack_deadline_s / 3)

    def acknowledge_soon(delivery: Delivery) -> None:
        context.later(ack_after_s, delivery.ack)

    for _ in range(workload.subscribers):
        await context.subscribe(acknowledge_soon, without_flow_limit(workload))
    await asyncio.gather(*(_bursts(context, f"ordering-{number}", workload) for number in workload.numbers))


def without_flow_limit(workload: Workload) -> FlowControlSettings:
    """Flow control that a run of this size never uses up, even if all keys are at one subscriber; the usual one if that will do."""
    usual = FlowControlSettings()
    return replace(usual, messages_max=max(usual.messages_max, workload.messages))


async def _bursts(context: ProbeContext, key: str, workload: Workload) -> None:
    async for due_t in context.ticks(workload.bursts, workload.period_s):
        await context.publish(key, workload.burst_messages, workload.sizes, due_t)


PROBE = Experiment(
    name="ordering",
    promise="Messages of a key are received in the order in which the service received them, and all of them are.",
    act=act,
    workload=Workload(keys=10, bursts=5, burst_messages=20, rate=500.0, subscribers=3),
    interval_s=10.0,
    least={"messages": 2, "subscribers": 2},
    paced=True,
    chances=chances_of_order,
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
)
