"""Alerts about the prober itself, for those who run it. While they fire, what is measured about services means little.

No data is noticed in four ways, since each alone misses something: the process does not answer a scrape, it answers and no run ends,
it ends runs and none passes, or a target that was there is there no more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from prober.alerting.objectives import OBJECTIVE, ON_TARGET, decided
from prober.alerting.options import Options
from prober.alerting.promql import (
    PROCESS,
    bracketed,
    duration,
    exists,
    increase,
    joined,
    largest,
    news,
    number,
    percent,
    selector,
    series,
)
from prober.alerting.rules import FINDINGS_INTERVAL_S, Alert, Dashboard, Group, Owner, Severity, value_of
from prober.core.findings import Status
from prober.core.slo import DAY_S, HOUR_S, MINUTE_S
from prober.core.verdict import Verdict
from prober.metrics import families
from prober.metrics.families import TARGET, Family
from prober.metrics.labels import Job, Skip

INTERVAL_S: Final = 30.0
PROBE: Final = (*TARGET, "probe")
REMEMBERED: Final = "6h"
"""For so long it is noticed that a target is missing which was there."""
DOWN_FOR_S: Final = 5 * MINUTE_S
ABSENT_FOR_S: Final = 15 * MINUTE_S
WINDOW_S: Final = 15 * MINUTE_S
FREQUENT_S: Final = 5 * MINUTE_S
"""Probes that run at least so often must have ended a run within the window; rarer ones are judged by the age of the last pass."""
SILENT_FOR_S: Final = 5 * MINUTE_S
STALE_S: Final = 15 * MINUTE_S
STALE_INTERVALS: Final = 3
STALE_FOR_S: Final = 15 * MINUTE_S
COVERAGE_WINDOW_S: Final = 30 * MINUTE_S
COVERAGE_MIN: Final = 0.9
COVERAGE_FOR_S: Final = 5 * MINUTE_S
UNKNOWN_SHARE_MAX: Final = 0.5
RUNS_MIN: Final = 3
"""So many runs must be missing or undecided: a lost one is no news."""
LAG_MAX_S: Final = 1.0
LAG_QUANTILE: Final = 0.99
TROUBLE_FOR_S: Final = 10 * MINUTE_S
JOB_LATE_S: Final = 26 * HOUR_S
DRILL_LATE_S: Final = 8 * DAY_S
DRILL_NEWS_S: Final = 3 * MINUTE_S
"""Shorter than between two drills of one name."""
AT: Final = "Prober {{ $labels.instance }}"


def groups(options: Options) -> tuple[Group, ...]:
    """By what they say: nobody looks, what is seen means little, parts of the prober fail, what has to come regularly; drills."""
    sight = (_down(options), _absent(options), _runs_missing(), _stale(), _vanished())
    judgement = (_coverage(), _undecided(), _lagging(), _clock(), _recordings_missing(), _rules_failing())
    parts = (
        _failing("History", families.HISTORY_FAILURES, "The history cannot be written.", "so runs cannot be judged again later"),
        _failing("StatusStore", families.STATUS_FAILURES, "The status store cannot be written.", "so the API shows old runs"),
        _internal_errors(),
        _dropped(),
    )
    regular = (_job_late(), _job_never(), _drill_late(), _watchdog())
    named = {"sight": sight, "judgement": judgement, "parts": parts, "regular": regular}
    drills = Group("pubsub-prober-drills", FINDINGS_INTERVAL_S, (_drill_found(),))
    return (*(Group(f"pubsub-prober-{name}", INTERVAL_S, alerts) for name, alerts in named.items()), drills)


def _alert(
    name: str,
    expression: str,
    severity: Severity,
    summary: str,
    description: str,
    by: tuple[str, ...] = (),
    for_s: float = 0.0,
    dashboard: Dashboard = Dashboard.PROBER,
) -> Alert:
    return Alert(name, expression, severity, Owner.PROBER, summary, description, dashboard, by, for_s)


# --- nobody looks ------------------------------------------------------------------------------------------------------------


def _down(options: Options) -> Alert:
    """Carries the targets of the process, so that it inhibits what is said about them."""
    down = f"{selector('up', PROCESS, job=options.scrape_job)} == 0"
    targets = exists((*PROCESS, *TARGET), f"last_over_time({series(families.TARGET_INFO)}[{REMEMBERED}])")
    known = joined(f"and on ({', '.join(PROCESS)})", targets, f"({down})")
    return _alert(
        "PubsubProberDown",
        joined("or", bracketed(known), bracketed(joined(f"unless on ({', '.join(PROCESS)})", down, targets))),
        Severity.CRITICAL,
        "A prober does not answer scrapes.",
        f"{AT} has not answered for {duration(DOWN_FOR_S)}. Nobody probes its targets{{{{ with $labels.target }}}}, such as "
        "{{ . }}{{ end }}.",
        (*PROCESS, *TARGET),
        DOWN_FOR_S,
    )


def _absent(options: Options) -> Alert:
    return _alert(
        "PubsubProberAbsent",
        f"absent({selector('up', PROCESS, job=options.scrape_job)})",
        Severity.CRITICAL,
        "Prometheus knows no prober at all.",
        f"Nothing with the job {options.scrape_job} has been scraped for {duration(ABSENT_FOR_S)}: nobody probes anything.",
        ("job",),
        ABSENT_FOR_S,
    )


def _runs_missing() -> Alert:
    """Also where the scheduler is stuck, which asks for no run then: the counter is flat."""
    flat = f"{increase(PROBE, series(families.PROBE_RUNS), duration(WINDOW_S))} == 0"
    rare = f"({largest(PROBE, series(families.PROBE_INTERVAL))} > {number(FREQUENT_S)})"
    expression = joined(f"unless on ({', '.join(PROBE)})", flat, rare)
    return _alert(
        "PubsubProberRunsMissing",
        _unless_maintained(expression, WINDOW_S),
        Severity.CRITICAL,
        "A probe has ended no run for a long time.",
        f"No run of {{{{ $labels.probe }}}} at {ON_TARGET} has ended for {duration(WINDOW_S)}, although the prober answers.",
        PROBE,
        SILENT_FOR_S,
    )


def _stale() -> Alert:
    """Where runs fail, the service is accused elsewhere."""
    age = f"time() - {largest(PROBE, series(families.PROBE_LAST_SUCCESS))}"
    interval = largest(PROBE, series(families.PROBE_INTERVAL))
    limit = (
        f"({number(STALE_S)} + {STALE_INTERVALS} * {interval} or {exists(PROBE, series(families.PROBE_RUNS))} * {number(STALE_S)})"
    )
    failing = f"({increase(PROBE, series(families.PROBE_RUNS, verdict='fail'), duration(HOUR_S))} > 0)"
    expression = joined(f"unless on ({', '.join(PROBE)})", f"{age} > {limit}", failing)
    return _alert(
        "PubsubProberStale",
        _unless_maintained(expression, STALE_S),
        Severity.WARNING,
        "No run of a probe has passed for a long time, and none has failed.",
        f"The last run of {{{{ $labels.probe }}}} that passed at {ON_TARGET} was {{{{ $value | humanizeDuration }}}} ago. None has failed "
        "since: the prober cannot judge.",
        PROBE,
        STALE_FOR_S,
    )


def _vanished() -> Alert:
    def gone(family: Family) -> str:
        selected = series(family)
        return f"({exists(TARGET, f'last_over_time({selected}[{REMEMBERED}])')} unless {exists(TARGET, selected)})"

    return _alert(
        "PubsubProberSeriesVanished",
        joined("or", gone(families.TARGET_INFO), gone(families.OLDEST_UNACKED_AGE)),
        Severity.CRITICAL,
        "A target that was probed is not probed any more.",
        f"The series of {ON_TARGET} were there within the last {REMEMBERED} and are gone.",
        TARGET,
        SILENT_FOR_S,
    )


def _unless_maintained(expression: str, window_s: float) -> str:
    """Not while a target is under maintenance, nor until the window is past it."""
    was = f"max_over_time({series(families.UNDER_MAINTENANCE)}[{duration(window_s)}])"
    return joined(f"unless on ({', '.join(TARGET)})", expression, f"({largest(TARGET, was)} == 1)")


# --- what is seen means little -----------------------------------------------------------------------------------------------


def _coverage() -> Alert:
    window = duration(COVERAGE_WINDOW_S)
    ended = increase(PROBE, series(families.PROBE_RUNS), window)
    maintained = increase(PROBE, series(families.SCHEDULER_SKIPS, reason=Skip.MAINTENANCE), window)
    expected = f"({increase(PROBE, series(families.PROBE_RUNS_EXPECTED), window)} - {maintained})"
    return _alert(
        "PubsubProberCoverageLow",
        joined("and", f"{ended} / {expected} < {number(COVERAGE_MIN)}", f"{expected} - {ended} >= {RUNS_MIN}"),
        Severity.WARNING,
        "Fewer runs end than the schedule asks for.",
        f"Of the runs of {{{{ $labels.probe }}}} at {ON_TARGET} that were due in the last {window}, {{{{ $value | humanizePercentage }}}} "
        f"ended, less than {percent(COVERAGE_MIN)}. What is measured there means little.",
        PROBE,
        COVERAGE_FOR_S,
    )


def _undecided() -> Alert:
    window = duration(COVERAGE_WINDOW_S)
    unknown = increase(PROBE, series(families.PROBE_RUNS, verdict="unknown"), window)
    ended = increase(PROBE, series(families.PROBE_RUNS), window)
    alert = _alert(
        "PubsubProberVerdictsUnknown",
        joined("and", f"{unknown} / {ended} > {number(UNKNOWN_SHARE_MAX)}", f"{unknown} >= {RUNS_MIN}"),
        Severity.WARNING,
        "Most runs of a probe end without a verdict.",
        f"{{{{ $value | humanizePercentage }}}} of the runs of {{{{ $labels.probe }}}} at {ON_TARGET} in the last {window} ended UNKNOWN: "
        "the target or the way to it does not answer, or the prober stands still.",
        PROBE,
        COVERAGE_FOR_S,
    )
    return replace(alert, page=f"runs?verdict={Verdict.UNKNOWN}&target={value_of('target')}&probe={value_of('probe')}")


def _lagging() -> Alert:
    """Carries the targets of the process, as what is measured there is what suffers."""
    rates = f"sum by ({', '.join((*PROCESS, 'le'))}) (rate({series(families.LOOP_LAG, '_bucket')}[{duration(TROUBLE_FOR_S)}]))"
    lag = f"(histogram_quantile({number(LAG_QUANTILE)}, {rates}) > {number(LAG_MAX_S)})"
    targets = exists((*PROCESS, *TARGET), series(families.TARGET_INFO))
    return _alert(
        "PubsubProberLagging",
        joined(f"* on ({', '.join(PROCESS)}) group_right ()", lag, targets),
        Severity.WARNING,
        "A prober is too slow to measure.",
        f"{AT} wakes up {{{{ $value | humanizeDuration }}}} late in one of a hundred cases. Latencies that it measures at {ON_TARGET} hold "
        "its own delays.",
        (*PROCESS, *TARGET),
        SILENT_FOR_S,
    )


def _clock() -> Alert:
    labels = (*TARGET, "duration")
    return _alert(
        "PubsubProberClockWrong",
        f"{news(labels, series(families.NEGATIVE_DURATIONS), WINDOW_S)} > 0",
        Severity.WARNING,
        "A duration came out negative: a clock is wrong.",
        f"{{{{ $labels.duration }}}} at {ON_TARGET} was negative within the last {duration(WINDOW_S)}. Latencies from there cannot be "
        "relied on.",
        labels,
    )


def _recordings_missing() -> Alert:
    numbers = decided(5 * MINUTE_S)
    probing = f"group ({series(families.PROBE_RUNS)})"
    some = joined("unless", exists(("slo",), OBJECTIVE), exists(("slo",), numbers))
    return _alert(
        "PubsubProberRecordingsMissing",
        joined("or", joined("and on ()", bracketed(some), probing), f"({probing} unless on () group ({numbers}))"),
        Severity.WARNING,
        "Objectives are not evaluated although probes run.",
        "There are probes, but no numbers for{{ with $labels.slo }} the objective {{ . }}{{ else }} any objective{{ end }}: burn alerts "
        "cannot fire.",
        ("slo",),
        TROUBLE_FOR_S,
    )


def _rules_failing() -> Alert:
    """Prometheus's own metric, if it scrapes itself; its label is `FILE;GROUP`."""
    failures = 'prometheus_rule_evaluation_failures_total{rule_group=~".*;pubsub-prober-.*"}'
    return _alert(
        "PubsubProberRulesFailing",
        f"sum by (rule_group) (increase({failures}[{duration(WINDOW_S)}])) > 0",
        Severity.WARNING,
        "Prometheus cannot evaluate rules of the prober.",
        f"Rules of {{{{ $labels.rule_group }}}} failed within the last {duration(WINDOW_S)}: their alerts cannot fire.",
        ("rule_group",),
        SILENT_FOR_S,
    )


