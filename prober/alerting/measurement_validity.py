"""Alerts about what is seen meaning little: too few runs, runs without a verdict, a slow prober, a wrong clock, rules that fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from prober.alerting.objectives import OBJECTIVE, decided_series
from prober.alerting.promql import (
    PROBE,
    PROCESS,
    binary,
    bracketed,
    group_by,
    increase_by,
    news,
    on,
    percent,
    prom_duration,
    prom_number,
    series,
    sum_by,
)
from prober.alerting.rules import (
    AT,
    ON_TARGET,
    SILENT_FOR_S,
    TROUBLE_FOR_S,
    WINDOW_S,
    AlertingRule,
    Severity,
    prober_alert,
    value_of,
)
from prober.core.verdict import Verdict
from prober.sinks.metrics import families
from prober.sinks.metrics.families import TARGET
from prober.sinks.metrics.label_values import SkipReason
from prober.slo.objectives import MINUTE_S

COVERAGE_WINDOW_S: Final = 30 * MINUTE_S
COVERAGE_MIN: Final = 0.9
COVERAGE_FOR_S: Final = 5 * MINUTE_S
UNKNOWN_SHARE_MAX: Final = 0.5
RUNS_MIN: Final = 3
"""So many runs must be missing or undecided: a lost one is no news."""
LAG_MAX_S: Final = 0.25
LAG_QUANTILE: Final = 0.9
LAG_WINDOW_S: Final = 5 * MINUTE_S
LAG_FOR_S: Final = MINUTE_S
"""It is said sooner than any objective about latencies can page."""
DOUBTFUL_SHARE_MAX: Final = 0.05
DOUBTFUL_MIN: Final = 10


def validity_rules() -> tuple[AlertingRule, ...]:
    """All of them."""
    return (_coverage(), _undecided(), _lagging(), _doubtful(), _clock(), _recordings_missing(), _rules_failing())


def _coverage() -> AlertingRule:
    window = prom_duration(COVERAGE_WINDOW_S)
    ended = increase_by(PROBE, series(families.PROBE_RUNS), window)
    maintained = increase_by(PROBE, series(families.SCHEDULER_SKIPS, reason=SkipReason.MAINTENANCE), window)
    expected = f"({increase_by(PROBE, series(families.PROBE_RUNS_EXPECTED), window)} - {maintained})"
    return prober_alert(
        "PubsubProberCoverageLow",
        binary("and", f"{ended} / {expected} < {prom_number(COVERAGE_MIN)}", f"{expected} - {ended} >= {RUNS_MIN}"),
        Severity.WARNING,
        "Fewer runs end than the schedule asks for.",
        f"Of the runs of {{{{ $labels.probe }}}} at {ON_TARGET} that were due in the last {window}, {{{{ $value | humanizePercentage }}}} "
        f"ended, less than {percent(COVERAGE_MIN)}. What is measured there means little.",
        PROBE,
        COVERAGE_FOR_S,
    )


def _undecided() -> AlertingRule:
    window = prom_duration(COVERAGE_WINDOW_S)
    unknown = increase_by(PROBE, series(families.PROBE_RUNS, verdict="unknown"), window)
    ended = increase_by(PROBE, series(families.PROBE_RUNS), window)
    alert = prober_alert(
        "PubsubProberVerdictsUnknown",
        binary("and", f"{unknown} / {ended} > {prom_number(UNKNOWN_SHARE_MAX)}", f"{unknown} >= {RUNS_MIN}"),
        Severity.WARNING,
        "Most runs of a probe end without a verdict.",
        f"{{{{ $value | humanizePercentage }}}} of the runs of {{{{ $labels.probe }}}} at {ON_TARGET} in the last {window} ended UNKNOWN: "
        "the target or the way to it does not answer, or the prober stands still.",
        PROBE,
        COVERAGE_FOR_S,
    )
    return replace(alert, page=f"runs?verdict={Verdict.UNKNOWN}&target={value_of('target')}&probe={value_of('probe')}")


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
        "A prober is too slow to measure latencies.",
        f"{AT} wakes up {{{{ $value | humanizeDuration }}}} late in one of ten cases. What it measures as late at {ON_TARGET}, perhaps "
        "only because of that delay, is undecided.",
        (*PROCESS, *TARGET),
        LAG_FOR_S,
    )


def _doubtful() -> AlertingRule:
    """Also where the process lags too seldom to be called slow."""
    window = prom_duration(COVERAGE_WINDOW_S)
    doubtful = increase_by(TARGET, series(families.UNDECIDED_DURATIONS), window)
    measured = (
        increase_by(TARGET, series(family, "_count"), window) for family in (families.PUBLISH_LATENCY, families.END_TO_END_LATENCY)
    )
    share = f"{doubtful} / ({' + '.join((doubtful, *measured))}) > {prom_number(DOUBTFUL_SHARE_MAX)}"
    return prober_alert(
        "PubsubProberLatenciesUndecided",
        binary("and", share, f"{doubtful} >= {DOUBTFUL_MIN}"),
        Severity.WARNING,
        "Many latencies are undecided, because the prober was too slow to measure them.",
        f"{{{{ $value | humanizePercentage }}}} of the latencies at {ON_TARGET} in the last {window} were late, perhaps only because the "
        "prober's event loop lagged. Objectives about latencies do not count them.",
        TARGET,
        COVERAGE_FOR_S,
    )


def _clock() -> AlertingRule:
    labels = (*TARGET, "duration")
    return prober_alert(
        "PubsubProberClockWrong",
        f"{news(labels, series(families.NEGATIVE_DURATIONS), WINDOW_S)} > 0",
        Severity.WARNING,
        "A duration came out negative: a clock is wrong.",
        f"{{{{ $labels.duration }}}} at {ON_TARGET} was negative within the last {prom_duration(WINDOW_S)}. Latencies from there cannot be "
        "relied on.",
        labels,
    )


def _recordings_missing() -> AlertingRule:
    numbers = decided_series(5 * MINUTE_S)
    probing = f"group ({series(families.PROBE_RUNS)})"
    some = binary("unless", group_by(("slo",), OBJECTIVE), group_by(("slo",), numbers))
    return prober_alert(
        "PubsubProberRecordingsMissing",
        binary("or", binary("and on ()", bracketed(some), probing), f"({probing} unless on () group ({numbers}))"),
        Severity.WARNING,
        "Objectives are not evaluated although probes run.",
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
        "Prometheus cannot evaluate rules of the prober.",
        f"Rules of {{{{ $labels.rule_group }}}} failed within the last {prom_duration(WINDOW_S)}: their alerts cannot fire.",
        ("rule_group",),
        SILENT_FOR_S,
    )
