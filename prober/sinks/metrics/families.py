"""The metric families, each declared once. Alerts and dashboards of users depend on them.

To add a metric, declare it here and call `Series.count`, `set` or `took` at the place of the measurement; `make generate` writes
docs/metrics.md.

Names follow prometheus.io/docs/practices/naming. Every series about a service has the labels target, environment and region. No label
contains an ordering key, a message id, a run id or the text of an error, so the number of series does not depend on the traffic.
"""

from __future__ import annotations

from functools import partial
from math import nan
from types import MappingProxyType
from typing import Final

from prober.brokers.base import AdminOperation, PushOutcome
from prober.brokers.calls import ErrorCode, Operation
from prober.core.findings import Kind, Status
from prober.core.kinds import CAN_FAIL
from prober.core.verdict import Verdict
from prober.monitoring.comparison import Late, ReadFailure
from prober.probes.context import DeliveryKind
from prober.sinks.metrics import label_values
from prober.sinks.metrics.family import Family, MetricType, counter, gauge, histogram, info
from prober.sinks.metrics.scopes import COMPARED, DRILL, JOB, OWN, PROBE_INSTANCE, SUBSCRIPTION, TARGET, TOP_KEY, TOPIC
from prober.slo.acknowledgements import Timeliness
from prober.slo.comparison import Standing
from prober.slo.figures import Figure
from prober.slo.hot_keys import HotKeyClass
from prober.slo.indicators import DURATIONS, Indicator

VERDICTS: Final = tuple(verdict.lower() for verdict in Verdict)
STANDINGS: Final = tuple(standing.replace(" ", "_") for standing in Standing)
_SHORT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_checks: Final = partial(counter, scope=SUBSCRIPTION, values={"result": label_values.CheckResult})
_by_one_probe: Final = partial(histogram, scope=SUBSCRIPTION, start=None, bounds=(*_SHORT, 30.0, 60.0))
_own: Final = partial(gauge, scope=OWN, start=nan)