# --- parts of the prober fail ------------------------------------------------------------------------------------------------


def _failing(part: str, failures: Family, summary: str, so: str) -> Alert:
    return _alert(
        f"PubsubProber{part}Failing",
        f"{increase(PROCESS, series(failures), duration(WINDOW_S))} > 0",
        Severity.WARNING,
        summary,
        f"{AT} has failed to write again and again for {duration(TROUBLE_FOR_S)}, {so}. What waits is tried again; what does not fit "
        "is dropped and counted.",
        PROCESS,
        TROUBLE_FOR_S,
    )


def _internal_errors() -> Alert:
    labels = (*PROCESS, "component")
    return _alert(
        "PubsubProberInternalErrors",
        f"{news(labels, series(families.INTERNAL_ERRORS), WINDOW_S)} > 0",
        Severity.WARNING,
        "The prober has a fault of its own.",
        f"{AT} had an internal error in {{{{ $labels.component }}}} within the last {duration(WINDOW_S)}. The log has the traceback; the "
        "run is UNKNOWN.",
        labels,
    )


def _dropped() -> Alert:
    labels = (*PROCESS, "component")
    return _alert(
        "PubsubProberEventsDropped",
        f"{news(labels, series(families.EVENTS_DROPPED), WINDOW_S)} > 0",
        Severity.WARNING,
        "The prober gives up recorded facts.",
        f"{AT} dropped records in {{{{ $labels.component }}}} within the last {duration(WINDOW_S)}: what it keeps has holes.",
        labels,
    )


