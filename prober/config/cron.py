"""Schedules in the notation of crontab(5): five fields, minute hour day-of-month month day-of-week, in UTC.

A field is `*`, a number, a range `a-b`, a step `*/n` or `a-b/n`, or several of these separated by commas. Sunday is 0 and 7, and names
(`mon`, `jan`) are allowed. As in cron, when both days are restricted, either of them suffices. `L` is the last day of a month, `fri#2` its
second Friday, `5L` its last. Callers use the times and do not parse the text: some schedulers count weekdays from Monday as 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from cronsim import CronSim, CronSimError

_FIELDS: Final = (
    ("a minute", "0 to 59"),
    ("an hour", "0 to 23"),
    ("a day of the month", "1 to 31"),
    ("a month", "1 to 12 or jan to dec"),
    ("a day of the week", "0 to 7 or sun to sat"),
)
_START: Final = datetime(2000, 1, 1, tzinfo=UTC)
_RANGE_OF_ONE: Final = re.compile(r"\b(\w+)-\1/[1-9]\d*")  # cronsim reads 5-5/10 like 5/10, which goes on after 5
_EIGHT_YEARS: Final = 8 * 366 + 1  # days; February 29th may be so far away


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of one valid crontab line; see `parse_cron`."""

    text: str

    def __str__(self) -> str:
        return self.text

    def latest(self, at: datetime) -> datetime:
        """Return the last time of the schedule at or before `at`."""
        minute = at.astimezone(UTC).replace(second=0, microsecond=0)
        return next(CronSim(self.text, minute + timedelta(minutes=1), reverse=True))

    def following(self, at: datetime) -> datetime:
        """Return the first time of the schedule after `at`."""
        return next(CronSim(self.text, at.astimezone(UTC)))

    def longest_gap(self) -> timedelta:
        """The longest time between two neighbours, over eight years. `timedelta.max` if there is at most one."""
        minutes, days = self._minutes_and_days()
        inside = max((later - earlier for earlier, later in pairwise(minutes)), default=0)
        apart = max((later - earlier for earlier, later in pairwise(days)), default=None)
        return timedelta.max if apart is None else timedelta(minutes=max(inside, _over_night(apart, minutes)))

    def shortest_gap(self) -> timedelta:
        """The shortest time between two neighbours, over eight years."""
        minutes, days = self._minutes_and_days()
        inside = min((later - earlier for earlier, later in pairwise(minutes)), default=None)
        apart = min((later - earlier for earlier, later in pairwise(days)), default=None)
        gaps = [gap for gap in (inside, None if apart is None else _over_night(apart, minutes)) if gap is not None]
        return timedelta(minutes=min(gaps)) if gaps else timedelta.max

    def _minutes_and_days(self) -> tuple[list[int], list[int]]:
        """Return the minutes of each day of the schedule, and its days, counted from the first of eight years."""
        times = CronSim(self.text, _START)
        minutes = [hour * 60 + minute for hour in sorted(times.hours) for minute in sorted(times.minutes)]
        days = [
            n for n in range(_EIGHT_YEARS) if (day := _START + timedelta(days=n)).month in times.months and times.match_day(day)
        ]
        return minutes, days


def _over_night(days: int, minutes: list[int]) -> int:
    """Return the minutes from the last time of a day to the first one `days` days later."""
    return days * 24 * 60 - minutes[-1] + minutes[0]


def parse_cron(text: str) -> Cron:
    """Parse a crontab line. Raises ValueError that names the wrong field and the correction."""
    words = _RANGE_OF_ONE.sub(r"\1", text.lower()).split()
    if len(words) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(words)} fields and not five: minute hour day-of-month month day-of-week")
    for place, (word, (name, numbers)) in enumerate(zip(words, _FIELDS, strict=True)):
        alone = ["*"] * place + [word] + ["*"] * (len(_FIELDS) - place - 1)
        if not _comes(" ".join(alone)):
            raise ValueError(f"{word!r} is not {name}: write *, {numbers}, a rising range a-b, */n, or several separated by commas")
    cron = Cron(" ".join(words))
    if not _comes(cron.text):
        raise ValueError(f"{text!r} never comes: no such day exists")
    return cron


def _comes(line: str) -> bool:
    """Return whether the line is valid and has a time. A second one then follows within 50 years, the limit of the search."""
    try:
        return next(CronSim(line, _START), None) is not None
    except CronSimError:
        return False
