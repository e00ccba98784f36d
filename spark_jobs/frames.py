"""Frames that are computed once: kept by the executors, or small, and held by the driver.

A plan has the rows of a small frame in it. So Spark reads and shuffles nothing for them, and leaves out what joins none.
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
    """These rows."""
    struct = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    assert isinstance(struct, StructType)
    return spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], to_arrow_schema(struct, timezone="UTC")), struct)


def held(rows: DataFrame) -> DataFrame:
    """Rows that are few, such as one per run, computed now and once."""
    return rows.sparkSession.createDataFrame(rows.toArrow(), rows.schema)


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once although they are asked for several times; beyond memory they are on the disk."""
    stored = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield stored
    finally:
        stored.unpersist()


@contextmanager
def kept_if_any(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once, and of which there are often none."""
    with kept(rows) as stored:
        yield stored if stored.count() else frame_of(rows.sparkSession, (), rows.schema)


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """A few rows, in the driver."""
    return [row.asDict(recursive=True) for row in rows.collect()]
