"""Alerts about targets that need no objective: proven findings, stalled keys, old messages, unanswered publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from prober.alerting.promql import (
    PROCESS,
    Matcher,
    binary,
    bracketed,
    group_by,
    increase_by,
    max_by,
    news,
    on,
    outside_maintenance,
    percent,
    prom_duration,
    prom_number,
    restarted,
    selector,
    series,
    sum_by,
)
from prober.alerting.rules import (
    COUNT,
    DURATION,
    FINDINGS_INTERVAL_S,
    INTERVAL_S,
    ON_TARGET,
    SHARE,
    AlertBasis,
    AlertingRule,
    Dashboard,
    Options,
    Owner,
    RecordingRule,
    RuleGroup,
    Severity,
    Summary,
    measured_alert,
    value_of,
)
from prober.core.findings import Kind, Status
from prober.core.kinds import CAN_FAIL, KINDS, Promise, breaking
from prober.sinks.metrics import families
from prober.sinks.metrics.families import SUBSCRIPTION, TARGET
from prober.sinks.metrics.family import PREFIX
from prober.sinks.metrics.label_values import PublishOutcome
from prober.slo.hot_keys import HotKeyClass
from prober.slo.indicators import Indicator
from prober.slo.objectives import MINUTE_S, Objective

SEEN_S: Final = 10 * MINUTE_S
"""A finding is looked for among what is so new; from then on its alert is held, whatever becomes of the counter."""
FINDING_LABELS: Final = (*SUBSCRIPTION, "kind", "status")
FOUND: Final = (*SUBSCRIPTION, "kind")
PUBLISHED: Final = (*TARGET, "topic")
HOT: Final = (*TARGET, "class")
URGENT: Final = (HotKeyClass.STALLED, HotKeyClass.THROUGHPUT_BOUND)
FOUND_LATE: Final = (*TARGET, "kind")
LESS_URGENT: Final = (HotKeyClass.CONSUMER_BOUND, HotKeyClass.SKEWED)

UNREACHABLE_RUNS_MIN: Final = 2
"""A lost run is no news."""
UNREACHABLE_WINDOW_S: Final = 2 * MINUTE_S
UNREACHABLE_KEPT_S: Final = 5 * MINUTE_S
"""Longer than a prober takes to start again."""
REACHED_WINDOW_S: Final = 10 * MINUTE_S
"""For so long it is believed that another prober reached the target, if it has not said otherwise."""
HELD: Final = f"target:{PREFIX}_unreachable_runs:held"
"""The targets that cannot be reached, with the number of runs that could not."""
UNREACHABLE_FOR_S: Final = MINUTE_S
STALLED_FOR_S: Final = 2 * MINUTE_S
RISING_FOR_S: Final = 5 * MINUTE_S
RISING_MIN: Final = 0.05
"""Seconds of age per second: three a minute. Where nothing is acknowledged it is 1; a saw tooth comes to 0."""
OLD_DEFAULT_S: Final = 60.0
UNKNOWN_SHARE_MAX: Final = 0.05
UNKNOWN_MIN: Final = 10
PUBLISH_WINDOW_S: Final = 10 * MINUTE_S
PUBLISHES_FOR_S: Final = 5 * MINUTE_S

ON_SUBSCRIPTION: Final = (
    "on subscription {{ $labels.subscription }} of {{ $labels.target }} ({{ $labels.environment }}, {{ $labels.region }})"
)
VIOLATED: Final[Mapping[Promise, tuple[str, Severity, str]]] = MappingProxyType(
    {
        Promise.ORDER: ("PubsubOrderViolated", Severity.CRITICAL, "Messages of a key were received out of order."),
        Promise.REDELIVERY: (
            "PubsubRedeliveryViolated",
            Severity.CRITICAL,
            "A redelivery left out messages that should have come again.",
        ),
        Promise.INTEGRITY: (
            "PubsubIntegrityViolated",
            Severity.CRITICAL,
            "A message was delivered that was never published, was changed, or should not have been delivered.",
        ),
        Promise.ONE_OUTSTANDING: (
            "PubsubOverlapViolated",
            Severity.CRITICAL,
            "A batch or message of a key was sent before an earlier one had been acknowledged.",
        ),
        Promise.ONE_HOLDER: (
            "PubsubAffinityViolated",
            Severity.INFO,
            "A key went to another subscriber while messages of it were outstanding.",
        ),
    }
)
"""What fires when a violation of a promise is proven: the name of the alert and of its runbook, how severe it is, and what it says."""
OVERDUE: Final = "PubsubDeliveryOverdue"
"""What fires when something did not come by its deadline, whatever promise it is about."""


def alerts_of(kind: Kind) -> tuple[str, ...]:
    """The names of the alerts that findings of a kind can fire."""
    meaning = KINDS[kind]
    violated = (VIOLATED[meaning.promise][0],) if Status.VIOLATION in meaning.statuses else ()
    return (*violated, *((OVERDUE,) if meaning.is_wait else ()))


def service_groups(options: Options) -> tuple[RuleGroup, ...]:
    """Two groups that need no objective: what was proven, which is looked at often, and the rest."""
    findings: tuple[RecordingRule | AlertingRule, ...] = (
        _new_findings(options),
        *(_violated(options, promise) for promise in VIOLATED),
        _overdue(options),
    )
    hot = (_hot(URGENT, Severity.WARNING), _hot(LESS_URGENT, Severity.INFO))
    late = (_found_late(Severity.WARNING), _found_late(Severity.INFO))
    levels = (_held(), _unreachable(), _stalled(), _unanswered(), *hot, *late)
    return (
        RuleGroup("pubsub-prober-findings", FINDINGS_INTERVAL_S, findings),
        RuleGroup("pubsub-prober-service", INTERVAL_S, levels),
    )


def age_group(objectives: Iterable[Objective]) -> RuleGroup:
    """What grows old, by the strictest objective about ages."""
    return RuleGroup("pubsub-prober-ages", INTERVAL_S, (_rising(objectives),))


def new_findings(options: Options) -> str:
    """The recorded number of findings that are news."""
    return f"subscription:{PREFIX}_findings:new{prom_duration(_seen_s(options))}"


def _seen_s(options: Options) -> float:
    return min(options.news_s, SEEN_S)


def _new_findings(options: Options) -> RecordingRule:
    selected = series(families.FINDINGS, status=(Status.VIOLATION, Status.LIVENESS))
    return RecordingRule(new_findings(options), news(FINDING_LABELS, selected, _seen_s(options)))


def _found(options: Options, **matchers: Matcher) -> str:
    """Whether there is a finding that keeps its alert firing: it is told once, also when the prober starts again in between."""
    recorded = selector(new_findings(options), FINDING_LABELS, **matchers)
    held_s = options.news_s - _seen_s(options)
    held = f"max_over_time({recorded}[{prom_duration(held_s)}])" if held_s else recorded
    return f"{sum_by(FOUND, held)} > 0"


def _violated(options: Options, promise: Promise) -> AlertingRule:
    name, severity, summary = VIOLATED[promise]
    kinds = breaking(promise, {Status.VIOLATION})
    return _proven(
        name,
        _found(options, kind=kinds, status=Status.VIOLATION),
        severity,
        summary,
        f"{{{{ $labels.kind }}}} {ON_SUBSCRIPTION}: proven by events of the last {prom_duration(options.news_s)}, which no "
        "legal behaviour explains. The finding shows the smallest history that proves it.",
        Status.VIOLATION,
    )


def _overdue(options: Options) -> AlertingRule:
    return _proven(
        OVERDUE,
        _found(options, status=Status.LIVENESS),
        Severity.CRITICAL,
        "A message was not delivered by its deadline.",
        f"{{{{ $labels.kind }}}} {ON_SUBSCRIPTION}: a deadline passed within the last {prom_duration(options.news_s)} although the target "
        "answered. Messages are late or lost.",
        Status.LIVENESS,
    )


def _proven(name: str, expression: str, severity: Severity, summary: str, description: str, status: Status) -> AlertingRule:
    return AlertingRule(
        name,
        expression,
        severity,
        Owner.SERVICE,
        Summary(summary, f"findings: {COUNT}"),
        description,
        Dashboard.ORDERING,
        FOUND,
        labels={"evidence": str(AlertBasis.PROOF), "status": str(status)},
        page=f"findings?target={value_of('target')}&kind={value_of('kind')}&status={status}",
    )


def _held() -> RecordingRule:
    """The targets that could not be reached, until a publish is confirmed there, however rare the runs are and however often probers start
    again meanwhile: one that has just started knows nothing of the runs before. Forgotten where nobody probes any more.
    """
    runs = series(families.UNREACHABLE_RUNS)
    probed = group_by(TARGET, outside_maintenance(f"last_over_time({runs}[{prom_duration(UNREACHABLE_KEPT_S)}])"))
    unreached = f"{max_by(TARGET, outside_maintenance(runs))} >= {UNREACHABLE_RUNS_MIN}"
    some = binary("or", unreached, f"({HELD} and {on(TARGET)} {probed})")
    confirmed = increase_by(
        TARGET, series(families.PUBLISHES, outcome=PublishOutcome.CONFIRMED), prom_duration(UNREACHABLE_WINDOW_S)
    )
    unconfirmed = binary("unless", bracketed(some), f"{confirmed} > 0")
    return RecordingRule(HELD, binary(f"unless {on(TARGET)}", unconfirmed, bracketed(_reached_elsewhere())))


def _reached_elsewhere() -> str:
    """Probers that reach the target, although they publish more rarely: none of their last runs failed to, and one confirmed a publish.

    What one that has just started has confirmed may be from before the outage.
    """
    place = (*PROCESS, *TARGET)
    reaching = f"{max_by(place, outside_maintenance(series(families.UNREACHABLE_RUNS)))} == 0"
    confirmed = increase_by(place, series(families.PUBLISHES, outcome=PublishOutcome.CONFIRMED), prom_duration(REACHED_WINDOW_S))
    return f"{reaching} unless {on(PROCESS)} {restarted(REACHED_WINDOW_S)} and {confirmed} > 0"


def _unreachable() -> AlertingRule:
    return measured_alert(
        "PubsubTargetUnreachable",
        max_by(TARGET, HELD),
        Severity.CRITICAL,
        Summary("A target cannot be reached.", f"runs in a row: {COUNT}"),
        f"{{{{ $value }}}} runs in a row could not reach {ON_TARGET}, and no publish was confirmed within "
        f"{prom_duration(UNREACHABLE_WINDOW_S)}. What they were to publish counts as unavailable.",
        Dashboard.PUBLISHER,
        TARGET,
        UNREACHABLE_FOR_S,
    )


def _stalled() -> AlertingRule:
    return measured_alert(
        "PubsubKeysStalled",
        f"{max_by(SUBSCRIPTION, outside_maintenance(series(families.STALLED_KEYS)))} > 0",
        Severity.CRITICAL,
        Summary("Ordering keys stand still although messages wait on them.", f"keys: {COUNT}"),
        f"{{{{ $value }}}} keys {ON_SUBSCRIPTION} have stood still for {prom_duration(STALLED_FOR_S)}: messages wait, and none is "
        "delivered or acknowledged.",
        Dashboard.KEYS,
        SUBSCRIPTION,
        STALLED_FOR_S,
    )


def _rising(objectives: Iterable[Objective]) -> AlertingRule:
    limit_s = old_s(objectives)
    age = series(families.OLDEST_UNACKED_AGE)
    slope = outside_maintenance(f"deriv({age}[{prom_duration(RISING_FOR_S)}])")
    rising = f"{max_by(SUBSCRIPTION, slope)} > {prom_number(RISING_MIN)}"
    return measured_alert(
        "PubsubOldestUnackedAgeRising",
        binary("and", f"{max_by(SUBSCRIPTION, outside_maintenance(age))} > {prom_number(limit_s)}", rising),
        Severity.WARNING,
        Summary("The oldest unacknowledged message is old and grows older.", DURATION),
        f"The oldest message {ON_SUBSCRIPTION} without an acknowledgement is {{{{ $value | humanizeDuration }}}} old, more than "
        f"{prom_number(limit_s)} s, and has been growing older for {prom_duration(RISING_FOR_S)}.",
        Dashboard.KEYS,
        SUBSCRIPTION,
        RISING_FOR_S,
    )


def old_s(objectives: Iterable[Objective]) -> float:
    """From when on a message is old: what the strictest objective about ages says."""
    limits = [one.threshold_s for one in objectives if one.indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE and one.threshold_s]
    return min(limits, default=OLD_DEFAULT_S)


def _unanswered() -> AlertingRule:
    window = prom_duration(PUBLISH_WINDOW_S)
    unknown = increase_by(PUBLISHED, series(families.PUBLISHES, outcome=PublishOutcome.UNKNOWN), window)
    share = f"{unknown} / {increase_by(PUBLISHED, series(families.PUBLISHES), window)} > {prom_number(UNKNOWN_SHARE_MAX)}"
    return measured_alert(
        "PubsubPublishesUnknown",
        binary("and", share, f"{unknown} >= {UNKNOWN_MIN}"),
        Severity.WARNING,
        Summary("Many publishes end without an answer.", SHARE),
        f"{{{{ $value | humanizePercentage }}}} of the publishes on topic {{{{ $labels.topic }}}} of {ON_TARGET} had no answer within "
        f"the last {window}, more than {percent(UNKNOWN_SHARE_MAX)}. Nobody knows whether those messages are stored.",
        Dashboard.PUBLISHER,
        PUBLISHED,
        PUBLISHES_FOR_S,
    )


def _hot(classes: tuple[HotKeyClass, ...], severity: Severity) -> AlertingRule:
    alert = measured_alert(
        "PubsubHotKeys",
        f"{max_by(HOT, series(families.HOT_KEYS, class_=classes))} > 0",
        severity,
        Summary("The last nightly report has hot ordering keys.", f"keys: {COUNT}"),
        f"{{{{ $value }}}} keys of {ON_TARGET} are hot: {{{{ $labels.class }}}}. The report says which, why, and what helps.",
        Dashboard.KEYS,
        HOT,
        0.0,
    )
    return replace(alert, page=f"hot-keys?target={value_of('target')}")


def _found_late(severity: Severity) -> AlertingRule:
    """What judging again has found is up to a day old: it wakes nobody, and what is usual, although documented, is a remark."""
    kinds = tuple(kind for kind in CAN_FAIL if (_severity_of(kind) is Severity.INFO) == (severity is Severity.INFO))
    return AlertingRule(
        "PubsubBrokenPromiseFoundLate",
        f"{max_by(FOUND_LATE, series(families.REVERIFIED_FINDINGS, kind=kinds))} > 0",
        severity,
        Owner.SERVICE,
        Summary("Judging the recorded runs again found a broken promise that was not known.", f"findings: {COUNT}"),
        f"{{{{ $labels.kind }}}} on {ON_TARGET}: the newest nightly report proves it {{{{ $value }}}} times where the prober did not find "
        "it at the time, or where nobody knows whether it did. The report has the events that prove it.",
        Dashboard.JOBS,
        FOUND_LATE,
        labels={"evidence": str(AlertBasis.PROOF)},
        page=f"findings?target={value_of('target')}&kind={value_of('kind')}",
    )


def _severity_of(kind: Kind) -> Severity:
    """How severe its alert is when it is found at once."""
    promise = KINDS[kind].promise
    return VIOLATED[promise][1] if promise in VIOLATED else Severity.CRITICAL
