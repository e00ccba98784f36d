"""What a clean-up of a project may delete, by name and age."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from prober.probes.resources import OURS
from prober.runs.lifetimes import CleanupBounds, Kept, in_order_of_deletion, reason_to_keep, sweep
from tests.unit.runs.test_resources import DAY_S, NOW, Service, name_of

HOUR_S = 3600.0


def reason(age_s: float, bounds: CleanupBounds, prober: str = "me") -> Kept | None:
    return reason_to_keep(name_of(age_s, prober), NOW, bounds)


def test_by_default_what_is_a_day_old_goes() -> None:
    default = CleanupBounds(DAY_S, living=None)
    assert reason(DAY_S + 1, default) is None
    assert reason(DAY_S - 1, default) is Kept.YOUNG


def test_without_a_store_what_is_younger_than_a_day_may_be_in_use() -> None:
    assert reason(HOUR_S, CleanupBounds(0, living=None)) is Kept.MAY_BE_USED
    assert reason(HOUR_S, CleanupBounds(0, living=None, in_use=True)) is None
    assert reason(DAY_S + 1, CleanupBounds(0, living=None)) is None


@pytest.mark.parametrize("age_s", [HOUR_S, 3 * DAY_S])
def test_what_a_living_prober_uses_stays_at_any_age(age_s: float) -> None:
    bounds = CleanupBounds(0, living={"me"})
    assert reason(age_s, bounds) is Kept.USED
    assert reason(age_s, bounds, prober="me-too") is Kept.USED  # rather too much is kept
    assert reason(age_s, bounds, prober="you") is None
    assert reason(age_s, CleanupBounds(0, living={"me"}, in_use=True)) is None


def test_in_use_does_not_lift_the_age() -> None:
    assert reason(HOUR_S, CleanupBounds(DAY_S, living=frozenset(), in_use=True)) is Kept.YOUNG


@pytest.mark.parametrize("name", ["orders", "okp-orders", "okp-me-here-ordering-wire-65540000", "my-okp-a-65540000-abcdef"])
def test_a_name_that_is_not_ours_stays_whatever_is_wanted(name: str) -> None:
    assert reason_to_keep(f"projects/p/topics/{name}", NOW, CleanupBounds(0, living=None, in_use=True)) is Kept.NOT_NAMED


def test_subscriptions_go_before_topics() -> None:
    topic, subscription = name_of(0), name_of(0, kind="subscriptions")
    assert in_order_of_deletion([topic, subscription]) == [subscription, topic]


def test_what_lasts_is_swept_when_nobody_can_be_using_it_any_more() -> None:
    service: Any = Service({name_of(DAY_S, lasting=True): OURS, name_of(11 * DAY_S, "gone", lasting=True): OURS})
    assert asyncio.run(sweep(service, "projects/p", NOW)) == (1, 0)
    assert set(service.there) == {name_of(DAY_S, lasting=True)}
    unasked = CleanupBounds(DAY_S, living=None)
    assert reason_to_keep(name_of(9 * DAY_S, lasting=True), NOW, unasked) is Kept.MAY_BE_USED
    assert reason_to_keep(name_of(11 * DAY_S, lasting=True), NOW, unasked) is None
    assert reason_to_keep(name_of(2 * DAY_S, lasting=True), NOW, CleanupBounds(DAY_S, living=())) is None
