"""Stored data by time bin, for charts over hours and days, independent of the number of runs.

A bin without an entry had no ended run, or no counted event. Queries block: call them from a thread.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import JSON, ColumnElement, and_, case, cast, func, literal, select, type_coerce
from sqlalchemy.sql.elements import SQLCoreOperations
from sqlalchemy.types import Integer

from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey
from prober.runs.result import HISTOGRAM_BOUNDS_S
from prober.sinks.live.condition import Condition, of_run, worst_of
from prober.sinks.status.database import Database
from prober.sinks.status.listings import of_instance
from prober.sinks.status.prober_records import Slice
from prober.sinks.status.records import RunRecord
from prober.sinks.status.slices import (
    LONG_S,
    MINUTE_SLICE_S,
    SHORT_S,
    UPTIME_DEFINITION,
    Counted,
    Series,
    definition_of,
    length_for,
    window_begin,
)
from prober.slo.budgets import STEP_S, MeasuredHours
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective, SliCounts
from prober.slo.uptime import MonthlyUptime, minutes_down


@dataclass(frozen=True, slots=True)
class WorstDurations:
    """The largest median, p99 and maximum of the runs of a bin that report an indicator, in seconds."""

    p50_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True, slots=True)
class BinOfRuns:
    """The runs of a probe instance that ended in a bin, of which there is at least one.

    first_at, last_at   end of the first and of the last run.
    longest_s           duration of the longest run.
    known               number of runs that report an indicator; `durations` has their values.
    """

    first_at: float
    last_at: float
    runs: int
    longest_s: float
    known: Mapping[Indicator, int]
    durations: Mapping[Indicator, WorstDurations]


@dataclass(frozen=True, slots=True)
class RunsOfCell:
    """The runs of a probe instance that started in an interval: number by condition, and the newest run with the worst one."""

    runs: Mapping[Condition, int]
    run_id: str
    reason: str

    @property
    def worst(self) -> Condition:
        """The worst condition of its runs."""
        return worst_of(self.runs)


class ProberStart(NamedTuple):
    """A start of a prober's process, perhaps with another version."""

    at: float
    instance: str
    version: str


