"""Counting for the objectives of one target what no checker judges: durations against their thresholds, publishes, slices of time."""

from __future__ import annotations

from collections.abc import Iterable

from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective, SliCounts


class SloCounters:
    """Good, bad and undecided things since the start, by objective."""

    def __init__(self, objectives: Iterable[Objective]) -> None:
        self._by_indicator: dict[Indicator, list[Objective]] = {}
        for objective in objectives:
            self._by_indicator.setdefault(objective.indicator, []).append(objective)
        self._counts: dict[str, list[int]] = {}

    def took(self, indicator: Indicator, duration_s: float) -> None:
        """Something took so long, or is so old: bad for each objective whose threshold is shorter."""
        for objective in self._by_indicator.get(indicator, ()):
            late = objective.is_late(duration_s)
            self._add(objective.name, int(not late), int(late), 0)

    def ended(self, indicator: Indicator, *, good: int = 0, bad: int = 0, undecided: int = 0) -> None:
        """So many things ended good or bad, or cannot be decided any more."""
        for objective in self._by_indicator.get(indicator, ()):
            self._add(objective.name, good, bad, undecided)

    def _add(self, name: str, *numbers: int) -> None:
        counts = self._counts.setdefault(name, [0, 0, 0])
        for place, number in enumerate(numbers):
            counts[place] += number

    @property
    def totals(self) -> dict[str, SliCounts]:
        """The counts of every objective of which anything was counted, by its name."""
        return {name: SliCounts(*counts) for name, counts in self._counts.items()}
