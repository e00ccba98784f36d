"""`pull`: the messages of a key in one pull response are in order, and no other pull gets the key while they are outstanding.

Several callers pull at the same time, fewer messages at once than a burst contains, so that a key always has more messages than a response.
The messages of a response are acknowledged one by one, at different times, so that a key is often blocked by a single message. Some are
nacked, so that redeliveries are pulled, too. Pulling continues until no message is pending.
"""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Final

from prober.core.rules import Mode
from prober.probes.context import Delivery, ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import (
    NOTHING_DELIVERED,
    NOTHING_NACKED,
    NOTHING_REDELIVERED,
    Company,
    Experiment,
    SubscriptionPlan,
    Workload,
    each_key,
    opportunities_of_order,
)
from prober.probes.first_of_keys import FirstOfKeys
from prober.slo.indicators import Indicator

NACKED_EVERY: Final = 10
"""Number of first-time deliveries of a key per nacked delivery; the first of each group is nacked."""
AGAIN_EACH: Final = 1.9
"""Messages redelivered after one nack: the nacked one and those received behind it; measured on the embedded server."""


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish bursts on all keys while several callers pull, acknowledge and nack."""
    firsts = FirstOfKeys(context, Indicator.PULL_LATENCY)

    def decide(delivery: Delivery) -> None:
        firsts.received(delivery)
        refuse = not delivery.again and delivery.seq % NACKED_EVERY == 1
        moment_s = context.random.uniform(0.0, 2.0) * workload.ack_after_s
        context.later(moment_s, delivery.nack if refuse else delivery.ack)

    for _ in range(workload.subscribers):
        context.pull(decide, messages_max=_batch_max(workload))
    await asyncio.gather(*(firsts.bursts(f"pull-{number}", workload) for number in workload.numbers))


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once, and redeliveries after nacks."""
    nacked = workload.keys * ceil(workload.bursts * workload.burst_messages / NACKED_EVERY)
    again = round(nacked * AGAIN_EACH)
    return Traffic(workload.keys * workload.bursts, workload.messages, workload.messages + again)


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run, by counter.

    Order: per message behind the first of its key. Overlap: per batch of a key but the last. Loss: per message.
    """
    batches = ceil(workload.bursts * workload.burst_messages / _batch_max(workload))
    return opportunities_of_order(workload) | {"opportunities_overlap": workload.keys * (batches - 1)}


def _batch_max(workload: Workload) -> int:
    return max(2, workload.burst_messages // 2)


PROBE = Experiment(
    name="pull",
    guarantee="Pull responses bring the messages of a key in order, and no second one while the first is outstanding.",
    act=act,
    workload=Workload(keys=8, bursts=4, burst_messages=6, subscribers=3, ack_after_s=0.1),
    least={"messages": 2, "subscribers": 2},
    traffic=traffic,
    opportunities=opportunities,
    feeds={Indicator.PULL_LATENCY: each_key},
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    simulated={"keys": range(3, 7), "subscribers": range(2, 6)},
    requires={
        "deliveries_first": NOTHING_DELIVERED,
        "nacks": NOTHING_NACKED,
        "rewinds": NOTHING_REDELIVERED,
        "pulls_concurrent": (
            "no two pulls were open at the same time, so key affinity between pulls was not verified; if this persists, set subscribers of "
            "the probe to 2 or more"
        ),
    },
    subscriptions=(SubscriptionPlan(mode=Mode.PULL),),
    company=Company.NONE,
)
