"""Comparisons of two targets in the metrics."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Final, NamedTuple

from prober.sinks.metrics import families, scopes
from prober.sinks.metrics.label_values import Bound
from prober.sinks.metrics.store import MetricStore, Series
from prober.slo.comparison import ASPECTS, ComparedAspect, Standing, Statistic


class ComparedTargets(NamedTuple):
    """A baseline and a candidate, by name."""

    baseline: str
    candidate: str


class ComparisonMetrics:
    """Metrics of comparisons. Safe in any thread."""

    def __init__(self, store: MetricStore) -> None:
        self._store: Final = store
        self._known: dict[ComparedTargets, Series] = {}

    def follow(self, compared: Iterable[ComparedTargets]) -> None:
        """Replace the compared targets. New comparisons are unknown; the series of others end."""
        now = frozenset(compared)
        for gone in self._known.keys() - now:
            self._known.pop(gone).forget()
        for new in now - self._known.keys():
            self._known[new] = Series(self._store, scopes.COMPARED, new)
            self.unknown(new)

    def report(self, targets: ComparedTargets, standing: Standing, aspects: Iterable[ComparedAspect]) -> None:
        """Report the standing of the candidate, and each aspect. Missing aspects are unknown."""
        series = self._known.get(targets)
        if series is None:  # the comparison has ended meanwhile
            return
        series.choose(families.COMPARISON_STANDING, standing.replace(" ", "_"))
        found = {one.aspect: one for one in aspects}
        for aspect in ASPECTS:
            share = aspect.statistic is Statistic.SHARE
            family = families.COMPARISON_RATIO if share else families.COMPARISON_SECONDS
            for bound, value in _bounds(found.get(aspect)).items():
                self._store.gauge(family, *targets, aspect.name, bound).set(value)

    def unknown(self, targets: ComparedTargets) -> None:
        """Report all values as unknown, since the runs cannot be read."""
        self.report(targets, Standing.UNKNOWN, ())


def _bounds(found: ComparedAspect | None) -> dict[Bound, float]:
    if found is None or found.difference is None:
        return {**dict.fromkeys(Bound, nan), **({} if found is None else {Bound.MARGIN: found.margin})}
    value, low, high = found.difference
    return {Bound.ESTIMATE: value, Bound.LOW: low, Bound.HIGH: high, Bound.MARGIN: found.margin}
