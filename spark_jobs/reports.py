"""Reports: what a job says about a day, as Parquet tables and a summary in JSON, below `REPORTS/<job>/date=YYYY-MM-DD/`.

    REPORTS/slo-burn/date=2026-11-20/summary.json
    REPORTS/slo-burn/date=2026-11-20/windows/part-....parquet

A report is written into a hidden folder, its summary last, and then takes the place of the one before by renaming folders. So a reader
sees one or the other, or for a moment none, never a mixture; and a job that is repeated replaces its report. Cut short, the old report
is found again by the next one that looks (`Reports`). In an object store, where renaming a folder copies file by file, a report counts
from the moment its summary is there; a reader that finds none there asks again later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession

from spark_jobs.history import date_of
from spark_jobs.storage import Storage

VERSION: Final = 1
SUMMARY: Final = "summary.json"

_WRITING: Final = "_writing-"
_REPLACED: Final = "_replaced-"


class Draft:
    """A report that is being written; nobody sees it before `publish`."""

    def __init__(self, spark: SparkSession, storage: Storage, job: str, day: date) -> None:
        self._spark, self._storage = spark, storage
        self._job, self._name = job, f"date={day.isoformat()}"
        self._folder = f"{job}/{_WRITING}{self._name}"
        self._tables: dict[str, int] = {}
        storage.delete(self._folder)

    def write(self, table: str, rows: DataFrame, *order: Column) -> DataFrame:
        """Writes a table, as one file since reports are small, and in that order if one is given; returns it as it was written."""
        path = f"{self._folder}/{table}"
        one = rows.repartition(1)
        (one.sortWithinPartitions(*order) if order else one).write.parquet(self._storage.uri(path))
        written = self._spark.read.schema(rows.schema).parquet(self._storage.uri(path))
        self._tables[table] = written.count()
        return written

    def publish(self, summary: Mapping[str, object]) -> None:
        """Writes the summary and puts the report where it belongs."""
        about = {"version": VERSION, "job": self._job, "date": self._name.partition("=")[2], "rows": self._tables}
        text = json.dumps({**about, **summary}, indent=2, default=str)
        self._storage.write_text(f"{self._folder}/{SUMMARY}", text)
        report, replaced = f"{self._job}/{self._name}", f"{self._job}/{_REPLACED}{self._name}"
        self._storage.delete(replaced)
        if self._storage.exists(report):
            self._storage.rename(report, replaced)
        self._storage.rename(self._folder, report)
        self._storage.delete(replaced)


class Reports:
    """The reports of all jobs at one place, which is made if it is not there."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.storage = Storage(spark, location)
        self._spark = spark

    def draft(self, job: str, day: date) -> Draft:
        """Begins a report."""
        self._recover(job, day)
        return Draft(self._spark, self.storage, job, day)

    def summary(self, job: str, day: date) -> Mapping[str, Any]:
        """The summary of a report; empty if there is none, or none that this version can read."""
        self._recover(job, day)
        path = f"{_folder(job, day)}/{SUMMARY}"
        if not self.storage.exists(path):
            return {}
        with suppress(ValueError):
            read: dict[str, Any] = json.loads(self.storage.read_text(path))
            if read.get("version") == VERSION:
                return read
        return {}

    def dates(self, job: str) -> list[date]:
        """The days that a job has reported on, the first one first."""
        return sorted(found for name in self.storage.folders(job) if (found := date_of(name)) is not None)

    def read(self, job: str, table: str, days: Iterable[date], schema: str) -> DataFrame:
        """A table of the reports of these days, those that there are."""
        paths = [f"{_folder(job, day)}/{table}" for day in days]
        there = [self.storage.uri(path) for path in paths if self.storage.exists(path)]
        return self._spark.read.schema(schema).parquet(*there) if there else self._spark.createDataFrame([], schema)

    def _recover(self, job: str, day: date) -> None:
        """Brings back the report whose place another was taking when it was cut short."""
        report, replaced = _folder(job, day), f"{job}/{_REPLACED}date={day.isoformat()}"
        if self.storage.exists(replaced) and not self.storage.exists(report):
            self.storage.rename(replaced, report)


def _folder(job: str, day: date) -> str:
    return f"{job}/date={day.isoformat()}"
