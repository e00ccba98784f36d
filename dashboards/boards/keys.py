"""Keys: message ages, stalled keys, hot keys, and the measurements of probes once a run (`figures`)."""

from __future__ import annotations

from dashboards.board import Board, PanelRow
from dashboards.boards.figures import figure_panels
from dashboards.boards.jobs import hot_keys_by_class
from dashboards.boards.subjects import EVIDENCE, EVIDENCE_OF_KIND
from dashboards.panels import (
    BYTES_PER_SECOND,
    COUNT,
    PLAIN,
    SECONDS,
    SHARE,
    Look,
    Panel,
    TableColumn,
    Words,
    graph_panel,
    stat_panel,
    state_timeline_panel,
    table_panel,
    text_panel,
)
from dashboards.queries import BY, RANGE, Query, increase_of, select
from dashboards.thresholds import ANY_IS_BAD, BAD, GOOD, UNKNOWN, Thresholds
from prober.alerting.promql import aggregate
from prober.alerting.rules import Dashboard
from prober.core.findings import Kind, Status
from prober.monitoring.comparison import Late
from prober.sinks.metrics import families
from prober.sinks.metrics.scopes import TARGET

STANDING_STILL = (Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.REDELIVERY_STALL, Kind.UNACKED_STALL)

_LATE = {0: ("unknown", UNKNOWN), 1: ("nobody", GOOD), 2: ("only yours", BAD), 3: ("the service", BAD), 4: ("both", BAD)}
_CODES = {Late.UNKNOWN: 0, Late.NOBODY: 1, Late.ONLY_YOURS: 2, Late.SERVICE: 3, Late.BOTH: 4}


def keys_board(thresholds: Thresholds) -> Board:
    """Return the dashboard of keys."""
    return Board(
        Dashboard.KEYS,
        "Ordering keys / Keys",
        "Which messages are not acknowledged yet and for how long, which keys stand still, and which keys are hot.",
        (
            PanelRow("Now", (_oldest_now(thresholds), _undelivered_now(), _stalled_now(), _standing_still())),
            PanelRow("Over time", (_oldest(thresholds), _undelivered(), _stalled(), _liveness())),
            PanelRow("By subscription", (_subscriptions(thresholds),)),
            PanelRow("Your own subscriptions, by Cloud Monitoring", (_late(), _own_oldest(), _own_subscriptions())),
            PanelRow("Hot keys now, of observed streams", _top_keys()),
            PanelRow("Hot keys of the nightly report", (_hot_keys(), hot_keys_by_class())),
            PanelRow("Measured once a run", figure_panels()),
        ),
        by=("subscription", "target", "region", "environment", "instance"),
    )


def _late() -> Panel:
    words = Words(
        "Who is late",
        "Your subscription, the prober's own messages (the service), both or nobody, by the newest points of Cloud Monitoring, which are "
        "minutes old. Unknown: a point is missing, too old or cannot be read, or the prober had nothing to compare it with.",
        ("PubsubServiceDelaysOwnSubscription", "PubsubOwnSubscriptionLate"),
    )
    states = " or ".join(f"{code} * {select(families.OWN_LATE, who=who)}" for who, code in _CODES.items())
    query = Query(aggregate(states, "own_subscription", how="max"), "{{own_subscription}}")
    return state_timeline_panel(words, Look(PLAIN), _LATE, query)


def _own_oldest() -> Panel:
    words = Words(
        "Oldest unacknowledged message of yours",
        "By the newest point of Cloud Monitoring. A gap: it has none, or could not be read.",
        ("PubsubOwnSubscriptionLate",),
    )
    ages = aggregate(select(families.OWN_OLDEST_UNACKED_AGE), "own_subscription", how="max")
    return graph_panel(words, Look(SECONDS), Query(ages, "{{own_subscription}}"))


def _own_subscriptions() -> Panel:
    words = Words(
        "Your subscriptions",
        "The newest points of Cloud Monitoring, how old they are, and failed attempts to read them.",
        ("PubsubOwnDeadlinesExpired", "PubsubProberOwnSubscriptionUnreadable"),
    )
    by, point = "own_subscription", select(families.OWN_POINT_AT)
    columns = (
        TableColumn("Oldest message", aggregate(select(families.OWN_OLDEST_UNACKED_AGE), by, how="max"), SECONDS),
        TableColumn("Late after", aggregate(select(families.OWN_LATE_AFTER), by, how="max"), SECONDS),
        TableColumn("Undelivered", aggregate(select(families.OWN_UNDELIVERED), by, how="max"), COUNT),
        TableColumn("Acknowledged a minute", aggregate(select(families.OWN_ACKED), by, how="max"), COUNT),
        TableColumn("Deadlines expired a minute", aggregate(select(families.OWN_EXPIRED), by, how="max"), COUNT),
        TableColumn("Age of the point", f"time() - {aggregate(point, by, how='max')}", SECONDS),
        TableColumn("Failed reads", increase_of(families.OWN_READ_FAILURES, by, RANGE), COUNT),
    )
    return table_panel(words, Look(PLAIN, width=24, height=6), (by,), columns)


def _oldest_now(thresholds: Thresholds) -> Panel:
    words = Words(
        "Oldest unacknowledged message",
        "The age of the oldest message that no subscriber has acknowledged, right now.",
        ("PubsubOldestUnackedAgeRising",),
    )
    return stat_panel(words, aggregate(select(families.OLDEST_UNACKED_AGE), how="max"), SECONDS, thresholds.age())


