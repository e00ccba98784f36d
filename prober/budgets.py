"""How an objective stands by what was counted: what is proven, what is left of the budget, how fast it is being spent."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from prober.core.proportions import Bounds
from prober.core.slo import POLICY, Objective, Tally
from prober.core.verdict import Verdict
from prober.snapshot import Burn, SloSnapshot


def slo_of(target: str, objective: Objective, total: Tally, counted_since: float, burn: tuple[Burn, ...] = ()) -> SloSnapshot:
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


def burn_of(objective: Objective, counted: Callable[[float], Tally]) -> tuple[Burn, ...]:
    """How fast the budget is being spent, as each alert of the policy looks at it; `counted` tells the counts of a window in seconds."""
    burn = []
    for alert in POLICY:
        long = counted(alert.long_s)
        state = alert.state(objective, long, counted(alert.short_s))
        burn.append(Burn(alert.severity, alert.long_s, objective.burn_rate(long), alert.factor(objective), state))
    return tuple(burn)


@lru_cache(maxsize=1024)
def _bounds(total: Tally) -> Bounds:
    """Between what the true error ratio lies, whatever becomes of the undecided.

    Remembered, since the bounds of many bad things take milliseconds, and most totals are asked for again before they change.
    """
    best, worst = Tally(total.good + total.undecided, total.bad), Tally(total.good, total.bad + total.undecided)
    return Bounds(best.error_ratio_confidence().low, worst.error_ratio_confidence().high)
