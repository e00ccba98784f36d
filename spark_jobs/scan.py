"""Events files read and reduced where they are: each executor opens files itself, column by column, and hands on a few rows.

Spark's own way, a row for each event, costs ten times as much; what is left after the reduction is Spark's. Executors reach the files
by pyarrow's file systems, so they need the same credentials as the service that writes them.

Memory: of a file at most `CHUNK_ROWS` rows at once, those of whole keys, or what one key has in the file if that is more; where keys may be
divided, `ROWS_AT_ONCE` or a row group.

A `Chunk` is such a part of a file in memory, column by column. Names are numbers here, by their place in a dictionary, and times are
whole microseconds. Nothing depends on the order of rows; but since files are sorted by subscription, key and run, rows of one place stand
together, which makes `segments` few.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from prober.slo.objectives import MICROS

# --- a part of a file --------------------------------------------------------------------------------------------------------


Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

NAMES: Final = ("event", "target", "topic", "subscription", "key", "run_id", "epoch", "process", "session", "subscriber")
"""Columns that are read as dictionaries."""
NEVER_US: Final = np.iinfo(np.int64).max
"""Stands for a time that nothing has."""

_SPARSE: Final = 4


class Chunk:
    """Rows of a table of events."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._dictionaries: dict[str, pa.DictionaryArray] = {}

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def names(self, column: str) -> pa.Array:
        """The different values of a column."""
        return self.dictionary(column).dictionary

    def take(self, rows: Ints) -> pa.Table:
        """These rows, with names as dictionaries."""
        names = self._rows.column_names
        return pa.table({name: self.dictionary(name) if name in NAMES else self.column(name) for name in names}).take(
            pa.array(rows)
        )

    def places(self, column: str) -> Ints:
        """Of each row the place of its value among `names`, -1 for null."""
        return _numbers(pc.fill_null(self.dictionary(column).indices, -1))

    def numbers(self, column: str, missing: int = 0) -> Ints:
        """A column of whole numbers."""
        return _numbers(pc.fill_null(_one(self._rows[column]), missing))

    def column(self, name: str) -> pa.Array:
        """A column as it is; one that the file does not have, since it is older, is null."""
        return _one(self._rows[name]) if name in self._rows.column_names else pa.nulls(len(self))

    def micros(self, name: str) -> Ints:
        """A column of seconds in whole microseconds, 0 for null."""
        seconds = pc.fill_null(self.column(name).cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        micros: Ints = np.rint(seconds * MICROS).astype(np.int64)
        return micros

    @cached_property
    def time_us(self) -> Ints:
        """When it happened, microseconds since 1970."""
        return _numbers(_one(self._rows["time"]).cast(pa.int64()))

    def where(self, *kinds: str) -> Ints:
        """The rows of these kinds of event, in their order."""
        wanted = np.array([name in kinds for name in self.names("event").to_pylist()], np.bool_)
        return np.flatnonzero(wanted[self.places("event")])

    def segments(self, *columns: str) -> Ints:
        """Where a stretch of rows begins in which all these columns stay the same; the first one at 0."""
        changes = np.zeros(max(0, len(self) - 1), np.bool_)
        for column in columns:
            places = self.places(column)
            changes |= places[1:] != places[:-1]
        return np.concatenate(([0], np.flatnonzero(changes) + 1)) if len(self) else np.zeros(0, np.int64)

    @cached_property
    def owners(self) -> Ints:
        """Of each row the number of its key and run together, from 0."""
        starts = self.segments("key", "run_id")
        pairs = self.places("key")[starts] * (len(self.names("run_id")) + 1) + self.places("run_id")[starts]
        number = np.unique(pairs, return_inverse=True)[1]
        return np.repeat(number, np.diff(np.append(starts, len(self))))

    def value(self, column: str, rows: Ints) -> pa.Array:
        """The values of a column of names at these rows, null where there is none."""
        return self.dictionary(column).take(pa.array(rows)).cast(pa.string())

    def dictionary(self, column: str) -> pa.DictionaryArray:
        """A column of names."""
        if column not in self._dictionaries:
            values = self._rows[column]
            if not pa.types.is_dictionary(values.type):
                values = values.dictionary_encode()
            self._dictionaries[column] = _one(values.unify_dictionaries())
        return self._dictionaries[column]


def numbered(owner: Ints, number: Ints) -> tuple[Ints, int]:
    """A number from 0 for each pair, the same for the same pair, and how many numbers there may be: few more than there are pairs."""
    if not len(owner):
        return owner, 0
    low = np.full(owner.max() + 1, NEVER_US)
    high = np.full(owner.max() + 1, -1)
    np.minimum.at(low, owner, number)
    np.maximum.at(high, owner, number)
    lengths = np.where(high >= low, high - low + 1, 0)
    ends = np.cumsum(lengths)
    if lengths.max() <= _SPARSE * len(owner) and ends[-1] <= _SPARSE * len(owner):
        return (ends - lengths)[owner] + number - low[owner], int(ends[-1])
    pairs, place = np.unique(np.stack((owner, number)), axis=1, return_inverse=True)
    return place.reshape(-1), pairs.shape[1]


def earliest(place: Ints, time_us: Ints, count: int) -> Ints:
    """The earliest time of each place, `NEVER_US` for one that has none."""
    first = np.full(count, NEVER_US)
    np.minimum.at(first, place, time_us)
    return first


def times(values: Ints) -> pa.Array:
    """Times as a column, null for `NEVER_US`."""
    return pa.array(values, pa.int64(), mask=values == NEVER_US)


def rows_of(schema: pa.Schema, columns: Mapping[str, pa.Array | Ints], count: int) -> pa.RecordBatch:
    """A batch with these columns; those that are not given are null."""
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _one(values: pa.ChunkedArray) -> pa.Array:
    whole = values.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _numbers(values: pa.Array) -> Ints:
    numbers: Ints = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


# --- files -------------------------------------------------------------------------------------------------------------------


CHUNK_ROWS: Final = 1_000_000
ROWS_AT_ONCE: Final = 250_000
"""Where keys may be divided: about what pays for the work on a part, with all columns."""
EVENT_BYTES_MIN: Final = 8
"""An event takes more of a file."""
_TASKS_PER_CORE: Final = 4

Reduction = Callable[[Chunk], Iterable[pa.RecordBatch]]


class Scan:
    """Files of events by URI, with their sizes in bytes."""

    def __init__(self, spark: SparkSession, files: Iterable[tuple[str, int]]) -> None:
        self._spark = spark
        self._files = list(files)

    @property
    def events_max(self) -> int:
        """How many events the files can hold at most."""
        return sum(size for _, size in self._files) // EVENT_BYTES_MIN

    @property
    def tasks_max(self) -> int:
        """Into how many parts work on the files is divided at most, so that all cores have about the same."""
        return _TASKS_PER_CORE * self._spark.sparkContext.defaultParallelism

    def reduced(self, reduction: Reduction, columns: Sequence[str], schema: str) -> DataFrame:
        """What a reduction makes of the files' rows that have a key, whole keys of a file at a time. Rows as the reduction gives them."""
        return self._each(partial(chunks_of, columns=columns), reduction, schema)

    def reduced_whole(self, reduction: Reduction, columns: Sequence[str], schema: str) -> DataFrame:
        """The same of all rows, in parts that may divide a key."""
        return self._each(partial(whole_chunks_of, columns=columns), reduction, schema)

    def reduced_keys(self, reduction: Reduction, columns: Sequence[str], schema: str, keys: Iterable[str]) -> DataFrame:
        """The same of the rows of some keys, and of those without a key, in parts that may divide a key."""
        return self._each(partial(chunks_of_keys, columns=columns, keys=sorted(set(keys))), reduction, schema)

    def _each(self, read: Callable[[str], Iterable[Chunk]], reduction: Reduction, schema: str) -> DataFrame:
        tasks = max(1, min(len(self._files), self.tasks_max))
        shares: list[list[str]] = [[] for _ in range(tasks)]
        for number, (uri, _) in enumerate(sorted(self._files, key=lambda file: -file[1])):
            shares[number % tasks].append(uri)

        def reduce(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    for uri in shares[task]:
                        for chunk in read(uri):
                            yield from reduction(chunk)

        return self._spark.range(0, tasks, 1, tasks).mapInArrow(reduce, schema)


def chunks_of(uri: str, columns: Sequence[str], rows_max: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """The rows of a file that have a key, in parts that hold whole keys."""
    with _file(uri, columns) as file:
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


def whole_chunks_of(uri: str, columns: Sequence[str], rows_max: int = ROWS_AT_ONCE) -> Iterator[Chunk]:
    """All rows of a file, as they stand there."""
    with _file(uri, columns) as file:
        for groups in _together(file.metadata, range(file.metadata.num_row_groups), rows_max):
            yield Chunk(file.read_row_groups(groups, columns=list(columns), use_threads=False))


def chunks_of_keys(uri: str, columns: Sequence[str], keys: Sequence[str], rows_max: int = ROWS_AT_ONCE) -> Iterator[Chunk]:
    """The rows of a file that have one of these keys, which are sorted, or none, as they stand there."""
    wanted = pa.array([None, *keys], pa.string())
    with _file(uri, columns) as file:
        spans = _spans(file.metadata)
        holding = range(file.metadata.num_row_groups) if spans is None else _holding(file.metadata, spans, keys)
        for groups in _together(file.metadata, holding, rows_max):
            rows = file.read_row_groups(groups, columns=list(columns), use_threads=False)
            yield Chunk(rows.filter(pc.is_in(rows["key"].cast(pa.string()), wanted)))


def _together(metadata: Any, numbers: Iterable[int], rows_max: int) -> Iterator[list[int]]:
    """Row groups, as many at a time as have so many rows together."""
    groups: list[int] = []
    rows = 0
    for number in numbers:
        count = metadata.row_group(number).num_rows
        if groups and rows + count > rows_max:
            yield groups
            groups, rows = [], 0
        groups.append(number)
        rows += count
    if groups:
        yield groups


@contextmanager
def _file(uri: str, columns: Sequence[str]) -> Iterator[pq.ParquetFile]:
    system, path = opened(uri)
    with system.open_input_file(path) as source:
        yield pq.ParquetFile(source, read_dictionary=[name for name in columns if name in NAMES], pre_buffer=True)


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


def _holding(metadata: Any, spans: Sequence[tuple[int, str, str, int]], keys: Sequence[str]) -> list[int]:
    """The row groups that may have rows of one of these keys, which are sorted, or rows without a key."""
    with_keys = {number for number, first, last, _ in spans if bisect_left(keys, first) < bisect_right(keys, last)}
    whole = {number for number, *_ in spans if not _has_null_keys(metadata, number)}
    return [number for number in range(metadata.num_row_groups) if number in with_keys or number not in whole]


def _has_null_keys(metadata: Any, number: int) -> bool:
    place = metadata.schema.to_arrow_schema().names.index("key")
    return bool(metadata.row_group(number).column(place).statistics.null_count)


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
