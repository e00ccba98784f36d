"""Two targets compared: every aspect of pairs of runs, how the candidate stands in all, and how much longer it takes to tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from prober.comparison.pairs import ComparedExperiment, PairOfRuns, measured_by
from prober.config.comparisons import ComparisonSettings
from prober.slo.comparison import (
    PAIRS_MIN,
    ComparedAspect,
    Standing,
    compare_aspect,
    confidence_of_each,
    overall,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate beside a baseline.

    pairs      of each experiment that both are to run, how many pairs of runs said something.
    left_out   pairs that a mistake of ours ended.
    took_s     over how many seconds they were gathered.
    """

    baseline: str
    candidate: str
    standing: Standing
    aspects: tuple[ComparedAspect, ...]
    pairs: Mapping[ComparedExperiment, int]
    left_out: int
    took_s: float

    @property
    def missing(self) -> tuple[ComparedExperiment, ...]:
        """Experiments without a pair: while there are any, the candidate is never called no worse."""
        return tuple(experiment for experiment, count in self.pairs.items() if not count)

    def of(self, standing: Standing) -> tuple[ComparedAspect, ...]:
        """The aspects in which the candidate stands so."""
        return tuple(each for each in self.aspects if each.standing is standing)

    @property
    def needed_s(self) -> float | None:
        """Over how many seconds, from the beginning, pairs must probably be gathered until it is told how the candidate stands.

        Where it looks worse in something it is enough to be certain of one of those, else of everything. None if it is told or nobody
        knows; infinity if it is no use to wait. Experiments that are `missing` take longer than that.
        """
        if self.standing is not Standing.UNKNOWN:
            return None
        open_ones = [each for each in self.of(Standing.UNKNOWN) if each.pairs and each.pairs_needed]
        looks_worse = [_factor(each) for each in open_ones if each.difference is not None and each.difference.value > each.margin]
        factor = min(looks_worse, default=None) or max(map(_factor, open_ones), default=None)
        return None if factor is None else self.took_s * factor


def _factor(aspect: ComparedAspect) -> float:
    """How many times as many pairs would tell."""
    return (aspect.pairs_needed or 0.0) / aspect.pairs


def compare_pairs(
    settings: ComparisonSettings, pairs: Sequence[PairOfRuns], wanted: Sequence[ComparedExperiment], took_s: float
) -> Comparison:
    """Compares two targets in every aspect that any of the pairs measured.

    `wanted`: the experiments that both are to run, each of which needs a pair before anything is called no worse.
    """
    margins = settings.margins.by_aspect
    measured = measured_by(pairs)
    confidence = confidence_of_each(len(measured))
    aspects = tuple(compare_aspect(each, margins[each.aspect], confidence) for each in measured)
    counted = Counter(pair.experiment for pair in pairs if not pair.is_ours)
    told = {experiment: counted[experiment] for experiment in wanted}
    return Comparison(
        settings.baseline,
        settings.candidate,
        overall([each.standing for each in aspects], complete=all(told.values())),
        aspects,
        told,
        sum(pair.is_ours for pair in pairs),
        took_s,
    )


def worst_first(aspects: Sequence[ComparedAspect]) -> list[ComparedAspect]:
    """For readers: what is worse, then what nobody can tell, then the rest; each in their order."""
    return sorted(aspects, key=lambda each: (Standing.WORSE, Standing.UNKNOWN, Standing.NO_WORSE).index(each.standing))


def why_unknown(aspect: ComparedAspect) -> str:
    """Why nobody can tell of an aspect, in words without a full stop."""
    if aspect.pairs < PAIRS_MIN:
        return f"{aspect.pairs} of at least {PAIRS_MIN} pairs of runs"
    if aspect.pairs_needed is None:
        return f"in {aspect.one_sided} of {aspect.pairs + aspect.one_sided} pairs only one of the two had something to measure"
    if isfinite(aspect.pairs_needed):
        return f"{aspect.pairs} pairs of runs leave it open, about {aspect.pairs_needed:.0f} would tell"
    return "the difference is too close to the margin to be told by waiting"
