"""Counting good, bad and undecided things: what a run verified, and durations and outcomes for objectives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prober.core.findings import Finding, Kind, Status
from prober.slo.counts import SloCounters, checks_of, completeness_of, is_overdue, proven_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts

COUNTERS = {"deliveries_first": 100, "rewinds": 10, "deliveries_among_several": 50}
NOTHING = SliCounts()
FAST = Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, 30 * DAY_S, 0.5)
FASTER = Objective("faster", Indicator.PUBLISH_LATENCY, 0.9, 30 * DAY_S, 0.1)
UP = Objective("up", Indicator.PUBLISH_AVAILABILITY, 0.99, 30 * DAY_S)


@pytest.mark.parametrize(
    ("found", "indicator", "expected"),
    [
        ({}, Indicator.ORDER, SliCounts(100)),
        ({(Kind.ORDER_GAP, Status.VIOLATION): 2}, Indicator.ORDER, SliCounts(98, 2)),
        ({(Kind.ORDER_GAP, Status.INDETERMINATE): 2}, Indicator.ORDER, SliCounts(98, 0, 2)),
        ({(Kind.PUBLISHER_DUP, Status.INFO): 2}, Indicator.ORDER, SliCounts(100)),
        ({(Kind.REDELIVERY_SKIP, Status.VIOLATION): 1}, Indicator.REDELIVERY, SliCounts(9, 1)),
        ({(Kind.REDELIVERY_STALL, Status.LIVENESS): 1}, Indicator.REDELIVERY, SliCounts(9, 1)),
        ({(Kind.REDELIVERY_SKIP, Status.VIOLATION): 12}, Indicator.REDELIVERY, SliCounts(0, 12)),
        ({(Kind.AFFINITY_SPLIT, Status.INDETERMINATE): 3}, Indicator.AFFINITY, SliCounts(47, 0, 3)),
        ({(Kind.STUCK, Status.LIVENESS): 3}, Indicator.ORDER, SliCounts(100)),
    ],
)
def test_findings_make_things_bad(found: dict[tuple[Kind, Status], int], indicator: Indicator, expected: SliCounts) -> None:
    assert checks_of(COUNTERS, found, NOTHING, trusted=True)[indicator] == expected


def test_what_could_not_be_placed_is_undecided() -> None:
    assert checks_of({"deliveries_first": 3, "deliveries_unplaced": 2}, {}, NOTHING, trusted=True)[Indicator.ORDER] == SliCounts(
        3, 0, 2
    )


def test_nothing_seen_is_nothing_good() -> None:
    assert checks_of({}, {}, NOTHING, trusted=True) == dict.fromkeys(
        (Indicator.ORDER, Indicator.REDELIVERY, Indicator.AFFINITY, Indicator.COMPLETENESS), NOTHING
    )


def test_after_verification_stopped_nothing_is_good_and_what_was_proven_is_bad() -> None:
    found = {(Kind.ORDER_GAP, Status.VIOLATION): 2}
    checks = checks_of(COUNTERS, found, SliCounts(5, 1, 1), trusted=False)
    assert checks[Indicator.ORDER] == SliCounts(0, 2, 98)
    assert checks[Indicator.COMPLETENESS] == SliCounts(0, 1, 6)


def test_after_a_fault_of_the_checker_nothing_is_decided() -> None:
    found = {(Kind.ORDER_GAP, Status.VIOLATION): 2}
    checks = checks_of(COUNTERS, found, SliCounts(5, 1, 1), trusted=False, proven=False)
    assert checks[Indicator.ORDER] == SliCounts(0, 0, 100)
    assert checks[Indicator.COMPLETENESS] == SliCounts(0, 0, 7)


def test_of_a_run_that_was_cut_short_only_what_was_proven_counts() -> None:
    checks = {
        Indicator.ORDER: SliCounts(90, 2, 8),
        Indicator.REDELIVERY: SliCounts(4, 0, 1),
        Indicator.PUBLISH_AVAILABILITY: SliCounts(bad=50),
    }
    assert proven_of(checks) == {Indicator.ORDER: SliCounts(bad=2)}


@pytest.mark.parametrize(("status", "overdue"), [(Status.LIVENESS, True), (Status.INDETERMINATE, False)])
def test_a_doubtful_wait_makes_nothing_overdue(status: Status, *, overdue: bool) -> None:
    assert is_overdue(Finding(Kind.STUCK, status, "s", "k", 1.0, (1,), {})) is overdue


def test_completeness_is_bad_only_where_the_deadline_has_passed() -> None:
    missing = {"a": 2, "b": 3}
    assert completeness_of(10, {}, frozenset()) == SliCounts(10)
    assert completeness_of(10, missing, frozenset()) == SliCounts(5, 0, 5)
    assert completeness_of(10, missing, frozenset({"b", "c"})) == SliCounts(5, 3, 2)


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


@pytest.mark.parametrize(
    ("lagged_s", "expected"),
    [
        (0.0, {"fast": SliCounts(0, 1), "faster": SliCounts(0, 1)}),
        (0.3, {"fast": SliCounts(0, 1), "faster": SliCounts(0, 1)}),
        (0.5, {"fast": SliCounts(undecided=1), "faster": SliCounts(undecided=1)}),
        (1.0, {"fast": SliCounts(undecided=1), "faster": SliCounts(undecided=1)}),
    ],
)
def test_what_only_the_lag_may_have_made_late_is_undecided_for_every_objective(
    lagged_s: float, expected: dict[str, SliCounts]
) -> None:
    counters = SloCounters([FAST, FASTER])
    assert counters.took(Indicator.PUBLISH_LATENCY, 1.0, lagged_s) is not bool(expected["fast"].undecided)
    assert counters.totals == expected


def test_what_is_in_time_although_the_loop_lagged_is_good() -> None:
    counters = SloCounters([FAST])
    assert counters.took(Indicator.PUBLISH_LATENCY, 0.5, 0.45)
    assert counters.totals == {"fast": SliCounts(1)}


def test_other_objectives_leave_the_counts_of_those_that_stay() -> None:
    counters = SloCounters([FAST, UP])
    counters.took(Indicator.PUBLISH_LATENCY, 0.2)
    counters.follow([replace(FAST, target=0.5), FASTER])
    counters.took(Indicator.PUBLISH_LATENCY, 0.2)
    assert counters.totals == {"fast": SliCounts(2), "faster": SliCounts(bad=1)}


def test_an_objective_that_counts_something_else_begins_at_0_and_one_that_comes_back_goes_on() -> None:
    counters = SloCounters([FAST])
    counters.took(Indicator.PUBLISH_LATENCY, 0.2)
    counters.follow([replace(FAST, threshold_s=0.1)])
    counters.took(Indicator.PUBLISH_LATENCY, 0.2)
    assert counters.totals == {"fast": SliCounts(bad=1)}
    counters.follow([FAST])
    assert counters.totals == {"fast": SliCounts(1)}
