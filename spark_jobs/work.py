"""What a job is given, and what it leaves: the same for all jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from prober.clock import monotonic_s, wall_s
from prober.slo.objectives import Objective
from spark_jobs.history import History
from spark_jobs.objectives import DEFAULTS
from spark_jobs.reports import Draft, Reports
from spark_jobs.runs import MICROS

DAY_US: Final = 86_400 * MICROS


class Exit(IntEnum):
    """The exit codes: all is well, something is not, wrong usage, nobody knows."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: its exit code, and its summary in one line."""

    exit: Exit
    line: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be asked of the jobs.

    objectives      what `slo-burn` judges by.
    keys_max        how many distinct keys are counted one by one; beyond that `hot-keys` uses sketches.
    top             hot keys named per subscription.
    clock_error_s   how far the clocks of two processes of one run may be apart.
    keep_days       how many days of history `compact` keeps; None: all.
    look_back_days  how many days before its own `nightly` looks for data that came late.
    """

    objectives: tuple[Objective, ...] = DEFAULTS
    keys_max: int = 50_000_000
    top: int = 100
    clock_error_s: float = 0.1
    keep_days: int | None = None
    look_back_days: int = 7


@dataclass(frozen=True, slots=True)
class Work:
    """One day of one history. `now` is seconds since 1970; `say` takes lines about the progress.

    began_s   when the job began, on the monotonic clock.
    """

    spark: SparkSession
    history: History
    reports: Reports
    day: date
    now: float
    settings: Settings = field(default_factory=Settings)
    say: Callable[[str], None] = lambda _line: None
    began_s: float = field(default_factory=monotonic_s)

    def publish(self, draft: Draft, outcome: Outcome, numbers: Mapping[str, object]) -> Outcome:
        """Puts a job's report where it belongs, with what came out, when and how fast in its summary; gives the outcome back."""
        told = {
            "verdict": outcome.exit.name,
            "line": outcome.line,
            "finished_at": datetime.fromtimestamp(wall_s(), UTC).isoformat(),
            "duration_s": round(monotonic_s() - self.began_s, 3),
        }
        draft.publish({**told, **numbers})
        return outcome

    @property
    def since_us(self) -> int:
        """When the day begins, microseconds since 1970."""
        return start_us(self.day)

    @property
    def until_us(self) -> int:
        """When the day ends, or now if that is earlier."""
        return max(self.since_us, min(self.since_us + DAY_US, round(self.now * MICROS)))


def unknown(job: str, work: Work, why: str) -> Outcome:
    """The outcome of a job that failed for a reason of its own."""
    return Outcome(Exit.UNKNOWN, f"{job} {work.day}: UNKNOWN, {why}")


def start_us(day: date) -> int:
    """When a day begins in UTC, microseconds since 1970."""
    return round(datetime.combine(day, time(), UTC).timestamp()) * MICROS


def days_until(last: date, count: int) -> list[date]:
    """So many days up to the last one."""
    return [last - timedelta(days=number) for number in reversed(range(count))]


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once although they are asked for several times; beyond memory they are on the disk."""
    stored = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield stored
    finally:
        stored.unpersist()


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """A few rows, in the driver."""
    return [row.asDict(recursive=True) for row in rows.collect()]
