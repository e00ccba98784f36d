"""Burn rates, budgets and alerts: the worked examples of the SRE workbook (chapter 5), and the same in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from math import isclose
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S, AlertState, BurnAlert, Objective, SliCounts, Urgency
from spark_jobs.burn import alert_days, window_lengths_min, window_rows, window_sums
from spark_jobs.history import MINUTE_US

MINUTES = "objective string, target string, minute long, good long, bad long, undecided long"
PERIOD_MIN = 30 * 1440
NOON = 29_000_000  # some minute since 1970
THREE_NINES = Objective("three nines", Indicator.ORDER, 0.999, 30 * DAY_S)

Row = dict[str, Any]


def minutes_of(
    spark: SparkSession, count: Callable[[int], SliCounts], since: int, until: int, objective: str = "three nines"
) -> DataFrame:
    """One series, with these counts in every minute."""
    counted = ((minute, count(minute)) for minute in range(since, until))
    rows = [(objective, "prod", minute, one.good, one.bad, one.undecided) for minute, one in counted]
    return spark.createDataFrame(rows, MINUTES)


def windows_of(minutes: DataFrame, until: int, *objectives: Objective) -> dict[tuple[str, float], Row]:
    lengths = {length for one in objectives for length in window_lengths_min(one)}
    rows = window_rows([row.asDict() for row in window_sums(minutes, lengths, until).collect()], objectives, until)
    return {(str(row["objective"]), float(str(row["window_s"]))): row for row in rows}


@pytest.mark.parametrize(
    ("bad_of_1000", "burn_rate", "exhausted_in_days"), [(1, 1.0, 30.0), (2, 2.0, 15.0), (10, 10.0, 3.0), (1000, 1000.0, 0.03)]
)
def test_the_workbook_s_table_of_burn_rates(
    spark: SparkSession, bad_of_1000: int, burn_rate: float, exhausted_in_days: float
) -> None:
    """Table 5-4: burn rates of a 99.9 % objective and the time in which they spend a budget of which nothing is spent yet."""
    rows = [
        ("three nines", "prod", NOON - PERIOD_MIN, 10**12, 0, 0),
        ("three nines", "prod", NOON - 1, 1000 - bad_of_1000, bad_of_1000, 0),
    ]
    windows = windows_of(spark.createDataFrame(rows, MINUTES), NOON, THREE_NINES)
    five_minutes = windows["three nines", 5 * MINUTE_S]
    assert five_minutes["burn_rate"] == burn_rate
    assert isclose(five_minutes["exhausted_in_s"], exhausted_in_days * DAY_S, rel_tol=2e-5)


def test_what_a_window_says(spark: SparkSession) -> None:
    def count(minute: int) -> SliCounts:
        return SliCounts(9, 1, 10) if minute == NOON - 60 else SliCounts(10) if minute >= NOON - 120 else SliCounts()

    windows = windows_of(minutes_of(spark, count, NOON - 4320, NOON), NOON, THREE_NINES)
    assert sorted(window_s for _, window_s in windows) == [300, 1800, 3600, 7200, 21600, 86400, 259200, 2592000]
    hour = windows["three nines", HOUR_S]
    assert {name: hour[name] for name in ("good", "bad", "undecided", "minutes")} == {
        "good": 599,
        "bad": 1,
        "undecided": 10,
        "minutes": 60,
    }
    assert hour["error_ratio"] == 1 / 600
    assert (hour["error_ratio_least"], hour["error_ratio_most"]) == (1 / 610, 11 / 610)
    assert hour["error_ratio_low"] < 1 / 600 < hour["error_ratio_high"]
    period = windows["three nines", 30 * DAY_S]
    assert isclose(period["budget_left"], 1 - (1 / 1200) / 0.001 * 140 / PERIOD_MIN)  # two clock hours and 20 minutes of a third
    assert hour["budget_left"] == period["budget_left"]
    assert windows["three nines", 5 * MINUTE_S]["never_exhausted"]


def test_none_bad_of_many_is_at_most_three_of_as_many(spark: SparkSession) -> None:
    windows = windows_of(minutes_of(spark, lambda _minute: SliCounts(100), NOON - 10, NOON), NOON, THREE_NINES)
    row = windows["three nines", HOUR_S]
    assert (row["error_ratio"], row["error_ratio_low"]) == (0.0, 0.0)
    assert 0.003 < row["error_ratio_high"] < 0.0037  # 3.0 / 1000 one-sided, 3.7 / 1000 of two-sided 95 %


def test_nothing_decided_says_nothing(spark: SparkSession) -> None:
    windows = windows_of(minutes_of(spark, lambda _minute: SliCounts(0, 0, 7), NOON - 10, NOON), NOON, THREE_NINES)
    row = windows["three nines", HOUR_S]
    nothing = ("error_ratio", "error_ratio_low", "error_ratio_high", "burn_rate", "budget_left", "exhausted_in_s")
    assert [row[name] for name in nothing] == [None] * 6
    assert (row["undecided"], row["error_ratio_least"], row["error_ratio_most"], row["minutes"]) == (70, 0.0, 1.0, 0)


def test_an_outage_of_ten_minutes_pages_at_once_and_until_the_short_window_is_clean(spark: SparkSession) -> None:
    """99.9 %: 14.4 times the budget in an hour is reached in 52 seconds of an outage, and over five minutes after it."""

    def count(minute: int) -> SliCounts:
        return SliCounts(0, 10) if NOON <= minute < NOON + 10 else SliCounts(10)

    minutes = minutes_of(spark, count, NOON - 4320, NOON + 60)
    days = alert_days(minutes, [THREE_NINES], NOON - 60, NOON + 60)
    fired = {(row["severity"], row["long_s"]): _minutes(row["firing"]) for row in days}
    assert fired[Urgency.PAGE, HOUR_S] == [(NOON, NOON + 14)]
    assert fired[Urgency.PAGE, 6 * HOUR_S] == [(NOON + 2, NOON + 39)]  # 0.6 % of 360 minutes are 2.2
    assert fired[Urgency.TICKET, DAY_S] == [(NOON + 4, NOON + 60)]  # 0.3 % of a day are 4.3 minutes
    assert fired[Urgency.TICKET, 3 * DAY_S] == [(NOON + 4, NOON + 60)]  # 0.1 % of three days as well


def test_a_slow_burn_pages_nobody_and_makes_a_ticket(spark: SparkSession) -> None:
    """A burn rate of 4 spends the budget in a week: under both pages, over both tickets."""
    minutes = minutes_of(spark, lambda _minute: SliCounts(996, 4), NOON - 4320, NOON + 30)
    days = alert_days(minutes, [THREE_NINES], NOON, NOON + 30)
    states = {(row["severity"], row["long_s"]): (row["state"], row["firing_minutes"]) for row in days}
    assert {(row["long_s"], row["factor"]) for row in days} == {(3600.0, 14.4), (21600.0, 6.0), (86400.0, 3.0), (259200.0, 1.0)}
    assert states[Urgency.PAGE, HOUR_S] == (AlertState.QUIET, 0)
    assert states[Urgency.PAGE, 6 * HOUR_S] == (AlertState.QUIET, 0)
    assert states[Urgency.TICKET, DAY_S] == (AlertState.FIRING, 30)
    assert states[Urgency.TICKET, 3 * DAY_S] == (AlertState.FIRING, 30)


def test_a_silent_hour_is_unknown_to_the_short_windows(spark: SparkSession) -> None:
    minutes = minutes_of(spark, lambda _minute: SliCounts(10), NOON - 4320, NOON)
    days = alert_days(minutes, [THREE_NINES], NOON, NOON + 60)
    unknown = {(row["severity"], row["long_s"]): row["unknown_minutes"] for row in days}
    assert unknown == {
        (Urgency.PAGE, HOUR_S): 56,
        (Urgency.PAGE, 6 * HOUR_S): 31,
        (Urgency.TICKET, DAY_S): 0,
        (Urgency.TICKET, 3 * DAY_S): 0,
    }


def test_every_minute_agrees_with_plain_counting(spark: SparkSession) -> None:
    """Random series of two objectives and two targets, with holes, against sums over each window by themselves."""
    rng = random.Random(5)
    objectives = [THREE_NINES, Objective("loose", Indicator.AFFINITY, 0.97, 28 * DAY_S)]
    policy = (BurnAlert(Urgency.PAGE, 0.02, HOUR_S), BurnAlert(Urgency.TICKET, 0.001, 2 * HOUR_S))
    counts = {}
    for name, target in product(("three nines", "loose"), ("a", "b")):
        for minute in range(NOON - 200, NOON + 40):
            if rng.random() < 0.3:
                counts[name, target, minute] = SliCounts(rng.randrange(40), int(rng.random() < 0.15), rng.randrange(2))
    rows = [(*series, one.good, one.bad, one.undecided) for series, one in counts.items()]
    days = alert_days(spark.createDataFrame(rows, MINUTES), objectives, NOON, NOON + 40, policy)

    def summed(name: str, target: str, minute: int, length_s: float) -> SliCounts:
        inside = range(minute - int(length_s / 60) + 1, minute + 1)
        return sum((counts.get((name, target, one), SliCounts()) for one in inside), SliCounts())

    expected: dict[tuple[str, str, float], tuple[Any, ...]] = {}
    for objective, target, alert in product(objectives, "ab", policy):
        states = [
            alert.state(
                objective,
                summed(objective.name, target, minute, alert.long_s),
                summed(objective.name, target, minute, alert.short_s),
            )
            for minute in range(NOON, NOON + 40)
        ]
        firing = {minute for minute, state in enumerate(states, NOON) if state is AlertState.FIRING}
        expected[objective.name, target, alert.long_s] = (*(states.count(state) for state in AlertState), states[-1], firing)
    found: dict[tuple[str, str, float], tuple[Any, ...]] = {
        (row["objective"], row["target"], row["long_s"]): (
            row["firing_minutes"],
            row["quiet_minutes"],
            row["unknown_minutes"],
            row["state"],
            {minute for span in _minutes(row["firing"]) for minute in range(*span)},
        )
        for row in days
    }
    assert found == expected
    assert all(sum(one[place] for one in expected.values()) for place in (0, 1, 2))


def _minutes(spans: list[Any]) -> list[tuple[int, int]]:
    return [(span["since"] // MINUTE_US, span["until"] // MINUTE_US) for span in spans]
