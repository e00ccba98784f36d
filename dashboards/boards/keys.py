"""Keys: do messages wait too long, does a key stand still, which keys are hot?

And what probes measure once a run: the load on a key, a held key, and an ordered subscription beside an unordered one.
"""

from __future__ import annotations

from dashboards.board import Board, PanelRow
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
from prober.slo.figures import Figure, name_of

STANDING_STILL = (Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.REDELIVERY_STALL, Kind.UNACKED_STALL)

_LATE = {0: ("unknown", UNKNOWN), 1: ("nobody", GOOD), 2: ("only yours", BAD), 3: ("the service", BAD), 4: ("both", BAD)}
_CODES = {Late.UNKNOWN: 0, Late.NOBODY: 1, Late.ONLY_YOURS: 2, Late.SERVICE: 3, Late.BOTH: 4}


def keys_board(thresholds: Thresholds) -> Board:
    """The dashboard."""
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
            PanelRow("Measured once a run", (*_measured_panels(), *_control_group_panels(), *_scale_panels(), *_joiner_panels())),
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
    return table_panel(words, Look(PLAIN, width=24, height=6), {"own_subscription": "Subscription"}, columns)


def _oldest_now(thresholds: Thresholds) -> Panel:
    words = Words(
        "Oldest unacknowledged message",
        "The age of the oldest message that no subscriber has acknowledged, right now.",
        ("PubsubOldestUnackedAgeRising",),
    )
    look = Look(SECONDS, thresholds.age(), width=6, height=4)
    return stat_panel(words, look, Query(aggregate(select(families.OLDEST_UNACKED_AGE), how="max"), instant=True))


def _undelivered_now() -> Panel:
    words = Words("Unacknowledged messages", "Published messages that no subscriber has acknowledged, right now.")
    return stat_panel(words, Look(COUNT, width=6, height=4), Query(aggregate(select(families.UNDELIVERED)), instant=True))


def _stalled_now() -> Panel:
    words = Words(
        "Stalled keys",
        "Ordering keys that stand still although messages wait on them, right now.",
        ("PubsubKeysStalled",),
    )
    return stat_panel(
        words, Look(COUNT, ANY_IS_BAD, width=6, height=4), Query(aggregate(select(families.STALLED_KEYS)), instant=True)
    )


def _standing_still() -> Panel:
    words = Words(
        "Missed deadlines",
        "Messages that were not delivered, or not redelivered, by their deadline, in the time range. Leads to the evidence.",
        ("PubsubDeliveryOverdue",),
    )
    found = increase_of(families.FINDINGS, window=RANGE, kind=STANDING_STILL, status=Status.LIVENESS)
    address = f"{EVIDENCE}&status={Status.LIVENESS}"
    return stat_panel(words, Look(COUNT, ANY_IS_BAD, width=6, height=4), Query(found, instant=True), address=address)


def _oldest(thresholds: Thresholds) -> Panel:
    words = Words(
        "Oldest unacknowledged message over time",
        "It grows by a second per second while nothing is acknowledged, also while the service hangs. Above the dashed "
        "line the alert fires if it goes on growing. Broken down by what is chosen above.",
        ("PubsubOldestUnackedAgeRising",),
    )
    look = Look(SECONDS, thresholds.age())
    return graph_panel(words, look, Query(aggregate(select(families.OLDEST_UNACKED_AGE), BY, "max")))


def _undelivered() -> Panel:
    words = Words(
        "Unacknowledged messages over time",
        "Published messages that no subscriber has acknowledged, by what is chosen above. Runs come and go, so it rises and falls.",
    )
    return graph_panel(words, Look(COUNT), Query(aggregate(select(families.UNDELIVERED), BY)))


def _stalled() -> Panel:
    words = Words(
        "Stalled keys over time",
        "Ordering keys on which messages wait and none is delivered or acknowledged, broken down by what is chosen above.",
        ("PubsubKeysStalled",),
    )
    return graph_panel(words, Look(COUNT, ANY_IS_BAD), Query(aggregate(select(families.STALLED_KEYS), BY)))


