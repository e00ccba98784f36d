"""The columns of the history as Arrow types, and its files as Parquet.

Files are zstd-compressed and sealed (`sealing`). Names, keys and the like are dictionary-encoded; numbers and times, which ascend, are
delta-encoded. Row groups are small enough that their statistics let a query by key skip most of a file, since rows are sorted by
subscription and key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from struct import Struct
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from prober.sinks.history.schema import EVENTS, VERSION, VERSION_KEY, Table, Type

ROW_GROUP_ROWS: Final = 32_768
FORMAT: Final = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True))
"""How files are read: a page whose bytes are not those that were written is an error."""

ARROW_TYPES: Final[Mapping[Type, pa.DataType]] = {
    Type.STRING: pa.string(),
    Type.INT64: pa.int64(),
    Type.FLOAT64: pa.float64(),
    Type.BOOL: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.INT64_LIST: pa.list_(pa.int64()),
    Type.STRING_LIST: pa.list_(pa.string()),
    Type.INT64_MAP: pa.map_(pa.string(), pa.int64()),
    Type.FLOAT64_MAP: pa.map_(pa.string(), pa.float64()),
    Type.CHECKS: pa.list_(
        pa.struct([("indicator", pa.string()), ("good", pa.int64()), ("bad", pa.int64()), ("undecided", pa.int64())])
    ),
    Type.FINDING_COUNTS: pa.list_(pa.struct([("kind", pa.string()), ("status", pa.string()), ("count", pa.int64())])),
    Type.REDELIVERIES: pa.list_(
        pa.struct(
            [("received_at", pa.timestamp("us", tz="UTC")), ("due_at", pa.timestamp("us", tz="UTC")), ("lagged_us", pa.int64())]
        )
    ),
}

_ASCENDING: Final = {"time", "number", "intended_at"}
_EVERY_ONE_DIFFERENT: Final = {"message_id"}


@cache
def schema_of(table: Table) -> pa.Schema:
    """The columns of a table, with the version of the schema as metadata."""
    columns = [pa.field(column.name, ARROW_TYPES[column.type], nullable=not column.required) for column in table.columns]
    return pa.schema(columns, metadata={VERSION_KEY: str(VERSION)})


def conform(rows: pa.Table, table: Table) -> pa.Table:
    """The rows with all columns of the table, in its order and of its types. What they do not have is null."""
    schema, present = schema_of(table), set(rows.column_names)
    columns = [
        rows.column(field.name).cast(field.type) if field.name in present else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def in_order(rows: pa.Table, table: Table) -> pa.Table:
    """The rows sorted as in a file of the table."""
    keys = [(name, "ascending", "at_start") for name in table.sorted_by]
    return rows.take(pc.sort_indices(rows, sort_keys=keys))


def to_parquet(rows: pa.Table, table: Table) -> pa.Buffer:
    """The bytes of one file with these rows, which have the table's columns; equal rows in equal order give equal bytes."""
    rows = in_order(rows, table)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=ROW_GROUP_ROWS, **file_options(table))
    return sealed(sink.getvalue())


def file_options(table: Table) -> dict[str, Any]:
    """How a file of the table is written."""
    order = pq.SortingColumn.from_ordering(
        schema_of(table), [(name, "ascending") for name in table.sorted_by], null_placement="at_start"
    )
    return {
        "compression": "zstd",
        "use_dictionary": dictionary_columns(table),
        "column_encoding": dict.fromkeys(_ASCENDING.intersection(table.column_names), "DELTA_BINARY_PACKED"),
        "sorting_columns": order,
        "write_page_index": table is EVENTS,
        "write_page_checksum": True,
    }


@cache
def dictionary_columns(table: Table) -> list[str]:
    """The columns whose values are repeated names."""
    names = [column.name for column in table.columns if column.type is Type.STRING]
    return [name for name in names if name not in _EVERY_ONE_DIFFERENT]


def version_in(metadata: Mapping[bytes, bytes] | None) -> Mapping[bytes, bytes]:
    """The metadata that says under which version a file was written.

    Spark cannot put an entry of its own into a file, but keeps the metadata of columns in a description of the schema; an entry there
    counts as well.
    """
    own = dict(metadata or {})
    if VERSION_KEY.encode() in own:
        return own
    described = json.loads(own.get(b"org.apache.spark.sql.parquet.row.metadata", b"{}"))
    versions = [field.get("metadata", {}).get(VERSION_KEY) for field in described.get("fields", [])]
    return {VERSION_KEY.encode(): str(version).encode() for version in versions if version is not None}


# --- the seal of a file of the history: a checksum of every other byte in it --------------------------------------------------


_MAGIC: Final = b"OKP-SEAL"
_SEAL: Final = Struct("<8sI")
_END: Final = Struct("<I4s")
"""The end of a Parquet file: length of the footer, and Parquet's own mark."""
_AT_ONCE: Final = 1 << 20


def sealed(content: pa.Buffer) -> pa.Buffer:
    """The bytes of a Parquet file with its seal.

    Parquet's own checksums cover the data of pages. They cover neither the headers of pages nor the footer, where one other byte gives a
    column another name or another encoding; the events that are read then show false violations. The seal stands right before the footer.
    Readers of Parquet find everything by its offset, so they do not notice it. Files of older probers, and those that other programs wrote,
    have none.
    """
    data = memoryview(content)
    at = len(data) - _END.size - _END.unpack(data[-_END.size :])[0]
    return pa.py_buffer(b"".join([data[:at], _SEAL.pack(_MAGIC, crc32(data)), data[at:]]))


def is_damaged(file: pa.NativeFile) -> bool:
    """Whether a file has a seal, and other bytes than those that were sealed. Reads all of it. Raises OSError."""
    size = file.size()
    at = size - _END.size - _SEAL.size
    if at < 0:
        return False
    file.seek(size - _END.size)
    at -= _END.unpack(file.read(_END.size))[0]
    if at < 0:
        return False
    file.seek(at)
    seal = file.read(_SEAL.size)
    return bool(seal.startswith(_MAGIC)) and seal != _SEAL.pack(_MAGIC, _checksum(file, at, size))


def _checksum(file: pa.NativeFile, at: int, size: int) -> int:
    """The checksum of everything but the seal, which stands at that place."""
    checksum = 0
    for since, until in ((0, at), (at + _SEAL.size, size)):
        file.seek(since)
        for data in _pieces(file, until - since):
            checksum = crc32(data, checksum)
    return checksum


def _pieces(file: pa.NativeFile, length: int) -> Iterator[bytes]:
    while length and (data := file.read(min(length, _AT_ONCE))):
        length -= len(data)
        yield data
