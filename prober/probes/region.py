"""`region`: subscribers may connect to any region, and messages of a key that is published in one are received in order.

The target has a second endpoint, its peer, in another region. The keys but the last are divided: half are published here, half there, each
in one region only. One subscription is read here and one there, so that every key is read in both regions.

Between regions no order is guaranteed. The last key, `BOTH`, is published in both: its messages alternate between here and there, each
after the confirmation of the previous one. Their reordering is measured by RFC 4737 (`prober.ordering`) and never reported as a violation:
the checker knows the region of each publish.
"""

from __future__ import annotations

import asyncio
from typing import Final

from prober.core.events import Delivered
from prober.ordering.measurement import OrderMeasurement
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.cost import Traffic
from prober.probes.experiment import Company, Experiment, SubscriptionPlan, Workload
from prober.slo.figures import Figure

PEER = "peer"
"""Name of the subscription that is read at the peer."""
BOTH: Final = "region-both"
SETTLE_S: Final = 5.0
"""Longest wait for outstanding messages of the key published in both regions, in seconds."""
IDLE_S: Final = 600.0


class _InBoth:
    """The key that is published in both regions: its deliveries and their order."""

    def __init__(self, contexts: tuple[ProbeContext, ProbeContext], workload: Workload) -> None:
        self._contexts, self._sizes = contexts, workload.sizes
        self._seqs = contexts[0].publishing.next_seqs(BOTH, _in_both(workload))
        self._confirmed = len(self._seqs)
        self._received: set[tuple[str, int]] = set()
        self._order = OrderMeasurement(SETTLE_S, IDLE_S)
        self._complete = asyncio.Event()

    def received(self, delivery: Delivery) -> None:
        context = delivery.context
        self._order.observe(Delivered(context.now(), delivery.subscription, BOTH, "", context.epoch, delivery.seq, ""))
        self._received.add((delivery.subscription, delivery.seq))
        if len(self._received) >= 2 * self._confirmed:
            self._complete.set()

    async def publish(self) -> None:
        """Publish alternately in both regions, wait for the deliveries, and record the measurements."""
        self._confirmed = sum([await self._contexts[seq % 2].publishing.settle(BOTH, [seq], self._sizes) for seq in self._seqs])
        await comes_within(SETTLE_S, self._complete)
        report = self._order.report()
        if report.received:
            measured = self._contexts[0].recording.measured
            measured(Figure.REGIONS_REORDERED, report.reordered_ratio)
            measured(Figure.REGIONS_EXTENT, report.extent_max)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish and read at both endpoints at the same time."""
    peer = await context.at_peer()
    keys = {f"region-{number}": (context, peer)[place % 2] for place, number in enumerate(workload.numbers[:-1])}
    in_both = _InBoth((context, peer), workload)

    def acknowledge_soon(delivery: Delivery) -> None:
        if delivery.key == BOTH:
            in_both.received(delivery)
        elif keys[delivery.key] is not delivery.context:
            context.count("deliveries_across")
        delivery.context.later(workload.ack_after_s, delivery.ack)

    for _ in range(max(1, workload.subscribers // 2)):
        await context.subscribe(acknowledge_soon)
        await peer.subscribe(acknowledge_soon, at=PEER)
    await asyncio.gather(in_both.publish(), *(_bursts(at, key, workload) for key, at in keys.items()))


async def _bursts(context: ProbeContext, key: str, workload: Workload) -> None:
    for _ in range(workload.bursts):
        await context.publish(key, workload.burst_messages, workload.sizes)


def _in_both(workload: Workload) -> int:
    """Return the number of messages of the key published in both regions: as many as any other key, one per request."""
    return workload.bursts * workload.burst_messages


def traffic(workload: Workload) -> Traffic:
    """Return the traffic of a run: each message once on both subscriptions; the key in both regions has one message per request."""
    return Traffic((workload.keys - 1) * workload.bursts + _in_both(workload), workload.messages, 2 * workload.messages)


def opportunities(workload: Workload) -> dict[str, int]:
    """Return the opportunities of a run: per subscription and message behind the first of its key and region, and per message for loss."""
    return {"opportunities_order": 2 * (workload.messages - workload.keys - 1), "publishes_confirmed": workload.messages}


PROBE = Experiment(
    name="region",
    guarantee="Messages of a key that is published in one region are received in order by subscribers in any region.",
    act=act,
    workload=Workload(keys=10, bursts=3, burst_messages=10, subscribers=4),
    interval_s=300.0,
    least={"keys": 3, "messages": 2},
    traffic=traffic,
    opportunities=opportunities,
    simulated={"keys": range(3, 7)},
    requires={
        "deliveries_across": (
            "no message was delivered at another endpoint than that of its publish, so delivery between regions was not verified; "
            "if this persists, check both endpoints of the target, and set keys of the probe to 3 or more"
        )
    },
    subscriptions=(SubscriptionPlan(), SubscriptionPlan(PEER)),
    paired=True,
    company=Company.BURSTS,
)
