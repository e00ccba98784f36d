"""Rules derived from the objectives: windows, burn rates, budgets, and the alerts of the SRE workbook.

Per objective and target, `prober.slo` defines the calculation: error ratio E = bad / decided of a window, burn rate E / B, and an alert if
the burn rates of a long and a short window both exceed a factor that depends on the period. This module writes it as rules.

* Windows up to six hours are computed from the counters. Longer ones add up recorded hours: twelve overlapping ones in each hour, divided
  by twelve, which costs a three-hundredth of the samples and gives every event the same weight.
* An alert needs enough decided events in its long window that a single bad one cannot make it fire. Otherwise the first run of a newly
  started prober would decide everything.
* Without decided events there is no ratio (0 / 0 is not a number), so nothing fires: unknown is neither good nor bad.
* The numbers of bad and of decided events come from the metrics by the definitions of `prober.slo.indicators`; undecided events are in
  neither number. Both are recorded, and never as ratios, so that they can be added up over windows of uneven traffic.
* Budget spent = burn rate of the period x measured share of the period, as `prober.slo.budgets` defines it. The measured share is sampled:
  every `RULE_SAMPLE_S`, whether an event was decided within the last `STEP_S`.
* Time is counted in slices of a minute. A minute without data (no scrape, no prober, maintenance) is in neither number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prober.alerting.promql import (
    aggregate,
    binary,
    bound,
    bracketed,
    increase,
    on,
    outside_maintenance,
    percent,
    prom_duration,
    prom_number,
    selector,
    series,
)
from prober.alerting.rules import (
    INTERVAL_S,
    ON_TARGET,
    SHARE,
    AlertBasis,
    AlertingRule,
    Dashboard,
    Owner,
    RecordingRule,
    RuleGroup,
    Severity,
)
from prober.sinks.metrics import families
from prober.sinks.metrics.families import CHECKS, LATENCIES
from prober.sinks.metrics.family import PREFIX, Family
from prober.sinks.metrics.label_values import CheckResult, PublishOutcome
from prober.sinks.metrics.scopes import SUBSCRIPTION, TARGET
from prober.slo.budgets import RULE_SAMPLE_S, STEP_S
from prober.slo.indicators import MEANINGS, SLICE_S, Indicator
from prober.slo.objectives import HOUR_S, MINUTE_S, POLICY, BurnAlert, Objective, Urgency, count_to_see_budget, windows_s

BY: Final = (*TARGET, "slo", "indicator")
"""The labels of every recorded series about an objective."""
READ_OFF_MAX_S: Final = 6 * HOUR_S
EXHAUSTED_FOR_S: Final = 5 * MINUTE_S
COVERED_MIN: Final = 0.1
"""The measured share from which the alert about a spent budget can fire: three days of thirty, the longest window of a burn alert.

Until then the burn alerts cover all measured time.
"""

USUAL: Final = frozenset({Indicator.AFFINITY, Indicator.HEAD_OF_LINE_DELAY})
"""Indicators of behaviour that is usual for the service, but not guaranteed.

