"""Totals become slices of time that can be written any number of times and add up."""

from __future__ import annotations

from prober.sinks.status import slices
from prober.sinks.status.slices import LONG_S, SHORT_S, Series, Slices, SliceSpan, definition_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts

SERIES = Series("europe", "order", "order")


def short(taken: dict[SliceSpan, SliCounts]) -> dict[float, SliCounts]:
    return {span.begins_at: counts for span, counts in taken.items() if span.length_s == SHORT_S}


def test_what_is_counted_belongs_to_the_slice_in_which_it_is_told() -> None:
    told = Slices("p")
    told.told(SERIES, SliCounts(5, 1, 0), 10.0)
    told.told(SERIES, SliCounts(7, 1, 2), 299.0)
    told.told(SERIES, SliCounts(9, 1, 2), 301.0)
    taken = told.take()
    assert short(taken) == {0.0: SliCounts(7, 1, 2), 300.0: SliCounts(2, 0, 0)}
    assert taken[SliceSpan(SERIES, LONG_S, 0.0)] == SliCounts(9, 1, 2)


def test_a_slice_is_told_whole_each_time() -> None:
    told = Slices("p")
    told.told(SERIES, SliCounts(5), 10.0)
    told.take()
    told.told(SERIES, SliCounts(6), 20.0)
    assert short(told.take()) == {0.0: SliCounts(6)}


def test_nothing_new_is_not_written() -> None:
    told = Slices("p")
    told.told(SERIES, SliCounts(), 10.0)
    told.told(SERIES, SliCounts(5), 20.0)
    told.take()
    told.told(SERIES, SliCounts(5), 400.0)
    assert told.take() == {}


def test_a_clock_that_steps_back_loses_nothing() -> None:
    told = Slices("p")
    told.told(SERIES, SliCounts(5), 310.0)
    told.told(SERIES, SliCounts(8), 290.0)
    assert short(told.take()) == {300.0: SliCounts(8)}


def test_what_could_not_be_written_waits_and_does_not_hide_what_is_newer() -> None:
    told = Slices("p")
    told.told(SERIES, SliCounts(5), 10.0)
    told.told(SERIES, SliCounts(6), 310.0)
    taken = told.take()
    told.told(SERIES, SliCounts(9), 320.0)
    told.put_back(taken)
    assert short(told.take()) == {0.0: SliCounts(5), 300.0: SliCounts(4)}


def test_what_waits_is_bounded() -> None:
    told = Slices("p")
    for number in range(slices.WAITING_MAX // 2 + 10):
        told.told(Series("europe", f"order-{number}", "order"), SliCounts(1), 10.0)
    assert len(told.take()) == slices.WAITING_MAX
    assert told.dropped == 20


def test_a_slice_says_whose_it_is() -> None:
    told = Slices("p")
    told.told(SERIES, SliCounts(5, 1), 10.0)
    first, _ = told.as_slices(told.take())
    assert (first.process, first.target, first.objective, first.definition) == ("p", *SERIES)
    assert (first.length_s, first.begins_at, first.counts) == (SHORT_S, 0.0, SliCounts(5, 1))


def test_a_definition_is_what_is_counted_and_not_what_is_promised() -> None:
    slow = Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, DAY_S, threshold_s=1.0)
    assert definition_of(slow) == definition_of(Objective("fast", Indicator.PUBLISH_LATENCY, 0.9, 2 * DAY_S, threshold_s=1.0))
    assert definition_of(slow) != definition_of(Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, DAY_S, threshold_s=2.0))
