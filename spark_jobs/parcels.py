"""Rows that have to meet others of other files, on their way to them: a few *parcels* of many rows, in place of a row each in Spark.

Each row belongs into a *bucket*; those of one bucket meet. A parcel is what a part of a file has for a bucket, column by column. There
are as many buckets as are needed for each to have about `BUCKET_ROWS` rows, so that who opens one needs no more memory on a large day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.hashes import Hashes

Columns: TypeAlias = Mapping[str, NDArray[Any]]

BUCKET_ROWS: Final = 1_000_000


def buckets_for(rows: int) -> int:
    """How many buckets so many rows need."""
    return 1 + rows // BUCKET_ROWS


def parcels(columns: Columns, belonging: Hashes, buckets: int) -> Iterator[tuple[int, bytes]]:
    """The parcels of these rows with the buckets they are for; rows with the same number in `belonging` come into the same one."""
    if not len(belonging):
        return
    bucket = (belonging % np.uint64(buckets)).astype(np.uint32)
    order = np.argsort(bucket, kind="stable")
    sorted_buckets = bucket[order]
    starts = np.flatnonzero(np.diff(sorted_buckets, prepend=np.uint32(buckets)))
    rows = pa.RecordBatch.from_pydict({name: pa.array(values[order]) for name, values in columns.items()})
    for begin, end in zip(starts, [*starts[1:], len(order)], strict=True):
        yield int(sorted_buckets[begin]), _closed(rows[begin:end])


def opened(contents: pa.ChunkedArray) -> Columns:
    """The rows of parcels with the same columns, of which there is at least one."""
    batches = [batch for parcel in contents for batch in pa.ipc.open_stream(parcel.as_buffer())]
    rows = pa.Table.from_batches(batches).combine_chunks()
    return {name: rows[name].to_numpy() for name in rows.column_names}


def _closed(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content
