"""Paired differences and their intervals, against tables and by trying it out."""

from __future__ import annotations

import random

import pytest

from prober.slo.paired import Difference, mean_difference, share_difference, t_quantile


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
