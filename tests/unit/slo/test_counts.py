"""Counting durations and outcomes for objectives."""

from __future__ import annotations

from prober.slo.counts import SloCounters
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts

FAST = Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, 30 * DAY_S, 0.5)
FASTER = Objective("faster", Indicator.PUBLISH_LATENCY, 0.9, 30 * DAY_S, 0.1)
UP = Objective("up", Indicator.PUBLISH_AVAILABILITY, 0.99, 30 * DAY_S)


def test_a_duration_counts_for_every_objective_by_its_own_threshold() -> None:
    counters = SloCounters([FAST, FASTER, UP])
    for duration_s in (0.05, 0.1, 0.5, 0.6):
        counters.took(Indicator.PUBLISH_LATENCY, duration_s)
    assert counters.totals == {"fast": SliCounts(3, 1), "faster": SliCounts(2, 2)}


def test_what_is_as_long_as_the_threshold_is_good_whatever_floats_make_of_it() -> None:
    counters = SloCounters([FASTER])
    for duration_s in (100.3 - 100.2, 1000.2 - 1000.1, 0.1000004, 0.100001):
        counters.took(Indicator.PUBLISH_LATENCY, duration_s)
    assert max(100.3 - 100.2, 1000.2 - 1000.1) > 0.1
    assert counters.totals == {"faster": SliCounts(3, 1)}


def test_outcomes_count_for_their_indicator_only() -> None:
    counters = SloCounters([FAST, UP])
    counters.ended(Indicator.PUBLISH_AVAILABILITY, good=3, bad=1)
    counters.ended(Indicator.PUBLISH_AVAILABILITY, undecided=2)
    counters.ended(Indicator.STALLED_KEYS, good=7)
    assert counters.totals == {"up": SliCounts(3, 1, 2)}
