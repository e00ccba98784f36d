"""Stories about the user's own subscriptions: points of Cloud Monitoring, minutes old, once a minute, with gaps."""

from __future__ import annotations

from prober.monitoring.comparison import Late
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from tests.alerts.stories import HERE, Story, at, of

NAME = "projects/shop/subscriptions/orders"
LABELS = {**HERE, "own_subscription": NAME}
MINUTE = "1m"
POINTS = at("-120+60x120")
"""Each point is two minutes old when it is read."""


def own(family: Family, **labels: str) -> str:
    """A series of the own subscription."""
    return of(family, own_subscription=NAME, **labels)


def late(who: Late, **labels: str) -> str:
    """The series of one answer to who is late."""
    return own(families.OWN_LATE, who=who, **labels)


AGE, LIMIT, POINT = (own(one) for one in (families.OWN_OLDEST_UNACKED_AGE, families.OWN_LATE_AFTER, families.OWN_POINT_AT))
EXPIRED, ACKED = own(families.OWN_EXPIRED), own(families.OWN_ACKED)
MAINTENANCE = of(families.UNDER_MAINTENANCE)
GAP = "NaN NaN NaN"
READ = {LIMIT: "60x120", POINT: POINTS}

BOTH = (
    Story(
        "PubsubServiceDelaysOwnSubscription",
        "fires when the prober is late as well and ends when it is not",
        {
            late(Late.BOTH): "0x10 1x20 0x20",
            late(Late.NOBODY): "1x10 0x20 1x20",
        },
        {"10m": 0, "14m": 0, "18m": 1, "29m": 1, "34m": 0},
        every=MINUTE,
        reads=(
            "18m",
            LABELS,
            f"For 5m {NAME} has been late, and so have the prober's own messages on t (e, r). The service is the likely cause.",
        ),
    ),
    Story(
        "PubsubServiceDelaysOwnSubscription",
        "goes on through a gap of the points, and ends when nothing has been known for long",
        {
            late(Late.BOTH): "1x19 0x2 1x10 0x20",
            late(Late.UNKNOWN): "0x19 1x2 0x10 1x20",
        },
        {"6m": 1, "21m": 1, "30m": 1, "34m": 1, "40m": 0},
        every=MINUTE,
    ),
    Story(
        "PubsubServiceDelaysOwnSubscription",
        "not where only one of the two is late, or nothing is known",
        {
            late(Late.BOTH): "0x60",
            late(Late.ONLY_YOURS): "1x20 0x40",
            late(Late.SERVICE): "0x20 1x20 0x20",
            late(Late.UNKNOWN): "0x40 1x20",
        },
        {"15m": 0, "35m": 0, "55m": 0},
        every=MINUTE,
    ),
    Story(
        "PubsubServiceDelaysOwnSubscription",
        "not under maintenance",
        {late(Late.BOTH): "1x60", MAINTENANCE: "1x30 0x30"},
        {"25m": 0, "40m": 1},
        every=MINUTE,
    ),
)

ONLY_YOURS = (
    Story(
        "PubsubOwnSubscriptionLate",
        "fires when it is late for ten minutes and ends when it is not",
        {**READ, AGE: "5x10 90+60x30 3x30", late(Late.ONLY_YOURS): "0x10 1x30 0x30", late(Late.BOTH): "0x70"},
        {"10m": 0, "20m": 0, "23m": 1, "40m": 1, "43m": 0},
        every=MINUTE,
        reads=(
            "31m",
            LABELS,
            f"The oldest unacknowledged message of {NAME} is 21m 30s old, and was late for 10m. The prober's own messages on t (e, "
            "r) are in time, or their age is unknown.",
        ),
    ),
    Story(
        "PubsubOwnSubscriptionLate",
        "also where nothing is known of the prober",
        {**READ, AGE: "900x60", late(Late.UNKNOWN): "1x60"},
        {"5m": 0, "12m": 1, "50m": 1},
        every=MINUTE,
    ),
    Story(
        "PubsubOwnSubscriptionLate",
        "goes on through a failed read",
        {**READ, AGE: f"900x19 {GAP} 900x40"},
        {"19m": 1, "21m": 1, "23m": 1, "40m": 1},
        every=MINUTE,
    ),
    Story("PubsubOwnSubscriptionLate", "not for a moment", {**READ, AGE: "5x10 300x5 5x40"}, {"14m": 0, "22m": 0}, every=MINUTE),
    Story(
        "PubsubOwnSubscriptionLate",
        "not while nothing is known of it",
        {**READ, AGE: " ".join(["NaN"] * 60)},
        {"50m": 0},
        every=MINUTE,
    ),
    Story(
        "PubsubOwnSubscriptionLate",
        "not by a point that has grown old",
        {LIMIT: "60x120", POINT: at("-120+60x10 480x60"), AGE: "900x60"},
        {"9m": 0, "15m": 1, "20m": 0, "50m": 0},
        every=MINUTE,
    ),
    Story(
        "PubsubOwnSubscriptionLate",
        "not where the service is late too: its owners are paged",
        {**READ, AGE: "900x60", late(Late.BOTH): "1x60"},
        {"20m": 0, "50m": 0},
        every=MINUTE,
    ),
    Story(
        "PubsubOwnSubscriptionLate",
        "is one alert of two probers that read it",
        {**READ, AGE: "900x60", own(families.OWN_OLDEST_UNACKED_AGE, instance="j"): " ".join(["NaN"] * 60)},
        {"20m": 1},
        every=MINUTE,
    ),
)

