"""The tables of a history as Spark frames.

Frames have the columns of `prober.sinks.history.schema`; columns that a file lacks are null. A file may exist twice for a while, under two
names, while an operator merges or copies files: except for `Tables.read`, the functions return each row once.

All reads use Spark's own reader, so the history may be at any location that Spark can read, with Spark's credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from prober.sinks.history.arrow import is_damaged
from prober.sinks.history.schema import EVENTS, FINDINGS, RUNS, SCHEMA_VERSION, VERSION, Table
from prober.slo.objectives import MICROS
from spark_jobs.history import runs_of, struct_of
from spark_jobs.storage import JobError, hadoop_uri

HOUR: Final = timedelta(hours=1)
_FILE: Final = "path string, modificationTime timestamp, length long, content binary"
_OF_EVENT: Final = ["run_id", "process", "number"]
_OF_FINDING: Final = ["run_id", "process", "subscription", "key", "kind", "status", "after", "t", "facts"]


class Tables:
    """The tables of one history. Raises `JobError` for a history of a newer version."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        """Open a history. `location` is a path or a URI that Spark can read."""
        self.spark = spark
        self._location = re.sub(r"([][{}*?\\])", r"\\\1", hadoop_uri(location).rstrip("/"))

    def read(self, table: Table, first: date, last: date) -> DataFrame:
        """Return the rows in the folders of these days, with duplicates."""
        days = (first + timedelta(days=number) for number in range((last - first).days + 1))
        return self._folders(table, (f"date={day}{'/hour=*' if table.hourly else ''}" for day in days))

    def runs(self, first: date, last: date) -> DataFrame:
        """Return one row per run that started or ended in these days, with the columns of `runs_of`. Check the version of the schema."""
        rows = self.read(RUNS, first, last)
        version = rows.agg(sf.max(SCHEMA_VERSION)).head()
        if version is not None and version[0] is not None and version[0] > VERSION:
            raise JobError(
                f"{self._location}: written under version {version[0]} of the schema, this program knows {VERSION}; use a newer one"
            )
        return runs_of(rows)

    def findings(self, first: date, last: date) -> DataFrame:
        """Return the findings of these days."""
        return self.read(FINDINGS, first, last).dropDuplicates(_OF_FINDING)

    def events(self, since_us: int, until_us: int, *, each_once: bool = True) -> DataFrame:
        """Return the events of the hours between two times, in microseconds since 1970; with duplicates if not `each_once`."""
        rows = self._folders(EVENTS, _hours(since_us, until_us))
        return rows.dropDuplicates(_OF_EVENT) if each_once else rows

    def damaged_events(self, since_us: int, until_us: int) -> list[str]:
        """Return the files of these events whose content does not match their seals. Reads them completely."""
        files = self._folders(EVENTS, _hours(since_us, until_us), "binaryFile").select("path", "content")
        return sorted(row["path"] for row in files.mapInArrow(_damaged, "path string").collect())

    def _folders(self, table: Table, folders: Iterable[str], source: str = "parquet") -> DataFrame:
        """Return the rows, or with another source the files, in the existing ones of these folders."""
        schema = struct_of(table) if source == "parquet" else _FILE
        reader = self.spark.read.format(source).schema(schema).option("pathGlobFilter", f"{table.name}-*.parquet")
        try:
            return reader.load(f"{self._location}/{table.name}/{{{','.join(folders)}}}")
        except AnalysisException as problem:
            if problem.getCondition() != "PATH_NOT_FOUND":
                raise
            return self.spark.createDataFrame([], schema)


def _hours(since_us: int, until_us: int) -> Iterator[str]:
    hour, until = (datetime.fromtimestamp(us / MICROS, UTC) for us in (since_us, until_us))
    hour = hour.replace(minute=0, second=0, microsecond=0)
    for _ in range(int((until - hour) / HOUR) + 1):
        yield f"date={hour:%Y-%m-%d}/hour={hour:%H}"
        hour += HOUR


def _damaged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        paths, contents = (batch.column(name).to_pylist() for name in ("path", "content"))
        found = [path for path, content in zip(paths, contents, strict=True) if is_damaged(pa.BufferReader(content))]
        yield pa.RecordBatch.from_pydict({"path": pa.array(found, pa.string())})


def frame_of(spark: SparkSession, rows: Iterable[Mapping[str, Any]], schema: StructType | str) -> DataFrame:
    """Return a frame of these rows.

    The plan contains the rows of a small frame. So Spark reads and shuffles nothing for them, and skips data that joins none of them.
    """
    struct = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    assert isinstance(struct, StructType)
    return spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], to_arrow_schema(struct, timezone="UTC")), struct)


def held(rows: DataFrame) -> DataFrame:
    """Compute a frame of few rows, such as one per run, once; return it with its rows in the plan."""
    return rows.sparkSession.createDataFrame(rows.toArrow(), rows.schema)


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Store a frame for several reads, in memory and then on disk, until the block ends."""
    stored = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield stored
    finally:
        stored.unpersist()


@contextmanager
def kept_if_any(rows: DataFrame) -> Iterator[DataFrame]:
    """Store a frame as `kept` does; yield an empty frame in its place if it has no rows, which is frequent."""
    with kept(rows) as stored:
        yield stored if stored.count() else frame_of(rows.sparkSession, (), rows.schema)


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a small frame in the driver."""
    return [row.asDict(recursive=True) for row in rows.collect()]
