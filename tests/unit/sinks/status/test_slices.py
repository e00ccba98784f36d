"""Totals become slices of time that can be written any number of times and add up."""

from __future__ import annotations

import pytest

from prober.sinks.status import slices
from prober.sinks.status.slices import (
    KEPT_S,
    LONG_S,
    MINUTE_SLICE_S,
    SHORT_S,
    Series,
    Slices,
    SliceSpan,
    definition_of,
    window_begin,
)
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, Objective, SliCounts

SERIES = Series("europe", "order", "order")


def short(taken: dict[SliceSpan, SliCounts]) -> dict[float, SliCounts]:
    return {span.begins_at: counts for span, counts in taken.items() if span.length_s == SHORT_S}


def test_what_is_counted_belongs_to_the_slice_in_which_it_is_reported() -> None:
    reported = Slices("p")
    reported.record(SERIES, SliCounts(5, 1, 0), 10.0)
    reported.record(SERIES, SliCounts(7, 1, 2), 299.0)
    reported.record(SERIES, SliCounts(9, 1, 2), 301.0)
    taken = reported.take()
    assert short(taken) == {0.0: SliCounts(7, 1, 2), 300.0: SliCounts(2, 0, 0)}
    assert taken[SliceSpan(SERIES, LONG_S, 0.0)] == SliCounts(9, 1, 2)


def test_a_slice_is_reported_whole_each_time() -> None:
    reported = Slices("p")
    reported.record(SERIES, SliCounts(5), 10.0)
    reported.take()
    reported.record(SERIES, SliCounts(6), 20.0)
    assert short(reported.take()) == {0.0: SliCounts(6)}


def test_nothing_new_is_not_written() -> None:
    reported = Slices("p")
    reported.record(SERIES, SliCounts(), 10.0)
    reported.record(SERIES, SliCounts(5), 20.0)
    reported.take()
    reported.record(SERIES, SliCounts(5), 400.0)
    assert reported.take() == {}


def test_a_clock_that_steps_back_loses_nothing() -> None:
    reported = Slices("p")
    reported.record(SERIES, SliCounts(5), 310.0)
    reported.record(SERIES, SliCounts(8), 290.0)
    assert short(reported.take()) == {300.0: SliCounts(8)}


def test_what_could_not_be_written_waits_and_does_not_hide_what_is_newer() -> None:
    reported = Slices("p")
    reported.record(SERIES, SliCounts(5), 10.0)
    reported.record(SERIES, SliCounts(6), 310.0)
    taken = reported.take()
    reported.record(SERIES, SliCounts(9), 320.0)
    reported.put_back(taken)
    assert short(reported.take()) == {0.0: SliCounts(5), 300.0: SliCounts(4)}


def test_what_waits_is_bounded() -> None:
    reported = Slices("p")
    for number in range(slices.WAITING_MAX // len(KEPT_S) + 10):
        reported.record(Series("europe", f"order-{number}", "order"), SliCounts(1), 10.0)
    assert len(reported.take()) == slices.WAITING_MAX
    assert reported.dropped == 10 * len(KEPT_S) - slices.WAITING_MAX % len(KEPT_S)


def test_slices_that_no_window_reaches_any_more_do_not_wait() -> None:
    reported = Slices("p")
    reported.record(SERIES, SliCounts(5), 10.0)
    reported.record(SERIES, SliCounts(6), 5 * HOUR_S)
    reported.put_back(reported.take())
    waiting = {(span.length_s, span.begins_at) for span in reported.take()}
    assert waiting == {(length_s, at) for length_s in KEPT_S for at in (0.0, 5 * HOUR_S)} - {(MINUTE_SLICE_S, 0.0)}


@pytest.mark.parametrize(
    ("window_s", "off_s"), [(300.0, 30.0), (1800.0, 30.0), (HOUR_S, 30.0), (2 * HOUR_S, 30.0), (DAY_S, 150.0), (3 * DAY_S, 1800.0)]
)
def test_a_window_is_as_long_as_its_name_to_half_a_slice(window_s: float, off_s: float) -> None:
    lengths = [now - window_begin(window_s, now) for now in (30 * DAY_S + 7.0 * turn for turn in range(600))]
    assert window_s - off_s <= min(lengths)
    assert max(lengths) <= window_s + off_s


def test_a_slice_says_whose_it_is() -> None:
    reported = Slices("p")
    reported.record(SERIES, SliCounts(5, 1), 10.0)
    _, first, _ = reported.as_slices(reported.take())
    assert (first.process, first.target, first.objective, first.definition) == ("p", *SERIES)
    assert (first.length_s, first.begins_at, first.counts) == (SHORT_S, 0.0, SliCounts(5, 1))


def test_a_definition_is_what_is_counted_and_not_what_is_guaranteed() -> None:
    slow = Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, DAY_S, threshold_s=1.0)
    assert definition_of(slow) == definition_of(Objective("fast", Indicator.PUBLISH_LATENCY, 0.9, 2 * DAY_S, threshold_s=1.0))
    assert definition_of(slow) != definition_of(Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, DAY_S, threshold_s=2.0))
