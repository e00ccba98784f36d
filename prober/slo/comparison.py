"""Comparison of two services: is the candidate no worse than the baseline? Arithmetic only.

Both are probed side by side, so measurements are pairs of runs: the same probe, at the same time, on each. The comparison covers each
*aspect* of a service: the bad share for an indicator that counts events, the median and the 99th percentile of a run for one that
measures durations. The difference is the candidate's value less the baseline's; above 0 the candidate is worse.

*Three answers.* No two services are equal, so a *margin* states how much worse still counts as no worse. The candidate is no worse if the
whole interval of the difference lies at or below the margin, worse if it lies above, and else undecided (yet): this is a test of
non-inferiority, and of its opposite, with one interval.

*The interval of durations* is Student's t over the pairs. *The interval of shares* covers two intervals, since each fails where the other
does not: Student's t over the pairs allows for bad events that occur together in one run, but takes a count of 0 for a rate of 0; that of
Clopper and Pearson, made of one for each service (Bonferroni), allows for small counts, but assumes independent events.

*Undecided events* count twice: as if they were absent, and as if they were bad. The interval covers both, so it concludes nothing if one
service has more undecided events than the other. *Few pairs* conclude nothing, nor do pairs in which one of the two often had nothing
to measure.

*Many aspects* are compared together, of which one may differ at random. So each interval has a confidence at which all of them hold
together with `CONFIDENCE` (Bonferroni): 95 % for one aspect, 99.7 % each for seventeen. Equal services are reported as worse in less than
one of twenty comparisons, for any number of aspects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

from prober.slo.confidence import CONFIDENCE, Difference, interval, mean_difference
from prober.slo.indicators import DURATIONS, MEANINGS, Indicator
from prober.slo.objectives import SliCounts

PAIRS_MIN: Final = 5
"""Smallest number of pairs that conclude anything."""
ONE_SIDED_MAX: Final = 0.1
"""The share of pairs with a measurement of only one service above which an aspect concludes nothing."""
_GROWTH: Final = 1.1
_GROWTHS_MAX: Final = 48
"""Limit of the forecast of pairs: about 100 times as many."""


class Statistic(StrEnum):
    """The compared value of an indicator."""

    SHARE = "share"
    P50 = "p50"
    P99 = "p99"


class Aspect(NamedTuple):
    """An aspect in which two services are compared."""

    indicator: Indicator
    statistic: Statistic

    @property
    def name(self) -> str:
        """The name: `order`, `publish_latency_p99`."""
        return str(self.indicator) if self.statistic is Statistic.SHARE else f"{self.indicator}_{self.statistic}"


_COUNTED_APART: Final = frozenset({Indicator.STALLED_KEYS})  # no run counts it: messages of a stalled key are missing at the end
ASPECTS: Final = (
    *(Aspect(one, Statistic.SHARE) for one in MEANINGS if one not in DURATIONS and one not in _COUNTED_APART),
    *(Aspect(one, statistic) for one in DURATIONS for statistic in (Statistic.P50, Statistic.P99)),
)
"""All aspects, the shares first."""


class Standing(StrEnum):
    """The result of the candidate compared with the baseline."""

    NO_WORSE = "no worse"
    WORSE = "worse"
    UNKNOWN = "unknown"


CountsPair: TypeAlias = tuple[SliCounts, SliCounts]
"""The counts of a run of the baseline, and of its pair of the candidate."""
SecondsPair: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of an aspect in pairs of runs: counts of a share, else seconds. The baseline is first.

    one_sided   the number of further pairs in which only one of the two had a measurement.
    """

    aspect: Aspect
    counts: Sequence[CountsPair] = ()
    seconds: Sequence[SecondsPair] = ()
    one_sided: int = 0

    @property
    def pairs(self) -> int:
        """The number of pairs in which both services measured it."""
        return len(self.counts) + len(self.seconds)


@dataclass(frozen=True, slots=True)
class ComparedAspect:
    """The result of the pairs of an aspect.

    Shares are between 0 and 1, durations in seconds.

    baseline, candidate   the share of all pairs together, or the mean over pairs.
    difference            the candidate's value less the baseline's, with its interval; None: too few pairs.
    pairs                 the number of pairs. `pairs_needed` is a forecast of how many would decide: None if already decided, not
                          requested, or unknown; infinity if it were more than 100 times as many, or no number would.
    bad                   bad events of the baseline and of the candidate; 0 of durations.
    """

    aspect: Aspect
    standing: Standing
    margin: float
    baseline: float | None
    candidate: float | None
    difference: Difference | None
    pairs: int
    pairs_needed: float | None = None
    one_sided: int = 0
    bad: tuple[int, int] = (0, 0)


