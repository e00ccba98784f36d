"""What dashboards are about: kinds of durations and kinds of checks, each with its family, its objective and its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashboards.boards.durations import Durations
from prober.core.findings import Kind
from prober.sinks.metrics import families
from prober.sinks.metrics.families import Family
from prober.slo.indicators import Indicator

BUDGET: Final = ("PubsubErrorBudgetBurn",)

PUBLISH: Final = Durations(
    "Publish",
    families.PUBLISH_LATENCY,
    Indicator.PUBLISH_LATENCY,
    "From the time at which a message was to be sent to the service's confirmation.",
    BUDGET,
)
END_TO_END: Final = Durations(
    "End to end",
    families.END_TO_END_LATENCY,
    Indicator.END_TO_END_LATENCY,
    "From the time at which a message was to be sent to its first receipt.",
    BUDGET,
)
REDELIVERY: Final = Durations(
    "Redelivery",
    families.REDELIVERY_LATENCY,
    Indicator.REDELIVERY_LATENCY,
    "From a refusal or the end of a lease to the next receipt.",
    BUDGET,
)
CONTROL_PLANE: Final = Durations(
    "Administration",
    families.CONTROL_PLANE_LATENCY,
    Indicator.CONTROL_PLANE_LATENCY,
    "How long administration calls take: topics and subscriptions created, listed, deleted, seeks.",
    BUDGET,
)


@dataclass(frozen=True, slots=True)
class Checks:
    """A kind of check: what is judged one by one, and which findings say that it went wrong."""

    name: str
    family: Family
    indicator: Indicator
    meaning: str
    kinds: tuple[Kind, ...]
    runbooks: tuple[str, ...] = ()


ORDER: Final = Checks(
    "Order",
    families.ORDER_CHECKS,
    Indicator.ORDER,
    "Messages of a key are first received in the order in which the service received them.",
    (Kind.ORDER_GAP, Kind.ORDER_INVERSION, Kind.REALTIME_INVERSION, Kind.ORDER_DIVERGENCE),
    ("PubsubOrderViolated",),
)
REDELIVERED: Final = Checks(
    "Redelivery",
    families.REDELIVERY_CHECKS,
    Indicator.REDELIVERY,
    "A message that comes again brings all later ones of its key along, acknowledged or not.",
    (Kind.REDELIVERY_SKIP, Kind.PULL_BATCH_ORDER, Kind.PUSH_ADVANCE_PAST_NACK, Kind.REDELIVERY_STALL),
    ("PubsubRedeliveryViolated",),
)
AFFINITY: Final = Checks(
    "Affinity",
    families.AFFINITY_CHECKS,
    Indicator.AFFINITY,
    "While messages of a key are outstanding, the key stays at one subscriber.",
    (Kind.AFFINITY_SPLIT, Kind.PULL_OVERLAP, Kind.PUSH_OVERLAP),
    ("PubsubAffinityViolated",),
)
COMPLETENESS: Final = Checks(
    "Completeness",
    families.DELIVERY_CHECKS,
    Indicator.COMPLETENESS,
    "What was confirmed is delivered by the deadline.",
    (Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.UNACKED_STALL),
    ("PubsubDeliveryOverdue",),
)
CHECKS: Final = (ORDER, REDELIVERED, AFFINITY, COMPLETENESS)
INTEGRITY_KINDS: Final = (
    Kind.PHANTOM,
    Kind.GHOST,
    Kind.ID_CONFLICT,
    Kind.FILTER_LEAK,
    Kind.EOD_REDELIVERY_AFTER_ACK,
    Kind.EOD_REDELIVERY_WHILE_OUTSTANDING,
)
