"""Charts over time: what is known is a line or a bar, what is not is a gap, and neither is ever a zero."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.charts import BINS_MAX, ChartSpan, Plot, TimeRange, as_json, duration_plots, histogram_plot, share_plot
from prober.runs.result import HISTOGRAM_BOUNDS_S, Durations
from prober.sinks.status.over_time import BinOfRuns, WorstDurations
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, Objective, SliCounts
from tests.unit.api.asking import NOON

LIMIT = Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, 30 * DAY_S, threshold_s=0.5)
ORDER = Objective("order", Indicator.ORDER, 0.99, 30 * DAY_S)
SPAN = ChartSpan.until(NOON, TimeRange.HOUR)
INTERVAL_S = 360.0
"""A tenth of what is shown."""


def at(tenths: float) -> float:
    """A time in the hour that is shown."""
    return SPAN.since + tenths * INTERVAL_S


def ended(
    tenths: float, *known: float, runs: int = 1, until: float | None = None, indicator: Indicator = Indicator.PUBLISH_LATENCY
) -> BinOfRuns:
    """Runs that ended then; `known` are the median, what 99 % did not exceed, and the longest of one of them."""
    durations = {indicator: WorstDurations(*known)} if known else {}
    counts = {one: int(one in durations) for one in Indicator}
    return BinOfRuns(at(tenths), at(tenths if until is None else until), runs, 0.0, counts, durations)


def plot(*bins: BinOfRuns, number: int = 0) -> Plot:
    """One of the charts of a probe instance that runs ten times in the time shown."""
    return duration_plots(bins, INTERVAL_S, SPAN, [LIMIT])[number]


def shares(by_minute: dict[float, SliCounts], span: ChartSpan = SPAN) -> Plot:
    """The chart of an objective; slices by minutes since the hour began."""
    return share_plot(ORDER, {span.since + 60.0 * minute: one for minute, one in by_minute.items()}, span)


def sent(drawn: Plot) -> Any:
    """What the script gets."""
    assert drawn.data is not None
    return json.loads(as_json(drawn.data))


def line(drawn: Plot, label: str) -> list[float | None]:
    """The values of a series."""
    (values,) = (one["values"] for one in sent(drawn)["series"] if one["label"] == label)
    return list(values)


def gaps(drawn: Plot) -> list[tuple[float, float]]:
    """Where nothing is known, in tenths of the hour."""
    return [((begin - SPAN.since) / INTERVAL_S, (end - SPAN.since) / INTERVAL_S) for begin, end in sent(drawn)["gaps"]]


def test_without_runs_nothing_is_known() -> None:
    drawn = plot()
    assert (drawn.data, drawn.words) == (None, "publish latency: nothing is known")


def test_a_line_from_run_to_run_between_the_edges() -> None:
    drawn = plot(*(ended(tenths, 0.1, 1.0, 1.0) for tenths in (0, 2)), ended(5, 0.2, 0.5, 2.0), ended(8, 0.1, 0.0, 0.0), ended(10))
    assert line(drawn, "p99") == [None, 1.0, 1.0, 0.5, 0.0, None, None]
    assert line(drawn, "p50") == [None, 0.1, 0.1, 0.2, 0.1, None, None]
    assert sent(drawn)["x"] == [at(tenths) for tenths in (0, 0, 2, 5, 8, 10, 10)]


def test_a_run_that_knows_nothing_breaks_the_line() -> None:
    drawn = plot(*(ended(tenths, *([0.1, 1.0, 1.0] if tenths != 2 else [])) for tenths in (0, 2, 4, 7, 10)))
    assert line(drawn, "p99") == [None, 1.0, None, 1.0, 1.0, 1.0, None]
    assert gaps(drawn) == [(0.0, 4.0)]
    assert drawn.words.endswith("; 1 gap in which nothing is known")


def test_one_of_many_runs_that_knows_nothing_shows_too() -> None:
    known = (0.1, 1.0, 1.0)
    assert gaps(plot(ended(0, *known), ended(2, *known, runs=2, until=4), ended(7, *known), ended(10, *known))) == [(2.0, 4.0)]


def test_missing_runs_break_the_line() -> None:
    drawn = plot(ended(1, 0.1, 1.0, 1.0), ended(6, 0.1, 1.0, 1.0), ended(8, 0.1, 1.0, 1.0))
    assert line(drawn, "p99") == [None, 1.0, None, 1.0, 1.0, None]
    assert gaps(drawn) == [(1.0, 6.0)]


def test_before_the_first_run_and_after_the_last_nothing_is_known() -> None:
    assert gaps(plot(ended(4, 0.1, 1.0, 1.0), ended(5, 0.1, 1.0, 1.0))) == [(0.0, 4.0), (5.0, 10.0)]


def test_what_the_newest_run_says() -> None:
    drawn = plot(ended(9, 0.01, 0.04, 0.9), ended(10, 0.012, 0.035, 0.9))
    assert drawn.now == "p99 35 ms, p50 12 ms"
    assert drawn.words.startswith(f"publish latency: {drawn.now}; at most 40 ms in the time shown")


def test_of_an_age_the_longest_counts() -> None:
    drawn = plot(ended(10, 0.1, 0.4, 26.0, indicator=Indicator.OLDEST_UNACKED_MESSAGE_AGE), number=2)
    assert (drawn.now, [one["label"] for one in sent(drawn)["series"]]) == ("up to 26 s", ["longest"])


def test_the_threshold_reaches_from_edge_to_edge() -> None:
    assert line(plot(ended(10, 0.01, 0.09, 0.9)), "objective") == [0.5, 0.5, 0.5]
    other = plot(ended(10, 0.1, 0.9, 0.9, indicator=Indicator.END_TO_END_LATENCY), number=1)
    assert "objective" not in {one["label"] for one in sent(other)["series"]}


class TestShares:
    def test_a_bar_is_the_share_of_bad_ones(self) -> None:
        drawn = shares({minute: SliCounts(50, 50 * (minute == 30)) for minute in range(0, 60, 5)})
        assert line(drawn, "bad") == [0.5 * (minute == 30) for minute in range(0, 60, 5)] + [None]
        assert [line(drawn, "error budget")[0], sent(drawn)["top"]] == pytest.approx([0.01, 0.015])
        assert gaps(drawn) == []
        assert drawn.words == "share of bad ones: at most 50 %, at 2026-03-01 11:30:00 UTC"

    def test_nothing_bad_is_no_gap_and_nothing_decided_is_one(self) -> None:
        drawn = shares({0: SliCounts(9), 5: SliCounts(9), 10: SliCounts(undecided=9), 20: SliCounts(9), 50: SliCounts(9)})
        assert line(drawn, "bad")[:5] == [0.0, 0.0, None, None, 0.0]
        assert [(round(begin * 6), round(end * 6)) for begin, end in gaps(drawn)] == [(10, 20), (25, 50), (55, 60)]
        assert drawn.words == "share of bad ones: none was bad; 3 gaps in which nothing was decided"

    def test_what_is_undecided_might_be_bad(self) -> None:
        drawn = shares({0: SliCounts(80, 10, 10)})
        assert [line(drawn, "bad")[0], line(drawn, "if all undecided were bad")[0]] == pytest.approx([10 / 90, 0.2])

    def test_nothing_was_decided_at_all(self) -> None:
        assert (shares({}).data, shares({}).words) == (None, "share of bad ones: nothing was decided")

    def test_the_slice_under_way_ends_now(self) -> None:
        span = ChartSpan.until(NOON + 60.0, TimeRange.HOUR)
        drawn = shares({54 + 5: SliCounts(0, 1)}, span)
        assert (sent(drawn)["x"][-2:], line(drawn, "bad")[-2:]) == ([NOON, NOON + 60.0], [1.0, None])


class TestHistogram:
    def test_buckets_with_percentiles_and_the_threshold(self) -> None:
        took = Durations.of([0.012] * 90 + [0.03] * 9 + [0.4])
        assert sum(took.histogram) == took.count
        drawn = histogram_plot(Indicator.PUBLISH_LATENCY, took, 1.0)
        data = sent(drawn)
        names = dict(zip(data["x"], line(drawn, "measurements"), strict=True))
        by_name = {data["names"][round(number)]: count for number, count in names.items() if count}
        assert by_name == {"to 20 ms": 90.0, "to 50 ms": 9.0, "to 500 ms": 1.0}
        assert {one["label"]: data["names"][round(one["at"])] for one in data["marks"]} == {
            "p50": "to 20 ms",
            "p99": "to 50 ms",
            "max": "to 500 ms",
            "SLO": "to 1 s",
        }
        assert drawn.words == "publish_latency of 100 measurements: p50 12 ms, p99 30 ms, max 400 ms, SLO 1 s"

    def test_marks_at_one_place_are_one(self) -> None:
        drawn = histogram_plot(Indicator.PUBLISH_LATENCY, Durations.of([0.012]), None)
        assert [one["label"] for one in sent(drawn)["marks"]] == ["p50, p99, max"]

    def test_what_is_above_the_last_bound_has_a_bucket(self) -> None:
        assert Durations.of([HISTOGRAM_BOUNDS_S[-1], 100.0]).histogram[-2:] == (1, 1)
        assert Durations.of([0.0, 0.001, 0.0011]).histogram[:2] == (2, 1)


class TestSpan:
    @pytest.mark.parametrize(
        ("reach", "texts"),
        [
            ("1h", ["11:00", "11:15", "11:30", "11:45", "12:00"]),
            ("6h", ["06:00", "08:00", "10:00", "12:00"]),
            ("24h", ["12:00", "18:00", "1 Mar", "06:00", "12:00"]),
            ("7d", ["24 Feb", "26 Feb", "28 Feb"]),
            ("90d", ["8 Dec", "23 Dec", "7 Jan", "22 Jan", "6 Feb", "21 Feb"]),
        ],
    )
    def test_the_axis_has_full_hours_or_days(self, reach: str, texts: list[str]) -> None:
        span = ChartSpan.until(NOON, TimeRange(reach))
        assert [tick.text for tick in span.ticks] == texts
        assert all(0.0 <= tick.at <= 100.0 for tick in span.ticks)

    def test_times_at_the_edges_stay_inside(self) -> None:
        ticks = ChartSpan.until(NOON, TimeRange.HOURS).ticks
        assert [(tick.at, tick.anchor) for tick in ticks] == [(0.0, "start"), (33.33, "middle"), (66.67, "middle"), (100.0, "end")]

    @pytest.mark.parametrize("reach", TimeRange)
    def test_the_number_of_points_is_bounded(self, reach: TimeRange) -> None:
        span = ChartSpan.until(NOON, reach)
        assert reach.seconds / span.bin_s <= BINS_MAX
        assert reach.seconds / reach.slice_s <= BINS_MAX
        assert reach.seconds / reach.tick_s <= 6
        assert reach.slice_s % (HOUR_S if reach in (TimeRange.WEEK, TimeRange.MONTHS) else 300) == 0
