"""How fast the budget of an objective was spent lately, for the pages and for programs alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prober.sinks.status.slices import Series, definition_of
from prober.slo.budgets import SloSnapshot, exhaustion_s
from prober.slo.objectives import SliCounts


@dataclass(frozen=True, slots=True)
class CountedWindow:
    """The counts of an objective on a target in the last `window_s` seconds; None where nothing was decided."""

    window_s: float
    total: SliCounts
    burn_rate: float | None
    exhausted_in_s: float | None


def counted_windows(slo: SloSnapshot, counted: Mapping[float, Mapping[Series, SliCounts]]) -> Iterator[CountedWindow]:
    """The windows of an objective on a target, by what was `counted` in each of them."""
    objective = slo.objective
    series = Series(slo.target, objective.name, definition_of(objective))
    for window_s, counts in counted.items():
        total = counts.get(series, SliCounts())
        rate = objective.burn_rate(total)
        yield CountedWindow(window_s, total, rate, exhaustion_s(objective, slo.budget_left, rate))
