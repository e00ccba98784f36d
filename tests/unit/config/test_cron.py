"""Crontab lines against a minute-by-minute reading of crontab(5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.config.cron import Cron, parse_cron

MINUTE = timedelta(minutes=1)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


def field(first: int, last: int) -> st.SearchStrategy[str]:
    number = st.integers(first, last)
    ranges = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    part = st.one_of(number.map(str), ranges, st.tuples(ranges, st.integers(1, 9)).map(lambda pair: f"{pair[0]}/{pair[1]}"))
    return st.one_of(
        st.just("*"), st.integers(1, 9).map(lambda step: f"*/{step}"), st.lists(part, min_size=1, max_size=3).map(",".join)
    )


lines = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 7)).map(" ".join)


def numbers(text: str, first: int, last: int) -> set[int]:
    """One field, read naively."""
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = (f"{first}-{last}" if span == "*" else span).partition("-")
        found |= set(range(int(low), int(high or low) + 1, int(step or 1)))
    return found


def matches(line: str, at: datetime) -> bool:
    minute, hour, day, month, weekday = line.split()
    by_month = at.day in numbers(day, 1, 31)
    by_week = at.isoweekday() % 7 in {number % 7 for number in numbers(weekday, 0, 7)}
    on_day = by_month or by_week if "*" not in (day[0], weekday[0]) else by_month and by_week
    return on_day and at.minute in numbers(minute, 0, 59) and at.hour in numbers(hour, 0, 23) and at.month in numbers(month, 1, 12)


@given(lines, moments)
def test_the_next_and_the_last_point(line: str, at: datetime) -> None:
    cron = parse_cron(line)
    following, latest = cron.following(at), cron.latest(at)
    assert latest <= at < following
    assert matches(line, following)
    assert matches(line, latest)
    step = max((following - latest) // 500, MINUTE)  # nothing lies in between
    between = latest + MINUTE
    while between < following:
        assert not matches(line, between)
        between += step // MINUTE * MINUTE


@pytest.mark.parametrize(
    ("line", "at", "following"),
    [
        ("*/15 * * * *", "2026-11-21T10:14", "2026-11-21T10:15"),
        ("0 3 * * sun", "2026-11-21T10:00", "2026-11-22T03:00"),
        ("0 3 * * 7", "2026-11-21T10:00", "2026-11-22T03:00"),
        ("0 3 * * 1", "2026-11-21T10:00", "2026-11-23T03:00"),  # 1 is Monday
        ("30 6 1 jan *", "2026-11-21T10:00", "2027-01-01T06:30"),
        ("0 0 13 * fri", "2026-11-21T10:00", "2026-11-27T00:00"),  # either day
        ("0 0 29 2 *", "2026-11-21T10:00", "2028-02-29T00:00"),
        ("5/20 1 * * *", "2026-11-21T01:26", "2026-11-21T01:45"),
        ("5-5/20 1 * * *", "2026-11-21T01:05", "2026-11-22T01:05"),
        ("30 23 L * *", "2026-11-21T10:00", "2026-11-30T23:30"),
        ("0 12 * * fri#2", "2026-11-21T10:00", "2026-12-11T12:00"),
    ],
)
def test_examples(line: str, at: str, following: str) -> None:
    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    assert parse_cron(line).following(moment(at)) == moment(following)


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin")])
def test_points_are_in_utc_whatever_the_zone_of_the_question(zone: tzinfo) -> None:
    """The hour that Berlin skips on this day is a point like any other."""
    cron, at = parse_cron("30 1 * * *"), datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert cron.following((at - timedelta(hours=1)).astimezone(zone)) == at
    assert cron.latest((at + timedelta(seconds=1)).astimezone(zone)) == at
    assert cron.latest(at.astimezone(zone)) == at
    assert cron.following(at.astimezone(zone)) == at + timedelta(days=1)


@pytest.mark.parametrize("line", ["* * * * *", "0 0 29 2 *", "0 0 29 2 */7", "6 19 10 1 */7"])
def test_a_point_may_be_many_years_away(line: str) -> None:
    cron = parse_cron(line)
    at = datetime(2096, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)  # 2100 has no February 29th
    assert cron.latest(at) <= at < cron.following(at)


def points(cron: Cron, days: int) -> list[datetime]:
    start = at = datetime(2026, 1, 1, tzinfo=UTC)
    found = []
    while at < start + timedelta(days=days):
        found.append(at)
        at = cron.following(at)
    return found[1:]


@pytest.mark.parametrize(
    ("line", "days"), [("*/7 * * * *", 3), ("0 8-18/5 * * 1-5", 30), ("3,59 23,0 * * *", 9), ("0 0 1 * *", 400), ("0 12 * * 3", 60)]
)
def test_the_longest_and_the_shortest_gap_are_those_that_are_there(line: str, days: int) -> None:
    cron = parse_cron(line)
    gaps = [later - earlier for earlier, later in pairwise(points(cron, days))]
    assert (cron.longest_gap(), cron.shortest_gap()) == (max(gaps), min(gaps))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("* * * *", "has 4 fields and not five"),
        ("60 * * * *", r"'60' is not a minute: write \*, 0 to 59, a rising range a-b, \*/n, or several separated by commas"),
        ("* 1,24 * * *", "'1,24' is not an hour: write .* 0 to 23"),
        ("* * 0 * *", "'0' is not a day of the month"),
        ("* * * foo *", "'foo' is not a month: write .* jan to dec"),
        ("* * * * 8", "'8' is not a day of the week"),
        ("*/0 * * * *", "is not a minute: write"),
        ("5-1 * * * *", "'5-1' is not a minute: .* a rising range"),
        ("0 0 31 4 *", "never comes"),
        ("a-b-c * * * *", "is not a minute"),
        ("0 * * * * *", "has 6 fields and not five"),
    ],
)
def test_what_is_no_crontab_line(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_cron(line)