# --- what has to come regularly ----------------------------------------------------------------------------------------------


def _job_late() -> Alert:
    succeeded = largest(("job_name",), series(families.JOB_LAST_SUCCESS))
    return _alert(
        "PubsubProberJobLate",
        joined("and", f"time() - {succeeded} > {number(JOB_LATE_S)}", f"{succeeded} > 0"),
        Severity.WARNING,
        "A nightly job is late.",
        "{{ $labels.job_name }} last succeeded {{ $value | humanizeDuration }} ago; it should every night.",
        ("job_name",),
        WINDOW_S,
        Dashboard.JOBS,
    )


def _job_never() -> Alert:
    succeeded = largest(("job_name",), series(families.JOB_LAST_SUCCESS, job_name=Job.NIGHTLY))
    return _alert(
        "PubsubProberJobNeverSucceeded",
        joined("and on ()", f"{succeeded} == 0", f"(max ({series(families.REPORTS_EXPECTED)}) == 1)"),
        Severity.WARNING,
        "The nightly jobs have never succeeded.",
        f"The configuration names where their reports are; {{{{ $labels.job_name }}}} has left none in {duration(JOB_LATE_S)}.",
        ("job_name",),
        JOB_LATE_S,
        Dashboard.JOBS,
    )


def _drill_found() -> Alert:
    """What a drill is followed by: the same expression as for real findings, with a name and a route of its own."""
    labels = ("drill", "kind", "status")
    found = series(families.DRILL_FINDINGS, status=(Status.VIOLATION, Status.LIVENESS))
    return _alert(
        "PubsubProberDrillFinding",
        f"{news(labels, found, DRILL_NEWS_S)} > 0",
        Severity.NONE,
        "A fire drill was found, as it should be.",
        "The drill {{ $labels.drill }} was found as {{ $labels.kind }}. No service is concerned.",
        labels,
    )


def _drill_late() -> Alert:
    """A restart sets the time back to 0, so the latest that was known within the limit counts."""
    known = largest(("drill",), f"max_over_time({series(families.DRILL_LAST_SUCCESS)}[{duration(DRILL_LATE_S)}])")
    long_since = exists(("drill",), f"{series(families.DRILL_LAST_SUCCESS)} offset {duration(DRILL_LATE_S)}")
    return _alert(
        "PubsubProberDrillOverdue",
        joined("and", f"time() - {known} > {number(DRILL_LATE_S)}", long_since),
        Severity.WARNING,
        "A fire drill is overdue.",
        f"The drill {{{{ $labels.drill }}}} has not succeeded for {duration(DRILL_LATE_S)}: nobody knows whether that fault would still "
        "page.",
        ("drill",),
        WINDOW_S,
    )


def _watchdog() -> Alert:
    return _alert(
        "PubsubProberWatchdog",
        "vector(1)",
        Severity.NONE,
        "Always fires, so that somebody notices when alerts stop coming.",
        "Route it to a receiver that complains when it does not hear from it. It needs no action.",
    )
