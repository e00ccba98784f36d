"""The metric families: their names, labels and units, written down once. Alerts and dashboards of others are built on them.

Names follow prometheus.io/docs/practices/naming: base units, `_total` on counters, no label in a name. Every series about a service
carries target, environment and region. No label holds an ordering key, a message id, a run id or an error's text, so that the number
of series does not depend on what is probed. What values a label may have says `label_values`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from prober.sinks.metrics.family import Family, MetricType
from prober.slo.figures import HELP, Figure
from prober.slo.indicators import Indicator

TARGET: Final = ("target", "environment", "region")
SUBSCRIPTION: Final = (*TARGET, "subscription")
PROBE_INSTANCE: Final = (*TARGET, "probe", "vantage", "part")
"""A probe on a target, from one vantage, with one part of its keys. `part` is empty if the keys are not divided."""

# About a service.
OLDEST_UNACKED_AGE: Final = Family(
    "oldest_unacked_message_age_seconds",
    MetricType.GAUGE,
    SUBSCRIPTION,
    "Age of the oldest message without an acknowledgement, from its intended send time; rejected publishes do not count.",
)
UNDELIVERED: Final = Family(
    "num_undelivered_messages", MetricType.GAUGE, SUBSCRIPTION, "Published messages that no subscriber has acknowledged."
)
STALLED_KEYS: Final = Family("stalled_keys", MetricType.GAUGE, SUBSCRIPTION, "Ordering keys with waiting messages and no progress.")
PUBLISHES: Final = Family("publishes", MetricType.COUNTER, (*TARGET, "topic", "outcome"), "Publishes, by outcome.")
PUBLISHES_UNSENT: Final = Family(
    "publishes_unsent",
    MetricType.COUNTER,
    (*TARGET, "topic"),
    "Publishes that the schedule wanted and that could not be sent because the target was unreachable.",
)
UNREACHABLE_RUNS: Final = Family(
    "unreachable_runs",
    MetricType.GAUGE,
    SUBSCRIPTION,
    "Runs in a row, up to the last one, that could not reach the target; 0 from the first publish on that is confirmed.",
)
DELIVERIES: Final = Family("deliveries", MetricType.COUNTER, (*SUBSCRIPTION, "kind"), "Messages received, by kind of delivery.")
FINDINGS: Final = Family(
    "findings", MetricType.COUNTER, (*SUBSCRIPTION, "kind", "status"), "Findings of the checker, by kind and status."
)
ORDER_CHECKS: Final = Family(
    "order_checks", MetricType.COUNTER, (*SUBSCRIPTION, "result"), "Messages checked for the order of first deliveries, by result."
)
REDELIVERY_CHECKS: Final = Family(
    "redelivery_checks",
    MetricType.COUNTER,
    (*SUBSCRIPTION, "result"),
    "Redeliveries checked for whether the later messages of the key came again too, by result.",
)
AFFINITY_CHECKS: Final = Family(
    "affinity_checks",
    MetricType.COUNTER,
    (*SUBSCRIPTION, "result"),
    "Messages checked for whether they went to the subscriber that holds their key, by result.",
)
DELIVERY_CHECKS: Final = Family(
    "delivery_checks",
    MetricType.COUNTER,
    (*SUBSCRIPTION, "result"),
    "Confirmed messages checked for delivery by the deadline, by result.",
)
AFFINITY_MOVES: Final = Family(
    "affinity_moves",
    MetricType.COUNTER,
    (*SUBSCRIPTION, "outstanding"),
    "Keys that moved to another subscriber, by whether they had outstanding messages.",
)
EARLY_REDELIVERIES: Final = Family(
    "early_redeliveries",
    MetricType.COUNTER,
    SUBSCRIPTION,
    "Keys redelivered to another subscriber while the first still held their messages: allowed, but twice the work.",
)
LIBRARY_ANOMALIES: Final = Family(
    "library_anomalies",
    MetricType.COUNTER,
    (*SUBSCRIPTION, "kind"),
    "Departures of the client library from its documentation, by kind: a callback of a key began before the last message of the key was "
    "acknowledged or nacked, a key stopped without a failed publish, a publish went past a failed one. Only at the library vantage.",
)
PUBLISH_LATENCY: Final = Family(
    "publish_latency_seconds",
    MetricType.HISTOGRAM,
    (*TARGET, "topic"),
    "From the intended send time of a message to the service's confirmation.",
)
END_TO_END_LATENCY: Final = Family(
    "end_to_end_latency_seconds",
    MetricType.HISTOGRAM,
    SUBSCRIPTION,
    "From the intended send time of a message to its first delivery.",
)
OVERDUE: Final = Family(
    "deliveries_overdue",
    MetricType.COUNTER,
    SUBSCRIPTION,
    "Confirmed messages that passed their deadline and were not received: too late for every threshold, and in no histogram.",
)
REDELIVERY_LATENCY: Final = Family(
    "redelivery_latency_seconds", MetricType.HISTOGRAM, SUBSCRIPTION, "From a nack or the end of a lease to the next delivery."
)
CONTROL_PLANE_LATENCY: Final = Family(
    "control_plane_latency_seconds", MetricType.HISTOGRAM, (*TARGET, "operation"), "Duration of administration calls."
)
CONTROL_PLANE_FAILURES: Final = Family(
    "control_plane_failures",
    MetricType.COUNTER,
    (*TARGET, "operation"),
    "Administration calls that failed, or could not be made, since the target did not answer or answered with an error of its own: too "
    "late for every threshold, and in no histogram.",
)
HEAD_OF_LINE_DELAY: Final = Family(
    "head_of_line_delay_seconds",
    MetricType.HISTOGRAM,
    SUBSCRIPTION,
    "How much longer messages took while another key was held unacknowledged than before and after. Only of the probe that measures it.",
)
PROBE_RUNS: Final = Family("probe_runs", MetricType.COUNTER, (*PROBE_INSTANCE, "verdict"), "Finished runs of a probe.")
PROBE_RUNS_EXPECTED: Final = Family("probe_runs_expected", MetricType.COUNTER, PROBE_INSTANCE, "Runs that the schedule asked for.")
PROBE_LAST_SUCCESS: Final = Family(
    "probe_last_success_timestamp_seconds",
    MetricType.GAUGE,
    PROBE_INSTANCE,
    "When a run last passed, seconds since 1970; 0 if never.",
)
PROBE_ASSIGNED: Final = Family(
    "probe_assigned_timestamp_seconds",
    MetricType.GAUGE,
    PROBE_INSTANCE,
    "When this prober began to run a probe, seconds since 1970. Absent while it does not run it.",
)
PROBE_INTERVAL: Final = Family(
    "probe_interval_seconds", MetricType.GAUGE, PROBE_INSTANCE, "The longest time between the starts of two scheduled runs."
)
PROBED_KEYS: Final = Family("probed_keys", MetricType.GAUGE, SUBSCRIPTION, "Ordering keys that a run on this subscription uses.")
UNDER_MAINTENANCE: Final = Family("under_maintenance", MetricType.GAUGE, TARGET, "1 while a target is under maintenance, else 0.")
TARGET_INFO: Final = Family("target", MetricType.INFO, TARGET, "The targets, with their labels from the configuration.")
JOB_LAST_SUCCESS: Final = Family(
    "job_last_success_timestamp_seconds",
    MetricType.GAUGE,
    # `job` and `job_name` are the same: Prometheus replaces the first by its own `job`, unless it is told to honor labels.
    ("job", "job_name", "environment"),
    "When a nightly job of an environment last succeeded, seconds since 1970; 0 if never.",
)

HOT_KEYS: Final = Family(
    "hot_keys",
    MetricType.GAUGE,
    (*TARGET, "class"),
    "Hot keys in the newest nightly report, by why they are hot. Absent without a report.",
)
# Of streams that others publish, by rank of the key: rank 1 has the highest score (`sinks.top_keys`). Absent while none is observed.
TOP_KEY: Final = (*SUBSCRIPTION, "rank")
TOP_KEY_BYTES: Final = Family(
    "top_key_bytes_per_second",
    MetricType.GAUGE,
    TOP_KEY,
    "Data per second on a top key of an observed stream in the last minute, at least; NaN while the stream is not observed.",
)
TOP_KEY_SHARE: Final = Family(
    "top_key_share_ratio",
    MetricType.GAUGE,
    TOP_KEY,
    "Part of the messages of an observed stream that were on a top key in the last minute, at least; NaN while it is not observed.",
)
TOP_KEY_AGE: Final = Family(
    "top_key_age_seconds",
    MetricType.GAUGE,
    TOP_KEY,
    "Largest age on delivery, by publish time, of the messages of a top key of an observed stream in the last minute; NaN if not measured.",
)
REVERIFIED_FINDINGS: Final = Family(
    "reverified_findings",
    MetricType.GAUGE,
    (*TARGET, "kind"),
    "Broken promises in the newest nightly report that were found only when runs were judged again, or of which nobody knows whether they "
    "were found before. NaN if the report cannot tell; absent without one.",
)
REPORTS_EXPECTED: Final = Family(
    "reports_expected",
    MetricType.GAUGE,
    (),
    "1 if the configuration sets history.reports, so that nightly reports must come, else 0.",
)

# Of the user's own subscriptions, as Cloud Monitoring last showed them: minutes ago, and NaN while nobody knows.
OWN: Final = (*TARGET, "own_subscription")
OWN_OLDEST_UNACKED_AGE: Final = Family(
    "own_oldest_unacked_message_age_seconds",
    MetricType.GAUGE,
    OWN,
    "Age of the oldest unacknowledged message of a subscription of yours, by its newest point in Cloud Monitoring.",
)
OWN_LATE_AFTER: Final = Family(
    "own_late_after_seconds",
    MetricType.GAUGE,
    OWN,
    "The age from which on a message of a subscription of yours is late, as configured.",
)
OWN_UNDELIVERED: Final = Family(
    "own_num_undelivered_messages",
    MetricType.GAUGE,
    OWN,
    "Undelivered messages of a subscription of yours, by its newest point in Cloud Monitoring.",
)
OWN_ACKED: Final = Family(
    "own_acked_messages_per_minute",
    MetricType.GAUGE,
    OWN,
    "Messages acknowledged on a subscription of yours in the newest minute of Cloud Monitoring.",
)
OWN_EXPIRED: Final = Family(
    "own_expired_ack_deadlines_per_minute",
    MetricType.GAUGE,
    OWN,
    "Acknowledgement deadlines that expired on a subscription of yours in the newest minute of Cloud Monitoring.",
)
OWN_POINT_AT: Final = Family(
    "own_point_timestamp_seconds",
    MetricType.GAUGE,
    OWN,
    "Of when the newest point of the oldest unacknowledged message age in Cloud Monitoring is, seconds since 1970; NaN if there is none.",
)
OWN_LATE: Final = Family(
    "own_late",
    MetricType.GAUGE,
    (*OWN, "who"),
    "1 for who is late at the time of the newest point, else 0: only_yours, service, both, nobody or unknown.",
)
OWN_READ_FAILURES: Final = Family(
    "own_read_failures",
    MetricType.COUNTER,
    (*OWN, "reason"),
    "Failed attempts to read a subscription of yours from Cloud Monitoring, by reason.",
)

# Of fire drills, which break promises on purpose: apart from everything about services, so that no drill spends a budget.
DRILL_STEP: Final = Family(
    "drill_step_seconds",
    MetricType.GAUGE,
    ("drill", "step"),
    "Time from the fault to this step in the newest drill; NaN if it did not come. Absent before the first drill.",
)
DRILL_RUNS: Final = Family("drill_runs", MetricType.COUNTER, ("drill", "verdict"), "Finished drills.")
DRILL_LAST_SUCCESS: Final = Family(
    "drill_last_success_timestamp_seconds",
    MetricType.GAUGE,
    ("drill",),
    "When a drill last passed, seconds since 1970; 0 if never.",
)
DRILL_LAST_FAILURE: Final = Family(
    "drill_last_failure_timestamp_seconds",
    MetricType.GAUGE,
    ("drill",),
    "When a drill last ended without passing, seconds since 1970; 0 if never.",
)
DRILL_FINDINGS: Final = Family(
    "drill_findings", MetricType.COUNTER, ("drill", "kind", "status"), "Findings of the checker in drills, by kind and status."
)

# About the prober itself. Nothing here says anything about a service.
INTERNAL_ERRORS: Final = Family(
    "internal_errors", MetricType.COUNTER, ("component",), "Unexpected exceptions in the prober, by component."
)
SCHEDULER_SKIPS: Final = Family(
    "scheduler_skips", MetricType.COUNTER, (*PROBE_INSTANCE, "reason"), "Scheduled runs that did not start, by reason."
)
EVENTS_DROPPED: Final = Family(
    "events_dropped", MetricType.COUNTER, ("component",), "Events dropped because a queue or the spool was full."
)
LEFTOVERS: Final = Family(
    "leftover_resources",
    MetricType.GAUGE,
    ("project",),
    "Topics and subscriptions of probers that are long gone and could not be deleted; NaN while nobody knows.",
)
PUSH_REQUESTS: Final = Family(
    "push_requests",
    MetricType.COUNTER,
    ("outcome",),
    "Requests to the endpoint that Pub/Sub pushes to, by what became of them: taken, left over from an earlier run, or refused and why.",
)
HISTORY_FAILURES: Final = Family("history_failures", MetricType.COUNTER, (), "Failed attempts to write the history.")
STATUS_STORE_UP: Final = Family(
    "status_store_up", MetricType.GAUGE, (), "1 if the last request to the status store succeeded, else 0."
)
STATUS_FAILURES: Final = Family("status_failures", MetricType.COUNTER, (), "Failed attempts to write the status store.")
LOOP_LAG: Final = Family("loop_lag_seconds", MetricType.HISTOGRAM, (), "How much too late the event loop woke up.")
NEGATIVE_DURATIONS: Final = Family(
    "negative_durations",
    MetricType.COUNTER,
    (*TARGET, "duration"),
    "Durations measured as negative and counted as 0, because a clock is wrong.",
)
TARGET_ERRORS: Final = Family(
    "target_errors",
    MetricType.COUNTER,
    (*TARGET, "operation", "code"),
    "Calls to a target that ended with an error, by what they are for and by gRPC status code.",
)
UNDECIDED_DURATIONS: Final = Family(
    "undecided_durations",
    MetricType.COUNTER,
    (*TARGET, "duration"),
    "Durations that are late, perhaps only because the event loop lagged: left out of their histogram, and neither good nor bad.",
)
FOLDED_NAMES: Final = Family(
    "folded_names",
    MetricType.COUNTER,
    (*TARGET, "label"),
    "How often the limit of names made a topic or subscription count as `other`.",
)
KEYS_FORGOTTEN: Final = Family(
    "keys_forgotten",
    MetricType.COUNTER,
    SUBSCRIPTION,
    "Ordering keys of an observed stream that runs forgot because they remember at most `keys_max`: less is proven of what came after.",
)
COMPARISON_STANDING: Final = Family(
    "comparison_standing",
    MetricType.GAUGE,
    ("baseline", "candidate", "standing"),
    "1 for how the candidate stands beside the baseline, else 0: no_worse, worse or unknown.",
)
COMPARISON_RATIO: Final = Family(
    "comparison_difference_ratio",
    MetricType.GAUGE,
    ("baseline", "candidate", "aspect", "bound"),
    "By how much larger the bad share of the candidate is: estimate, ends of its interval, margin. NaN if nobody knows.",
)
COMPARISON_SECONDS: Final = Family(
    "comparison_difference_seconds",
    MetricType.GAUGE,
    ("baseline", "candidate", "aspect", "bound"),
    "By how much longer something takes at the candidate: estimate, ends of its interval, margin. NaN if nobody knows.",
)
CONFIG_RELOADED: Final = Family(
    "config_last_reload_successful",
    MetricType.GAUGE,
    (),
    "1 if the configuration file is in force as it was last seen, 0 if it was refused and the old one stays.",
)
CONFIG_RELOADED_AT: Final = Family(
    "config_last_reload_success_timestamp_seconds",
    MetricType.GAUGE,
    (),
    "When a configuration was last taken over, seconds since 1970.",
)
START: Final = Family("start_timestamp_seconds", MetricType.GAUGE, (), "When this prober started, seconds since 1970.")
CLOCK: Final = Family("clock_timestamp_seconds", MetricType.GAUGE, (), "The prober's clock at the scrape, seconds since 1970.")
BUILD: Final = Family("build", MetricType.INFO, (), "The version that is running.")

CHECKS: Final = MappingProxyType(
    {
        Indicator.ORDER: ORDER_CHECKS,
        Indicator.REDELIVERY: REDELIVERY_CHECKS,
        Indicator.AFFINITY: AFFINITY_CHECKS,
        Indicator.COMPLETENESS: DELIVERY_CHECKS,
    }
)
"""Where the things that a run judges are counted, by indicator."""
LATENCIES: Final = MappingProxyType(
    {
        Indicator.PUBLISH_LATENCY: PUBLISH_LATENCY,
        Indicator.END_TO_END_LATENCY: END_TO_END_LATENCY,
        Indicator.REDELIVERY_LATENCY: REDELIVERY_LATENCY,
        Indicator.CONTROL_PLANE_LATENCY: CONTROL_PLANE_LATENCY,
        Indicator.HEAD_OF_LINE_DELAY: HEAD_OF_LINE_DELAY,
    }
)
"""Where what takes time is counted, by indicator."""
NEVER_DONE: Final = MappingProxyType({END_TO_END_LATENCY: OVERDUE, CONTROL_PLANE_LATENCY: CONTROL_PLANE_FAILURES})
"""Where what never came to an end is counted, which is in no bucket, by the family of what did."""

FIGURES: Final = MappingProxyType({figure: Family(figure.value, MetricType.GAUGE, SUBSCRIPTION, HELP[figure]) for figure in Figure})
"""The figures of the last run on a subscription; absent where it has none."""

FAMILIES: Final = (*(value for value in dict(globals()).values() if isinstance(value, Family)), *FIGURES.values())