def _undelivered_now() -> Panel:
    words = Words("Unacknowledged messages", "Published messages that no subscriber has acknowledged, right now.")
    return stat_panel(words, aggregate(select(families.UNDELIVERED)), COUNT)


def _stalled_now() -> Panel:
    words = Words(
        "Stalled keys",
        "Ordering keys that stand still although messages wait on them, right now.",
        ("PubsubKeysStalled",),
    )
    return stat_panel(words, aggregate(select(families.STALLED_KEYS)), COUNT, ANY_IS_BAD)


def _standing_still() -> Panel:
    words = Words(
        "Missed deadlines",
        "Messages that were not delivered, or not redelivered, by their deadline, in the time range. Leads to the evidence.",
        ("PubsubDeliveryOverdue",),
    )
    found = increase_of(families.FINDINGS, window=RANGE, kind=STANDING_STILL, status=Status.LIVENESS)
    address = f"{EVIDENCE}&status={Status.LIVENESS}"
    return stat_panel(words, found, COUNT, ANY_IS_BAD, address=address)


def _oldest(thresholds: Thresholds) -> Panel:
    words = Words(
        "Oldest unacknowledged message over time",
        "It grows by a second per second while nothing is acknowledged, also while the service hangs. Above the dashed "
        "line the alert fires if it goes on growing. Broken down by what is chosen above.",
        ("PubsubOldestUnackedAgeRising",),
    )
    look = Look(SECONDS, thresholds.age())
    return graph_panel(words, look, aggregate(select(families.OLDEST_UNACKED_AGE), BY, "max"))


def _undelivered() -> Panel:
    words = Words(
        "Unacknowledged messages over time",
        "Published messages that no subscriber has acknowledged, by what is chosen above. Runs come and go, so it rises and falls.",
    )
    return graph_panel(words, Look(COUNT), aggregate(select(families.UNDELIVERED), BY))


def _stalled() -> Panel:
    words = Words(
        "Stalled keys over time",
        "Ordering keys on which messages wait and none is delivered or acknowledged, broken down by what is chosen above.",
        ("PubsubKeysStalled",),
    )
    return graph_panel(words, Look(COUNT, ANY_IS_BAD), aggregate(select(families.STALLED_KEYS), BY))


def _liveness() -> Panel:
    words = Words(
        "Missed deadlines by kind",
        "Messages that were not delivered, or not redelivered, by their deadline. A click leads to the evidence.",
        ("PubsubDeliveryOverdue",),
    )
    found = increase_of(families.FINDINGS, "kind", kind=STANDING_STILL, status=Status.LIVENESS)
    return graph_panel(words, Look(COUNT, bars=True), found, address=EVIDENCE_OF_KIND)


def _subscriptions(thresholds: Thresholds) -> Panel:
    words = Words(
        "Backlog of each subscription", "Unacknowledged messages and stalled keys: right now, and the most in the time range."
    )
    by = ("subscription", *TARGET)
    steps = thresholds.age()
    age = select(families.OLDEST_UNACKED_AGE)
    columns = [
        TableColumn("Oldest", aggregate(age, by, "max"), SECONDS, steps),
        TableColumn("Oldest in range", aggregate(f"max_over_time({age}[{RANGE}])", by, "max"), SECONDS, steps),
        TableColumn("Unacknowledged", aggregate(select(families.UNDELIVERED), by), COUNT),
        TableColumn("Stalled keys", aggregate(select(families.STALLED_KEYS), by), COUNT, ANY_IS_BAD),
        TableColumn(
            "Most stalled in range", aggregate(f"max_over_time({select(families.STALLED_KEYS)}[{RANGE}])", by), COUNT, ANY_IS_BAD
        ),
    ]
    return table_panel(words, Look(COUNT, width=24, height=8), by, columns)


def _top_keys() -> tuple[Panel, ...]:
    """Return the panels of the top keys, by rank, since metrics never contain a key."""
    load = Words(
        "Data on the top keys",
        "By rank, at least, in the last minute. Pub/Sub takes at most 1 MB/s per key. The status page names the keys.",
        ("PubsubKeyNearLimit",),
    )
    share = Words("Share of the messages on the top keys", "By rank, at least, in the last minute.")
    age = Words(
        "Age of messages on the top keys",
        "By rank: the largest age on delivery, by publish time, in the last minute.",
        ("PubsubKeyFallingBehind",),
    )
    panels = (
        (load, BYTES_PER_SECOND, families.TOP_KEY_BYTES),
        (share, SHARE, families.TOP_KEY_SHARE),
        (age, SECONDS, families.TOP_KEY_AGE),
    )
    return tuple(
        graph_panel(
            words,
            Look(unit, width=8),
            Query(aggregate(select(family), "subscription, rank", how="max"), "{{subscription}}, rank {{rank}}"),
        )
        for words, unit, family in panels
    )


def _hot_keys() -> Panel:
    words = Words("Which keys are hot", "Metrics never carry ordering keys; the nightly report names them.")
    markdown = (
        "Metrics never carry ordering keys, so that the number of series does not depend on traffic.\n\n"
        "Which keys are hot now, and which by the nightly report, is under [hot keys](${status_page:raw}/hot-keys) on the status page. "
        "When the job last succeeded is on the dashboard [Nightly jobs](d/okp-jobs)."
    )
    return text_panel(words, markdown, width=12, height=8)