OLDEST_UNACKED_AGE: Final = gauge(
    "oldest_unacked_message_age_seconds",
    SUBSCRIPTION,
    "Age of the oldest message without an acknowledgement, from its intended send time; rejected publishes do not count.",
    scraped=True,
)
UNDELIVERED: Final = gauge(
    "num_undelivered_messages", SUBSCRIPTION, "Published messages that no subscriber has acknowledged.", scraped=True
)
STALLED_KEYS: Final = gauge("stalled_keys", SUBSCRIPTION, "Ordering keys with waiting messages and no progress.", scraped=True)
PUBLISHES: Final = counter("publishes", TOPIC, "Publishes, by outcome.", {"outcome": label_values.PublishOutcome})
PUBLISHES_UNSENT: Final = counter(
    "publishes_unsent", TOPIC, "Scheduled publishes that could not be sent because the target was unreachable."
)
UNREACHABLE_RUNS: Final = gauge(
    "unreachable_runs",
    SUBSCRIPTION,
    "Latest consecutive runs that could not reach the target; 0 after a confirmed publish.",
)
DELIVERIES: Final = counter(
    "deliveries",
    SUBSCRIPTION,
    "Messages received, by kind of delivery.",
    {"kind": DeliveryKind},
    counters={"deliveries_unreadable": (DeliveryKind.FOREIGN,)},
)
FINDINGS: Final = counter(
    "findings", SUBSCRIPTION, "Findings of the checker, by kind and status.", {"kind": Kind, "status": Status}
)
ORDER_CHECKS: Final = _checks(
    "order_checks", help="Messages checked for the order of first deliveries, by result.", indicator=Indicator.ORDER
)
REDELIVERY_CHECKS: Final = _checks(
    "redelivery_checks",
    help="Redeliveries checked for whether the later messages of the key were redelivered too, by result.",
    indicator=Indicator.REDELIVERY,
)
AFFINITY_CHECKS: Final = _checks(
    "affinity_checks",
    help="Messages checked for whether they went to the subscriber that holds their key, by result.",
    indicator=Indicator.AFFINITY,
)
DELIVERY_CHECKS: Final = _checks(
    "delivery_checks", help="Confirmed messages checked for delivery by the deadline, by result.", indicator=Indicator.COMPLETENESS
)
AFFINITY_MOVES: Final = counter(
    "affinity_moves",
    SUBSCRIPTION,
    "Keys that moved to another subscriber, by whether they had outstanding messages.",
    {"outstanding": label_values.Outstanding},
    counters={f"affinity_moves_outstanding_{value}": (value,) for value in label_values.Outstanding},
)
EARLY_REDELIVERIES: Final = counter(
    "early_redeliveries",
    SUBSCRIPTION,
    "Keys redelivered to another subscriber while the first still held their messages: allowed, but twice the work.",
    counters={"early_redeliveries": ()},
)
LIBRARY_ANOMALIES: Final = counter(
    "library_anomalies",
    SUBSCRIPTION,
    "Departures of the client library from its documentation, by kind: a callback of a key began before the last message of the key was "
    "acknowledged or nacked, a key stopped without a failed publish, a publish went past a failed one. Only at the library vantage.",
    {"kind": label_values.LibraryAnomaly},
    start=None,
    counters={
        "callbacks_overlapping": (label_values.LibraryAnomaly.CALLBACK_OVERLAP,),
        "publishes_stopped_unexpectedly": (label_values.LibraryAnomaly.UNEXPLAINED_STOP,),
        "publishes_past_a_failure": (label_values.LibraryAnomaly.PUBLISH_PAST_FAILURE,),
    },
)
GUARANTEES: Final = counter(
    "guarantee_observations",
    SUBSCRIPTION,
    "Observations of guarantees and of documented behaviour that no finding covers, by kind. A kind is absent until it is observed.",
    {"kind": label_values.GuaranteeObservation},
    start=None,
    counters={kind.value: (kind,) for kind in label_values.GuaranteeObservation},
)
PUBLISH_LATENCY: Final = histogram(
    "publish_latency_seconds",
    TOPIC,
    "From the intended send time of a message to the service's confirmation.",
    indicator=Indicator.PUBLISH_LATENCY,
    bounds=_SHORT,
)
END_TO_END_LATENCY: Final = histogram(
    "end_to_end_latency_seconds",
    SUBSCRIPTION,
    "From the intended send time of a message to its first delivery.",
    indicator=Indicator.END_TO_END_LATENCY,
    bounds=_LONG,
)
OVERDUE: Final = counter(
    "deliveries_overdue",
    SUBSCRIPTION,
    "Confirmed messages that passed their deadline and were not received: too late for every threshold, and in no histogram.",
    indicator=Indicator.END_TO_END_LATENCY,
)
REDELIVERY_LATENCY: Final = histogram(
    "redelivery_latency_seconds",
    SUBSCRIPTION,
    "From a nack or the end of a lease to the next delivery.",
    indicator=Indicator.REDELIVERY_LATENCY,
    bounds=_LONG,
)
CONTROL_PLANE_LATENCY: Final = histogram(
    "control_plane_latency_seconds",
    TARGET,
    "Duration of administration calls.",
    {"operation": AdminOperation},
    indicator=Indicator.CONTROL_PLANE_LATENCY,
    bounds=(*_SHORT, 30.0, 60.0),
)
CONTROL_PLANE_FAILURES: Final = counter(
    "control_plane_failures",
    TARGET,
    "Administration calls that failed, or could not be made, since the target did not answer or answered with an error of its own: too "
    "late for every threshold, and in no histogram.",
    {"operation": AdminOperation},
    indicator=Indicator.CONTROL_PLANE_LATENCY,
)
PULL_LATENCY: Final = _by_one_probe(
    "pull_latency_seconds", help="Intended send time to receipt by pull, first messages of keys.", indicator=Indicator.PULL_LATENCY
)
PUSH_LATENCY: Final = _by_one_probe(
    "push_latency_seconds", help="Intended send time to receipt by push, first messages of keys.", indicator=Indicator.PUSH_LATENCY
)
CREATION_TO_RECEIPT_LATENCY: Final = _by_one_probe(
    "creation_to_receipt_latency_seconds",
    help="From the request to create a subscription to the first receipt there.",
    indicator=Indicator.CREATION_TO_RECEIPT_LATENCY,
)
HEAD_OF_LINE_DELAY: Final = _by_one_probe(
    "head_of_line_delay_seconds",
    help="Additional latency of messages while another key or subscription was held unacknowledged, against before and after.",
    indicator=Indicator.HEAD_OF_LINE_DELAY,
)
PROBE_RUNS: Final = counter("probe_runs", PROBE_INSTANCE, "Finished runs of a probe.", {"verdict": VERDICTS})
PROBE_RUNS_EXPECTED: Final = counter("probe_runs_expected", PROBE_INSTANCE, "Runs that the schedule asked for.")
PROBE_LAST_SUCCESS: Final = gauge(
    "probe_last_success_timestamp_seconds", PROBE_INSTANCE, "When a run last passed, seconds since 1970; 0 if never."
)
PROBE_ASSIGNED: Final = gauge(
    "probe_assigned_timestamp_seconds",
    PROBE_INSTANCE,
    "When this prober began to run a probe, seconds since 1970. Absent while it does not run it.",
    start=None,
)
PROBE_INTERVAL: Final = gauge(
    "probe_interval_seconds", PROBE_INSTANCE, "The longest time between the starts of two scheduled runs."
)
PROBED_KEYS: Final = gauge("probed_keys", SUBSCRIPTION, "Ordering keys that a run on this subscription uses.")
UNDER_MAINTENANCE: Final = gauge("under_maintenance", TARGET, "1 while a target is under maintenance, else 0.")
TARGET_INFO: Final = info("target", TARGET, "The targets, with their labels from the configuration.")
JOB_LAST_SUCCESS: Final = gauge(
    "job_last_success_timestamp_seconds",
    JOB,
    "When a nightly job of an environment last succeeded, seconds since 1970; 0 if never.",
)

