"""Stories about findings."""

from __future__ import annotations

from prober.core.findings import Kind, Status
from prober.sinks.metrics import families
from tests.alerts.stories import HERE, Story, at, of

ON_S = {**HERE, "subscription": "s"}
WHERE = "on subscription s of t (e, r)"
STARTED = of(families.START)


def found(kind: Kind, status: Status, **labels: str) -> str:
    """The counter of a kind of finding on the subscription s."""
    return of(families.FINDINGS, subscription="s", kind=kind, status=status, **labels)


VIOLATIONS = {
    "PubsubOrderViolated": Kind.ORDER_GAP,
    "PubsubRedeliveryViolated": Kind.REDELIVERY_SKIP,
    "PubsubIntegrityViolated": Kind.PHANTOM,
    "PubsubOverlapViolated": Kind.PUSH_OVERLAP,
    "PubsubAffinityViolated": Kind.AFFINITY_SPLIT,
}


def _about_violations() -> tuple[Story, ...]:
    return tuple(
        story
        for name, kind in VIOLATIONS.items()
        for story in (
            Story(
                name,
                "fires at the next evaluation and for an hour",
                {found(kind, Status.VIOLATION): "0x80 1x80", STARTED: at("-9000x160")},
                {"20m": 0, "20m15s": 1, "30m": 1, "79m": 1, "81m": 0},
                reads=(
                    "20m15s",
                    {**ON_S, "kind": str(kind)},
                    f"{kind} {WHERE}: proven by events of the last 1h, which no legal behaviour explains. The finding contains a "
                    "minimal reproduction.",
                ),
            ),
            Story(
                name,
                "says nothing about doubts, deadlines and other kinds",
                {
                    found(kind, Status.INDETERMINATE): "0+1x80",
                    found(kind, Status.INFO): "0+1x80",
                    found(kind, Status.LIVENESS): "0+1x80",
                    found(Kind.AFFINITY_MOVE, Status.VIOLATION): "0+1x80",
                },
                {"1m": 0, "10m": 0, "20m": 0},
            ),
        )
    )


GAP = found(Kind.ORDER_GAP, Status.VIOLATION)

COUNTERS = (
    Story("PubsubOrderViolated", "born at 1", {GAP: "_x80 1x80", STARTED: at("_x80 1200x80")}, {"20m15s": 1, "82m": 0}),
    Story(
        "PubsubOrderViolated",
        "born at 1 by a prober that does not say when it started",
        {GAP: "_x80 1x80"},
        {"20m15s": 1, "82m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "is over an hour after it was found, also by a prober that started with its clock six hours ahead",
        {GAP: "_x80 1x800", STARTED: at("_x80 22800x800")},
        {"20m15s": 1, "79m": 1, "82m": 0, "200m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "a restart that nobody saw, with a clock that is six hours behind, brings the counter back to what it was",
        {GAP: "1x560", STARTED: at("-9000x300 -17100x260")},
        {"72m": 0, "75m15s": 1, "137m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "a restart that nobody saw brings the counter back to what it was",
        {GAP: "1x560", STARTED: at("-9000x300 4500x260")},
        {"72m": 0, "75m15s": 1, "137m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "a restart brings it back to 1 from 5",
        {GAP: "5x300 stale _x2 1x80", STARTED: at("-9000x300 stale _x2 4500x80")},
        {"72m": 0, "76m15s": 1, "140m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "a restart that finds nothing says nothing",
        {GAP: "5x300 stale _x2 0x80", STARTED: at("-9000x300 stale _x2 4500x80")},
        {"72m": 0, "75m15s": 0, "76m15s": 0, "80m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "another process takes over and finds something before its first scrape",
        {
            GAP: "0x240 stale",
            found(Kind.ORDER_GAP, Status.VIOLATION, instance="j"): "_x242 2x80",
            STARTED: at("-9000x240 stale"),
            of(families.START, instance="j"): at("_x242 3600x80"),
        },
        {"60m": 0, "61m": 1, "125m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "found while nobody scraped for half an hour",
        {GAP: "3x240 _x120 4x80", STARTED: at("-9000x240 _x120 -9000x80")},
        {"60m": 0, "75m": 0, "91m": 1, "153m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "nothing found while nobody scraped for half an hour",
        {GAP: "3x240 _x120 3x80", STARTED: at("-9000x240 _x120 -9000x80")},
        {"60m": 0, "91m": 0, "103m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "findings a quarter of an hour apart are one page that ends an hour after the last",
        {GAP: "0x80 1x60 2x60 3x60", STARTED: at("-9000x260")},
        {"20m": 0, "21m": 1, "31m": 1, "34m": 1, "46m": 1, "49m": 1, "62m": 1, "109m": 1, "112m": 0},
    ),
    Story(
        "PubsubOrderViolated",
        "a restart does not take back the page",
        {GAP: "_x80 1x8 stale _x8 0x200", STARTED: at("_x80 1200x8 stale _x8 1440x200")},
        {"20m15s": 1, "23m": 1, "25m": 1, "60m": 1, "82m": 0},
    ),
    Story("PubsubOrderViolated", "no data", {}, {"0s": 0, "20m": 0}),
    Story(
        "PubsubOrderViolated",
        "two kinds on two targets are four alerts",
        {
            of(families.FINDINGS, target=target, subscription="s", kind=kind, status=Status.VIOLATION): "0x80 7x80"
            for target in ("t", "u")
            for kind in (Kind.ORDER_GAP, Kind.ORDER_INVERSION)
        },
        {"20m15s": 4, "81m": 0},
    ),
)

OVERDUE = (
    Story(
        "PubsubDeliveryOverdue",
        "fires at the next evaluation and for an hour",
        {found(Kind.STUCK, Status.LIVENESS): "0x80 1x80"},
        {"20m": 0, "20m15s": 1, "81m": 0},
        reads=(
            "20m15s",
            {**ON_S, "kind": "STUCK"},
            f"STUCK {WHERE}: a deadline passed within the last 1h although the target answered. Messages are late or lost.",
        ),
        summary="t/s/STUCK (e, r): A message was not delivered by its deadline (findings: 1).",
    ),
    Story(
        "PubsubDeliveryOverdue",
        "says nothing about violations and doubts",
        {found(Kind.ORDER_GAP, Status.VIOLATION): "0+1x80", found(Kind.STUCK, Status.INDETERMINATE): "0+1x80"},
        {"10m": 0, "20m": 0},
    ),
)

STORIES = (*_about_violations(), *COUNTERS, *OVERDUE)