def compare_aspect(measured: Measured, margin: float, confidence: float = CONFIDENCE, *, forecast: bool = True) -> ComparedAspect:
    """Compare one aspect. `confidence` is that of its interval: `confidence_of_each` if there are several aspects.

    `forecast`: whether to compute the number of pairs needed, which takes some milliseconds.
    """
    difference = _difference(measured, confidence, 1.0)
    standing = _standing(measured, difference, margin)
    baseline, candidate = _levels(measured)
    return ComparedAspect(
        measured.aspect,
        standing,
        margin,
        baseline,
        candidate,
        difference,
        measured.pairs,
        _pairs_needed(measured, margin, confidence) if forecast and standing is Standing.UNKNOWN else None,
        measured.one_sided,
        (sum(one.bad for one, _ in measured.counts), sum(other.bad for _, other in measured.counts)),
    )


def confidence_of_each(aspects: int) -> float:
    """Return the confidence of each of several intervals (at least one) at which all hold together with `CONFIDENCE`."""
    return 1.0 - (1.0 - CONFIDENCE) / max(1, aspects)


def overall(standings: Sequence[Standing], *, complete: bool) -> Standing:
    """Return the overall result: worse if any aspect is worse, and no worse only if all are.

    `complete`: whether all requested aspects were compared.
    """
    if Standing.WORSE in standings:
        return Standing.WORSE
    known = complete and standings and Standing.UNKNOWN not in standings
    return Standing.NO_WORSE if known else Standing.UNKNOWN


# --- one aspect --------------------------------------------------------------------------------------------------------------


def _standing(measured: Measured, difference: Difference | None, margin: float) -> Standing:
    pairs = measured.pairs
    if difference is None or pairs < PAIRS_MIN or measured.one_sided > ONE_SIDED_MAX * (pairs + measured.one_sided):
        return Standing.UNKNOWN
    if difference.low > margin:
        return Standing.WORSE
    return Standing.NO_WORSE if difference.high <= margin else Standing.UNKNOWN


def _pairs_needed(measured: Measured, margin: float, confidence: float) -> float | None:
    """Return the number of pairs that would decide; None if that is unknown."""
    pairs = measured.pairs
    if pairs < 2 or measured.one_sided > ONE_SIDED_MAX * (pairs + measured.one_sided):
        return None if pairs >= PAIRS_MIN else PAIRS_MIN

    def tell(exponent: int) -> bool:
        found = _difference(measured, confidence, _GROWTH**exponent)
        return found is not None and not found.low <= margin < found.high

    if not tell(_GROWTHS_MAX):
        return inf
    return max(PAIRS_MIN, pairs * _GROWTH ** bisect_left(range(_GROWTHS_MAX), True, key=tell))


def _levels(measured: Measured) -> tuple[float | None, float | None]:
    if measured.counts:
        return _total([one for one, _ in measured.counts]).error_ratio, _total([other for _, other in measured.counts]).error_ratio
    if measured.seconds:
        return fmean(one for one, _ in measured.seconds), fmean(other for _, other in measured.seconds)
    return None, None


def _difference(measured: Measured, confidence: float, factor: float) -> Difference | None:
    """Return the difference and its interval, as if there were `factor` times as many pairs of the same kind."""
    if measured.aspect.statistic is not Statistic.SHARE:
        return mean_difference([other - one for one, other in measured.seconds], confidence, factor)
    if not measured.counts:
        return None
    found = _share_difference(measured.counts, confidence, factor)
    doubted = _share_difference([(_doubted(one), _doubted(other)) for one, other in measured.counts], confidence, factor)
    if found is None or doubted is None:
        return None
    return Difference(found.value, min(found.low, doubted.low), max(found.high, doubted.high))


def _share_difference(counts: Sequence[CountsPair], confidence: float, factor: float) -> Difference | None:
    shares = [(one.bad / one.decided, other.bad / other.decided) for one, other in counts if one.decided and other.decided]
    over_pairs = mean_difference([other - one for one, other in shares], confidence, factor)
    if over_pairs is None:
        return None
    each = (1.0 + confidence) / 2.0
    first = interval(*_scaled(_total([one for one, _ in counts]), factor), each)
    second = interval(*_scaled(_total([other for _, other in counts]), factor), each)
    low, high = second.low - first.high, second.high - first.low
    return Difference(over_pairs.value, min(low, over_pairs.low), max(high, over_pairs.high))


def _total(counts: Sequence[SliCounts]) -> SliCounts:
    return sum(counts, SliCounts())


def _scaled(counts: SliCounts, factor: float) -> tuple[int, int]:
    return round(counts.bad * factor), round(counts.decided * factor)


def _doubted(counts: SliCounts) -> SliCounts:
    return SliCounts(counts.good, counts.bad + counts.undecided)
