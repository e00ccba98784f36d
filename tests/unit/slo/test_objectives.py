"""Objectives, budgets and burn rates: the worked examples of the SRE workbook, then properties."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.slo.budgets import budget_left, exhaustion_s
from prober.slo.indicators import DURATIONS, MEANINGS, Indicator
from prober.slo.objectives import (
    DAY_S,
    HOUR_S,
    MINUTE_S,
    POLICY,
    AlertState,
    BurnAlert,
    Objective,
    SliCounts,
    Urgency,
    bucket_bounds,
    count_to_see_budget,
    exact_fraction,
    rate_min_per_s,
    windows_s,
)


def objective(target: float = 0.999, days: float = 30) -> Objective:
    return Objective("order", Indicator.ORDER, target, days * DAY_S)


counts = st.integers(0, 10**9)
tallies = st.builds(SliCounts, counts, counts, counts)
targets = st.integers(1, 99_999).map(lambda part: part / 100_000)
objectives = st.builds(objective, targets, st.sampled_from([7, 28, 30, 90]))
alerts = st.sampled_from(POLICY)


# --------------------------------------------------------------------------- worked examples: SRE workbook, chapter 5


@pytest.mark.parametrize(
    ("burn", "errors_per_100_000", "lasts_s"),
    [  # burn rates and time to complete budget exhaustion, at 99.9 % over 30 days
        (1, 100, 30 * DAY_S),
        (2, 200, 15 * DAY_S),
        (10, 1_000, 3 * DAY_S),
        (1000, 100_000, 43.2 * MINUTE_S),
    ],
)
def test_burn_rates_and_time_to_exhaustion(burn: float, errors_per_100_000: int, lasts_s: float) -> None:
    slo, tally = objective(), SliCounts(100_000 - errors_per_100_000, errors_per_100_000)
    assert slo.burn_rate(tally) == burn
    assert exhaustion_s(slo, 1.0, slo.burn_rate(tally)) == pytest.approx(lasts_s)


@pytest.mark.parametrize(
    ("severity", "budget_part", "long_s", "short_s", "factor"),
    [  # the recommended parameters at 99.9 %; the ticket of a day as in Sloth's 30-day windows
        (Urgency.PAGE, 0.02, HOUR_S, 5 * MINUTE_S, 14.4),
        (Urgency.PAGE, 0.05, 6 * HOUR_S, 30 * MINUTE_S, 6),
        (Urgency.TICKET, 0.10, DAY_S, 2 * HOUR_S, 3),
        (Urgency.TICKET, 0.10, 3 * DAY_S, 6 * HOUR_S, 1),
    ],
)
def test_the_recommended_alerts(severity: Urgency, budget_part: float, long_s: float, short_s: float, factor: float) -> None:
    (alert,) = [alert for alert in POLICY if alert.long_s == long_s]
    assert (alert.severity, alert.budget_part, alert.short_s) == (severity, budget_part, short_s)
    assert alert.factor(objective()) == factor


def test_with_28_days_the_factors_are_others() -> None:
    assert [alert.factor(objective(days=28)) for alert in POLICY] == pytest.approx([13.44, 5.6, 2.8, 0.9333333])


def test_a_single_failure_at_ten_requests_an_hour() -> None:
    # "A single failed request results in an hourly error rate of 10 % and consumes 13.9 % of the budget". The text calls that a
    # burn rate of 1,000; by its own definition it is 10 % / 0.1 % = 100.
    slo = objective()
    assert slo.burn_rate(SliCounts(9, 1)) == 100
    assert budget_left(slo, SliCounts(10 * 24 * 30 - 1, 1), 1.0) == pytest.approx(1 - 0.139, abs=5e-4)


@pytest.mark.parametrize(
    ("target", "page_quick", "page_quick_2", "page_slow", "ticket_quick", "ticket_slow"),
    [
        (0.99, 7, 14, 17, 34, 101),
        (0.995, 14, 28, 34, 67, 201),
        (0.999, 70, 139, 167, 334, 1001),
        (0.9995, 139, 278, 334, 667, 2001),
        (0.9999, 695, 1389, 1667, 3334, 10001),
    ],
)
def test_how_many_probes_make_one_bad_one_bearable(  # the table of operations facts, section 1.4
    target: float, page_quick: int, page_quick_2: int, page_slow: int, ticket_quick: int, ticket_slow: int
) -> None:
    slo = objective(target)
    assert [alert.count_min(slo) for alert in POLICY] == [page_quick, page_slow, ticket_quick, ticket_slow]
    assert POLICY[0].count_min(slo, bad=2) == page_quick_2
    assert rate_min_per_s(slo) == page_quick / HOUR_S


# ------------------------------------------------------------------------------------------------------------- tallies


def test_what_is_undecided_is_neither_good_nor_bad() -> None:
    tally = SliCounts(good=6, bad=2, undecided=2)
    assert tally.error_ratio == 0.25
    assert tally.error_ratio_bounds == (0.2, 0.4)
    assert objective(0.75).burn_rate(tally) == 1.0


def test_of_nothing_decided_nothing_is_said() -> None:
    slo, nothing = objective(), SliCounts(undecided=5)
    assert nothing.error_ratio is None
    assert nothing.error_ratio_bounds == (0.0, 1.0)
    assert nothing.error_ratio_confidence() == (0.0, 1.0)
    assert slo.burn_rate(nothing) is None
    assert SliCounts().error_ratio_bounds == (0.0, 1.0)


@given(tallies, tallies)
def test_the_tally_of_a_window_is_the_difference_of_cumulative_ones(before: SliCounts, window: SliCounts) -> None:
    assert (before + window) - before == window


@given(tallies)
def test_the_error_ratio_lies_between_its_bounds(tally: SliCounts) -> None:
    low, high = tally.error_ratio_bounds
    assert 0.0 <= low <= high <= 1.0
    assert tally.error_ratio is None or low <= tally.error_ratio <= high


def test_a_tally_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="counts start at 0"):
        SliCounts(1) - SliCounts(2)


# ------------------------------------------------------------------------------------------------------------- budgets


@given(targets)
def test_a_target_is_the_decimal_it_is_written_as(target: float) -> None:
    assert objective(target).budget_exact + Fraction(repr(target)) == 1
    assert len(repr(objective(target).budget)) <= 8  # no 0.0010000000000000009


@given(objectives, st.integers(1, 10**6), st.data())
def test_the_confidence_in_a_burn_rate_contains_it(slo: Objective, count: int, data: st.DataObject) -> None:
    tally = SliCounts(count, data.draw(st.integers(0, min(count, 300))))
    low, high = slo.burn_rate_confidence(tally)
    rate = slo.burn_rate(tally)
    assert rate is not None
    assert low <= rate * (1 + 1e-12)
    assert rate <= high * (1 + 1e-12)


# -------------------------------------------------------------------------------------------------------------- alerts


def test_an_alert_needs_both_windows_strictly_above_its_rate() -> None:
    alert, slo = POLICY[0], objective()
    at, above = SliCounts(100_000 - 1_440, 1_440), SliCounts(100_000 - 1_441, 1_441)  # exactly 14.4, and just above
    assert alert.state(slo, above, above) is AlertState.FIRING
    assert alert.state(slo, at, above) is AlertState.QUIET
    assert alert.state(slo, above, at) is AlertState.QUIET
    assert alert.state(slo, above, SliCounts(undecided=1)) is AlertState.UNKNOWN
    assert alert.state(slo, SliCounts(), above) is AlertState.UNKNOWN


@pytest.mark.parametrize(("good", "state"), [(68, AlertState.UNKNOWN), (69, AlertState.QUIET)])
def test_a_single_bad_thing_does_not_fire_an_alert(good: int, state: AlertState) -> None:
    """The rule needs 70 things in the long window, among which one bad one does not exceed the limit."""
    few = SliCounts(good, 1)
    assert POLICY[0].state(objective(), few, few) is state
    assert POLICY[0].state(objective(), few + SliCounts(1, 1), few) is (AlertState.FIRING if good == 68 else AlertState.QUIET)


@given(objectives, alerts, st.integers(1, 5))
def test_the_smallest_count_that_bears_bad_ones_is_the_smallest(slo: Objective, alert: BurnAlert, bad: int) -> None:
    enough = alert.count_min(slo, bad)
    limit = exact_fraction(alert.budget_part) * exact_fraction(slo.window_s) / exact_fraction(alert.long_s) * slo.budget_exact
    assert Fraction(bad, enough) < limit
    assert enough == 1 or Fraction(bad, enough - 1) >= limit


def test_a_large_budget_cannot_burn_fast() -> None:
    assert POLICY[0].can_fire(objective(0.99))
    assert not POLICY[0].can_fire(objective(0.9))  # 14.4 x 10 % is more than everything


# ------------------------------------------------------------------------------------------------------ rates and windows


@given(objectives, st.integers(1, 3))
def test_at_the_smallest_rate_no_alert_fires_for_a_bad_one(slo: Objective, bad: int) -> None:
    rate = rate_min_per_s(slo, bad=bad)
    for alert in POLICY:
        assert rate * alert.long_s * (1 + 1e-12) >= alert.count_min(slo, bad)
    assert rate * slo.window_s * (1 + 1e-12) >= count_to_see_budget(slo)


@given(objectives)
def test_with_fewer_things_than_that_one_bad_one_overspends_the_budget(slo: Objective) -> None:
    enough = count_to_see_budget(slo)
    remaining = budget_left(slo, SliCounts(enough - 1, 1), 1.0)
    assert remaining is not None
    assert remaining >= 0.0
    if enough > 2:
        remaining = budget_left(slo, SliCounts(enough - 2, 1), 1.0)
        assert remaining is not None
        assert remaining < 0.0


def test_without_alerts_the_budget_alone_needs_a_rate() -> None:
    assert rate_min_per_s(objective(0.999), policy=()) == 1000 / (30 * DAY_S)


def test_the_windows_of_an_objective() -> None:
    minutes = [window / MINUTE_S for window in windows_s(objective())]
    assert minutes == [5, 30, 60, 120, 360, 1440, 4320, 43200]


@given(st.lists(st.floats(0.001, 1000), min_size=1), st.lists(st.floats(0.001, 1000)))
def test_every_threshold_is_a_bucket_bound(defaults: list[float], thresholds: list[float]) -> None:
    bounds = bucket_bounds(defaults, thresholds)
    assert set(bounds) == {*defaults, *thresholds}
    assert all(one < other for one, other in pairwise(bounds))


@pytest.mark.parametrize("bounds", [[], [0.0, 1.0], [-1.0], [1.0, inf], [1.0, float("nan")]])
def test_bounds_that_no_duration_has_are_refused(bounds: list[float]) -> None:
    with pytest.raises(ValueError, match="bucket bounds"):
        bucket_bounds(bounds)


# --------------------------------------------------------------------------------------------------------- objectives


@pytest.mark.parametrize("target", [0.0, 1.0, 99.9, -0.1])
def test_a_target_is_a_ratio_short_of_everything(target: float) -> None:
    with pytest.raises(ValueError, match="target"):
        objective(target)


@pytest.mark.parametrize("window_s", [0.0, -1.0, inf])
def test_a_period_is_positive_and_finite(window_s: float) -> None:
    with pytest.raises(ValueError, match="window"):
        replace(objective(), window_s=window_s)


def test_a_latency_needs_a_threshold_and_an_order_has_none() -> None:
    assert set(DURATIONS) == {
        Indicator.PUBLISH_LATENCY,
        Indicator.END_TO_END_LATENCY,
        Indicator.PULL_LATENCY,
        Indicator.PUSH_LATENCY,
        Indicator.REDELIVERY_LATENCY,
        Indicator.CONTROL_PLANE_LATENCY,
        Indicator.CREATION_TO_RECEIPT_LATENCY,
        Indicator.OLDEST_UNACKED_MESSAGE_AGE,
        Indicator.HEAD_OF_LINE_DELAY,
    }
    assert set(MEANINGS) == set(Indicator)
    with pytest.raises(ValueError, match="lacks a threshold"):
        Objective("slow", Indicator.PUBLISH_LATENCY, 0.99, DAY_S)
    with pytest.raises(ValueError, match="has no threshold"):
        replace(objective(), threshold_s=1.0)
    with pytest.raises(ValueError, match="threshold of 'slow'"):
        Objective("slow", Indicator.PUBLISH_LATENCY, 0.99, DAY_S, threshold_s=0.0)
