from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.monitoring.comparison import (
    POINT_AGE_MAX_S,
    Late,
    OwnSubscriptionStatus,
    Point,
    ProberAges,
    ProberSide,
    Reading,
    Side,
    shown,
)

NOW = 1_795_161_600.0
AT = NOW - 180.0
NAME = "projects/p/subscriptions/mine"
IN_TIME, LATE = ProberSide(Side.IN_TIME, 2.0, here=True), ProberSide(Side.LATE, 90.0, here=True)


def status(age_s: float | None = 5.0, at: float = AT, prober: ProberSide = IN_TIME, **other: object) -> OwnSubscriptionStatus:
    reading = Reading(None if age_s is None else Point(age_s, at))
    given = {"read_at": NOW, "reading": reading, "prober": prober} | other
    return OwnSubscriptionStatus(NAME, "europe", 60.0, **given)  # type: ignore[arg-type]


def late(*statuses: OwnSubscriptionStatus) -> tuple[Late, str]:
    [one] = shown(statuses, NOW)
    return one.late, one.sentence


@pytest.mark.parametrize(
    ("yours_s", "prober", "who", "begins"),
    [
        (90.0, IN_TIME, Late.ONLY_YOURS, "Only yours is late: its oldest message waits for 1m30s, the prober's on europe for 2s."),
        (5.0, LATE, Late.SERVICE, "The service is late, and yours does not show it"),
        (90.0, LATE, Late.BOTH, "Both are late"),
        (59.9, IN_TIME, Late.NOBODY, "Nobody is late"),
        (60.0, IN_TIME, Late.ONLY_YOURS, "Only yours"),
    ],
)
def test_who_is_late(yours_s: float, prober: ProberSide, who: Late, begins: str) -> None:
    found, sentence = late(status(yours_s, prober=prober))
    assert found is who
    assert sentence.startswith(begins)
    assert sentence.endswith("As of 07:57 UTC.")


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (status(None), "no point of it"),
        (status(at=NOW - POINT_AGE_MAX_S - 1.0), "its newest point is of 07:49 UTC"),
        (status(failure="no permission"), "no permission"),
        (status(None, read_at=None), "not read yet"),
        (status(prober=ProberSide(why="it had no run at that time")), "of the prober's: it had no run"),
        (status(90.0, prober=ProberSide()), "of the prober's"),
        (status().unknown("silent"), "silent"),
    ],
)
def test_what_is_not_known_is_never_nobody(one: OwnSubscriptionStatus, why: str) -> None:
    found, sentence = late(one)
    assert found is Late.UNKNOWN
    assert sentence.startswith("Unknown. Nothing is known ")
    assert why in sentence


def test_probers_that_share_the_work_are_taken_together() -> None:
    unknown, elsewhere = ProberSide(why="?", here=True), ProberSide()
    assert late(status(prober=IN_TIME), status(prober=LATE))[0] is Late.SERVICE
    assert late(status(prober=IN_TIME), status(prober=unknown))[0] is Late.UNKNOWN
    assert late(status(prober=elsewhere), status(prober=IN_TIME))[0] is Late.NOBODY
    assert late(status(failure="no permission"), status(90.0))[0] is Late.ONLY_YOURS
    assert late(status(90.0, read_at=NOW - 60.0), status(5.0))[0] is Late.NOBODY


def test_each_subscription_once_by_name() -> None:
    other = OwnSubscriptionStatus("projects/p/subscriptions/a", "europe", 60.0)
    assert [one.status.name for one in shown([status(), other, status()], NOW)] == [other.name, NAME]


# --- the prober's side -------------------------------------------------------------------------------------------------------


def ages(*reported: tuple[float, float]) -> ProberAges:
    kept = ProberAges()
    for age_s, at in reported:
        kept.aged(age_s, at)
    return kept


def test_in_time_needs_a_run_that_received() -> None:
    kept = ages((2.0, AT - 10.0), (3.0, AT))
    assert kept.side(AT, 60.0) == ProberSide(age_s=3.0, why="it had no run at that time")
    kept.ran(AT - 40.0, AT - 30.0, received=False)
    assert kept.side(AT, 60.0).side is Side.UNKNOWN
    kept.ran(AT - 30.0, AT - 20.0, received=True)
    assert kept.side(AT, 60.0) == ProberSide(Side.IN_TIME, 3.0, here=True)


def test_late_needs_none() -> None:
    assert ages((61.0, AT - 59.0), (0.0, AT)).side(AT, 60.0) == ProberSide(Side.LATE, 61.0, here=True)


@pytest.mark.parametrize("at", [AT - 61.0, AT + 1.0])
def test_what_was_at_another_time_says_nothing(at: float) -> None:
    """Such as after a pause of the prober, or at its start: Cloud Monitoring tells of minutes ago."""
    kept = ages((90.0, at))
    kept.ran(AT - 100.0, AT, received=True)
    assert kept.side(AT, 60.0) == ProberSide(why="the prober did not watch at that time", here=True)


def test_a_run_long_ago_says_nothing() -> None:
    kept = ages((1.0, AT))
    kept.ran(AT - 700.0, AT - 301.0, received=True)
    assert kept.side(AT, 60.0).side is Side.UNKNOWN


@given(st.lists(st.floats(0.0, 10_000.0), max_size=200))
def test_memory_is_bounded(steps: list[float]) -> None:
    kept, now = ProberAges(), NOW
    for step in steps:
        now += step
        kept.aged(1.0, now)
        kept.ran(now, now, received=True)
    assert all(point.at >= now - 1800.0 for point in kept._ages)
    assert all(ended >= now - 1800.0 for _, ended, _ in kept._runs)
