"""What comparisons of two targets tell to the metrics."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import nan
from typing import Final, NamedTuple

from prober.sinks.metrics import families
from prober.sinks.metrics.store import MetricStore
from prober.slo.comparison import ASPECTS, ComparedAspect, Standing, Statistic


class Bound(StrEnum):
    """What is told of a difference: what it is probably, between what it lies, and how much is allowed."""

    ESTIMATE = "estimate"
    LOW = "low"
    HIGH = "high"
    MARGIN = "margin"


class ComparedTargets(NamedTuple):
    """A baseline and a candidate, by name."""

    baseline: str
    candidate: str


class ComparisonMetrics:
    """The metrics of comparisons. May be told in any thread."""

    def __init__(self, store: MetricStore) -> None:
        self._store: Final = store
        self._known: frozenset[ComparedTargets] = frozenset()

    def follow(self, compared: Iterable[ComparedTargets]) -> None:
        """These are compared from now on. Of what is new nothing is known yet; the series of others end."""
        before, self._known = self._known, frozenset(compared)
        for gone in before - self._known:
            self._store.forget(**gone._asdict())
        for new in self._known - before:
            self.unknown(new)

    def told(self, targets: ComparedTargets, standing: Standing, aspects: Iterable[ComparedAspect]) -> None:
        """How the candidate stands, and in each aspect. Of aspects that are not told nothing is known."""
        if targets not in self._known:  # it was compared no more when this was found
            return
        for each in Standing:
            self._store.gauge(families.COMPARISON_STANDING, *targets, each.replace(" ", "_")).set(each is standing)
        found = {one.aspect: one for one in aspects}
        for aspect in ASPECTS:
            share = aspect.statistic is Statistic.SHARE
            family = families.COMPARISON_RATIO if share else families.COMPARISON_SECONDS
            for bound, value in _bounds(found.get(aspect)).items():
                self._store.gauge(family, *targets, aspect.name, bound).set(value)

    def unknown(self, targets: ComparedTargets) -> None:
        """Nobody can tell anything, since the runs cannot be read."""
        self.told(targets, Standing.UNKNOWN, ())


def _bounds(found: ComparedAspect | None) -> dict[Bound, float]:
    if found is None or found.difference is None:
        return {**dict.fromkeys(Bound, nan), **({} if found is None else {Bound.MARGIN: found.margin})}
    value, low, high = found.difference
    return {Bound.ESTIMATE: value, Bound.LOW: low, Bound.HIGH: high, Bound.MARGIN: found.margin}
