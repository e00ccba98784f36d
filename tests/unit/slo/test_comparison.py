"""Whether a candidate is no worse than a baseline: what is concluded, what is not, and how often that is wrong."""

from __future__ import annotations

import random
from math import inf

import pytest

from prober.slo.comparison import (
    ASPECTS,
    PAIRS_MIN,
    Aspect,
    ComparedAspect,
    Measured,
    Standing,
    Statistic,
    compare_aspect,
    confidence_of_each,
    overall,
)
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

ORDER = Aspect(Indicator.ORDER, Statistic.SHARE)
LATENCY = Aspect(Indicator.END_TO_END_LATENCY, Statistic.P50)
GOOD = SliCounts(1000)


def of_counts(*pairs: tuple[SliCounts, SliCounts], margin: float = 0.01, one_sided: int = 0) -> ComparedAspect:
    return compare_aspect(Measured(ORDER, counts=pairs, one_sided=one_sided), margin)


def of_seconds(*differences: float, margin: float = 0.1) -> ComparedAspect:
    return compare_aspect(Measured(LATENCY, seconds=[(1.0, 1.0 + each) for each in differences]), margin)


def test_services_without_anything_bad_are_no_worse_once_enough_was_seen() -> None:
    found = of_counts(*[(GOOD, GOOD)] * PAIRS_MIN)
    assert found.standing is Standing.NO_WORSE
    assert found.difference is not None
    assert found.difference.value == 0.0
    assert -0.001 < found.difference.low < 0.0 < found.difference.high < 0.001
    assert (found.baseline, found.candidate, found.bad) == (0.0, 0.0, (0, 0))


def test_few_opportunities_conclude_nothing_and_say_how_many_it_takes() -> None:
    few = SliCounts(10)
    found = of_counts(*[(few, few)] * PAIRS_MIN)
    assert found.standing is Standing.UNKNOWN
    assert found.pairs_needed is not None
    assert PAIRS_MIN < found.pairs_needed < 100
    enough = round(found.pairs_needed)
    assert of_counts(*[(few, few)] * enough).standing is Standing.NO_WORSE


@pytest.mark.parametrize("pairs", range(PAIRS_MIN))
def test_fewer_pairs_than_the_least_conclude_nothing_however_clear(pairs: int) -> None:
    broken = of_counts(*[(GOOD, SliCounts(bad=1000))] * pairs)
    assert broken.standing is Standing.UNKNOWN
    assert broken.pairs_needed == pytest.approx(PAIRS_MIN, rel=0.1)
    assert of_counts(*[(GOOD, GOOD)] * pairs).standing is Standing.UNKNOWN


def test_a_broken_candidate_is_worse_and_a_broken_baseline_is_not() -> None:
    broken = SliCounts(800, 200)
    assert of_counts(*[(GOOD, broken)] * PAIRS_MIN).standing is Standing.WORSE
    assert of_counts(*[(broken, GOOD)] * PAIRS_MIN).standing is Standing.NO_WORSE
    assert of_counts(*[(broken, broken)] * PAIRS_MIN, margin=0.2).standing is Standing.NO_WORSE


def test_what_is_worse_by_less_than_the_margin_counts_as_no_worse() -> None:
    slightly = SliCounts(9980, 20)
    assert of_counts(*[(SliCounts(10_000), slightly)] * 10, margin=0.01).standing is Standing.NO_WORSE
    assert of_counts(*[(SliCounts(10_000), slightly)] * 10, margin=0.001).standing is Standing.WORSE


def test_bad_things_that_come_together_are_one_event_and_not_many() -> None:
    once = [(GOOD, GOOD)] * 19 + [(GOOD, SliCounts(500, 500))]
    found = of_counts(*once)
    assert found.bad == (0, 500)
    assert found.standing is Standing.UNKNOWN  # as so many independent things they would be proof


def test_undecided_things_of_the_candidate_are_not_good() -> None:
    doubtful = SliCounts(900, 0, 100)
    assert of_counts(*[(GOOD, doubtful)] * 10).standing is Standing.UNKNOWN
    assert of_counts(*[(doubtful, doubtful)] * 10, margin=0.05).standing is Standing.NO_WORSE


def test_undecided_things_of_the_baseline_are_not_good_either() -> None:
    assert of_counts(*[(SliCounts(900, 0, 100), SliCounts(900, 100))] * 10).standing is Standing.UNKNOWN


def test_a_candidate_that_often_has_nothing_to_measure_proves_nothing() -> None:
    assert of_counts(*[(GOOD, GOOD)] * 10, one_sided=1).standing is Standing.NO_WORSE
    found = of_counts(*[(GOOD, GOOD)] * 10, one_sided=2)
    assert found.standing is Standing.UNKNOWN
    assert found.pairs_needed is None


