"""Error budgets: the share that is spent, the time until it is exhausted, and the state of the burn-rate alerts.

This is the only definition. The recorded rules (`prober.alerting.objectives`), the status store, the API, its pages and the job
`slo-burn` follow it:

    spent     = burn rate of the period's counts x measured share of the period
    remaining = 1 - spent
    exhausted = remaining x period / burn rate, in seconds of measuring

A budget belongs to a whole period. Time that was not measured spends nothing. The measured share is the share of the period's clock hours
with a decided event, at most 1. Two hours count in part: the hour in which counting started, and the current one. An hour is the step,
since a probe that runs once an hour measures all the time. So the share is too large by less than two hours for each stretch of measuring.

Example: 99.99 % over 30 days, and 36 of 2,000 messages were bad in the first ten minutes. The burn rate is 0.018 / 0.0001 = 180. The
measured share is 10 / 43,200 minutes. So 180 x 10 / 43,200 = 4.2 % of the budget is spent, and 95.8 % remains. At that rate the
budget is exhausted in 0.958 x 30 d / 180 = 3.8 hours.

Prometheus cannot clip an hour. It samples every five minutes (`RULE_SAMPLE_S`) whether an event was decided in the hour before. Its share
differs by at most an hour, and by a sample, for each stretch of measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple, Self

from prober.core.verdict import Verdict
from prober.slo.confidence import ProportionBounds
from prober.slo.objectives import HOUR_S, MINUTE_S, POLICY, AlertState, Objective, SliCounts, Urgency

STEP_S: Final = HOUR_S
"""The step in which measured time is counted."""
RULE_SAMPLE_S: Final = 5 * MINUTE_S
"""The interval at which the recorded rules sample a recorded hour, in seconds."""


class MeasuredHours(NamedTuple):
    """The clock hours with a decided event: their number, and the start of the first and the last of them."""

    number: int = 0
    first: float = 0.0
    last: float = 0.0

    @classmethod
    def of(cls, hours: Iterable[float]) -> Self:
        """Return the hours that started at these distinct times."""
        begins = sorted(hours)
        return cls(len(begins), begins[0], begins[-1]) if begins else cls()

    def including(self, at: float) -> MeasuredHours:
        """Return these hours and the hour of `at`. Hours are added in order."""
        hour = at // STEP_S * STEP_S
        if not self.number:
            return MeasuredHours(1, hour, hour)
        return MeasuredHours(self.number + 1, self.first, hour) if hour > self.last else self

    def share(self, period_s: float, since: float, until: float) -> float:
        """Return the measured share of a period that ends at `until`; each hour overlaps `since` to `until`. At least a minute."""
        if not self.number:
            return 0.0
        outside_s = max(0.0, since - self.first) + max(0.0, self.last + STEP_S - until)
        return min(1.0, max(MINUTE_S, self.number * STEP_S - outside_s) / period_s)


def budget_left(objective: Objective, period: SliCounts, measured: float) -> float | None:
    """Return the remaining share of the period's budget: 1 untouched, 0 spent, below 0 overspent; None if nothing was decided.

    measured    the measured share of the period (`MeasuredHours.share`).
    """
    rate = objective.burn_rate(period)
    return None if rate is None else 1.0 - rate * measured


def exhaustion_s(objective: Objective, remaining: float | None, burn_rate: float | None) -> float | None:
    """Return seconds of measuring at this burn rate until the budget is spent: 0 if it is, `inf` at a burn rate of 0, None: unknown."""
    if remaining is None or burn_rate is None:
        return None
    if remaining <= 0.0:
        return 0.0
    return remaining * objective.window_s / burn_rate if burn_rate > 0.0 else inf


@dataclass(frozen=True, slots=True)
class BurnState:
    """The burn rate of an error budget in the windows of one alert.

    window_s    the alert's long window.
    burn_rate   in that window: 1 spends the budget in exactly its period; None: nothing was decided there.
    factor      the burn rate above which the alert fires, if its short window exceeds it too and contains enough events (`state`).
    """

    severity: Urgency
    window_s: float
    burn_rate: float | None
    factor: float
    state: AlertState


@dataclass(frozen=True, slots=True)
class SloSnapshot:
    """The state of an objective on one target, by the counts since `counted_since`.

    total         good, bad and undecided events.
    error_ratio   the bad share of the decided events; None: nothing was decided.
    bounds        the bounds of the true ratio with 95 % confidence (Clopper-Pearson), for any outcome of the undecided events.
    verdict       PASS if the bounds are within the error budget, FAIL if they are beyond it, else UNKNOWN.
    measured      the measured share of the period.
    budget_left   the share of the period's error budget that remains: 1 untouched, below 0 overspent; None: nothing was decided.
    counted_since the start of the objective's period, or of counting if that is later; to a minute, if probers restarted.
    burn          per alert of the policy, the shortest window first; empty without counts by time.
    """

    target: str
    objective: Objective
    total: SliCounts
    error_ratio: float | None
    bounds: ProportionBounds
    verdict: Verdict
    measured: float
    budget_left: float | None
    counted_since: float
    burn: tuple[BurnState, ...] = ()


def slo_of(
    target: str,
    objective: Objective,
    total: SliCounts,
    counted_since: float,
    measured: float,
    burn: tuple[BurnState, ...] = (),
) -> SloSnapshot:
    """Return the state of an objective on a target; UNKNOWN without counts, or if they prove nothing with 95 % confidence."""
    bounds = _bounds(total)
    verdict = Verdict.UNKNOWN
    if bounds.high <= objective.budget:
        verdict = Verdict.PASS
    elif bounds.low > objective.budget:
        verdict = Verdict.FAIL
    left = budget_left(objective, total, measured)
    return SloSnapshot(target, objective, total, total.error_ratio, bounds, verdict, measured, left, counted_since, burn)


def burn_of(objective: Objective, counted: Callable[[float], SliCounts]) -> tuple[BurnState, ...]:
    """Return the burn rate of the budget for each alert of the policy; `counted` returns the counts of a window in seconds."""
    burn = []
    for alert in POLICY:
        long = counted(alert.long_s)
        state = alert.state(objective, long, counted(alert.short_s))
        burn.append(BurnState(alert.severity, alert.long_s, objective.burn_rate(long), alert.factor(objective), state))
    return tuple(burn)


@lru_cache(maxsize=1024)
def _bounds(total: SliCounts) -> ProportionBounds:
    """Return the bounds of the true error ratio, for any outcome of the undecided events.

    Cached, since the bounds of many bad events take milliseconds, and most totals are read again before they change.
    """
    best, worst = SliCounts(total.good + total.undecided, total.bad), SliCounts(total.good, total.bad + total.undecided)
    return ProportionBounds(best.error_ratio_confidence().low, worst.error_ratio_confidence().high)