Their alerts page no engineer: a page becomes a ticket, a ticket becomes information.
"""
_SEVERITIES: Final = {Urgency.PAGE: Severity.CRITICAL, Urgency.TICKET: Severity.WARNING}
_SEVERITIES_OF_USUAL: Final = {Urgency.PAGE: Severity.WARNING, Urgency.TICKET: Severity.INFO}
_DASHBOARDS: Final = {
    Indicator.ORDER: Dashboard.ORDERING,
    Indicator.REDELIVERY: Dashboard.ORDERING,
    Indicator.AFFINITY: Dashboard.ORDERING,
    Indicator.COMPLETENESS: Dashboard.ORDERING,
    Indicator.PUBLISH_AVAILABILITY: Dashboard.PUBLISHER,
    Indicator.PUBLISH_LATENCY: Dashboard.LATENCY,
    Indicator.END_TO_END_LATENCY: Dashboard.LATENCY,
    Indicator.PULL_LATENCY: Dashboard.LATENCY,
    Indicator.PUSH_LATENCY: Dashboard.LATENCY,
    Indicator.REDELIVERY_LATENCY: Dashboard.LATENCY,
    Indicator.CONTROL_PLANE_LATENCY: Dashboard.CONTROL_PLANE,
    Indicator.CREATION_TO_RECEIPT_LATENCY: Dashboard.LATENCY,
    Indicator.OLDEST_UNACKED_MESSAGE_AGE: Dashboard.KEYS,
    Indicator.STALLED_KEYS: Dashboard.KEYS,
    Indicator.HEAD_OF_LINE_DELAY: Dashboard.LATENCY,
}


def bad_series(window_s: float) -> str:
    """Return the name of the recorded number of bad events in a window."""
    return f"slo:{PREFIX}_bad:increase{prom_duration(window_s)}"


def decided_series(window_s: float) -> str:
    """Return the name of the recorded number of good and bad events in a window."""
    return f"slo:{PREFIX}_decided:increase{prom_duration(window_s)}"


def burn_rate_series(window_s: float) -> str:
    """Return the name of the recorded burn rate of a window."""
    return f"slo:{PREFIX}_burn_rate:ratio{prom_duration(window_s)}"


MEASURED: Final = f"slo:{PREFIX}_measured:bool"
"""1 if an event was decided within the last step (`STEP_S`), else 0."""
COVERED: Final = f"slo:{PREFIX}_period_covered:ratio"
"""The measured share of the period."""
SPENT: Final = f"slo:{PREFIX}_budget_spent:ratio"
REMAINING: Final = f"slo:{PREFIX}_budget_remaining:ratio"
OBJECTIVE: Final = f"slo:{PREFIX}_objective:ratio"
PERIOD: Final = f"slo:{PREFIX}_period:seconds"


def objective_groups(objectives: Iterable[Objective]) -> tuple[RuleGroup, ...]:
    """Return one group for each objective, recordings first."""
    return tuple(RuleGroup(f"pubsub-prober-slo-{one.name}", INTERVAL_S, (*_recordings(one), *_alerts(one))) for one in objectives)


def _of(objective: Objective, name: str) -> str:
    return selector(name, BY, slo=objective.name)


def _recordings(objective: Objective) -> Iterator[RecordingRule]:
    labels = {"slo": objective.name, "indicator": str(objective.indicator)}
    for window_s in windows_s(objective):
        yield from _window(objective, window_s, labels)
    yield RecordingRule(MEASURED, f"{_of(objective, decided_series(STEP_S))} > bool 0", labels)
    yield RecordingRule(COVERED, _covered(objective), labels)
    yield RecordingRule(SPENT, f"{_of(objective, burn_rate_series(objective.window_s))} * {_of(objective, COVERED)}", labels)
    yield RecordingRule(REMAINING, f"1 - {_of(objective, SPENT)}", labels)
    yield RecordingRule(OBJECTIVE, f"vector({objective.target!r})", labels)
    yield RecordingRule(PERIOD, f"vector({prom_number(objective.window_s)})", labels)


def _window(objective: Objective, window_s: float, labels: dict[str, str]) -> Iterator[RecordingRule]:
    if window_s <= READ_OFF_MAX_S:
        numbers = sli_queries(objective, prom_duration(window_s))
        yield RecordingRule(bad_series(window_s), numbers.bad, labels)
        yield RecordingRule(decided_series(window_s), numbers.decided, labels)
    else:
        yield RecordingRule(bad_series(window_s), _added_up(_of(objective, bad_series(HOUR_S)), window_s), labels)
        yield RecordingRule(decided_series(window_s), _added_up(_of(objective, decided_series(HOUR_S)), window_s), labels)
    ratio = f"{_of(objective, bad_series(window_s))} / {_of(objective, decided_series(window_s))}"
    yield RecordingRule(burn_rate_series(window_s), f"{ratio} / {prom_number(objective.budget)}", labels)


def _added_up(recorded: str, window_s: float) -> str:
    return f"sum_over_time({recorded}[{prom_duration(window_s)}:{prom_duration(RULE_SAMPLE_S)}]) / {prom_number(HOUR_S / RULE_SAMPLE_S)}"


def _covered(objective: Objective) -> str:
    samples = f"sum_over_time({_of(objective, MEASURED)}[{prom_duration(objective.window_s)}:{prom_duration(RULE_SAMPLE_S)}])"
    return f"clamp_max({samples} / {prom_number(objective.window_s / RULE_SAMPLE_S)}, 1)"


def _alerts(objective: Objective) -> Iterator[AlertingRule]:
    for urgency in Urgency:
        alerts = [alert for alert in POLICY if alert.severity is urgency and alert.can_fire(objective)]
        if alerts:
            yield _burn(objective, urgency, alerts)
    yield _exhausted(objective)


def _burn(objective: Objective, urgency: Urgency, alerts: Sequence[BurnAlert]) -> AlertingRule:
    """Return one alert for all windows of an urgency: fast burning that slows down is one problem, not two."""
    severities = _SEVERITIES_OF_USUAL if objective.indicator in USUAL else _SEVERITIES
    expressions, reasons = zip(*(_windows(objective, alert) for alert in alerts), strict=True)
    return AlertingRule(
        "PubsubErrorBudgetBurn",
        expressions[0] if len(expressions) == 1 else binary("or", *map(bracketed, expressions)),
        severities[urgency],
        Owner.SERVICE,
        "The error budget of an objective is burning too fast.",
        f"{_sentence_of(objective)} On {ON_TARGET} the error budget burns "
        f'{{{{ $value | printf "%.1f" }}}} times as fast as the objective allows: {", or ".join(reasons)}.',
        _DASHBOARDS[objective.indicator],
        BY,
        labels=_labels(objective),
        page=f"slos/{objective.name}",
        value=f'{{{{ $value | printf "%.1f" }}}} times the allowed rate over {" or ".join(prom_duration(one.long_s) for one in alerts)}',
    )


def _windows(objective: Objective, alert: BurnAlert) -> tuple[str, str]:
    factor = prom_number(alert.factor(objective))
    faster = "faster than it allows" if factor == "1" else f"more than {factor} times as fast"
    long, short = prom_duration(alert.long_s), prom_duration(alert.short_s)
    expression = binary(
        "and",
        f"{_of(objective, burn_rate_series(alert.long_s))} > {factor}",
        f"{_of(objective, burn_rate_series(alert.short_s))} > {factor}",
        f"{_of(objective, decided_series(alert.long_s))} >= {alert.count_min(objective)}",
    )
    return (expression, f"over {long} and {short} {faster} ({percent(alert.budget_part)} of a period's budget in {long})")


def _exhausted(objective: Objective) -> AlertingRule:
    enough = f"{_of(objective, decided_series(objective.window_s))} >= {count_to_see_budget(objective)}"
    covered = f"{_of(objective, COVERED)} >= {prom_number(COVERED_MIN)}"
    return AlertingRule(
        "PubsubErrorBudgetExhausted",
        binary("and", f"{_of(objective, SPENT)} >= 1", enough, covered),
        Severity.WARNING,
        Owner.SERVICE,
        "The error budget of an objective is spent.",
        f"{_sentence_of(objective)} On {ON_TARGET} {{{{ $value | humanizePercentage }}}} of the error budget of "
        f"{prom_duration(objective.window_s)} is spent.",
        Dashboard.OVERVIEW,
        BY,
        for_s=EXHAUSTED_FOR_S,
        labels=_labels(objective),
        page=f"slos/{objective.name}",
        value=SHARE,
    )


def _labels(objective: Objective) -> dict[str, str]:
    return dict(objective.labels) | {"slo": objective.name, "evidence": str(AlertBasis.MEASUREMENT)}


def _sentence_of(objective: Objective) -> str:
    meaning = MEANINGS[objective.indicator]
    limit = f" than {prom_number(objective.threshold_s)} s" if objective.threshold_s is not None else ""
    share = f"{percent(objective.target)} over {prom_duration(objective.window_s)}"
    return f"Objective {objective.name}: {share}; a {meaning.unit} is bad if {meaning.bad}{limit}."


# --- how an indicator is counted ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SliQueries:
    """Two expressions over a window, with the labels of a target."""

    bad: str
    decided: str


def sli_queries(objective: Objective, window: str) -> SliQueries:
    """Return the queries of the bad and decided events of an objective within a window such as `5m`."""
    indicator = objective.indicator
    if indicator in CHECKS:
        return _checks(CHECKS[indicator], window)
    if indicator in LATENCIES:
        return _latencies(LATENCIES[indicator], window, objective.threshold_s or 0.0)
    if indicator is Indicator.PUBLISH_AVAILABILITY:
        return _publishes(window)
    if indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE:
        return _ages(window, objective.threshold_s or 0.0)
    return _stalled_keys(window)


def _checks(family: Family, window: str) -> SliQueries:
    bad, decided = series(family, result=CheckResult.BAD), series(family, result=(CheckResult.GOOD, CheckResult.BAD))
    return SliQueries(_grown(bad, window), _grown(decided, window))


def _publishes(window: str) -> SliQueries:
    """Return the queries of publishes. Unsent ones have a separate family, which probers of an older version do not have."""
    bad = series(families.PUBLISHES, outcome=tuple(one for one in PublishOutcome if one is not PublishOutcome.CONFIRMED))
    unsent = _grown(series(families.PUBLISHES_UNSENT), window)
    sent = (_grown(selected, window) for selected in (bad, series(families.PUBLISHES)))
    return SliQueries(*(binary("or", f"{one} + {unsent}", one) for one in sent))


def _latencies(family: Family, window: str, threshold_s: float) -> SliQueries:
    """Return the queries of durations; the threshold is the bound of a bucket (`metrics.store.bounds_of`).

    Messages that never arrived are in no bucket but in a separate family, which probers of an older version do not have.
    """
    good = _grown(series(family, "_bucket", le=bound(threshold_s)), window)
    decided = _grown(series(family, "_count"), window)
    late = f"clamp_min({decided} - {good}, 0)"
    if family.indicator not in families.NEVER_DONE:
        return SliQueries(late, decided)
    never = _grown(series(families.NEVER_DONE[family.indicator]), window)
    return SliQueries(*(binary("or", f"{one} + {never}", one) for one in (late, decided)))


def _grown(selected: str, window: str) -> str:
    """Return the growth of the counters of a target within a window, with resets taken into account."""
    return aggregate(increase(selected, window), TARGET)


def _ages(window: str, threshold_s: float) -> SliQueries:
    """Count the minutes with an old message; minutes that the prober may have caused itself are in neither number.

    A subscription without probed keys belongs to a probe instance that another prober has taken over.
    """
    doubts = series(families.UNDECIDED_DURATIONS, duration=Indicator.OLDEST_UNACKED_MESSAGE_AGE)
    doubtful = f"({_grown(doubts, prom_duration(2 * SLICE_S))} > 0)"
    given_up = f"({_highest(series(families.PROBED_KEYS))} == 0)"
    probed = binary("unless", _highest(outside_maintenance(series(families.OLDEST_UNACKED_AGE))), given_up)
    age = f"({binary(f'unless {on(TARGET)}', probed, doubtful)})"
    older = f"{age} > bool {prom_number(threshold_s)}"
    return SliQueries(_slices("sum", older, window), _slices("count", age, window))


def _stalled_keys(window: str) -> SliQueries:
    """Count the minutes of stalled keys among the probed ones; without a known number of stalled keys, none."""
    stalled = _highest(outside_maintenance(series(families.STALLED_KEYS)))
    known = binary("and", _highest(series(families.PROBED_KEYS)), stalled)
    return SliQueries(_slices("sum", stalled, window), _slices("sum", known, window))


def _highest(expression: str) -> str:
    return aggregate(expression, SUBSCRIPTION, "max")


def _slices(function: str, expression: str, window: str) -> str:
    """Return a function over the values of an expression minute by minute, summed over subscriptions."""
    return aggregate(f"{function}_over_time(({expression})[{window}:{prom_duration(SLICE_S)}])", TARGET)