DEADLINES = (
    Story(
        "PubsubOwnDeadlinesExpired",
        "fires for a large share and ends half an hour after the last",
        {EXPIRED: "0x30 10x40 0x50", ACKED: "90x120"},
        {"30m": 0, "40m": 0, "70m": 1, "112m": 0},
        every=MINUTE,
        reads=(
            "68m",
            LABELS,
            f"10% of the deliveries of {NAME} within the last 30m ended with an expired acknowledgement deadline, more than 5 %. With "
            "ordering each one redelivers all later messages of its key.",
        ),
    ),
    Story(
        "PubsubOwnDeadlinesExpired",
        "also where nothing is acknowledged, of which Cloud Monitoring has no point",
        {EXPIRED: "10x60", ACKED: " ".join(["NaN"] * 60)},
        {"30m": 1},
        every=MINUTE,
    ),
    Story("PubsubOwnDeadlinesExpired", "not for a small share", {EXPIRED: "10x60", ACKED: "990x60"}, {"50m": 0}, every=MINUTE),
    Story("PubsubOwnDeadlinesExpired", "not for a few", {EXPIRED: "1x10 0x50", ACKED: "0x60"}, {"20m": 0, "50m": 0}, every=MINUTE),
    Story(
        "PubsubOwnDeadlinesExpired",
        "not while nothing is known",
        {EXPIRED: " ".join(["NaN"] * 60), ACKED: "90x60"},
        {"50m": 0},
        every=MINUTE,
    ),
)

UNREADABLE = (
    Story(
        "PubsubProberOwnSubscriptionUnreadable",
        "fires when there has been no new point for long and ends with the next one",
        {POINT: at("-120+60x30 1680x60 5280+60x20")},
        {"30m": 0, "60m": 0, "70m": 1, "91m": 1, "93m": 0},
        every=MINUTE,
        reads=(
            "80m",
            LABELS,
            f"For 30m the newest point of {NAME} in Cloud Monitoring has been older than 10m. Its lateness is unknown, and its other "
            "alerts cannot fire.",
        ),
    ),
    Story(
        "PubsubProberOwnSubscriptionUnreadable",
        "fires where it was never read",
        {POINT: " ".join(["NaN"] * 60)},
        {"29m": 0, "31m": 1},
        every=MINUTE,
    ),
    Story(
        "PubsubProberOwnSubscriptionUnreadable",
        "not while one of two probers reads it",
        {POINT: " ".join(["NaN"] * 60), own(families.OWN_POINT_AT, instance="j"): POINTS},
        {"31m": 0, "50m": 0},
        every=MINUTE,
    ),
    Story(
        "PubsubProberOwnSubscriptionUnreadable",
        "not for the usual gaps",
        {POINT: at("-120+60x10 480x7 1020+60x50")},
        {"50m": 0},
        every=MINUTE,
    ),
    Story("PubsubProberOwnSubscriptionUnreadable", "not without own subscriptions", {}, {"50m": 0}, every=MINUTE),
)

STORIES = (*BOTH, *ONLY_YOURS, *DEADLINES, *UNREADABLE)
