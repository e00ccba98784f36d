"""`control_plane`: administration calls end within seconds, and messages published once a subscription exists are delivered.

The topic and its subscriptions are created for the run and deleted after it. As soon as they exist, before a subscriber reads, messages are
published on all keys: each must arrive, including the first. Then more messages are published, and every other kind of administration call
is made once, on a second subscription without subscribers. A request to switch on its ordering is sent, too: it must be refused.

The time from the request that creates the subscription to the first receipt is measured. A first message that never arrives has no such
latency: the checker reports it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from prober.brokers.base import AdminOperation
from prober.clock import wall_s
from prober.errors import BrokerUnavailable, RequestRefused
from prober.probes.context import Delivery, ProbeContext
from prober.probes.experiment import NOTHING_DELIVERED, Company, Experiment, SubscriptionPlan, Workload, opportunities_of_order
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

SPARE: Final = "spare"
"""The name of the subscription without subscribers."""
RETENTION_S: Final = 86_400.0
ATTEMPTS_MAX: Final = 3
"""Attempts to switch on the ordering, while the service does not answer."""
ADMIN_CALLS: Final = {
    AdminOperation.CREATE_TOPIC: 1,
    AdminOperation.CREATE_SUBSCRIPTION: 2,
    AdminOperation.GET: 2,
    AdminOperation.LIST: 1,
    AdminOperation.UPDATE: 1,
    AdminOperation.SEEK: 1,
    AdminOperation.DELETE: 3,
}
"""Administration calls of a run, including creation and deletion of its resources."""


class _FirstReceipt:
    """Measures the time from the creation of the subscription to the first received message; acknowledges every message."""

    def __init__(self, context: ProbeContext) -> None:
        self._context, self._creation = context, context.creation
        if self._creation is not None:
            context.recording.measured(Figure.SUBSCRIPTION_CREATION, self._creation.took_s)

    def decide(self, delivery: Delivery) -> None:
        delivery.ack()
        if self._creation is None:
            return
        now, since_t = self._context.now(), self._creation.asked_t
        self._creation = None
        self._context.recording.took(Indicator.CREATION_TO_RECEIPT_LATENCY, now - since_t, since_t, now)
        self._context.recording.measured(Figure.CREATION_TO_RECEIPT, now - since_t)
        self._context.count("first_receipts_measured")


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish at once, then subscribe, publish the rest and make the administration calls."""
    first_receipt = _FirstReceipt(context)
    keys = [f"control_plane-{number}" for number in workload.numbers]
    for burst in range(workload.bursts):
        await asyncio.gather(*(context.publish(key, workload.burst_messages, workload.sizes) for key in keys))
        for _ in range(0 if burst else workload.subscribers):
            await context.subscribe(first_receipt.decide)
    await _administer(context)


async def _administer(context: ProbeContext) -> None:
    admin, topic, spare = context.admin, context.resources.topic, context.resources.named(SPARE)
    project = topic.partition("/topics/")[0]
    await context.administer(AdminOperation.GET, admin.look(topic))
    await context.administer(AdminOperation.GET, admin.look(spare))
    await context.administer(AdminOperation.LIST, admin.list_some(project))
    await context.administer(AdminOperation.UPDATE, admin.update_subscription(spare, message_retention_s=RETENTION_S))
    for _ in range(ATTEMPTS_MAX):
        with suppress(BrokerUnavailable):  # the answer is unknown
            await _switch_ordering_on(context, spare)
            break
    await context.administer(AdminOperation.SEEK, admin.seek(spare, wall_s()))


async def _switch_ordering_on(context: ProbeContext, spare: str) -> None:
    try:
        await context.admin.update_subscription(spare, ordering=True)
    except RequestRefused:
        context.count("ordering_changes_refused")
    else:
        context.count("ordering_changes_accepted")


PROBE = Experiment(
    name="control_plane",
    guarantee="Administration calls end within seconds, and every message published once a subscription exists is delivered.",
    act=act,
    workload=Workload(keys=10, bursts=2, burst_messages=15, subscribers=2),
    interval_s=300.0,
    opportunities=opportunities_of_order,
    feeds={
        Indicator.CONTROL_PLANE_LATENCY: lambda _workload: sum(ADMIN_CALLS.values()),
        Indicator.CREATION_TO_RECEIPT_LATENCY: lambda _workload: 1,
    },
    disturbs=frozenset({Indicator.END_TO_END_LATENCY}),
    admin_calls=ADMIN_CALLS,
    simulated={"keys": range(3, 7)},
    requires={
        "deliveries_first": NOTHING_DELIVERED,
        "ordering_changes_refused": (
            "the target accepted a change of enable_message_ordering, or did not answer, so its rejection was not verified; "
            "if this persists, check the run's counter ordering_changes_accepted, and the target's administration"
        ),
    },
    subscriptions=(SubscriptionPlan(), SubscriptionPlan(SPARE, ordering=False)),
    fresh=True,
    company=Company.NONE,
)