def _liveness() -> Panel:
    words = Words(
        "Missed deadlines by kind",
        "Messages that were not delivered, or not redelivered, by their deadline. A click leads to the evidence.",
        ("PubsubDeliveryOverdue",),
    )
    found = increase_of(families.FINDINGS, "kind", kind=STANDING_STILL, status=Status.LIVENESS)
    return graph_panel(words, Look(COUNT, bars=True), Query(found), address=EVIDENCE_OF_KIND)


def _subscriptions(thresholds: Thresholds) -> Panel:
    words = Words(
        "Backlog of each subscription", "Unacknowledged messages and stalled keys: right now, and the most in the time range."
    )
    by = "environment, region, target, subscription"
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
    headings = {"subscription": "Subscription", "target": "Target", "environment": "Environment", "region": "Region"}
    return table_panel(words, Look(COUNT, width=24, height=8), headings, columns)


def _top_keys() -> tuple[Panel, ...]:
    """By rank, since metrics never carry a key."""
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


def _measured_panels() -> tuple[Panel, ...]:
    """Of all subscriptions that are selected above, the highest."""
    return (
        _panel(
            "Load on a key (hot_key)",
            "The rates at which a backlog began and from which on publishes were refused, if so; published, acknowledged, and by how much "
            "the backlog grew there, or at the top of the ramp; and how fast a backlog drained. The last run of each.",
            BYTES_PER_SECOND,
            Figure.BACKLOG_BEGINS,
            Figure.REFUSALS_BEGIN,
            Figure.HOT_KEY_PUBLISHED,
            Figure.HOT_KEY_ACKNOWLEDGED,
            Figure.HOT_KEY_BACKLOG_GROWTH,
            Figure.HOT_KEY_DRAINED,
        ),
        _panel(
            "Others of a held key or subscription (isolation)",
            "The median latency of the other keys before one key was held unacknowledged, meanwhile, while another subscription was held, "
            "while the key was held and subscribers restarted, and after; and the 99 % quantile of the delay then. The last run of each.",
            SECONDS,
            Figure.LATENCY_BEFORE_HOLD,
            Figure.LATENCY_DURING_HOLD,
            Figure.LATENCY_DURING_SIBLING_HOLD,
            Figure.LATENCY_DURING_RESTARTS,
            Figure.LATENCY_AFTER_HOLD,
            Figure.DELAY_DURING_RESTARTS,
        ),
    )


def _control_group_panels() -> tuple[Panel, ...]:
    return (
        _panel(
            "What order costs (control_group)",
            "How much later messages come on an ordered subscription than on its unordered twin, with the 95 % interval. The last run "
            "of each.",
            SECONDS,
            Figure.ORDER_LATENCY,
            Figure.ORDER_LATENCY_LOW,
            Figure.ORDER_LATENCY_HIGH,
        ),
        _panel(
            "What a key costs the publisher (control_group)",
            "How much longer a publish request with an ordering key took than the same request without one, with the 95 % interval. The "
            "last run of each.",
            SECONDS,
            Figure.KEY_PUBLISH_LATENCY,
            Figure.KEY_PUBLISH_LATENCY_LOW,
            Figure.KEY_PUBLISH_LATENCY_HIGH,
        ),
        _panel(
            "Publish requests lost to keys (control_group)",
            "Publish requests that failed with an ordering key only, less those that failed without one only, of all pairs, with the 95 % "
            "interval. The last run of each.",
            SHARE,
            Figure.KEY_PUBLISH_FAILURES,
            Figure.KEY_PUBLISH_FAILURES_LOW,
            Figure.KEY_PUBLISH_FAILURES_HIGH,
        ),
        _panel(
            "What order buys (control_group)",
            "On the unordered twin: messages that came reordered (RFC 4737), messages that a resequencer would have held back, and what "
            "more came in time there, with the 95 % interval. The last run of each.",
            SHARE,
            Figure.UNORDERED_REORDERED,
            Figure.UNORDERED_HELD_BACK,
            Figure.ORDER_UNAVAILABILITY,
            Figure.ORDER_UNAVAILABILITY_LOW,
            Figure.ORDER_UNAVAILABILITY_HIGH,
        ),
        _panel(
            "How far out of order without ordering (control_group)",
            "The largest reordering extent (RFC 4737) on the unordered twin, in messages. The last run of each.",
            COUNT,
            Figure.UNORDERED_EXTENT,
        ),
    )


