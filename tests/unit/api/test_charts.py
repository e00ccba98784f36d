"""Charts over time: what is known is a line or a bar, what is not is a gap, and neither is ever a zero."""

from __future__ import annotations

import pytest

from api.charts import BINS_MAX, HEIGHT, WIDTH, Chart, ChartSpan, CountChart, TimeRange, charts, count_chart
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


def chart(*bins: BinOfRuns, number: int = 0) -> Chart:
    """One of the charts of a probe instance that runs ten times in the time shown."""
    return charts(bins, INTERVAL_S, SPAN, [LIMIT])[number]


def counts(by_minute: dict[float, SliCounts], span: ChartSpan = SPAN) -> CountChart:
    """The chart of an objective; slices by minutes since the hour began."""
    return count_chart(ORDER, {span.since + 60.0 * minute: one for minute, one in by_minute.items()}, span)


def test_without_runs_nothing_is_known() -> None:
    drawn = chart()
    assert (drawn.upper, drawn.lower, drawn.gaps, drawn.words) == ("", "", ((0.0, WIDTH),), "publish latency: nothing is known")


def test_a_line_from_run_to_run() -> None:
    drawn = chart(*(ended(tenths, 0.1, 1.0, 1.0) for tenths in (0, 2)), ended(5, 0.2, 0.5, 2.0), ended(8, 0.1, 0.0, 0.0), ended(10))
    assert drawn.upper == f"M0 0.00h0L60 0.00L150 {HEIGHT / 2:.2f}L240 {HEIGHT:.2f}"
    assert drawn.lower.startswith(f"M0 {HEIGHT * 0.9:.2f}h0L")
    assert (drawn.ceiling_s, drawn.highest_s) == (1.0, 1.0)


def test_a_run_that_knows_nothing_is_a_gap() -> None:
    drawn = chart(ended(0, 0.1, 1.0, 1.0), ended(2), ended(4, 0.1, 1.0, 1.0), ended(7, 0.1, 1.0, 1.0), ended(10, 0.1, 1.0, 1.0))
    assert drawn.upper == "M0 0.00h0M120 0.00h0L210 0.00L300 0.00"
    assert drawn.gaps == ((0.0, 120.0),)
    assert drawn.words.endswith("; 1 gap in which nothing is known")


def test_one_of_many_runs_that_knows_nothing_shows_too() -> None:
    bins = (ended(0, 0.1, 1.0, 1.0), ended(2, 0.1, 1.0, 1.0, runs=2, until=4), ended(7, 0.1, 1.0, 1.0), ended(10, 0.1, 1.0, 1.0))
    drawn = chart(*bins)
    assert (drawn.upper, drawn.gaps) == ("M0 0.00h0L120 0.00L210 0.00L300 0.00", ((60.0, 60.0),))


def test_missing_runs_are_a_gap() -> None:
    drawn = chart(ended(1, 0.1, 1.0, 1.0), ended(6, 0.1, 1.0, 1.0), ended(8, 0.1, 1.0, 1.0))
    assert drawn.upper == "M30 0.00h0M180 0.00h0L240 0.00"
    assert drawn.gaps == ((30.0, 150.0),)


def test_before_the_first_run_and_after_the_last_nothing_is_known() -> None:
    assert chart(ended(4, 0.1, 1.0, 1.0), ended(5, 0.1, 1.0, 1.0)).gaps == ((0.0, 120.0), (150.0, 150.0))


def test_what_the_newest_run_says() -> None:
    drawn = chart(ended(9, 0.01, 0.04, 0.9), ended(10, 0.012, 0.035, 0.9))
    assert drawn.now == "99 % within 35 ms, half within 12 ms"
    assert drawn.words.startswith(f"publish latency: {drawn.now}; at most 40 ms in the time shown")
    assert drawn.ceiling_s == 0.05


def test_of_an_age_the_longest_counts() -> None:
    drawn = chart(ended(10, 0.1, 0.4, 26.0, indicator=Indicator.OLDEST_UNACKED_MESSAGE_AGE), number=2)
    assert (drawn.now, drawn.ceiling_s, drawn.lower) == ("up to 26 s", 50.0, "")


def test_the_limit_is_drawn_where_it_is_not_above_the_chart() -> None:
    assert chart(ended(10, 0.1, 0.9, 0.9)).limit == HEIGHT / 2
    assert chart(ended(10, 0.01, 0.09, 0.9)).limit is None
    assert chart(ended(10, 0.1, 0.9, 0.9), number=1).limit is None


def test_nothing_but_zeros_is_a_line_at_the_bottom() -> None:
    drawn = chart(ended(10, 0.0, 0.0, 0.0))
    assert drawn.upper.endswith(f" {HEIGHT:.2f}h0")
    assert drawn.ceiling_s > 0.0


class TestCounts:
    def test_a_bar_is_the_share_of_bad_ones(self) -> None:
        drawn = counts({minute: SliCounts(50, 50 * (minute == 30)) for minute in range(0, 60, 5)})
        assert (drawn.bars, drawn.doubtful, drawn.gaps) == ("M150 60V0h25V60z", "", ())
        assert (drawn.ceiling, drawn.limit) == (0.5, 58.8)
        assert drawn.words == "share of bad ones: at most 50 %, at 2026-03-01 11:30:00 UTC"

    def test_nothing_bad_is_no_gap_and_nothing_decided_is_one(self) -> None:
        drawn = counts({0: SliCounts(9), 5: SliCounts(9), 10: SliCounts(undecided=9), 20: SliCounts(9), 50: SliCounts(9)})
        assert drawn.bars == ""
        assert drawn.gaps == ((50.0, 50.0), (125.0, 125.0), (275.0, 25.0))
        assert drawn.words == "share of bad ones: none was bad; 3 gaps in which nothing was decided"

    def test_what_is_undecided_might_be_bad(self) -> None:
        drawn = counts({0: SliCounts(80, 10, 10)})
        assert drawn.bars == "M0 60V26.67h25V60z"
        assert drawn.doubtful == "M0 26.67V0h25V26.67z"  # and beyond the top

    def test_nothing_was_decided_at_all(self) -> None:
        drawn = counts({})
        assert (drawn.gaps, drawn.worst, drawn.words) == (((0.0, WIDTH),), None, "share of bad ones: nothing was decided")

    def test_the_slice_under_way_ends_now(self) -> None:
        span = ChartSpan.until(NOON + 60.0, TimeRange.HOUR)
        assert counts({54 + 5: SliCounts(0, 1)}, span).bars == "M295 60V0h5V60z"


class TestSpan:
    @pytest.mark.parametrize(
        ("reach", "texts"),
        [
            ("1h", ["11:00", "11:15", "11:30", "11:45", "12:00"]),
            ("6h", ["06:00", "08:00", "10:00", "12:00"]),
            ("24h", ["12:00", "18:00", "1 Mar", "06:00", "12:00"]),
            ("7d", ["24 Feb", "26 Feb", "28 Feb"]),
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
        assert reach.slice_s % (HOUR_S if reach is TimeRange.WEEK else 300) == 0
