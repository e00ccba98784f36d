"""Alerts about the prober itself, for those who run it. While some of them fire, what is measured about services means little.

Those about nobody looking, and about what is seen meaning little, are modules of their own; here are the others: parts of the prober that
fail, what it depends on and leaves behind (its API and its store, permissions and quotas, leftovers, too many names), what has to come
regularly, and drills.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from prober.alerting import measurement_validity, no_data
from prober.alerting.promql import (
    PROCESS,
    binary,
    bracketed,
    group_by,
    increase_by,
    max_by,
    min_by,
    news,
    on,
    prom_duration,
    prom_number,
    selector,
    series,
)
from prober.alerting.rules import (
    AT,
    COUNT,
    DURATION,
    FINDINGS_INTERVAL_S,
    INTERVAL_S,
    ON_TARGET,
    REMEMBERED,
    SILENT_FOR_S,
    TROUBLE_FOR_S,
    WINDOW_S,
    AlertingRule,
    Dashboard,
    Options,
    RuleGroup,
    Severity,
    Summary,
    either,
    prober_alert,
    subject_of,
)
from prober.brokers.calls import ErrorCode
from prober.core.findings import Status
from prober.sinks.metrics import families
from prober.sinks.metrics.families import TARGET
from prober.sinks.metrics.family import Family
from prober.sinks.metrics.label_values import Job
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S

JOB: Final = ("job_name", "environment")
"""What tells nightly jobs apart."""
JOB_LATE_S: Final = 26 * HOUR_S
DRILL_LATE_S: Final = 8 * DAY_S
DRILL_NEWS_S: Final = 3 * MINUTE_S
"""Shorter than between two drills of one name."""
LEFT_FOR_S: Final = 7 * HOUR_S
"""More than between two sweeps."""
PROJECT: Final = ("project",)
REFUSED: Final = (*TARGET, "operation", "code")
FOLDED: Final = (*TARGET, "label")
STORE_DOWN: Final = f"({max_by(PROCESS, series(families.STATUS_STORE_UP))} == 0)"
"""The processes for which the status store does not answer."""


def prober_groups(options: Options) -> tuple[RuleGroup, ...]:
    """One group for each subject. Drills are looked at as often as real findings."""
    return (
        RuleGroup("pubsub-prober-no-data", INTERVAL_S, no_data.no_data_rules(options)),
        RuleGroup("pubsub-prober-measurement-validity", INTERVAL_S, measurement_validity.validity_rules()),
        RuleGroup("pubsub-prober-self-monitoring", INTERVAL_S, _parts()),
        RuleGroup("pubsub-prober-dependencies", INTERVAL_S, _dependencies(options)),
        RuleGroup("pubsub-prober-schedules", INTERVAL_S, _regular()),
        RuleGroup("pubsub-prober-drills", FINDINGS_INTERVAL_S, _drills()),
    )


def _parts() -> tuple[AlertingRule, ...]:
    """What fails while probes go on."""
    return (
        _failing("History", families.HISTORY_FAILURES, "The history cannot be written.", "so runs cannot be judged again later"),
        _store_failing(),
        _internal_errors(),
        _dropped(),
        _config_refused(),
    )


def _regular() -> tuple[AlertingRule, ...]:
    """What has to come every night, every week, always."""
    return (_job_late(), _job_never(), _drill_failed(), _drill_late(), _watchdog())


def _drills() -> tuple[AlertingRule, ...]:
    """What drills are followed by."""
    return (_drill_found(),)


def _failing(part: str, failures: Family, summary: str, so: str) -> AlertingRule:
    return prober_alert(
        f"PubsubProber{part}Failing",
        f"{increase_by(PROCESS, series(failures), prom_duration(WINDOW_S))} > 0",
        Severity.WARNING,
        Summary(summary, f"failures: {COUNT}"),
        f"{AT} has failed to write again and again for {prom_duration(TROUBLE_FOR_S)}, {so}. What waits is written later; what "
        "exceeds the limit is dropped and counted.",
        PROCESS,
        TROUBLE_FOR_S,
    )


def _store_failing() -> AlertingRule:
    """A store that does not answer at all is told otherwise."""
    failing = _failing("StatusStore", families.STATUS_FAILURES, "The status store cannot be written.", "so the API shows old runs")
    unless_down = binary(f"unless {on(PROCESS)}", failing.expression, STORE_DOWN)
    return replace(failing, expression=unless_down)


def _internal_errors() -> AlertingRule:
    labels = (*PROCESS, "component")
    return prober_alert(
        "PubsubProberInternalErrors",
        f"{news(labels, series(families.INTERNAL_ERRORS), WINDOW_S)} > 0",
        Severity.WARNING,
        Summary("The prober had an internal error.", f"errors: {COUNT}"),
        f"{AT} had an internal error in {{{{ $labels.component }}}} within the last {prom_duration(WINDOW_S)}. The log has the "
        "traceback. If it happened in a run, that run is UNKNOWN, never FAIL.",
        labels,
    )


def _dropped() -> AlertingRule:
    labels = (*PROCESS, "component")
    return prober_alert(
        "PubsubProberEventsDropped",
        f"{news(labels, series(families.EVENTS_DROPPED), WINDOW_S)} > 0",
        Severity.WARNING,
        Summary("The prober drops records.", f"records: {COUNT}"),
        f"{AT} dropped records in {{{{ $labels.component }}}} within the last {prom_duration(WINDOW_S)}: what it stores is incomplete.",
        labels,
    )


def _config_refused() -> AlertingRule:
    return prober_alert(
        "PubsubProberConfigRefused",
        f"{min_by(PROCESS, series(families.CONFIG_RELOADED))} == 0",
        Severity.WARNING,
        Summary("A changed configuration file was refused."),
        f"{AT} has not taken over its configuration file for {prom_duration(SILENT_FOR_S)}: the old configuration stays in force. Its "
        "status page says why.",
        PROCESS,
        SILENT_FOR_S,
    )


def _job_late() -> AlertingRule:
    """Each prober reads the reports of its own environment, so the latest of all would hide those that are late."""
    succeeded = min_by(JOB, f"{series(families.JOB_LAST_SUCCESS)} > 0")
    return prober_alert(
        "PubsubProberJobLate",
        f"time() - {succeeded} > {prom_number(JOB_LATE_S)}",
        Severity.WARNING,
        Summary("A nightly job is late.", DURATION),
        "{{ $labels.job_name }} of {{ $labels.environment }} last succeeded {{ $value | humanizeDuration }} ago; it should every night.",
        JOB,
        WINDOW_S,
        Dashboard.JOBS,
    )


def _job_never() -> AlertingRule:
    """`instance` alone, since `job` is another label where labels are honored."""
    never = f"{series(families.JOB_LAST_SUCCESS, job_name=Job.NIGHTLY)} == 0"
    return prober_alert(
        "PubsubProberJobNeverSucceeded",
        group_by(JOB, f"{never} and on (instance) {series(families.REPORTS_EXPECTED)} == 1"),
        Severity.WARNING,
        Summary("The nightly jobs have never succeeded."),
        "The configuration names where the reports of {{ $labels.environment }} are; {{ $labels.job_name }} has left none in "
        f"{prom_duration(JOB_LATE_S)}.",
        JOB,
        JOB_LATE_S,
        Dashboard.JOBS,
    )


def _drill_found() -> AlertingRule:
    """What a drill is followed by: the same expression as for real findings, with a name and a route of its own."""
    labels = ("drill", "kind", "status")
    found = series(families.DRILL_FINDINGS, status=(Status.VIOLATION, Status.LIVENESS))
    return prober_alert(
        "PubsubProberDrillFinding",
        f"{news(labels, found, DRILL_NEWS_S)} > 0",
        Severity.NONE,
        Summary("A fire drill was found, as it should be.", f"findings: {COUNT}"),
        "The drill {{ $labels.drill }} was found as {{ $labels.kind }}. No service is concerned.",
        labels,
    )


def _drill_failed() -> AlertingRule:
    """Until it passes, of each prober by itself. A restart sets both times back to 0, so the latest that are known count."""
    failed, passed = (
        f"max_over_time({series(family)}[{prom_duration(DRILL_LATE_S)}])"
        for family in (families.DRILL_LAST_FAILURE, families.DRILL_LAST_SUCCESS)
    )
    labels = (*PROCESS, "drill")
    there = group_by(labels, series(families.DRILL_LAST_FAILURE))
    return prober_alert(
        "PubsubProberDrillFailed",
        binary("and", f"{max_by(labels, failed)} > {max_by(labels, passed)}", there),
        Severity.WARNING,
        Summary("The last fire drill did not pass."),
        "The last drill {{ $labels.drill }} of prober {{ $labels.instance }} did not pass: it may be that nobody is paged for "
        "such a fault. Its line in the log says which step did not come.",
        labels,
    )


def _drill_late() -> AlertingRule:
    """A restart sets the time back to 0, so the latest that was known within the limit counts."""
    known = max_by(("drill",), f"max_over_time({series(families.DRILL_LAST_SUCCESS)}[{prom_duration(DRILL_LATE_S)}])")
    long_since = group_by(("drill",), f"{series(families.DRILL_LAST_SUCCESS)} offset {prom_duration(DRILL_LATE_S)}")
    return prober_alert(
        "PubsubProberDrillOverdue",
        binary("and", f"time() - {known} > {prom_number(DRILL_LATE_S)}", long_since),
        Severity.WARNING,
        Summary("A fire drill is overdue.", f"{{{{ if gt $value 1e9 }}}}never passed{{{{ else }}}}{DURATION}{{{{ end }}}}"),
        f"The drill {{{{ $labels.drill }}}} has not succeeded for {prom_duration(DRILL_LATE_S)}: nobody knows whether that fault would "
        "still page.",
        ("drill",),
        WINDOW_S,
    )


def _watchdog() -> AlertingRule:
    return prober_alert(
        "PubsubProberWatchdog",
        "vector(1)",
        Severity.NONE,
        Summary("Always fires, so that somebody notices when alerts stop coming."),
        "Route it to a receiver that complains when it does not hear from it. It needs no action.",
    )


def _dependencies(options: Options) -> tuple[AlertingRule, ...]:
    """All of them."""
    return (_api_down(options), _store_down(), _not_permitted(), _quota(), _leftovers(), _names_folded())


def _api_down(options: Options) -> AlertingRule:
    """The API as a process of its own; that of a prober is down when the prober is."""
    up = selector("up", PROCESS, job=f"{options.scrape_job}-api")
    gone = binary("unless", group_by(("job",), f"last_over_time({up}[{REMEMBERED}])"), group_by(("job",), up))
    return prober_alert(
        "PubsubProberApiDown",
        binary("or", bracketed(f"{up} == 0"), bracketed(gone)),
        Severity.WARNING,
        Summary("The API does not answer scrapes.", subject=either("instance", subject_of(PROCESS), subject_of(("job",)))),
        "{{ with $labels.instance }}The API at {{ . }} has not answered{{ else }}All of the API has been gone{{ end }} for "
        f"{prom_duration(SILENT_FOR_S)}. Probes and alerts go on; pages and programs may get no answer.",
        PROCESS,
        SILENT_FOR_S,
    )


def _store_down() -> AlertingRule:
    return prober_alert(
        "PubsubProberStatusStoreDown",
        STORE_DOWN,
        Severity.WARNING,
        Summary("The status store does not answer."),
        "The status store has taken nothing from {{ $labels.instance }} and given it nothing for "
        f"{prom_duration(SILENT_FOR_S)}: pages show what was before, and probers cannot divide the work.",
        PROCESS,
        SILENT_FOR_S,
    )


def _not_permitted() -> AlertingRule:
    refused = series(families.TARGET_ERRORS, code=(ErrorCode.PERMISSION_DENIED, ErrorCode.UNAUTHENTICATED))
    return prober_alert(
        "PubsubProberNotPermitted",
        f"{news(REFUSED, refused, WINDOW_S)} > 0",
        Severity.WARNING,
        Summary("A target refuses the prober's account.", f"calls: {COUNT}"),
        f"Calls to {{{{ $labels.operation }}}} at {ON_TARGET} ended with {{{{ $labels.code }}}} within the last {prom_duration(WINDOW_S)}: "
        "credentials or roles are missing or were taken away.",
        REFUSED,
    )


def _quota() -> AlertingRule:
    labels = (*TARGET, "operation")
    return prober_alert(
        "PubsubProberQuotaExceeded",
        f"{news(labels, series(families.TARGET_ERRORS, code=ErrorCode.RESOURCE_EXHAUSTED), WINDOW_S)} > 0",
        Severity.WARNING,
        Summary("A target says that a quota is used up.", f"calls: {COUNT}"),
        f"Calls to {{{{ $labels.operation }}}} at {ON_TARGET} ended with {ErrorCode.RESOURCE_EXHAUSTED} within the last "
        f"{prom_duration(WINDOW_S)}. The prober, or others in the project, use up a quota.",
        labels,
    )


def _leftovers() -> AlertingRule:
    """What is not known is not a number, and so is not equal to itself."""
    left = max_by(PROJECT, series(families.LEFTOVERS))
    return prober_alert(
        "PubsubProberLeftovers",
        binary("or", f"{left} > 0", f"({left} != {left})"),
        Severity.WARNING,
        Summary(
            "Topics and subscriptions of former probers stay behind.",
            "{{ if ge $value 0.0 }}left: {{ $value }}{{ else }}number unknown{{ end }}",
        ),
        "In the project {{ $labels.project }} the sweep cannot delete what probers have left that are long gone, or cannot look for it, "
        f"for {prom_duration(LEFT_FOR_S)}: it uses up quotas, and subscriptions keep messages.",
        PROJECT,
        LEFT_FOR_S,
    )


def _names_folded() -> AlertingRule:
    return prober_alert(
        "PubsubProberNamesFolded",
        f"{news(FOLDED, series(families.FOLDED_NAMES), WINDOW_S)} > 0",
        Severity.WARNING,
        Summary("Metrics tell names apart no more, because there are too many.", f"names: {COUNT}"),
        f"At {ON_TARGET} there are more names of a {{{{ $labels.label }}}} than metrics tell apart. What is beyond the limit is counted "
        "together as `other`.",
        FOLDED,
    )
