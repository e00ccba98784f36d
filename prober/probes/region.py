"""`region`: subscribers may connect to any region, and messages of a key that is published in one are received in order.

The target has a second endpoint, its peer, in another region. Half of the keys are published here and half there; a key has one region,
since between regions no order is promised. One subscription is read here and one there, so that every key is read at both ends.
"""

from __future__ import annotations

import asyncio

from prober.probes.context import Delivery, ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import Experiment, SubscriptionPlan, Workload

PEER = "peer"
"""What the subscription is called that is read there."""


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publishes and reads at both endpoints at the same time."""
    peer = await context.at_peer()
    keys = {f"region-{number}": (context, peer)[place % 2] for place, number in enumerate(workload.numbers)}

    def acknowledge_soon(delivery: Delivery) -> None:
        if keys[delivery.key] is not delivery.context:
            context.count("deliveries_across")
        delivery.context.later(workload.ack_after_s, delivery.ack)

    for _ in range(max(1, workload.subscribers // 2)):
        await context.subscribe(acknowledge_soon)
        await peer.subscribe(acknowledge_soon, at=PEER)
    await asyncio.gather(*(_bursts(at, key, workload) for key, at in keys.items()))


async def _bursts(context: ProbeContext, key: str, workload: Workload) -> None:
    for _ in range(workload.bursts):
        await context.publish(key, workload.burst_messages, workload.sizes)


def traffic(workload: Workload) -> Traffic:
    """Every message comes once on each of the two subscriptions."""
    return Traffic(workload.keys * workload.bursts, workload.messages, 2 * workload.messages)


def chances(workload: Workload) -> dict[str, int]:
    """On each subscription one for each message behind the first of its key; and each message may be lost."""
    return {"chances_order": 2 * (workload.messages - workload.keys), "publishes_confirmed": workload.messages}


PROBE = Experiment(
    name="region",
    promise="Messages of a key that is published in one region are received in order by subscribers in any region.",
    act=act,
    workload=Workload(keys=10, bursts=3, burst_messages=10, subscribers=4),
    interval_s=300.0,
    least={"keys": 2, "messages": 2},
    traffic=traffic,
    chances=chances,
    simulated={"keys": range(3, 7)},
    requires={
        "deliveries_across": (
            "no message was delivered at another endpoint than that of its publish, so delivery between regions was not verified; "
            "if this persists, check both endpoints of the target, and set keys of the probe to 2 or more"
        )
    },
    subscriptions=(SubscriptionPlan(), SubscriptionPlan(PEER)),
    paired=True,
)