HOT_KEYS: Final = gauge(
    "hot_keys",
    TARGET,
    "Hot keys in the newest nightly report, by reason. Absent without a report.",
    {"class": HotKeyClass},
    start=None,
)
# Observed streams of other publishers. Absent while no stream is observed.
TOP_KEY_BYTES: Final = gauge(
    "top_key_bytes_per_second",
    TOP_KEY,
    "Data per second on a top key of an observed stream in the last minute (lower bound); NaN while the stream is not observed.",
    scraped=True,
)
TOP_KEY_SHARE: Final = gauge(
    "top_key_share_ratio",
    TOP_KEY,
    "Share of a top key in the messages of an observed stream in the last minute (lower bound); NaN while it is not observed.",
    scraped=True,
)
TOP_KEY_AGE: Final = gauge(
    "top_key_age_seconds",
    TOP_KEY,
    "Largest age on delivery, by publish time, of the messages of a top key of an observed stream in the last minute; NaN if not measured.",
    scraped=True,
)
REVERIFIED_FINDINGS: Final = gauge(
    "reverified_findings",
    TARGET,
    "Violations in the newest nightly report that only the repeated verification of runs found, or whose earlier detection is unknown. NaN "
    "if the number is unknown; absent without a report.",
    {"kind": CAN_FAIL},
    start=None,
)
REPORTS_EXPECTED: Final = gauge(
    "reports_expected", (), "1 if the configuration sets history.reports, so that nightly reports must come, else 0."
)

OWN_DISCOVERED: Final = gauge(
    "own_subscriptions_discovered",
    TARGET,
    "Own subscriptions that discovery found, by whether they are read or left out; NaN if they cannot be listed.",
    {"state": label_values.DiscoveryState},
    start=None,
)

