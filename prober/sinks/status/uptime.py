"""Monthly uptime of every target, from the minute slices of the publish availability in the status store. Blocks: ask from a thread.

A month costs one query for at most 44,640 minutes a target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import func, select

from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import Slice
from prober.sinks.status.slices import MINUTE_SLICE_S, UPTIME_DEFINITION
from prober.slo.uptime import MonthlyUptime, minutes_down

MONTHS: Final = 2
"""The current month and the one before: `slices.UPTIME_KEPT_S` covers both."""

_ByTarget: TypeAlias = defaultdict[str, list[int]]


class _Month(NamedTuple):
    """A month in UTC by its first minute and the first minute after it, or after now."""

    name: str
    begin: int
    end: int
    is_over: bool

    def has(self, minute: int) -> bool:
        """Whether a minute belongs to it."""
        return self.begin <= minute < self.end


def monthly_uptime(database: Database, now: float, months: int = MONTHS) -> tuple[MonthlyUptime, ...]:
    """Uptime of each target with counts, by month, the newest month first. Raises what the store raises."""
    return tuple(one for month in _months(now, months) for one in _of_month(database, month))


def _months(now: float, count: int) -> Iterator[_Month]:
    begin, end, is_over = _first_of_month(datetime.fromtimestamp(now, UTC)), int(now // MINUTE_SLICE_S), False
    for _ in range(count):
        minute = int(begin.timestamp()) // MINUTE_SLICE_S
        yield _Month(f"{begin:%Y-%m}", minute, end, is_over)
        begin, end, is_over = _first_of_month(datetime.fromtimestamp(begin.timestamp() - 1.0, UTC)), minute, True


def _first_of_month(at: datetime) -> datetime:
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _of_month(database: Database, month: _Month) -> Iterator[MonthlyUptime]:
    confirmed, failed = _minutes(database, month)
    for target in sorted(confirmed.keys() | failed.keys()):
        up, down = (sum(map(month.has, found)) for found in (confirmed[target], minutes_down(failed[target])))
        if up or any(map(month.has, failed[target])):
            yield MonthlyUptime(target, month.name, month.end - month.begin, up, down, month.is_over)


def _minutes(database: Database, month: _Month) -> tuple[_ByTarget, _ByTarget]:
    """Minutes with a confirmed publish, and those with failed ones only; also the two beside the month, by which a minute is down."""
    inside = (
        Slice.length_s == MINUTE_SLICE_S,
        Slice.definition == UPTIME_DEFINITION,
        Slice.begins_at >= (month.begin - 1) * MINUTE_SLICE_S,
        Slice.begins_at <= month.end * MINUTE_SLICE_S,
    )
    minutes = select(Slice.begins_at, Slice.target, func.sum(Slice.good), func.sum(Slice.bad)).where(*inside)
    confirmed: _ByTarget = defaultdict(list)
    failed: _ByTarget = defaultdict(list)
    with database.reading() as connection:
        for begins_at, target, good, bad in connection.execute(minutes.group_by(Slice.begins_at, Slice.target)):
            if good or bad:
                (confirmed if good else failed)[target].append(int(begins_at) // MINUTE_SLICE_S)
    return confirmed, failed
