"""From when on a panel turns red: taken from the objectives, never written down twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

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
NO_JUDGEMENT: Final[Steps] = ((None, "blue"),)
ALL_OR_LESS: Final[Steps] = ((None, BAD), (0.9, WARNING), (0.99, GOOD))
BUDGET_LEFT: Final[Steps] = ((None, BAD), (0.0, WARNING), (0.25, GOOD))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the objectives allow. Of several about one indicator the strictest counts."""

    objectives: tuple[Objective, ...]

    @classmethod
    def of(cls, objectives: Iterable[Objective]) -> Thresholds:
        """Those of a configuration."""
        return cls(tuple(objectives))

    def bad_share(self, indicator: Indicator) -> Steps:
        """Red where more than the error budget is bad; without an objective nothing is judged."""
        budgets = [one.budget for one in self.objectives if one.indicator is indicator]
        return ((None, GOOD), (min(budgets), BAD)) if budgets else NO_JUDGEMENT

    def good_share(self, indicator: Indicator) -> Steps:
        """The other way round: red below the objective."""
        targets = [one.target for one in self.objectives if one.indicator is indicator]
        return ((None, BAD), (max(targets), GOOD)) if targets else NO_JUDGEMENT

    def duration(self, indicator: Indicator) -> Steps:
        """Red from the objective's threshold on, in seconds."""
        threshold_s = self.threshold_s(indicator)
        return ((None, GOOD), (threshold_s, BAD)) if threshold_s is not None else NO_JUDGEMENT

    def threshold_s(self, indicator: Indicator) -> float | None:
        """The threshold of the strictest objective, None without one."""
        thresholds = [one.threshold_s for one in self.objectives if one.indicator is indicator and one.threshold_s is not None]
        return min(thresholds, default=None)

    def burn(self) -> Steps:
        """Orange where a budget does not last its period, red from the burn rate on that pages somebody."""
        pages = [alert.factor(one) for alert in POLICY if alert.severity is Urgency.PAGE for one in self.objectives]
        return ((None, GOOD), (1.0, WARNING), *([(max(pages), BAD)] if pages else []))
