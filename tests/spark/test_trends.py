from __future__ import annotations

import numpy as np
import pytest

from spark_jobs.key_minutes import longest_run, slope_of, trend_of, zipf_exponent


def test_a_straight_line_rises_by_its_slope() -> None:
    trend = trend_of(np.arange(20.0) * 3.0)
    assert trend is not None
    assert (trend.slope, trend.tau, trend.rises) == (3.0, 1.0, True)


def test_the_statistics_of_a_worked_example() -> None:
    """Ten points of which two pairs are equal, by hand: S is 27 of 45 pairs, Var(S) = (10*9*25 - 2*2*1*9) / 18 = 123."""
    trend = trend_of(np.array([1.0, 3.0, 2.0, 2.0, 5.0, 4.0, 4.0, 6.0, 3.5, 7.0]))
    assert trend is not None
    assert trend.tau == pytest.approx(27 / 45)
    assert trend.z == pytest.approx(26 / np.sqrt(123))


def test_one_odd_point_does_not_turn_the_trend() -> None:
    values = np.arange(60.0)
    values[30] = -1e6
    trend = trend_of(values)
    assert trend is not None
    assert trend.rises
    assert trend.slope == pytest.approx(1.0)


def test_a_step_noise_and_a_constant_do_not_rise() -> None:
    noise = np.random.default_rng(1).normal(size=300)
    step = np.concatenate([np.zeros(290), np.full(10, 5.0)])
    for values in (noise, step, np.zeros(300), -np.arange(50.0)):
        trend = trend_of(values)
        assert trend is not None
        assert not trend.rises


def test_few_points_say_nothing() -> None:
    assert trend_of(np.arange(9.0)) is None
    assert slope_of(np.array([1.0]), np.array([1.0])) is None
    assert zipf_exponent(np.full(9, 100.0)) is None


@pytest.mark.parametrize("exponent", [0.7, 1.0, 1.5])
def test_the_exponent_of_a_sample_is_found(exponent: float) -> None:
    weights = np.arange(1.0, 2001.0) ** -exponent
    counts = np.random.default_rng(2).multinomial(500_000, weights / weights.sum()).astype(np.float64)
    assert zipf_exponent(counts) == pytest.approx(exponent, abs=0.05)


def test_equal_keys_have_the_exponent_zero() -> None:
    assert zipf_exponent(np.full(50, 1000.0)) == 0.0


def test_the_longest_stretch() -> None:
    assert longest_run(np.array([True, True, False, True, True, True, False])) == 3
    assert longest_run(np.array([False, False])) == 0
    assert longest_run(np.array([True])) == 1