def _scale_panels() -> tuple[Panel, ...]:
    return (
        _panel(
            "What a consumer gets done with more keys (scale)",
            "Messages a second on one key, a few, many and all keys of the probe, with more and more subscribers. The last run of each.",
            "cps",
            Figure.SCALE_ONE_KEY,
            Figure.SCALE_FEW_KEYS,
            Figure.SCALE_MANY_KEYS,
            Figure.SCALE_ALL_KEYS,
        ),
        _panel(
            "How much only keys bound a consumer (scale)",
            "Messages a second with a few keys over those with one, for each key; 1 if only keys bound a consumer. The last run of each.",
            SHARE,
            Figure.SCALE_PARALLELISM,
        ),
        _panel(
            "What push keeps up with on one key (push)",
            "Messages a second on one key: the highest rate at which push kept up, and the lowest at which it fell behind, if it did. The "
            "last run of each.",
            "cps",
            Figure.PUSH_KEPT_UP,
            Figure.PUSH_FELL_BEHIND,
        ),
        _panel(
            "How long messages waited, and how old their keys are (long_lived)",
            "For how long messages had waited that a run received and the run before had published; the age of topic and keys. The "
            "last run of each.",
            SECONDS,
            Figure.LONG_LIVED_WAITED,
            Figure.LONG_LIVED_AGE,
        ),
        _panel(
            "How far out of order a key of two regions is (region)",
            "Of the key that is published in two regions by turns, which are not ordered with each other: messages that were received "
            "reordered (RFC 4737). The last run of each.",
            SHARE,
            Figure.REGIONS_REORDERED,
        ),
        _panel(
            "Redeliveries before the minimum backoff (redelivery)",
            "Of messages that were nacked on a subscription with a retry policy, which is best effort. The last run of each.",
            SHARE,
            Figure.BACKOFF_EARLY,
        ),
        _panel(
            "Time from a nack to the redelivery (redelivery)",
            "On a subscription whose retry policy has a minimum backoff of 1 s and a maximum of 4 s. The last run of each.",
            SECONDS,
            Figure.BACKOFF_MEDIAN,
            Figure.BACKOFF_LONGEST,
        ),
        _panel(
            "How far out of order a dead-letter topic is (dead_letter)",
            "Of messages of a key that were refused together: those that arrived at the dead-letter topic reordered (RFC 4737). Order "
            "might not be kept there. The last run of each.",
            SHARE,
            Figure.DEAD_LETTERS_REORDERED,
        ),
    )


def _joiner_panels() -> tuple[Panel, ...]:
    return (
        _panel(
            "A new subscription (control_plane)",
            "How long the request to create a subscription took, and from that request to the first receipt. The last run of each.",
            SECONDS,
            Figure.SUBSCRIPTION_CREATION,
            Figure.CREATION_TO_RECEIPT,
        ),
        _panel(
            "Wait of joining subscribers (affinity)",
            "The median time of subscribers from asking to join to their first message. The last run of each.",
            SECONDS,
            Figure.JOINER_SERVED_AFTER,
        ),
        _panel(
            "Share of joining subscribers (affinity)",
            "Joining subscribers that got a message, and keys whose last message came to one of them. The last run of each.",
            SHARE,
            Figure.JOINERS_SERVED,
            Figure.KEYS_AT_JOINERS,
        ),
    )


def _panel(title: str, text: str, unit: str, *figures: Figure) -> Panel:
    asked = [Query(aggregate(select(families.FIGURES[figure]), how="max"), name_of(figure)) for figure in figures]
    return graph_panel(Words(title, text), Look(unit, width=12), *asked)