# The user's own subscriptions, from Cloud Monitoring: minutes old, and NaN while unknown.
OWN_OLDEST_UNACKED_AGE: Final = _own(
    "own_oldest_unacked_message_age_seconds",
    help="Age of the oldest unacknowledged message of a subscription of yours, by its newest point in Cloud Monitoring.",
)
OWN_LATE_AFTER: Final = gauge(
    "own_late_after_seconds", OWN, "Configured age above which a message of a subscription of yours is late.", start=None
)
OWN_UNDELIVERED: Final = _own(
    "own_num_undelivered_messages", help="Undelivered messages of a subscription of yours, by its newest point in Cloud Monitoring."
)
OWN_ACKED: Final = _own(
    "own_acked_messages_per_minute",
    help="Messages acknowledged on a subscription of yours in the newest minute of Cloud Monitoring.",
)
OWN_EXPIRED: Final = _own(
    "own_expired_ack_deadlines_per_minute",
    help="Acknowledgement deadlines that expired on a subscription of yours in the newest minute of Cloud Monitoring.",
)
OWN_POINT_AT: Final = _own(
    "own_point_timestamp_seconds",
    help="Time of the newest point of the oldest unacknowledged message age in Cloud Monitoring, seconds since 1970; NaN if there is none.",
)
OWN_LATE: Final = gauge(
    "own_late",
    OWN,
    "1 for who is late at the time of the newest point, else 0: only_yours, service, both, nobody or unknown.",
    {"who": Late},
)
OWN_READ_FAILURES: Final = counter(
    "own_read_failures",
    OWN,
    "Failed attempts to read a subscription of yours from Cloud Monitoring, by reason.",
    {"reason": ReadFailure},
)

# Fire drills, which inject faults: separate from metrics of services, so that no drill spends an error budget.
DRILL_STEP: Final = gauge(
    "drill_step_seconds",
    (*DRILL, "step"),
    "Time from the fault to this step in the newest drill; NaN if the step did not happen. Absent before the first drill.",
    start=None,
)
DRILL_RUNS: Final = counter("drill_runs", DRILL, "Finished drills.", {"verdict": VERDICTS})
DRILL_LAST_SUCCESS: Final = gauge(
    "drill_last_success_timestamp_seconds", DRILL, "When a drill last passed, seconds since 1970; 0 if never."
)
DRILL_LAST_FAILURE: Final = gauge(
    "drill_last_failure_timestamp_seconds", DRILL, "When a drill last ended without passing, seconds since 1970; 0 if never."
)
DRILL_FINDINGS: Final = counter(
    "drill_findings", DRILL, "Findings of the checker in drills, by kind and status.", {"kind": Kind, "status": Status}
)

