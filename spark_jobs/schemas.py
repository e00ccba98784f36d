"""The tables of the history as Spark types, made from their one definition in `prober.sinks.history.schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from prober.sinks.history.schema import VERSION, VERSION_KEY, Table, Type


def _structs(strings: tuple[str, ...], numbers: tuple[str, ...]) -> ArrayType:
    fields = [StructField(name, StringType()) for name in strings] + [StructField(name, LongType()) for name in numbers]
    return ArrayType(StructType(fields))


SPARK_TYPES: Final[Mapping[Type, DataType]] = {
    Type.STRING: StringType(),
    Type.INT64: LongType(),
    Type.FLOAT64: DoubleType(),
    Type.BOOL: BooleanType(),
    Type.TIMESTAMP: TimestampType(),
    Type.INT64_LIST: ArrayType(LongType()),
    Type.INT64_MAP: MapType(StringType(), LongType()),
    Type.FLOAT64_MAP: MapType(StringType(), DoubleType()),
    Type.CHECKS: _structs(("indicator",), ("good", "bad", "undecided")),
    Type.FINDING_COUNTS: _structs(("kind", "status"), ("count",)),
}


def struct_of(table: Table) -> StructType:
    """The columns of a table. The first one carries the version of the schema, which Spark writes into a file with its columns."""
    fields = [StructField(column.name, SPARK_TYPES[column.type], nullable=not column.required) for column in table.columns]
    first = fields[0]
    fields[0] = StructField(first.name, first.dataType, first.nullable, {VERSION_KEY: VERSION})
    return StructType(fields)