class OverTime:
    """Read queries. Every method raises `StoreUnavailable`. Safe for any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def runs(self, instance: InstanceKey, since: float, bin_s: float, indicators: Collection[Indicator]) -> tuple[BinOfRuns, ...]:
        """Return the runs of a probe instance that started since then, the oldest bin first. The database aggregates them."""
        columns: list[ColumnElement[Any]] = [
            func.min(RunRecord.ended_at).label("first_at"),
            func.max(RunRecord.ended_at).label("last_at"),
            func.count().label("runs"),
            func.max(RunRecord.duration_s).label("longest_s"),
            *(column for indicator in indicators for column in _worst(indicator)),
        ]
        number = _bin_of(RunRecord.ended_at, bin_s)
        inside = (*of_instance(RunRecord, instance), RunRecord.started_at >= since)
        query = select(*columns).where(*inside).group_by(number).order_by(number)
        with self._database.reading() as connection:
            return tuple(_bin_from_row(row, indicators) for row in connection.execute(query).mappings())

    def histograms(
        self, instance: InstanceKey, indicator: Indicator, since: float, until: float, cell_s: float
    ) -> dict[int, tuple[int, ...]]:
        """Return the durations of a probe instance's runs by cell number: counts by bucket of `HISTOGRAM_BOUNDS_S`, then above.

        Cells without counts are missing.
        """
        durations = type_coerce(RunRecord.durations, JSON)
        buckets = [durations[indicator.value, "histogram", number].as_integer() for number in range(len(HISTOGRAM_BOUNDS_S) + 1)]
        cell = _bin_of(RunRecord.started_at, cell_s)
        inside = (*of_instance(RunRecord, instance), RunRecord.started_at >= since, RunRecord.started_at < until)
        query = select(cell, *(func.sum(bucket) for bucket in buckets)).where(*inside, buckets[0].is_not(None)).group_by(cell)
        with self._database.reading() as connection:
            return {number: tuple(int(count) for count in counts) for number, *counts in connection.execute(query)}

    def verdicts(self, since: float, until: float, cell_s: float) -> dict[InstanceKey, dict[int, RunsOfCell]]:
        """Return the runs of every probe instance that started in that time, by the number of their cell since 1970."""
        kinds = case((RunRecord.verdict == Verdict.FAIL, RunRecord.reason), else_="")
        same = (*_PLACE, RunRecord.verdict, kinds.label("kinds"), _bin_of(RunRecord.started_at, cell_s).label("cell"))
        counted = (func.count().label("runs"), func.max(RunRecord.started_at).label("newest"))
        inside = RunRecord.started_at >= since, RunRecord.started_at < until
        alike = select(*same, *counted).where(*inside).group_by(*same).subquery()
        is_newest = (RunRecord.started_at == alike.c.newest, RunRecord.verdict == alike.c.verdict)
        in_place = (column == alike.c[column.key] for column in _PLACE)
        query = select(alike, RunRecord.run_id, RunRecord.reason).join(RunRecord, and_(*in_place, *is_newest))
        found: dict[InstanceKey, dict[int, list[Mapping[Any, Any]]]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(alike.c.newest)).mappings():
                place = InstanceKey(*(row[column.key] for column in _PLACE))
                found.setdefault(place, {}).setdefault(row["cell"], []).append(row)
        return {place: {number: _cell_of(rows) for number, rows in cells.items()} for place, cells in found.items()}

    def starts(self, target: str, since: float, until: float) -> tuple[ProberStart, ...]:
        """Return the starts, in that time, of probers that ran probes on the target in it, the oldest first."""
        prober = type_coerce(RunRecord.prober, JSON)
        started_at = prober["started_at"].as_float()
        columns = (started_at.label("at"), RunRecord.instance, prober["version"].as_string().label("version"))
        inside = (RunRecord.target == target, RunRecord.started_at >= since, RunRecord.started_at < until, started_at >= since)
        with self._database.reading() as connection:
            rows = connection.execute(select(*columns).where(*inside).distinct())
            return tuple(sorted(ProberStart(*row) for row in rows))

    def counted(self, window_s: float, now: float) -> dict[Series, Counted]:
        """Count every objective over the last `window_s` seconds; series without a count are missing.

        The window begins at `slices.window_begin`.
        """
        length_s = length_for(window_s)
        series = (Slice.target, Slice.objective, Slice.definition)
        inside = (Slice.length_s == length_s, Slice.begins_at >= window_begin(window_s, now), Slice.begins_at <= now)
        hour = case((Slice.good + Slice.bad > 0, _bin_of(Slice.begins_at, STEP_S)))
        measured = (func.count(hour.distinct()).label("hours"), func.min(hour).label("first"), func.max(hour).label("last"))
        columns = (*_COUNTS, func.min(Slice.begins_at).label("since"), *measured)
        query = select(*series, *columns).where(*inside).group_by(*series)
        with self._database.reading() as connection:
            return {
                Series(row["target"], row["objective"], row["definition"]): Counted(
                    _counts_from_row(row), row["since"], length_s, _hours_from_row(row)
                )
                for row in connection.execute(query).mappings()
            }

    def counts(self, objective: Objective, since: float, until: float, bin_s: int) -> dict[str, dict[float, SliCounts]]:
        """Return the counts of an objective on each target, by the start of the bin.

        A bin consists of whole slices: short ones, unless it is at least as long as the long ones, which have a longer retention.
        """
        number = _bin_of(Slice.begins_at, bin_s).label("number")
        wanted = (
            Slice.objective == objective.name,
            Slice.definition == definition_of(objective),
            Slice.length_s == (LONG_S if bin_s >= LONG_S else SHORT_S),
            Slice.begins_at >= since,
            Slice.begins_at <= until,
        )
        query = select(Slice.target, number, *_COUNTS).where(*wanted).group_by(Slice.target, number)
        found: dict[str, dict[float, SliCounts]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query).mappings():
                found.setdefault(row["target"], {})[row["number"] * float(bin_s)] = _counts_from_row(row)
        return found


_PLACE: Final = (RunRecord.target, RunRecord.probe, RunRecord.vantage, RunRecord.part)
_COUNTS: Final = tuple(func.sum(column).label(column.key) for column in (Slice.good, Slice.bad, Slice.undecided))


def _cell_of(rows: Sequence[Mapping[Any, Any]]) -> RunsOfCell:
    """Return the cell of its groups of runs, ordered by their newest run. A group with runs of the same start has several rows."""
    runs: Counter[Condition] = Counter()
    newest: dict[Condition, Mapping[Any, Any]] = {}
    for row in {(row["verdict"], row["kinds"]): row for row in rows}.values():
        condition = of_run(row["verdict"], row["reason"])
        runs[condition] += row["runs"]
        newest[condition] = row
    shown = newest[worst_of(runs)]
    return RunsOfCell(runs, shown["run_id"], shown["reason"])


def _counts_from_row(row: Mapping[Any, Any]) -> SliCounts:
    return SliCounts(int(row["good"]), int(row["bad"]), int(row["undecided"]))


def _hours_from_row(row: Mapping[Any, Any]) -> MeasuredHours:
    count, first, last = (int(row[name] or 0) for name in ("hours", "first", "last"))
    return MeasuredHours(count, first * STEP_S, last * STEP_S)


def _bin_of(at: SQLCoreOperations[float], bin_s: float) -> ColumnElement[int]:
    """Return the number of the bin since 1970.

    The width is a literal in the SQL, because PostgreSQL treats a repeated parameter as different parameters.
    """
    return cast(at // literal(bin_s, literal_execute=True), Integer)


def _worst(indicator: Indicator) -> Iterator[ColumnElement[Any]]:
    durations = type_coerce(RunRecord.durations, JSON)[indicator.value]
    yield func.count(durations["p99_s"].as_float()).label(f"{indicator.value}_known")
    for name in ("p50_s", "p99_s", "max_s"):
        yield func.max(durations[name].as_float()).label(f"{indicator.value}_{name}")


def _bin_from_row(row: Mapping[Any, Any], indicators: Collection[Indicator]) -> BinOfRuns:
    known = {indicator: int(row[f"{indicator.value}_known"]) for indicator in indicators}
    durations = {
        indicator: WorstDurations(*(float(row[f"{indicator.value}_{name}"]) for name in ("p50_s", "p99_s", "max_s")))
        for indicator, count in known.items()
        if count
    }
    return BinOfRuns(row["first_at"], row["last_at"], row["runs"], row["longest_s"], known, durations)


# --- monthly uptime of every target, from the minute slices of the publish availability in the status store. Blocks: ask from a thread ---


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
    """Uptime of each target with counts, by month, the newest month first. Raises what the store raises.

    A month costs one query for at most 44,640 minutes a target.
    """
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
