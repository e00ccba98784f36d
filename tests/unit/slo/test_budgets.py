"""The error budget: its worked example, the measured share, and projections."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.slo.budgets import MeasuredHours, budget_left, exhaustion_s
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S, Objective, SliCounts

PERIOD_S = 30 * DAY_S
ORDER = Objective("order", Indicator.ORDER, 0.9999, PERIOD_S)
START = 1_000 * HOUR_S


def hours(*numbers: int) -> MeasuredHours:
    return MeasuredHours.of(START + number * HOUR_S for number in numbers)


def test_the_worked_example() -> None:
    bad_start = SliCounts(1_964, 36)
    measured = hours(0).share(PERIOD_S, START, START + 10 * MINUTE_S)
    assert measured == 10 / 43_200
    left = budget_left(ORDER, bad_start, measured)
    assert left == pytest.approx(1 - 180 * 10 / 43_200)
    seconds = exhaustion_s(ORDER, left, ORDER.burn_rate(bad_start))
    assert seconds == pytest.approx(3.8 * HOUR_S, rel=0.01)


def test_a_minute_after_the_start_a_minute_of_the_budget_can_be_spent() -> None:
    measured = hours(0).share(PERIOD_S, START + 600.0, START + 660.0)
    assert budget_left(ORDER, SliCounts(0, 100), measured) == pytest.approx(1 - 10_000 / 43_200)


def test_time_without_measurements_spends_nothing() -> None:
    assert hours(0, 1, 5).share(10 * HOUR_S, START, START + 10 * HOUR_S) == 0.3
    assert MeasuredHours().share(10 * HOUR_S, START, START + 10 * HOUR_S) == 0.0


def test_the_first_and_the_current_hour_count_in_part() -> None:
    assert hours(0, 1, 2).share(10 * HOUR_S, START + 0.5 * HOUR_S, START + 2.25 * HOUR_S) == 0.175
    assert hours(0, 1).share(10 * HOUR_S, START + 0.5 * HOUR_S, START + 2.25 * HOUR_S) == 0.15


def test_at_least_a_minute_is_measured_where_something_was_decided() -> None:
    assert hours(0).share(HOUR_S, START + 600.0, START + 600.0) == 1 / 60


def test_never_more_than_the_period() -> None:
    assert hours(*range(26)).share(DAY_S, START, START + 26 * HOUR_S) == 1.0


def test_hours_are_added_once() -> None:
    found = MeasuredHours()
    for at in (START, START + 1.0, START + 3_599.0, START + 3_600.0, START + 3_500.0, START + 9_000.0):
        found = found.including(at)
    assert found == hours(0, 1, 2)


def test_nothing_decided_is_unknown() -> None:
    assert budget_left(ORDER, SliCounts(undecided=5), 0.5) is None
    assert exhaustion_s(ORDER, None, 1.0) is None
    assert exhaustion_s(ORDER, 1.0, None) is None


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_a_burn_rate_of_one_spends_what_was_measured(good: int, bad: int, measured: float) -> None:
    counts = SliCounts(good, bad)
    rate, left = ORDER.burn_rate(counts), budget_left(ORDER, counts, measured)
    assert rate is not None
    assert left == 1.0 - rate * measured


def test_time_to_exhaustion() -> None:
    assert exhaustion_s(ORDER, 0.5, 5.0) == 3 * DAY_S
    assert exhaustion_s(ORDER, 0.5, 0.0) == inf
    assert exhaustion_s(ORDER, 0.0, 0.0) == 0.0
    assert exhaustion_s(ORDER, -0.1, 5.0) == 0.0
