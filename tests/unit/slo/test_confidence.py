"""Confidence bounds against the definition: the binomial distribution in exact fractions, and in 60-digit decimals for large counts.

Paired differences and their intervals, against tables and by trying it out.
"""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.slo.confidence import Difference, interval, lower_bound, mean_difference, share_difference, t_quantile, upper_bound

STATED_ACCURACY = 1e-12

counts = st.integers(1, 10**9)
confidences = st.floats(0.5, 0.999999)
proportions = counts.flatmap(lambda count: st.tuples(st.integers(0, min(count, 500)), st.just(count)))


def at_most(bad: int, count: int, p: Fraction) -> Fraction:
    """P(X <= bad), by definition."""
    return sum((comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(bad + 1)), Fraction(0))


def rounded(number: float, steps: int) -> Fraction:
    """The number, further away from 0 or nearer by some parts of the stated accuracy."""
    return Fraction(number) * (1 + steps * Fraction(STATED_ACCURACY))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.975, 0.9999, 1 - 1e-9])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_the_bounds_are_where_the_definition_puts_them(count: int, confidence: float) -> None:
    alpha = Fraction(1.0 - confidence)
    for bad in range(count):
        high = upper_bound(bad, count, confidence)
        assert at_most(bad, count, rounded(high, 1)) < alpha < at_most(bad, count, rounded(high, -1)), bad
        low = lower_bound(bad + 1, count, confidence)
        assert 1 - at_most(bad, count, rounded(low, -1)) < alpha < 1 - at_most(bad, count, rounded(low, 1)), bad + 1


def decimal_at_most(bad: int, count: int, p: Decimal) -> Decimal:
    """P(X <= bad), term by term."""
    term = (1 - p) ** count
    total = term
    for k in range(bad):
        term = term * (count - k) * p / ((k + 1) * (1 - p))
        total += term
    return total


@pytest.mark.parametrize("bad", [1, 2, 7, 60])
@pytest.mark.parametrize("count", [100, 10_000, 10**7, 10**9, 10**12])
def test_the_bounds_keep_their_accuracy_when_counts_are_large(bad: int, count: int) -> None:
    with localcontext(prec=60):
        alpha, margin = Decimal(1.0 - 0.975), Decimal(STATED_ACCURACY)
        high = Decimal(upper_bound(bad, count, 0.975))
        assert decimal_at_most(bad, count, high * (1 + margin)) < alpha < decimal_at_most(bad, count, high * (1 - margin))
        low = Decimal(lower_bound(bad, count, 0.975))
        assert 1 - decimal_at_most(bad - 1, count, low * (1 - margin)) < alpha
        assert 1 - decimal_at_most(bad - 1, count, low * (1 + margin)) > alpha


@pytest.mark.parametrize(
    ("bad", "count", "low", "high"),
    [  # as the usual tables have them
        (7, 10, 0.347547, 0.933260),
        (0, 10, 0.0, 0.308497),
        (1, 10, 0.002529, 0.445016),
        (10, 100, 0.049005, 0.176223),
        (500_000, 1_000_000, 0.499020, 0.500980),
    ],
)
def test_known_intervals(bad: int, count: int, low: float, high: float) -> None:
    assert interval(bad, count) == pytest.approx((low, high), abs=6e-7)


@given(st.integers(1, 10**12))
def test_none_bad_of_n_is_at_most_3_of_n(count: int) -> None:
    assert upper_bound(0, count) <= 3 / count
    assert upper_bound(0, count) == pytest.approx(3 / count, rel=0.05) or count < 30


@given(proportions, confidences)
def test_the_observed_proportion_lies_between_the_bounds(proportion: tuple[int, int], confidence: float) -> None:
    bad, count = proportion
    low, high = interval(bad, count, confidence)
    assert 0.0 <= low <= bad / count <= high <= 1.0
    assert (low == 0.0) == (bad == 0)
    assert (high == 1.0) == (bad == count)


@given(proportions, confidences)
def test_the_bounds_of_the_bad_mirror_those_of_the_good(proportion: tuple[int, int], confidence: float) -> None:
    bad, count = proportion[0] % 50, min(proportion[1], 50)
    if bad <= count:
        assert upper_bound(bad, count, confidence) == pytest.approx(1 - lower_bound(count - bad, count, confidence), abs=1e-12)


@given(proportions, confidences)
def test_more_bad_ones_raise_the_bounds_and_more_good_ones_lower_them(proportion: tuple[int, int], confidence: float) -> None:
    bad, count = proportion
    slack = 1 + STATED_ACCURACY
    for bound in (lower_bound, upper_bound):
        assert bound(bad, count, confidence) <= bound(bad + 1, count + 1, confidence) * slack
        assert bound(bad, count + 1, confidence) <= bound(bad, count, confidence) * slack


@given(proportions, confidences, confidences)
def test_more_confidence_means_wider_bounds(proportion: tuple[int, int], one: float, other: float) -> None:
    bad, count = proportion
    narrow, wide = (interval(bad, count, confidence) for confidence in sorted((one, other)))
    slack = 1 + STATED_ACCURACY
    assert wide.low <= narrow.low * slack
    assert narrow.high <= wide.high * slack


def test_of_nothing_nothing_is_known() -> None:
    assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("bad", "count", "confidence"), [(-1, 5, 0.9), (6, 5, 0.9), (1, 5, 0.0), (1, 5, 1.0)])
def test_what_is_not_a_proportion_is_refused(bad: int, count: int, confidence: float) -> None:
    with pytest.raises(ValueError, match=r"proportion|confidence"):
        upper_bound(bad, count, confidence)
    with pytest.raises(ValueError, match=r"proportion|confidence"):
        lower_bound(bad, count, confidence)


@pytest.mark.parametrize(
    ("freedom", "confidence", "expected"),
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.95, 3.182),
        (4, 0.99, 4.604),
        (9, 0.95, 2.262),
        (30, 0.99, 2.750),
        (1000, 0.95, 1.962),
    ],
)
def test_the_quantiles_are_those_of_the_tables(freedom: int, confidence: float, expected: float) -> None:
    assert t_quantile(freedom, confidence) == pytest.approx(expected, abs=0.0006)


def test_one_difference_says_nothing_and_equal_ones_all() -> None:
    assert mean_difference([]) is None
    assert mean_difference([0.1]) is None
    assert mean_difference([0.25, 0.25, 0.25]) == Difference(0.25, 0.25, 0.25)


def test_an_interval_of_means_misses_as_often_as_it_says() -> None:
    dice = random.Random(1)
    missed = 0
    for _ in range(2000):
        found = mean_difference([dice.gauss(0.3, 1.0) for _ in range(5)])
        assert found is not None
        missed += not found.low <= 0.3 <= found.high
    assert 60 < missed < 140  # 100 are expected


def test_shares_differ_by_what_is_bad_on_one_side_only() -> None:
    found = share_difference(8, 3, 100)
    assert found.value == pytest.approx(0.05)
    assert -0.07 < found.low < 0.0 < 0.05 < found.high < 0.16
    assert share_difference(0, 0, 0) == Difference(0.0, -1.0, 1.0)
    assert share_difference(90, 0, 100).low > 0.7
    with pytest.raises(ValueError, match="not a proportion"):
        share_difference(5, 0, 4)
