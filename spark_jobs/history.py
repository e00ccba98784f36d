"""The history for the jobs: its files, their rows under one schema, and one row per run.

The columns have Spark's types, made from their one definition in `prober.sinks.history`.

A run is *trusted* if missing events in it can be attributed to the service: the prober neither failed nor paused during the run. It is
*complete* if no part of its record had to be dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from prober.sinks.history.arrow import schema_of
from prober.sinks.history.schema import (
    MESSAGES_WRITTEN,
    VERSION,
    VERSION_KEY,
    Table,
    folder_of,
    is_file_name,
)
from prober.slo.objectives import MICROS
from spark_jobs.storage import JobError, Storage

# --- columns -----------------------------------------------------------------------------------------------------------------


def struct_of(table: Table) -> StructType:
    """Return the columns of a table. The first one carries the version of the schema, which Spark writes into a file with its columns."""
    first, *others = from_arrow_schema(schema_of(table)).fields
    return StructType([StructField(first.name, first.dataType, first.nullable, {VERSION_KEY: VERSION}), *others])


# --- runs --------------------------------------------------------------------------------------------------------------------


MINUTE_US: Final = 60 * MICROS
DIMENSIONS: Final = ("target", "environment", "region", "probe", "vantage", "topic")


def run_hash() -> Column:
    """Return the id of a run as a number, which joins and groups far faster; a collision is expected once in 10^10 days."""
    return sf.xxhash64(sf.col("run_id"))


def micros(seconds: Column) -> Column:
    """Return seconds as whole microseconds."""
    return sf.round(seconds * MICROS).cast("long")


def runs_of(rows: DataFrame) -> DataFrame:
    """Return one row per run from rows of the table `runs`: that of its end, or a row with null columns for the end.

    run          hash of the run. `run_id` and the dimensions are its own.
    subscriptions   full names; `subscription` is the first.
    began_us, ended_us   microseconds since 1970 by the clock of its events; `ended_us` is null for a run that was cut short.
    trusted, complete   see the head of this file.
    keys         number of keys in use, null if unknown.
    checks, messages   counts for objectives, and number of written messages, as in the table.
    """
    ended = sf.col("verdict").isNotNull()
    latest = rows.groupBy("run_id").agg(sf.max_by(sf.struct("*"), ended).alias("row")).select("row.*")
    time_us = sf.unix_micros("time")
    return latest.select(
        run_hash().alias("run"),
        "run_id",
        "process",
        *DIMENSIONS,
        "subscription",
        sf.json_object_keys("rules").alias("subscriptions"),
        sf.when(ended, time_us - micros(sf.col("duration_s"))).otherwise(time_us).alias("began_us"),
        sf.when(ended, time_us).alias("ended_us"),
        "verdict",
        (~sf.coalesce("internal_error", sf.lit(False)) & sf.col("verified_events").isNull()).alias("trusted"),
        (sf.coalesce("events_dropped", sf.lit(0)) == 0).alias("complete"),
        sf.col("counters")["keys"].alias("keys"),
        "checks",
        "rules",
        "events",
        "events_dropped",
        "verified_events",
        "stopped",
        "finding_counts",
        MESSAGES_WRITTEN,
    )


# --- files -------------------------------------------------------------------------------------------------------------------


_HOURS: Final = range(24)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a report: the number of files, and a digest of their names."""

    files: int = 0
    digest: str = ""

    def are_news_to(self, summary: Mapping[str, Any]) -> bool:
        """Return whether a report with this summary lacks files. Files deleted by retention since then do not count."""
        known = summary.get("inputs", {})
        return bool(self.files) and self.digest != known.get("digest") and self.files >= known.get("files", 0)

    def noted(self) -> dict[str, object]:
        """Return the entry of a summary that `are_news_to` compares."""
        return {"inputs": {"files": self.files, "digest": self.digest}}


class History:
    """The files of a history. Raises `JobError` if it does not exist."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.storage = Storage(spark, location)
        self.spark = spark
        if not self.storage.exists(""):
            raise JobError(f"{location}: no such folder; give the location of a history")

    def dates(self, table: Table) -> list[date]:
        """Return the days for which a table has a folder, in ascending order."""
        return sorted(found for name in self.storage.names(table.name, of_folders=True) if (found := date_of(name)) is not None)

    def files(self, folders: Iterable[str]) -> list[str]:
        """Return the files of the history in these folders, by their paths relative to its root."""
        days: dict[str, bool] = {}
        found = []
        for folder in folders:
            day = "/".join(folder.split("/")[:2])
            if day not in days:  # most of these days do not exist, and each check takes time
                days[day] = self.storage.exists(day)
            if days[day]:
                found += [f"{folder}/{name}" for name in self.storage.names(folder) if is_file_name(name)]
        return found

    def inputs(self, folders: Iterable[str], *settings: str) -> Inputs:
        """Return the files of these folders, with the settings that the report depends on."""
        names = sorted(self.files(folders))
        return Inputs(len(names), sha256("\n".join([*settings, *names]).encode()).hexdigest()[:32])


# --- days and folders --------------------------------------------------------------------------------------------------------


def folders_of(table: Table, first: date, last: date, *, hours_around: int = 0) -> list[str]:
    """Return the folders of a table from one day to another; if it is divided by hour, also `hours_around` hours before and after."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    inside = [folder for day in days for folder in _of_day(table, day)]
    if not hours_around:
        return inside
    before, after = _of_day(table, first - timedelta(days=1)), _of_day(table, last + timedelta(days=1))
    return before[-hours_around:] + inside + after[:hours_around]


def _of_day(table: Table, day: date) -> list[str]:
    return [folder_of(table, day.isoformat(), hour) for hour in (_HOURS if table.hourly else (0,))]


def date_of(folder: str) -> date | None:
    """Return the day of a folder `date=YYYY-MM-DD`, or None for any other folder."""
    name, _, text = folder.partition("=")
    try:
        return date.fromisoformat(text) if name == "date" else None
    except ValueError:
        return None
