"""Monthly uptime: three-valued minutes, bounds, and the tier of the credit."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.slo.uptime import MonthlyUptime, credit_for, minutes_down


def month(minutes: int, up: int, down: int) -> MonthlyUptime:
    return MonthlyUptime("europe", "2026-03", minutes, up, down, is_over=True)


@pytest.mark.parametrize(
    ("failed", "down"),
    [((), set()), ((5,), set()), ((5, 6), set()), ((5, 6, 7), {6}), ((5, 6, 7, 8, 10), {6, 7}), ((5, 7, 9), set())],
)
def test_a_minute_is_down_between_two_failures(failed: tuple[int, ...], down: set[int]) -> None:
    assert minutes_down(failed) == down


@pytest.mark.parametrize(
    ("up", "down", "uptime", "credit"),
    [
        (10_000, 0, (1.0, 1.0), (0.0, 0.0)),
        (9_995, 5, (0.9995, 0.9995), (0.0, 0.0)),
        (9_994, 6, (0.9994, 0.9994), (0.1, 0.1)),
        (9_899, 101, (0.9899, 0.9899), (0.25, 0.25)),
        (9_499, 501, (0.9499, 0.9499), (0.5, 0.5)),
        (9_000, 0, (0.9, 1.0), (0.0, 0.5)),
        (0, 0, (0.0, 1.0), (0.0, 0.5)),
    ],
)
def test_unknown_minutes_widen_the_bounds(up: int, down: int, uptime: tuple[float, float], credit: tuple[float, float]) -> None:
    found = month(10_000, up, down)
    assert (found.uptime, found.credit, found.unknown) == (uptime, credit, 10_000 - up - down)


def test_of_no_minute_nothing_is_known() -> None:
    assert (month(0, 0, 0).uptime, month(0, 0, 0).credit) == ((0.0, 1.0), (0.0, 0.5))


@given(st.sets(st.integers(0, 50)))
def test_no_minute_is_down_beside_one_without_a_failure(failed: set[int]) -> None:
    assert all({minute - 1, minute, minute + 1} <= failed for minute in minutes_down(failed))


@given(st.integers(0, 1_000), st.integers(0, 1_000), st.integers(0, 1_000))
def test_the_truth_lies_between_the_bounds(up: int, down: int, unknown_up: int) -> None:
    unknown = 1_000
    found = month(up + down + unknown, up, down)
    truth = month(found.minutes, up + unknown_up, down + unknown - unknown_up)
    assert found.uptime.low <= truth.uptime.low == truth.uptime.high <= found.uptime.high
    assert found.credit.low <= truth.credit.low == truth.credit.high <= found.credit.high


def test_the_bounds_of_tiers_are_exact() -> None:
    shares = (9_995, 9_994, 9_900, 9_899, 9_500, 9_499)
    assert [credit_for(Fraction(share, 10_000)) for share in shares] == [0.0, 0.1, 0.1, 0.25, 0.25, 0.5]
