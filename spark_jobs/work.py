"""Inputs and outputs of a job: the same for all jobs.

*Objectives*: a JSON file that the service's configuration writes, or else the defaults. The file is a list of objects with `name`,
`indicator`, `objective` (the required share of good events), `window_s`, `threshold_s` (null if the indicator needs none), and `labels`.

*Reports*: results of a job for a day, as Parquet tables and a summary in JSON, below `REPORTS/<job>/date=YYYY-MM-DD/`.

    REPORTS/slo-burn/date=2026-11-20/summary.json
    REPORTS/slo-burn/date=2026-11-20/windows/part-....parquet

A report is written into a hidden folder, its summary last, and then replaces the previous report by renames of folders. So a reader sees
one of the two, or for a moment none, never a mixture; and a repeated job replaces its report. After an interruption the next reader
restores the previous report (`Reports`). In an object store, where renaming a folder copies file by file, a report is valid once its
summary exists; a reader that finds none retries later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from prober.clock import monotonic_s, wall_s
from prober.reports.values import REPORT_VERSION, SUMMARY
from prober.slo.indicators import MEANINGS, UNRECORDED, Indicator
from prober.slo.objectives import DEFAULTS, MICROS, Objective
from spark_jobs.derive import DayMessages, Night
from spark_jobs.history import History, date_of
from spark_jobs.storage import JobError, Storage
from spark_jobs.tables import Tables, frame_of

# --- objectives --------------------------------------------------------------------------------------------------------------


NOT_RECORDED: Final = frozenset({Indicator.CONTROL_PLANE_LATENCY, *UNRECORDED})
"""Indicators that the history does not record."""

_KEYS: Final = {"name", "indicator", "objective", "window_s", "threshold_s", "labels"}


def read_objectives(path: str | None) -> tuple[Objective, ...]:
    """Return the objectives of a file, or the service's defaults without a file. Raises `JobError` for an invalid file."""
    if path is None:
        return DEFAULTS
    try:
        objectives = tuple(_objective(one) for one in json.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise JobError(f"{path}: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise JobError(f"{path} is not a list of objectives: {wrong}") from wrong
    if len({objective.name for objective in objectives}) < len(objectives):
        raise JobError(f"{path} has two objectives of one name; each needs its own")
    return objectives


def _objective(row: Mapping[str, Any]) -> Objective:
    strange = set(row) - _KEYS
    if strange:
        raise ValueError(f"it has {sorted(strange)[0]!r}, which is none of {', '.join(sorted(_KEYS))}")
    indicator = Indicator(row["indicator"])
    threshold_s = row.get("threshold_s") if MEANINGS[indicator].thresholded else None
    return Objective(row["name"], indicator, row["objective"], row["window_s"], threshold_s, row.get("labels") or {})


# --- reports -----------------------------------------------------------------------------------------------------------------


_WRITING: Final = "_writing-"
_REPLACED: Final = "_replaced-"


class Draft:
    """A report in progress; readers do not see it before `publish`."""

    def __init__(self, spark: SparkSession, storage: Storage, job: str, day: date) -> None:
        self._spark, self._storage = spark, storage
        self._job, self._name = job, f"date={day.isoformat()}"
        self._folder = f"{job}/{_WRITING}{self._name}"
        self._tables: dict[str, int] = {}
        storage.delete(self._folder)

    def write(self, table: str, rows: DataFrame, *order: Column) -> DataFrame:
        """Write a table as one file, since reports are small, in `order` if given; return the table as written."""
        path = f"{self._folder}/{table}"
        one, written = rows.repartition(1), Observation()
        in_order = one.sortWithinPartitions(*order) if order else one
        in_order.observe(written, sf.count(sf.lit(1)).alias("rows")).write.parquet(self._storage.uri(path))
        self._tables[table] = written.get["rows"]
        return self._spark.read.schema(rows.schema).parquet(self._storage.uri(path))

    def publish(self, summary: Mapping[str, object]) -> None:
        """Write the summary and replace the previous report.

        Raises `JobError` if another process writes there too.
        """
        about = {"version": REPORT_VERSION, "job": self._job, "date": self._name.partition("=")[2], "rows": self._tables}
        text = json.dumps({**about, **summary}, indent=2, default=str)
        self._storage.write_text(f"{self._folder}/{SUMMARY}", text)
        report, replaced = f"{self._job}/{self._name}", f"{self._job}/{_REPLACED}{self._name}"
        self._storage.delete(replaced)
        if self._storage.exists(report):
            self._storage.rename(report, replaced)
        self._storage.rename(self._folder, report)
        self._storage.delete(replaced)


class Reports:
    """The reports of all jobs in one location, which is created when a report is written."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.storage = Storage(spark, location)
        self._spark = spark

    def draft(self, job: str, day: date) -> Draft:
        """Start a report."""
        self._recover(job, day)
        return Draft(self._spark, self.storage, job, day)

    def summary(self, job: str, day: date) -> Mapping[str, Any]:
        """Return the summary of a report; empty if there is none that this version can read."""
        self._recover(job, day)
        path = f"{_folder(job, day)}/{SUMMARY}"
        if not self.storage.exists(path):
            return {}
        with suppress(ValueError):
            read: dict[str, Any] = json.loads(self.storage.read_text(path))
            if read.get("version") == REPORT_VERSION:
                return read
        return {}

    def dates(self, job: str) -> list[date]:
        """Return the days with a report of a job, in ascending order."""
        return sorted(found for name in self.storage.names(job, of_folders=True) if (found := date_of(name)) is not None)

    def read(self, job: str, table: str, days: Iterable[date], schema: str) -> DataFrame:
        """Return a table of the reports of these days; missing reports are skipped."""
        paths = [f"{_folder(job, day)}/{table}" for day in days]
        there = [self.storage.uri(path) for path in paths if self.storage.exists(path)]
        return self._spark.read.schema(schema).parquet(*there) if there else frame_of(self._spark, (), schema)

    def _recover(self, job: str, day: date) -> None:
        """Restore a report whose replacement was interrupted."""
        report, replaced = _folder(job, day), f"{job}/{_REPLACED}date={day.isoformat()}"
        if self.storage.exists(replaced) and not self.storage.exists(report):
            self.storage.rename(replaced, report)


def _folder(job: str, day: date) -> str:
    return f"{job}/date={day.isoformat()}"


# --- work --------------------------------------------------------------------------------------------------------------------


DAY_US: Final = 86_400 * MICROS


class Exit(IntEnum):
    """Exit codes: no problem, a problem, wrong usage, undecided."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """Outcome of a job: its exit code, and its summary in one line."""

    exit: Exit
    line: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the jobs.

    objectives      objectives that `slo-burn` evaluates.
    keys_max        maximum number of distinct keys with exact counts; above it `hot-keys` uses sketches.
    top             number of named hot keys per subscription.
    keep_days       days of history that `retention` keeps; None: all.
    look_back_days  days before its own in which `nightly` looks for late data.
    """

    objectives: tuple[Objective, ...] = DEFAULTS
    keys_max: int = 50_000_000
    top: int = 100
    keep_days: int | None = None
    look_back_days: int = 7


@dataclass(frozen=True, slots=True)
class Work:
    """One day of one history. `now` is seconds since 1970; `say` is called with lines about the progress.

    began_s   start of the job on the monotonic clock.
    night     shared messages of jobs that run in parallel; without it each job has its own.
    """

    spark: SparkSession
    history: History
    reports: Reports
    day: date
    now: float
    settings: Settings = field(default_factory=Settings)
    say: Callable[[str], None] = lambda _line: None
    began_s: float = field(default_factory=monotonic_s)
    night: Night | None = None

    def publish(self, draft: Draft, outcome: JobOutcome, numbers: Mapping[str, object]) -> JobOutcome:
        """Publish a job's report and return the outcome.

        The summary contains the result, the time and the duration.

        Raises `JobError` if another process writes the report too.
        """
        reported = {
            "verdict": outcome.exit.name,
            "line": outcome.line,
            "finished_at": datetime.fromtimestamp(wall_s(), UTC).isoformat(),
            "duration_s": round(monotonic_s() - self.began_s, 3),
        }
        draft.publish({**reported, **numbers})
        return outcome

    @property
    def tables(self) -> Tables:
        """The tables of the history."""
        return Tables(self.spark, self.history.storage.uri())

    def messages(self, day: date) -> DayMessages:
        """Return the messages of a day and of the day before it, and the runs of these days."""
        return (self.night or Night()).messages(self.tables, day)

    @property
    def since_us(self) -> int:
        """Start of the day, microseconds since 1970."""
        return start_us(self.day)

    @property
    def until_us(self) -> int:
        """End of the day, or now if that is earlier, microseconds since 1970."""
        return max(self.since_us, min(self.since_us + DAY_US, round(self.now * MICROS)))


def unknown(job: str, work: Work, why: str) -> JobOutcome:
    """Return the outcome of a job that failed itself."""
    return JobOutcome(Exit.UNKNOWN, f"{job} {work.day}: UNKNOWN, {why}")


def start_us(day: date) -> int:
    """Return the start of a day in UTC, microseconds since 1970."""
    return round(datetime.combine(day, time(), UTC).timestamp()) * MICROS


def days_until(last: date, count: int) -> list[date]:
    """Return `count` days up to the last one."""
    return [last - timedelta(days=number) for number in reversed(range(count))]
