"""How an objective stands by what was counted: what is proven, what is left of the budget, how fast it is being spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from prober.core.verdict import Verdict
from prober.slo.confidence import ProportionBounds
from prober.slo.objectives import POLICY, AlertState, Objective, SliCounts, Urgency


@dataclass(frozen=True, slots=True)
class BurnState:
    """How fast an error budget is being spent, as one alert looks at it.

    window_s    the alert's long window.
    burn_rate   in that window: 1 spends the budget in exactly its period; None: nothing was decided there.
    factor      the burn rate above which the alert fires, if its short window is above it too; that decides `state`.
    """

    severity: Urgency
    window_s: float
    burn_rate: float | None
    factor: float
    state: AlertState


@dataclass(frozen=True, slots=True)
class SloSnapshot:
    """How an objective stands on one target, by what was counted since `counted_since`.

    total         good, bad and undecided things.
    error_ratio   bad ones among the decided; None: nothing was decided.
    bounds        between what the true ratio lies with 95 % confidence (Clopper-Pearson), whatever becomes of the undecided.
    verdict       PASS if the bounds are within the error budget, FAIL if they are beyond it, UNKNOWN if they say neither.
    budget_left   share of the error budget of the things counted so far: 1 untouched, below 0 overspent; None: nothing was decided.
    counted_since the beginning of the objective's period, or when counting began if that is later; to five minutes, if probers restarted.
    burn          per alert of the policy, the quickest first; empty where there is no record by time.
    """

    target: str
    objective: Objective
    total: SliCounts
    error_ratio: float | None
    bounds: ProportionBounds
    verdict: Verdict
    budget_left: float | None
    counted_since: float
    burn: tuple[BurnState, ...] = ()


def slo_of(
    target: str, objective: Objective, total: SliCounts, counted_since: float, burn: tuple[BurnState, ...] = ()
) -> SloSnapshot:
    """How an objective stands on a target. Nothing counted is unknown, and so is what the count does not prove with 95 % confidence."""
    bounds = _bounds(total)
    verdict = Verdict.UNKNOWN
    if bounds.high <= objective.budget:
        verdict = Verdict.PASS
    elif bounds.low > objective.budget:
        verdict = Verdict.FAIL
    return SloSnapshot(
        target, objective, total, total.error_ratio, bounds, verdict, objective.remaining(total), counted_since, burn
    )


def burn_of(objective: Objective, counted: Callable[[float], SliCounts]) -> tuple[BurnState, ...]:
    """How fast the budget is being spent, as each alert of the policy looks at it; `counted` tells the counts of a window in seconds."""
    burn = []
    for alert in POLICY:
        long = counted(alert.long_s)
        state = alert.state(objective, long, counted(alert.short_s))
        burn.append(BurnState(alert.severity, alert.long_s, objective.burn_rate(long), alert.factor(objective), state))
    return tuple(burn)


@lru_cache(maxsize=1024)
def _bounds(total: SliCounts) -> ProportionBounds:
    """Between what the true error ratio lies, whatever becomes of the undecided.

    Remembered, since the bounds of many bad things take milliseconds, and most totals are asked for again before they change.
    """
    best, worst = SliCounts(total.good + total.undecided, total.bad), SliCounts(total.good, total.bad + total.undecided)
    return ProportionBounds(best.error_ratio_confidence().low, worst.error_ratio_confidence().high)