def test_nothing_measured_is_unknown() -> None:
    found = of_counts()
    assert (found.standing, found.difference, found.pairs, found.baseline) == (Standing.UNKNOWN, None, 0, None)
    assert of_seconds().difference is None
    assert of_counts((GOOD, SliCounts(undecided=5)), (GOOD, SliCounts(undecided=5))).standing is Standing.UNKNOWN


def test_a_slow_minute_of_both_is_no_difference() -> None:
    minutes = [0.1, 5.0, 0.2, 3.0, 0.1, 9.0]
    found = compare_aspect(Measured(LATENCY, seconds=[(each, each + 0.01) for each in minutes]), 0.1)
    assert found.standing is Standing.NO_WORSE
    assert found.difference is not None
    assert found.difference.value == pytest.approx(0.01)


def test_a_slower_candidate_is_worse_and_a_faster_one_is_not() -> None:
    assert of_seconds(0.29, 0.31, 0.3, 0.33, 0.27).standing is Standing.WORSE
    assert of_seconds(-0.29, -0.31, -0.3, -0.33, -0.27).standing is Standing.NO_WORSE


def test_differences_that_spread_say_how_many_pairs_it_takes() -> None:
    found = of_seconds(-0.3, 0.3, -0.2, 0.2, 0.0)
    assert found.standing is Standing.UNKNOWN
    assert found.pairs_needed is not None
    assert 10 < found.pairs_needed < 100


def test_a_difference_that_is_the_margin_is_never_reported() -> None:
    found = of_seconds(0.09, 0.11, 0.1, 0.12, 0.08)
    assert (found.standing, found.pairs_needed) == (Standing.UNKNOWN, inf)


def test_worse_in_anything_is_worse_and_no_worse_needs_everything() -> None:
    no_worse, worse, unknown = Standing.NO_WORSE, Standing.WORSE, Standing.UNKNOWN
    assert overall([no_worse, worse, unknown], complete=False) is worse
    assert overall([no_worse, unknown], complete=True) is unknown
    assert overall([no_worse, no_worse], complete=True) is no_worse
    assert overall([no_worse, no_worse], complete=False) is unknown
    assert overall([], complete=True) is unknown


def test_every_aspect_has_a_name_of_its_own() -> None:
    names = [aspect.name for aspect in ASPECTS]
    assert len(names) == len(set(names))
    assert {"order", "publish_latency_p50", "publish_latency_p99"} <= set(names)


@pytest.mark.parametrize("clustered", [False, True])
def test_equal_services_are_called_worse_in_less_than_one_of_twenty_comparisons(clustered: bool) -> None:
    """Three aspects of services that do not differ, with margin 0: the hardest case, in which 5 % may go wrong."""
    dice = random.Random(7)
    confidence = confidence_of_each(3)

    def shares() -> SliCounts:
        bad = 40 * (dice.random() < 0.3) if clustered else sum(dice.random() < 0.05 for _ in range(100))
        return SliCounts(100 - bad, bad)

    def worse() -> bool:
        latency = [(dice.lognormvariate(0, 1), dice.lognormvariate(0, 1)) for _ in range(8)]
        found = [
            compare_aspect(Measured(ORDER, counts=[(shares(), shares()) for _ in range(8)]), 0.0, confidence, forecast=False),
            compare_aspect(Measured(ORDER, counts=[(shares(), shares()) for _ in range(8)]), 0.0, confidence, forecast=False),
            compare_aspect(Measured(LATENCY, seconds=latency), 0.0, confidence, forecast=False),
        ]
        return overall([each.standing for each in found], complete=True) is Standing.WORSE

    assert sum(worse() for _ in range(200)) <= 10


@pytest.mark.parametrize("clustered", [False, True])
def test_a_candidate_worse_than_the_margin_is_rarely_called_no_worse(clustered: bool) -> None:
    """It is worse by just the margin, as in the hardest case."""
    dice = random.Random(11)

    def counts(share: float) -> SliCounts:
        bad = (50 if dice.random() < 2 * share else 0) if clustered else sum(dice.random() < share for _ in range(100))
        return SliCounts(100 - bad, bad)

    def passed() -> bool:
        measured = Measured(ORDER, counts=[(counts(0.05), counts(0.15)) for _ in range(12)])
        return compare_aspect(measured, 0.1, forecast=False).standing is Standing.NO_WORSE

    assert sum(passed() for _ in range(200)) <= 10
