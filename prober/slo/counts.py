"""Counting for the objectives of one target what no checker judges: durations against their thresholds, publishes, slices of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective, Tally


class Tallies:
    """Good and bad since the start, by objective. What an objective calls bad is decided here and nowhere else."""

    def __init__(self, objectives: Iterable[Objective]) -> None:
        self._by_indicator: dict[Indicator, list[Objective]] = {}
        for objective in objectives:
            self._by_indicator.setdefault(objective.indicator, []).append(objective)
        self._good: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()

    def took(self, indicator: Indicator, duration_s: float) -> None:
        """Something took so long, or is so old: bad for each objective whose threshold is shorter."""
        for objective in self._by_indicator.get(indicator, ()):
            late = objective.threshold_s is not None and duration_s > objective.threshold_s
            (self._bad if late else self._good)[objective.name] += 1

    def ended(self, indicator: Indicator, *, good: int = 0, bad: int = 0) -> None:
        """So many things ended good or bad."""
        for objective in self._by_indicator.get(indicator, ()):
            self._good[objective.name] += good
            self._bad[objective.name] += bad

    @property
    def totals(self) -> Mapping[str, Tally]:
        """The tally of every objective of which anything was counted."""
        return {name: Tally(self._good[name], self._bad[name]) for name in self._good.keys() | self._bad.keys()}
