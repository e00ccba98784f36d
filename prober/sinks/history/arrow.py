"""Arrow schemas of the history's tables, and its Parquet files.

Files are zstd-compressed and sealed (`sealed`). Texts except message ids are dictionary-encoded; ascending numbers and times are
delta-encoded. Rows are sorted by subscription and key, and row groups are small, so that their statistics let a query by key skip most of a
file.
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

from prober.sinks.history.schema import EVENTS, VERSION, VERSION_KEY, Table

ROW_GROUP_ROWS: Final = 32_768
FORMAT: Final = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True))
"""Read options: a page whose checksum does not match is an error."""

_ASCENDING: Final = {"time", "number", "intended_at"}
_EVERY_ONE_DIFFERENT: Final = {"message_id"}


@cache
def schema_of(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table, with the schema version as metadata."""
    columns = [pa.field(column.name, column.type, nullable=not column.required) for column in table.columns]
    return pa.schema(columns, metadata={VERSION_KEY: str(VERSION)})


def conform(rows: pa.Table, table: Table) -> pa.Table:
    """Return the rows with all columns of the table, in its order and types. Missing columns are null."""
    schema, present = schema_of(table), set(rows.column_names)
    columns = [
        rows.column(field.name).cast(field.type) if field.name in present else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def in_order(rows: pa.Table, table: Table) -> pa.Table:
    """Return the rows in the sort order of the table's files."""
    keys = [(name, "ascending", "at_start") for name in table.sorted_by]
    return rows.take(pc.sort_indices(rows, sort_keys=keys))


def to_parquet(rows: pa.Table, table: Table) -> pa.Buffer:
    """Encode rows, which have the table's columns, as one Parquet file; equal rows in equal order produce equal bytes."""
    rows = in_order(rows, table)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=ROW_GROUP_ROWS, **file_options(table))
    return sealed(sink.getvalue())


def file_options(table: Table) -> dict[str, Any]:
    """Return the options of pyarrow's Parquet writer for a file of the table."""
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
    """Return the names of the columns that are dictionary-encoded: texts that repeat."""
    names = [column.name for column in table.columns if column.type == pa.string()]
    return [name for name in names if name not in _EVERY_ONE_DIFFERENT]


def version_in(metadata: Mapping[bytes, bytes] | None) -> Mapping[bytes, bytes]:
    """Return the metadata that contains the schema version of a file; empty if there is none.

    Spark cannot add an entry of its own to a file's metadata, but keeps the metadata of columns in a description of the schema; an entry
    there counts as well.
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
"""End of a Parquet file: length of the footer, and Parquet's magic bytes."""
_AT_ONCE: Final = 1 << 20


def sealed(content: pa.Buffer) -> pa.Buffer:
    """Return the bytes of a Parquet file with its seal, directly before the footer.

    Parquet's own checksums cover the data of pages, but neither the headers of pages nor the footer. A wrong byte there assigns another
    name or another encoding to a column, and its events then show false violations. Parquet readers locate all parts of a file by offset
    and ignore the seal. Files of older probers and of other programs have no seal.
    """
    data = memoryview(content)
    at = len(data) - _END.size - _END.unpack(data[-_END.size :])[0]
    return pa.py_buffer(b"".join([data[:at], _SEAL.pack(_MAGIC, crc32(data)), data[at:]]))


def is_damaged(file: pa.NativeFile) -> bool:
    """Return whether a file has a seal that does not match its bytes. Reads the whole file. Raises OSError."""
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
    """Return the checksum of all bytes except those of the seal, which is at offset `at`."""
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
