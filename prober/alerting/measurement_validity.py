"""Alerts about measurements that mean little: too few runs, runs without a verdict, a slow prober, a wrong clock, rules that fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from prober.alerting.objectives import OBJECTIVE, decided_series
from prober.alerting.promql import (
    PROCESS,
    RUN_BY,
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
    series,
    sum_by,
)
from prober.alerting.rules import (
    AT,
    COUNT,
    DURATION,
    ON_TARGET,
    PROBE,
    SHARE,
    SILENT_FOR_S,
    TROUBLE_FOR_S,
    WINDOW_S,
    AlertingRule,
    Severity,
    Summary,
    either,
    prober_alert,
    subject_of,
    value_of,
)
from prober.alerting.service import HELD
from prober.core.verdict import Verdict
from prober.sinks.metrics import families
from prober.sinks.metrics.families import TARGET
from prober.sinks.metrics.label_values import SkipReason
from prober.slo.indicators import MEASURED_BY, Indicator
from prober.slo.objectives import MINUTE_S

COVERAGE_WINDOW_S: Final = 30 * MINUTE_S
COVERAGE_MIN: Final = 0.9
COVERAGE_FOR_S: Final = 5 * MINUTE_S
UNKNOWN_SHARE_MAX: Final = 0.5
RUNS_MIN: Final = 3
"""So many runs must be missing or undecided: a lost one is no news."""
_LATENCIES: Final = {
    Indicator.PUBLISH_LATENCY: families.PUBLISH_LATENCY,
    Indicator.END_TO_END_LATENCY: families.END_TO_END_LATENCY,
}
CLOCK_DIFFERENCE_MAX_S: Final = 30.0
"""More than a scrape takes."""
LAG_MAX_S: Final = 0.25
LAG_QUANTILE: Final = 0.9
LAG_WINDOW_S: Final = 5 * MINUTE_S
LAG_FOR_S: Final = MINUTE_S
"""It is said sooner than any objective about latencies can page."""
DOUBTFUL_SHARE_MAX: Final = 0.05
DOUBTFUL_MIN: Final = 10


def validity_rules() -> tuple[AlertingRule, ...]:
    """All of them."""
    return (_coverage(), _undecided(), _blind(), _lagging(), _doubtful(), _clock(), _recordings_missing(), _rules_failing())


def _coverage() -> AlertingRule:
    window = prom_duration(COVERAGE_WINDOW_S)
    ended = increase_by(RUN_BY, series(families.PROBE_RUNS), window)
    maintained = increase_by(RUN_BY, series(families.SCHEDULER_SKIPS, reason=SkipReason.MAINTENANCE), window)
    expected = f"({increase_by(RUN_BY, series(families.PROBE_RUNS_EXPECTED), window)} - {maintained})"
    return prober_alert(
        "PubsubProberCoverageLow",
        binary("and", f"{ended} / {expected} < {prom_number(COVERAGE_MIN)}", f"{expected} - {ended} >= {RUNS_MIN}"),
        Severity.WARNING,
        Summary("Fewer runs end than the schedule asks for.", SHARE),
        f"{AT} ended {SHARE} of the runs of {PROBE} at {ON_TARGET} that were due in the last {window}, less than {percent(COVERAGE_MIN)}. "
        "Its measurements there mean little.",
        RUN_BY,
        COVERAGE_FOR_S,
    )


def _undecided() -> AlertingRule:
    window = prom_duration(COVERAGE_WINDOW_S)
    unknown = increase_by(RUN_BY, series(families.PROBE_RUNS, verdict="unknown"), window)
    ended = increase_by(RUN_BY, series(families.PROBE_RUNS), window)
    alert = prober_alert(
        "PubsubProberVerdictsUnknown",
        binary("and", f"{unknown} / {ended} > {prom_number(UNKNOWN_SHARE_MAX)}", f"{unknown} >= {RUNS_MIN}"),
        Severity.WARNING,
        Summary("Most runs of a probe end without a verdict.", SHARE),
        f"{SHARE} of the runs of {PROBE} by prober {{{{ $labels.instance }}}} at {ON_TARGET} in the last {window} ended UNKNOWN: "
        "the target or the network to it does not answer, or the prober is paused.",
        RUN_BY,
        COVERAGE_FOR_S,
    )
    return replace(alert, page=f"runs?verdict={Verdict.UNKNOWN}&target={value_of('target')}&probe={value_of('probe')}")


def _blind() -> AlertingRule:
    """Every run of a target is UNKNOWN: any outage there stays unseen. It pages as runs that do not end do.

    Not if the target cannot be reached, nor until the window is past that: `PubsubTargetUnreachable` has paged. Nor if no prober answers.
    """

    def ended(*verdicts: Verdict) -> str:
        selected = series(families.PROBE_RUNS, verdict=[verdict.lower() for verdict in verdicts])
        return sum_by(TARGET, outside_maintenance(f"increase({selected}[{prom_duration(WINDOW_S)}])", WINDOW_S))

    known = f"({ended(Verdict.PASS, Verdict.FAIL)} > 0)"
    unreachable = f"max_over_time({HELD}[{prom_duration(WINDOW_S)}])"
    some = binary(f"unless {on(TARGET)}", f"{ended(Verdict.UNKNOWN)} >= {RUNS_MIN}", known, unreachable)
    alert = prober_alert(
        "PubsubTargetBlind",
        binary("and", some, group_by(TARGET, series(families.PROBE_RUNS))),
        Severity.CRITICAL,
        Summary("Every run at a target ends without a verdict.", f"UNKNOWN runs: {COUNT}"),
        f"All {COUNT} runs that ended at {ON_TARGET} in the last {prom_duration(WINDOW_S)} were UNKNOWN: an outage would stay unseen. "
        "The reason of the runs says what prevents a verdict.",
        TARGET,
        SILENT_FOR_S,
    )
    return replace(alert, page=f"runs?verdict={Verdict.UNKNOWN}&target={value_of('target')}")


def _lagging() -> AlertingRule:
    """Carries the targets at which the process ends runs, as what is measured there is what suffers."""
    rates = sum_by((*PROCESS, "le"), f"rate({series(families.LOOP_LAG, '_bucket')}[{prom_duration(LAG_WINDOW_S)}])")
    lag = f"(histogram_quantile({prom_number(LAG_QUANTILE)}, {rates}) > {prom_number(LAG_MAX_S)})"
    ended = f"increase({series(families.PROBE_RUNS)}[{prom_duration(TROUBLE_FOR_S)}]) > 0"
    targets = group_by((*PROCESS, *TARGET), ended)
    return prober_alert(
        "PubsubProberLagging",
        binary(f"* {on(PROCESS)} group_right ()", lag, targets),
        Severity.WARNING,
        Summary("A prober is too slow to measure latencies.", DURATION),
        f"{AT} wakes up {{{{ $value | humanizeDuration }}}} late in one of ten cases. What it measures as late at {ON_TARGET}, perhaps "
        "only because of that delay, is undecided.",
        (*PROCESS, *TARGET),
        LAG_FOR_S,
    )


def _doubtful() -> AlertingRule:
    """Also where the process lags too seldom to be called slow."""
    window = prom_duration(COVERAGE_WINDOW_S)
    doubtful = increase_by(TARGET, series(families.UNDECIDED_DURATIONS, duration=_LATENCIES), window)
    measured = (increase_by(TARGET, series(family, "_count"), window) for family in _LATENCIES.values())
    share = f"{doubtful} / ({' + '.join((doubtful, *measured))}) > {prom_number(DOUBTFUL_SHARE_MAX)}"
    return prober_alert(
        "PubsubProberLatenciesUndecided",
        binary("and", share, f"{doubtful} >= {DOUBTFUL_MIN}"),
        Severity.WARNING,
        Summary("Many latencies are undecided, because the prober was too slow to measure them.", SHARE),
        f"{{{{ $value | humanizePercentage }}}} of the latencies at {ON_TARGET} in the last {window} were late, perhaps only because the "
        "prober's event loop lagged. Objectives about latencies do not count them.",
        TARGET,
        COVERAGE_FOR_S,
    )


def _clock() -> AlertingRule:
    """A negative duration, or a clock that differs from Prometheus's.

    The timestamp of a sample is Prometheus's time of the scrape, and the value of this one the prober's.
    """
    labels = (*PROCESS, *TARGET, "duration")
    negative = f"{news(labels, series(families.NEGATIVE_DURATIONS), WINDOW_S)} > 0"
    clock = series(families.CLOCK)
    difference = f"{max_by(PROCESS, f'abs(timestamp({clock}) - {clock})')} > {prom_number(CLOCK_DIFFERENCE_MAX_S)}"
    return prober_alert(
        "PubsubProberClockWrong",
        binary("or", negative, difference),
        Severity.WARNING,
        Summary(
            "The clock of a prober is wrong.",
            either("duration", f"negative durations: {COUNT}", f"differs by {DURATION}"),
            subject=either("duration", subject_of(labels), subject_of(PROCESS)),
        ),
        either(
            "duration",
            f"{{{{ $labels.duration }}}} at {ON_TARGET} was negative within the last {prom_duration(WINDOW_S)}. Latencies that prober "
            "{{ $labels.instance }} measures cannot be relied on.",
            f"The clock of prober {{{{ $labels.instance }}}} differs from Prometheus's by {DURATION}. Its timestamps cannot be relied on.",
        ),
        PROCESS,
    )


def _recordings_missing() -> AlertingRule:
    """Not for what a single probe measures: a configuration without that probe has no such numbers."""
    numbers = decided_series(5 * MINUTE_S)
    fed_by_all = f'{OBJECTIVE}{{indicator!~"{"|".join(MEASURED_BY)}"}}'
    probing = f"group ({series(families.PROBE_RUNS)})"
    some = binary("unless", group_by(("slo",), fed_by_all), group_by(("slo",), numbers))
    return prober_alert(
        "PubsubProberRecordingsMissing",
        binary("or", binary("and on ()", bracketed(some), probing), f"({probing} unless on () group ({numbers}))"),
        Severity.WARNING,
        Summary("Objectives are not evaluated although probes run.", subject=either("slo", subject_of(("slo",)), "all objectives")),
        "There are probes, but no numbers for{{ with $labels.slo }} the objective {{ . }}{{ else }} any objective{{ end }}: burn alerts "
        "cannot fire.",
        ("slo",),
        TROUBLE_FOR_S,
    )


def _rules_failing() -> AlertingRule:
    """Prometheus's own metric, if it scrapes itself; its label is `FILE;GROUP`."""
    failures = 'prometheus_rule_evaluation_failures_total{rule_group=~".*;pubsub-prober-.*"}'
    return prober_alert(
        "PubsubProberRulesFailing",
        f"{increase_by(('rule_group',), failures, prom_duration(WINDOW_S))} > 0",
        Severity.WARNING,
        Summary("Prometheus cannot evaluate rules of the prober.", f"failures: {COUNT}"),
        f"Rules of {{{{ $labels.rule_group }}}} failed within the last {prom_duration(WINDOW_S)}: their alerts cannot fire.",
        ("rule_group",),
        SILENT_FOR_S,
    )
