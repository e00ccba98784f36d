"""Thresholds at which a panel turns red, all derived from the objectives and the alerts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from prober.alerting.findings import old_s
from prober.slo.indicators import Indicator
from prober.slo.objectives import POLICY, Objective, Urgency

GOOD: Final = "green"
WARNING: Final = "orange"
BAD: Final = "red"
UNKNOWN: Final = "#8e8e8e"

# A colour from a value on; None is from the lowest.
Steps = tuple[tuple[float | None, str], ...]

ANY_IS_BAD: Final[Steps] = ((None, GOOD), (1.0, BAD))
ANY_IS_UNKNOWN: Final[Steps] = ((None, GOOD), (1.0, UNKNOWN))
NO_VERDICT: Final[Steps] = ((None, "blue"),)
ALL_NEEDED: Final[Steps] = ((None, BAD), (1.0, GOOD))
BUDGET_LEFT: Final[Steps] = ((None, BAD), (0.0, GOOD))


def red_above(limit: float) -> Steps:
    """Return the steps for an alert about values above a limit."""
    return ((None, GOOD), (limit, BAD))


def red_below(limit: float) -> Steps:
    """Return the steps for an alert about values below a limit."""
    return ((None, BAD), (limit, GOOD))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits of the objectives. Of several objectives of one indicator the strictest counts."""

    objectives: tuple[Objective, ...]

    def bad_share(self, indicator: Indicator) -> Steps:
        """Return steps that turn red above the error budget; without an objective there is no verdict."""
        budgets = [one.budget for one in self.objectives if one.indicator is indicator]
        return red_above(min(budgets)) if budgets else NO_VERDICT

    def good_share(self, indicator: Indicator) -> Steps:
        """Return steps that turn red below the objective."""
        targets = [one.target for one in self.objectives if one.indicator is indicator]
        return red_below(max(targets)) if targets else NO_VERDICT

    def duration(self, indicator: Indicator) -> Steps:
        """Return steps that turn red at the objective's threshold, in seconds."""
        threshold_s = self.threshold_s(indicator)
        return red_above(threshold_s) if threshold_s is not None else NO_VERDICT

    def age(self) -> Steps:
        """Return steps that turn red at the age at which the alert about old messages fires."""
        return red_above(old_s(self.objectives))

    def threshold_s(self, indicator: Indicator) -> float | None:
        """Return the threshold of the strictest objective in seconds, None without an objective."""
        thresholds = [one.threshold_s for one in self.objectives if one.indicator is indicator and one.threshold_s is not None]
        return min(thresholds, default=None)

    def burn(self, window_s: float) -> Steps:
        """Return steps at the burn rate of a long window at which an objective's first alert can fire: red for a page, else orange."""
        fire = [
            (alert.factor(one), BAD if alert.severity is Urgency.PAGE else WARNING)
            for alert in POLICY
            for one in self.objectives
            if alert.long_s == window_s and alert.can_fire(one)
        ]
        return ((None, GOOD), min(fire)) if fire else NO_VERDICT
