"""Events files read and reduced where they are: each executor opens files itself, column by column, and hands on a few rows.

Spark's own way, a row for each event, costs ten times as much; what is left after the reduction is Spark's. Executors reach the files
by pyarrow's file systems, so they need the same credentials as the service that writes them.

Memory: of a file at most `CHUNK_ROWS` rows at once, those of whole keys, or what one key has in the file if that is more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.chunk import NAMES, Chunk

CHUNK_ROWS: Final = 1_000_000
_TASKS_PER_CORE: Final = 4

Reduction = Callable[[Chunk], Iterable[pa.RecordBatch]]


class Scan:
    """Files of events by URI, with their sizes in bytes."""

    def __init__(self, spark: SparkSession, files: Iterable[tuple[str, int]]) -> None:
        self._spark = spark
        self._files = list(files)

    def reduced(self, reduction: Reduction, columns: Sequence[str], schema: str) -> DataFrame:
        """What a reduction makes of the files' rows that have a key, whole keys of a file at a time. Rows as the reduction gives them."""
        tasks = max(1, min(len(self._files), _TASKS_PER_CORE * self._spark.sparkContext.defaultParallelism))
        shares: list[list[str]] = [[] for _ in range(tasks)]
        for number, (uri, _) in enumerate(sorted(self._files, key=lambda file: -file[1])):
            shares[number % tasks].append(uri)

        def reduce(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    for uri in shares[task]:
                        for chunk in chunks_of(uri, columns):
                            yield from reduction(chunk)

        return self._spark.range(0, tasks, 1, tasks).mapInArrow(reduce, schema)


def chunks_of(uri: str, columns: Sequence[str], rows_max: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """The rows of a file that have a key, in parts that hold whole keys."""
    system, path = opened(uri)
    with system.open_input_file(path) as source:
        file = pq.ParquetFile(source, read_dictionary=[name for name in columns if name in NAMES], pre_buffer=True)
        for groups, low, high in _parts(file.metadata, rows_max):
            if not groups:
                continue
            rows = file.read_row_groups(groups, columns=list(columns), use_threads=False)
            within = pc.is_valid(rows["key"])
            if low is not None:
                keys = rows["key"].cast(pa.string())
                within = pc.and_(within, pc.greater_equal(keys, low))
                within = within if high is None else pc.and_(within, pc.less(keys, high))
            yield Chunk(rows if low is None and not rows["key"].null_count else rows.filter(within))


def opened(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI as Spark writes it, and the path there."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme == "file":
        return fs.LocalFileSystem(), f"/{(rest if colon else uri).lstrip('/')}"
    system, path = fs.FileSystem.from_uri(f"s3:{rest}" if scheme == "s3a" else uri)
    return system, path


def _parts(metadata: Any, rows_max: int) -> Iterator[tuple[list[int], str | None, str | None]]:
    """Row groups, and from which key up to which other key they are to be looked at; None: no bound."""
    spans = _spans(metadata)
    if spans is None:
        yield list(range(metadata.num_row_groups)), None, None
        return
    bounds = _bounds(spans, rows_max)
    if len(bounds) < 2:
        yield [number for number, *_ in spans], None, None
        return
    for low, high in zip(bounds, [*bounds[1:], None], strict=True):
        yield [number for number, first, last, _ in spans if last >= low and (high is None or first < high)], low, high


def _spans(metadata: Any) -> list[tuple[int, str, str, int]] | None:
    """Of each row group with keys: number, first key, last key, rows; None if the file does not say."""
    place = metadata.schema.to_arrow_schema().names.index("key")
    spans = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        about = group.column(place).statistics
        if about is None or not about.has_null_count:
            return None
        if about.null_count == group.num_rows:
            continue
        if not about.has_min_max:
            return None
        spans.append((number, about.min, about.max, group.num_rows))
    return spans


def _bounds(spans: Sequence[tuple[int, str, str, int]], rows_max: int) -> list[str]:
    """The first keys of parts that have about so many rows each."""
    bounds: list[str] = []
    rows = 0
    for _, first, _, count in sorted(spans, key=lambda span: span[1]):
        if not bounds or (rows + count > rows_max and first > bounds[-1]):
            bounds.append(first)
            rows = 0
        rows += count
    return bounds
