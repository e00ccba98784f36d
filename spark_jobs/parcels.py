"""Rows that have to meet others of other files, on their way to them: a few *parcels* of many rows, in place of a row each in Spark.

Each row belongs into a *bucket*; those of one bucket meet. A parcel is what a part of a file has for a bucket, column by column. There
are as many buckets as are needed for each to have about `BUCKET_ROWS` rows, so that who opens one needs no more memory on a large day.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.hashes import Hashes
from spark_jobs.scan import Ints

BUCKET_ROWS: Final = 1_000_000


def buckets_for(rows: int) -> int:
    """How many buckets so many rows need."""
    return 1 + rows // BUCKET_ROWS


def parcels(rows: pa.RecordBatch, belonging: Hashes, buckets: int) -> tuple[Ints, pa.Array]:
    """The buckets that parcels are for, and the parcels; rows with the same number in `belonging` come into the same bucket."""
    bucket = (belonging % np.uint64(buckets)).astype(np.uint32)
    order = np.argsort(bucket, kind="stable")
    sorted_buckets, sorted_rows = bucket[order], rows.take(pa.array(order))
    starts = np.flatnonzero(np.diff(sorted_buckets, prepend=np.uint32(buckets)))
    ends = np.append(starts, len(order))[1:]
    contents = [_closed(sorted_rows[begin:end]) for begin, end in zip(starts, ends, strict=True)]
    return sorted_buckets[starts].astype(np.int64), pa.array(contents, pa.binary())


def rows_in(contents: pa.ChunkedArray) -> pa.Table:
    """The rows of parcels with the same columns, of which there is at least one."""
    return pa.Table.from_batches([batch for parcel in contents for batch in pa.ipc.open_stream(parcel.as_buffer())])


def starts_of(*columns: NDArray[Any]) -> Ints:
    """Where sorted rows change in any column."""
    changes = np.ones(len(columns[0]), np.bool_)
    changes[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(changes)


def _closed(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content