# The prober itself. No metric here measures a service.
INTERNAL_ERRORS: Final = counter(
    "internal_errors", (), "Unexpected exceptions in the prober, by component.", {"component": label_values.Component}
)
SCHEDULER_SKIPS: Final = counter(
    "scheduler_skips", PROBE_INSTANCE, "Scheduled runs that did not start, by reason.", {"reason": label_values.SkipReason}
)
EVENTS_DROPPED: Final = counter(
    "events_dropped", (), "Events dropped because a queue or the spool was full.", {"component": label_values.Component}
)
LEFTOVERS: Final = gauge(
    "leftover_resources",
    ("project",),
    "Topics and subscriptions of dead probers that could not be deleted; NaN while unknown.",
)
PUSH_REQUESTS: Final = counter(
    "push_requests",
    (),
    "Requests to the endpoint that Pub/Sub pushes to, by outcome: taken, left over from an earlier run, or the reason of a refusal.",
    {"outcome": PushOutcome},
)
HISTORY_FAILURES: Final = counter("history_failures", (), "Failed attempts to write the history.")
STATUS_STORE_UP: Final = gauge("status_store_up", (), "1 if the last request to the status store succeeded, else 0.")
STATUS_FAILURES: Final = counter("status_failures", (), "Failed attempts to write the status store.")
EXPORT_FAILURES: Final = counter("otlp_export_failures", (), "Failed OpenTelemetry exports.", {"signal": label_values.Signal})
LOOP_LAG: Final = histogram("loop_lag_seconds", (), "Delay of the event loop's wake-ups.", bounds=(0.001, *_SHORT))
NEGATIVE_DURATIONS: Final = counter(
    "negative_durations",
    TARGET,
    "Durations measured as negative and counted as 0, because a clock is wrong.",
    {"duration": DURATIONS},
)
TARGET_ERRORS: Final = counter(
    "target_errors",
    TARGET,
    "Calls to a target that ended with an error, by operation and gRPC status code.",
    {"operation": Operation, "code": ErrorCode},
)
UNDECIDED_DURATIONS: Final = counter(
    "undecided_durations",
    TARGET,
    "Durations that are late, perhaps only because the event loop lagged: left out of their histogram, and neither good nor bad.",
    {"duration": DURATIONS},
)
FOLDED_NAMES: Final = counter(
    "folded_names",
    TARGET,
    "Topics and subscriptions counted as `other` because of the limit of names.",
    {"label": ("topic", "subscription")},
)
KEYS_FORGOTTEN: Final = counter(
    "keys_forgotten",
    SUBSCRIPTION,
    "Ordering keys of an observed stream forgotten because of the limit `keys_max`: later messages of these keys prove less.",
    counters={"keys_forgotten": ()},
)
INCIDENTS_ACKNOWLEDGED: Final = gauge(
    "incidents_acknowledged",
    (),
    "Incidents raised in the last 30 days, by whether a person acknowledged them within 5 min; NaN if the status store cannot be read.",
    {"timeliness": Timeliness},
    start=nan,
)
COMPARISON_STANDING: Final = gauge(
    "comparison_standing", COMPARED, "1 for the candidate's standing against the baseline, else 0.", {"standing": STANDINGS}
)
_difference: Final = partial(gauge, scope=(*COMPARED, "aspect"), values={"bound": label_values.Bound}, start=None)
COMPARISON_RATIO: Final = _difference(
    "comparison_difference_ratio",
    help="Excess of the candidate's bad share over the baseline's: estimate, ends of its interval, margin. NaN if unknown.",
)
COMPARISON_SECONDS: Final = _difference(
    "comparison_difference_seconds",
    help="Excess of the candidate's durations over the baseline's: estimate, ends of its interval, margin. NaN if unknown.",
)
CONFIG_RELOADED: Final = gauge(
    "config_last_reload_successful", (), "1 if the configuration file is in force as last seen, 0 if it was refused."
)
CONFIG_RELOADED_AT: Final = gauge(
    "config_last_reload_success_timestamp_seconds", (), "When a configuration was last taken over, seconds since 1970."
)
START: Final = gauge("start_timestamp_seconds", (), "When this prober started, seconds since 1970.")
CLOCK: Final = gauge("clock_timestamp_seconds", (), "The prober's clock at the scrape, seconds since 1970.")
BUILD: Final = info("build", (), "Running version.")

FIGURES: Final = MappingProxyType({figure: gauge(figure.value, SUBSCRIPTION, figure.help, start=None) for figure in Figure})
"""Measurements of the last run on a subscription; absent if the run did not measure them."""

FAMILIES: Final = (*(value for value in dict(globals()).values() if isinstance(value, Family)), *FIGURES.values())

CHECKS: Final = MappingProxyType({one.indicator: one for one in FAMILIES if one.indicator and "result" in one.values})
"""Counters of the checks in runs, by indicator."""
LATENCIES: Final = MappingProxyType({one.indicator: one for one in FAMILIES if one.indicator and one.kind is MetricType.HISTOGRAM})
"""Histograms of durations, by indicator."""
NEVER_DONE: Final = MappingProxyType(
    {one.indicator: one for one in FAMILIES if one.indicator in LATENCIES and one.kind is MetricType.COUNTER}
)
"""Counters of operations that never finished and are in no histogram, by indicator."""
