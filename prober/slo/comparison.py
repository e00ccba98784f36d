"""Comparison of two services: is one no worse than the other? Arithmetic.

Both are probed side by side, so that what is measured comes in pairs of runs: the same probe, at the same time, on each. Compared is each
*aspect* of a service: of an indicator that counts things the share that is bad, of one that measures durations the median and the 99th
percentile of a run. The difference is that of the candidate less that of the baseline; above 0 the candidate is worse.

*Three answers.* No two services are equal, so a *margin* says how much worse still counts as no worse. The candidate is no worse if the
whole interval of the difference lies at or below the margin, worse if it lies above, and else undecided (yet): this is a test of
non-inferiority, and of its opposite, with one interval.

*The interval of durations* is Student's t over the pairs. *That of shares* is as wide as two together, since each fails where the other
does not: Student's t over the pairs knows that bad things come together in one run, and takes a count of 0 for a rate of 0; that of Clopper
and Pearson, made of one for each service (Bonferroni), knows how little a count proves, and takes all things for independent.

*Undecided things* count twice: as if they were not there, and as if they were bad. The interval holds both, so that nothing is concluded
if more is undecided of the one than of the other. *Few pairs* conclude nothing, nor do pairs in which one of the two often had nothing
to measure.

*Many aspects* are looked at together, of which one may differ at random. So each interval has a confidence at which all of them hold at
once with `CONFIDENCE` (Bonferroni): 95 % for one aspect, 99.7 % each for seventeen. Services that do not differ are called worse
in less than one of twenty comparisons, whatever is compared.
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
"""Fewer pairs conclude nothing."""
ONE_SIDED_MAX: Final = 0.1
"""If in a larger share of its pairs only one of the two had something to measure, an aspect concludes nothing."""
_GROWTH: Final = 1.1
_GROWTHS_MAX: Final = 48
"""More than 100 times as many pairs are no answer to how many it would take."""


class Statistic(StrEnum):
    """What of an indicator is compared."""

    SHARE = "share"
    P50 = "p50"
    P99 = "p99"


class Aspect(NamedTuple):
    """In what two services are compared."""

    indicator: Indicator
    statistic: Statistic

    @property
    def name(self) -> str:
        """`order`, `publish_latency_p99`."""
        return str(self.indicator) if self.statistic is Statistic.SHARE else f"{self.indicator}_{self.statistic}"


_COUNTED_APART: Final = frozenset({Indicator.STALLED_KEYS})  # no run knows of it: what stands still is missing in the end
ASPECTS: Final = (
    *(Aspect(one, Statistic.SHARE) for one in MEANINGS if one not in DURATIONS and one not in _COUNTED_APART),
    *(Aspect(one, statistic) for one in DURATIONS for statistic in (Statistic.P50, Statistic.P99)),
)
"""Every one there is: the shares first."""


class Standing(StrEnum):
    """How the candidate stands beside the baseline."""

    NO_WORSE = "no worse"
    WORSE = "worse"
    UNKNOWN = "unknown"


CountsPair: TypeAlias = tuple[SliCounts, SliCounts]
"""What a run of the baseline counted, and its pair of the candidate."""
SecondsPair: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """What pairs of runs measured of an aspect: counts of a share, else seconds. The baseline stands first.

    one_sided   in how many further pairs only one of the two had something to measure.
    """

    aspect: Aspect
    counts: Sequence[CountsPair] = ()
    seconds: Sequence[SecondsPair] = ()
    one_sided: int = 0

    @property
    def pairs(self) -> int:
        """In how many pairs both measured it."""
        return len(self.counts) + len(self.seconds)


@dataclass(frozen=True, slots=True)
class ComparedAspect:
    """Result of the pairs of an aspect.

    Shares are between 0 and 1, durations in seconds.

    baseline, candidate   the share of all pairs together, or the mean over pairs.
    difference            that of the candidate less that of the baseline, with its interval; None: too few pairs for any.
    pairs                 how many there are, and `pairs_needed` how many would probably decide if they go on like this: None if already
                          decided, not requested, or unknown, infinity if it were more than 100 times as many, or no number would.
    bad                   bad things of the baseline and of the candidate; 0 of durations.
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
    """Compares one aspect. `confidence` is that of its interval: `confidence_of_each` if there are several aspects.

    `forecast`: whether to say how many pairs would tell, which takes some milliseconds.
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
    """With which confidence each of so many intervals holds, at least one, if all together hold with `CONFIDENCE`."""
    return 1.0 - (1.0 - CONFIDENCE) / max(1, aspects)


def overall(standings: Sequence[Standing], *, complete: bool) -> Standing:
    """How the candidate stands in all: worse if in anything, and no worse only if in everything.

    `complete`: whether everything was looked at that was to be.
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
    """How many pairs like these would tell; None if these do not say."""
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
    """The difference and its interval, had there been `factor` times as many pairs of the same kind."""
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
