"""Points in time as crontab(5) writes them: five fields, minute hour day-of-month month day-of-week, in UTC.

A field is `*`, a number, a range `a-b`, a step `*/n` or `a-b/n`, or several of these separated by commas. Sunday is 0 and 7, and names
(`mon`, `jan`) are allowed. As in every cron, when both days are restricted, either of them suffices. Note for schedulers: some count
weekdays from Monday as 0; they are to be given the sets below, not the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

_DAYS_SEARCHED: Final = 8 * 366 + 1  # February 29th may be eight years away
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?P<any>\*)|(?P<first>[0-9a-z]+)(-(?P<last>[0-9a-z]+))?")


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five: its name, its range, and the names that stand for numbers."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    def read(self, text: str) -> frozenset[int]:
        return frozenset(number for part in text.split(",") for number in self._range(part))

    def _range(self, part: str) -> range:
        written, slash, step = part.partition("/")
        found = _PART.fullmatch(written)
        if found is None or (slash and (not step.isdecimal() or int(step) == 0)):
            raise ValueError(f"{part!r} is no {self.name}: write *, a number, a-b, */n, or several separated by commas")
        first = self.first if found["any"] else self._number(found["first"])
        last = self.last if found["any"] or (slash and not found["last"]) else self._number(found["last"] or found["first"])
        if first > last:
            raise ValueError(f"{part!r} runs backwards: the {self.name} must rise from left to right")
        return range(first, last + 1, int(step or 1))

    def _number(self, text: str) -> int:
        if text in self.names:
            return self.first + self.names.index(text)
        if not text.isdecimal() or not self.first <= int(text) <= self.last:
            raise ValueError(f"{text!r} is no {self.name}: it lies between {self.first} and {self.last}")
        return int(text)


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """The points in time of one crontab line. `weekdays` holds 0 (Sunday) to 6."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def __str__(self) -> str:
        return self.text

    def latest(self, at: datetime) -> datetime | None:
        """The last point at or before a time; None if there never was one."""
        day = at.astimezone(UTC).replace(second=0, microsecond=0)
        before = day.hour * 60 + day.minute
        for distance in range(_DAYS_SEARCHED):
            midnight = day.replace(hour=0, minute=0) - timedelta(days=distance)
            if self._on(midnight):
                passed = [minute for minute in self._minutes_of_a_day() if distance or minute <= before]
                if passed:
                    return midnight + timedelta(minutes=passed[-1])
        return None

    def following(self, at: datetime) -> datetime | None:
        """The first point after a time; None if there will never be one."""
        day = at.astimezone(UTC).replace(second=0, microsecond=0)
        before = day.hour * 60 + day.minute
        for distance in range(_DAYS_SEARCHED):
            midnight = day.replace(hour=0, minute=0) + timedelta(days=distance)
            if self._on(midnight):
                coming = [minute for minute in self._minutes_of_a_day() if distance or minute > before]
                if coming:
                    return midnight + timedelta(minutes=coming[0])
        return None

    def longest_gap(self) -> timedelta:
        """The longest time between two neighbouring points, over eight years. `timedelta.max` if there is at most one."""
        minutes = self._minutes_of_a_day()
        inside = max((later - earlier for earlier, later in pairwise(minutes)), default=0)
        days = list(self._days())
        apart = max((later - earlier for earlier, later in pairwise(days)), default=0)
        if apart == 0:
            return timedelta.max
        return timedelta(minutes=max(inside, apart * 24 * 60 - minutes[-1] + minutes[0]))

    def _minutes_of_a_day(self) -> list[int]:
        return [hour * 60 + minute for hour in sorted(self.hours) for minute in sorted(self.minutes)]

    def _days(self) -> Iterator[int]:
        start = datetime(2000, 1, 1, tzinfo=UTC)
        return (distance for distance in range(_DAYS_SEARCHED) if self._on(start + timedelta(days=distance)))

    def _on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either_day else by_month and by_week


def parse_cron(text: str) -> Cron:
    """Reads a crontab line; raises ValueError that says which part is wrong."""
    words = text.lower().split()
    if len(words) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(words)} fields and not five: minute hour day-of-month month day-of-week")
    minutes, hours, days, months, weekdays = (field.read(word) for field, word in zip(_FIELDS, words, strict=True))
    either_day = not words[2].startswith("*") and not words[4].startswith("*")
    cron = Cron(" ".join(words), minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either_day)
    if next(cron._days(), None) is None:
        raise ValueError(f"{text!r} never comes: no such day exists")
    return cron
