"""Which keys are held, and until when they were, as far as that may delay others."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from prober.core.events import LONG_AGO
from prober.core.neighbours import ENDS_KEPT, Neighbours
from prober.core.rules import Rules

SHORT: dict[str, Any] = {"delivery_delay_max_s": 0.0, "ack_lag_max_s": 0.0, "ack_deadline_s": 1.0}
PROMPT = Rules(**SHORT, delivery_deadline_s=320, stall_deadline_s=32, unacked_deadline_s=inf)
PART_S = 10.0
"""Of the longest deadline: what was over in one part of it is remembered as one."""


@pytest.fixture
def neighbours() -> Neighbours:
    return Neighbours(PROMPT)


def test_another_key_that_is_held_all_the_time_may_delay_this_one(neighbours: Neighbours) -> None:
    neighbours.held("other", 10.0, 200.0)
    between = [(9.9, 100.0), (10.0, 100.0), (50.0, 200.0)]
    assert [neighbours.kept_until_t("k", *times) for times in between] == [LONG_AGO, 100.0, 200.0]
    assert neighbours.kept_until_t("other", 10.0, 100.0) == LONG_AGO  # a key does not delay itself
    assert neighbours.kept_until_t("k", 50.0, 200.1) == 200.0


def test_a_key_that_is_held_again_before_it_is_over_is_held_all_the_time(neighbours: Neighbours) -> None:
    neighbours.held("other", 10.0, 70.0)
    neighbours.held("other", 60.0, 120.0)
    neighbours.held("other", 61.0, 100.0)
    assert neighbours.kept_until_t("k", 10.0, 120.0) == 120.0
    neighbours.held("other", 130.0, 190.0)
    assert neighbours.kept_until_t("k", 10.0, 140.0) == 120.0
    assert neighbours.kept_until_t("k", 130.0, 140.0) == 140.0


def test_a_key_that_was_acknowledged_delays_no_other_any_more(neighbours: Neighbours) -> None:
    neighbours.held("other", 10.0, 200.0)
    neighbours.freed("other", 55.0)
    neighbours.freed("never held", 55.0)
    assert neighbours.kept_until_t("k", 10.0, 100.0) == 55.0
    assert neighbours.kept_until_t("k", 9.9, 100.0) == LONG_AGO
    assert neighbours.kept_until_t("other", 10.0, 100.0) == LONG_AGO
    neighbours.held("other", 56.0, 200.0)
    assert neighbours.kept_until_t("k", 10.0, 100.0) == 55.0  # what begins later is no excuse


def test_where_an_acknowledgement_was_lost_another_key_counts_that_was_held_before_the_lease_was_over() -> None:
    neighbours = Neighbours(Rules(**SHORT | {"ack_deadline_s": 60.0}))
    neighbours.held("one", 10.0, 70.0)
    neighbours.freed("one", 11.0)
    neighbours.held("other", 50.0, 500.0)
    assert [neighbours.leased_until_t("k", t) for t in (9.0, 10.0, 20.0)] == [9.0, 70.0, 70.0]
    assert neighbours.kept_until_t("k", 70.0, 300.0) == 300.0
    assert neighbours.leased_until_t("one", 20.0) == 20.0  # its own acknowledgement delays nobody else


def test_it_was_sent_before_it_came_and_an_acknowledgement_takes_its_time() -> None:
    neighbours = Neighbours(Rules(delivery_delay_max_s=1.0, clock_error_s=2.0, ack_lag_max_s=4.0))
    neighbours.held("other", 10.0, 200.0)
    neighbours.freed("other", 50.0)
    assert [neighbours.kept_until_t("k", t, 100.0) for t in (6.9, 7.0)] == [LONG_AGO, 55.0]


def test_what_is_not_acknowledged_is_kept_back_as_long_as_the_retry_policy_lets_it() -> None:
    neighbours = Neighbours(Rules(**SHORT, retry_backoff_max_s=600.0))
    neighbours.held("other", 10.0, 70.0)
    assert [neighbours.kept_until_t("k", 20.0, t) for t in (670.0, 1000.0)] == [670.0, 670.0]
    neighbours.held("one", 700.0, 760.0)
    neighbours.held("one", 1300.0, 1350.0)  # it comes again, and is held all the time
    assert neighbours.kept_until_t("k", 700.0, 1900.0) == 1900.0
    neighbours.freed("one", 1901.0)
    assert neighbours.kept_until_t("k", 700.0, 3000.0) == 1901.0  # what is acknowledged is not kept back
    assert neighbours.leased_until_t("k", 1300.0) == 1301.0  # nor what was, if that was lost, for longer than its lease


def test_a_control_operation_leaves_nothing_held(neighbours: Neighbours) -> None:
    neighbours.held("other", 10.0, 200.0)
    neighbours.forget("other")
    neighbours.forget("never held")
    assert neighbours.kept_until_t("k", 10.0, 100.0) == LONG_AGO


def test_what_is_over_is_not_looked_at_again(neighbours: Neighbours) -> None:
    for n in range(10):
        neighbours.held(f"k{n}", float(n), 50.0 + n)
    assert neighbours.kept_until_t("k0", 20.0, 1000.0) == 59.0
    assert list(neighbours._held) == ["k0"]


def test_what_was_over_in_one_part_of_a_deadline_is_remembered_as_one(neighbours: Neighbours) -> None:
    for key, begun_t, over_t in (("a", 10.0, 102.0), ("b", 40.0, 109.0), ("c", 40.0, 111.0)):
        neighbours.held(key, begun_t, 200.0)
        neighbours.freed(key, over_t)
    assert [neighbours.kept_until_t("k", t, 150.0) for t in (9.0, 10.0, 40.0)] == [LONG_AGO, 109.0, 111.0]


def test_the_memory_of_what_is_over_is_bounded(neighbours: Neighbours) -> None:
    for n in range(3 * ENDS_KEPT):
        neighbours.held("other", PART_S * n, PART_S * n + 1)
        neighbours.freed("other", PART_S * n + 1)
    assert len(neighbours._ended) == ENDS_KEPT
    latest_t = PART_S * (3 * ENDS_KEPT - 1)
    assert neighbours.kept_until_t("k", latest_t, latest_t + 20) == latest_t + 1


@pytest.mark.parametrize(
    ("rules", "until_t"),
    [
        (Rules(delivery_delay_max_s=inf), inf),
        (Rules(delivery_deadline_s=inf, stall_deadline_s=inf, unacked_deadline_s=inf), 20.0),
        (Rules(delivery_deadline_s=0, stall_deadline_s=0, unacked_deadline_s=0), 20.0),
    ],
)
def test_without_a_bound_nothing_is_remembered(rules: Rules, until_t: float) -> None:
    neighbours = Neighbours(rules)
    neighbours.held("other", 10.0, until_t)
    neighbours.freed("other", 15.0)
    assert neighbours.kept_until_t("k", 12.0, 100.0) == LONG_AGO
