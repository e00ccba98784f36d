"""Frames that are computed once: stored by the executors, or small and held by the driver.

The plan contains the rows of a small frame. So Spark reads and shuffles nothing for them, and skips data that joins none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def frame_of(spark: SparkSession, rows: Iterable[Mapping[str, Any]], schema: StructType | str) -> DataFrame:
    """Return a frame of these rows."""
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
