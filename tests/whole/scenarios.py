"""The faults that must be heard: each with its injection, the people who must be notified, and the first box of the status page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc

from tests.whole.world import (
    Inject,
    Setting,
    fault,
    library_streams,
    method,
    prober_killed,
    refused,
    some,
    store_killed,
    target_killed,
)

SERVICE_PAGER: Final = "service-pager"
PROBER_PAGER: Final = "prober-pager"
PROBER_TICKETS: Final = "prober-tickets"
NOBODY: Final = "nobody"


USUAL: Final = Setting()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault.

    receiver   the receiver of the example for Alertmanager that must get one of `alerts`.
    box        words that the first box of the status page must contain by then; empty: the page is not about this fault.
    notified   False: only the page shows it, since the alert is for information.
    """

    name: str
    what: str
    inject: Inject
    receiver: str
    alerts: tuple[str, ...]
    box: str = ""
    setting: Setting = USUAL
    notified: bool = True


_DENIED: Final = grpc.StatusCode.PERMISSION_DENIED

SCENARIOS: Final = (
    Scenario("target_killed", "target killed", target_killed, SERVICE_PAGER, ("PubsubTargetUnreachable",), "OUTAGE"),
    Scenario(
        "streams_refused",
        "StreamingPull refused (PERMISSION_DENIED)",
        refused(method("StreamingPull", _DENIED)),
        PROBER_PAGER,
        ("PubsubTargetBlind",),
        "PERMISSION_DENIED",
        Setting(("ordering", "redelivery", "affinity")),
    ),
    Scenario(
        "publishes_refused",
        "Publish refused (PERMISSION_DENIED)",
        refused(method("Publish", _DENIED)),
        SERVICE_PAGER,
        ("PubsubErrorBudgetBurn",),
        "publish",
    ),
    Scenario(
        "calls_failing",
        "30 % of the calls fail (UNAVAILABLE)",
        refused(some(0.3, grpc.StatusCode.UNAVAILABLE)),
        SERVICE_PAGER,
        ("PubsubErrorBudgetBurn",),
        "publish",
    ),
    Scenario(
        "prober_killed",
        "one of two probers killed",
        prober_killed,
        PROBER_TICKETS,
        ("PubsubProberDown",),
        setting=Setting(probers=2),
    ),
    Scenario(
        "library_blind",
        "one of two vantages blind (StreamingPull of the library refused)",
        refused(library_streams),
        PROBER_TICKETS,
        ("PubsubProberVerdictsUnknown",),
        "UNKNOWN",
        Setting(
            ("affinity",), ("wire", "library")
        ),  # `ordering` through the library and the proxy is too much for a shared machine
    ),
    Scenario(
        "store_killed",
        "status store killed",
        store_killed,
        PROBER_TICKETS,
        ("PubsubProberStatusStoreDown",),
        "PASS",
    ),
    Scenario(
        "intermittent",
        "one fault at p = 0.002 (order)",
        fault("swap_in_batch:p=0.002"),
        SERVICE_PAGER,
        ("PubsubOrderViolated",),
        "order",
    ),
    Scenario("order", "order: swap_in_batch", fault("swap_in_batch:p=0.1"), SERVICE_PAGER, ("PubsubOrderViolated",), "order"),
    Scenario(
        "redelivery",
        "redelivery: redeliver_unacked_only",
        fault("redeliver_unacked_only:p=0.5"),
        SERVICE_PAGER,
        ("PubsubRedeliveryViolated",),
        "redeliver",
    ),
    Scenario(
        "affinity", "affinity: split_holder", fault("split_holder"), NOBODY, ("PubsubAffinityViolated",), "WARN", notified=False
    ),
    Scenario(
        "overlap", "affinity by pull: overlap_pull", fault("overlap_pull"), SERVICE_PAGER, ("PubsubOverlapViolated",), "outstanding"
    ),
    Scenario("loss", "loss: drop", fault("drop:p=0.05"), SERVICE_PAGER, ("PubsubDeliveryOverdue", "PubsubOrderViolated"), "FAIL"),
    Scenario(
        "stall", "loss: stall_key", fault("stall_key:p=0.2"), SERVICE_PAGER, ("PubsubDeliveryOverdue", "PubsubKeysStalled"), "FAIL"
    ),
    Scenario(
        "integrity",
        "integrity: corrupt_payload",
        fault("corrupt_payload:p=0.1"),
        SERVICE_PAGER,
        ("PubsubIntegrityViolated",),
        "FAIL",
    ),
)
BY_NAME: Final = {scenario.name: scenario for scenario in SCENARIOS}
