"""The job `compact`: the many small files of a finished day become one large sorted file per folder; then what is too old goes.

How a folder is compacted, step by step, and what a crash leaves:

1. Its files that count (`spark_jobs.history`) are read, sorted as the table is, and written as one file into a hidden folder. Crash: the
   hidden folder is left; nobody reads it, and the next compaction deletes it.
2. That file is renamed to its place. Its footer names the originals that it stands for, and from this moment on they do not count. This
   is the one step that matters, and it happens or does not. Crash: the originals are still there; the next compaction deletes them.
3. The originals are deleted. Crash: the same.

Each row counts exactly once all the time for readers that follow the rule of `spark_jobs.history`. Readers that do not may see rows twice
between 2 and 3, which are moments apart, and know them by (`process`, `run_id`, `number`). A reader that listed the folder before 3 and
opens a file after it finds it gone, and has to read again: an error, never a wrong number.

Writers are not disturbed: only files that were listed in 1 are touched. One that comes later, even for a day long past, is merged by the
next compaction. One that comes back under the name of an original (a writer that repeats what it had written before a crash) does not
count, and the next compaction deletes it. Two compactions at once write the same file, or that of the one that has seen more counts.

In an object store step 2 copies the file and deletes the first copy; a file appears there at once and complete, so the same holds.

The files of a folder, each of them sorted as the table is, are read, merged and written where an executor is. Memory: so many rows as
`ROWS_AT_ONCE`, or a row group of each file if that is more. Names stay dictionaries on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date, timedelta
from typing import Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from prober.sinks.history.arrow import ROW_GROUP_ROWS, dictionary_columns, file_options, schema_of
from prober.sinks.history.schema import TABLES, Table
from spark_jobs.history import History, HistoryFile, counting, description, folders_of, merged_file_name
from spark_jobs.scan import ROWS_AT_ONCE, Ints, opened
from spark_jobs.storage import FAILURES, JobError, reason_of
from spark_jobs.work import Exit, JobOutcome, Work

JOB: Final = "compact"
AT_ONCE_MAX: Final = 4
"""Folders that are merged at the same time."""

_HIDDEN: Final = "_merging-"


def run(work: Work) -> JobOutcome:
    """Compacts the day, and deletes days that are too old."""
    if work.day >= _today(work):
        return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, the day is not over")
    clear(work.history)
    folders = [(table, folder) for table in TABLES.values() for folder in folders_of(table, work.day, work.day)]
    with ThreadPoolExecutor(AT_ONCE_MAX) as pool:
        folded = list(pool.map(lambda one: merge(work.history, *one), folders))
    deleted = _retain(work)
    before, after = sum(one[0] for one in folded), sum(one[1] for one in folded)
    numbers = {"files_before": before, "files_after": after, "days_deleted": [day.isoformat() for day in deleted]}
    return work.publish(work.reports.draft(JOB, work.day), _outcome(work, before, after, len(deleted)), numbers)


def _outcome(work: Work, before: int, after: int, deleted: int) -> JobOutcome:
    if not before:
        return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, the history has no files of that day")
    gone = f", {deleted} days too old and deleted" if deleted else ""
    return JobOutcome(Exit.PASS, f"{JOB} {work.day}: PASS, {before} files became {after}{gone}")


def merge(history: History, table: Table, folder: str, crash: Callable[[str], None] = lambda _step: None) -> tuple[int, int]:
    """Merges what counts in a folder; returns how many files counted before and after.

    Raises `JobError` if files cannot be read or written, as where another compaction is at work. `crash` is told before each step which
    one comes; tests end there.
    """
    present = history.present(folder)
    files = counting(present)
    _delete(history, [file for file in present if file not in files])
    if len(files) < 2:
        return len(files), len(files)
    originals = sorted(frozenset().union(*(file.originals for file in files)))
    crash("write")
    hidden, written = _written(history, table, files, originals)
    crash("rename")
    history.storage.sync(written)
    history.storage.rename(written, f"{folder}/{merged_file_name(table, originals)}")
    crash("delete")
    _delete(history, files)
    history.storage.delete(hidden)
    return len(files), 1


def clear(history: History) -> None:
    """Deletes what compactions that were cut short have left half written. Raises `JobError` if the history cannot be read."""
    for entry in history.storage.entries():
        if entry.name.startswith(_HIDDEN):
            history.storage.delete(entry.name)


def _written(history: History, table: Table, files: list[HistoryFile], originals: list[str]) -> tuple[str, str]:
    """The hidden folder, and the file in it that has all rows."""
    hidden = f"{_HIDDEN}{uuid4().hex}"
    history.storage.make_folder(hidden)
    uris, folder = [history.storage.uri(file.path) for file in files], history.storage.uri(hidden)
    described = description(table, originals)

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            name = f"{uuid4().hex}.parquet"  # an attempt that failed leaves another one
            merge_files(uris, f"{folder}/{name}", table, described)
            yield pa.RecordBatch.from_pydict({"name": [name]})

    try:
        ((name,),) = history.spark.range(0, 1, 1, 1).mapInArrow(write, "name string").collect()
    except FAILURES as error:
        reason = f"{files[0].folder} cannot be merged: {reason_of(error)}"
        raise JobError(f"{reason}; if another compaction is at work there, let it finish") from error
    return hidden, f"{hidden}/{name}"


def _retain(work: Work) -> list[date]:
    """Deletes the days before the last `keep_days` ones; returns which."""
    if work.settings.keep_days is None:
        return []
    oldest = _today(work) - timedelta(days=work.settings.keep_days)
    gone = sorted({day for table in TABLES.values() for day in work.history.dates(table) if day < oldest})
    for table in TABLES.values():
        for day in gone:
            work.history.storage.delete(f"{table.name}/date={day.isoformat()}")
    return gone


def _delete(history: History, files: list[HistoryFile]) -> None:
    for file in files:
        history.storage.delete(file.path)


def _today(work: Work) -> date:
    return date(1970, 1, 1) + timedelta(seconds=work.now)


def merge_files(uris: Sequence[str], target: str, table: Table, described: Mapping[str, str]) -> None:
    """Writes all rows of some files, in order, into one; `described` are entries of its footer."""
    schema = _schema(table)
    with ExitStack() as stack:
        files = [_opened(stack, uri, dictionary_columns(table)) for uri in uris]
        system, path = opened(target)
        sink = stack.enter_context(system.open_output_stream(path))
        # What Arrow would note of its types, that names are dictionaries, is no business of readers.
        writer = stack.enter_context(pq.ParquetWriter(sink, schema, store_schema=False, **file_options(table)))
        writer.add_key_value_metadata({**schema_of(table).metadata, **described})
        for rows in merged([_groups(file, schema) for file in files], table.sorted_by):
            writer.write_table(rows, ROW_GROUP_ROWS)


def merged(sources: Sequence[Iterator[pa.Table]], sorted_by: Sequence[str], rows_at_once: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The rows of all sources in order; each source gives its own in order, table by table. Nulls come first."""
    share = rows_at_once // max(1, len(sources))
    going_on = set(range(len(sources)))
    waiting: list[pa.Table] = []
    origin = np.zeros(0, np.int64)
    while waiting or going_on:
        for number in sorted(going_on):
            while number in going_on and np.count_nonzero(origin == number) <= share // 2:
                more = next(sources[number], None)
                if more is None:
                    going_on.discard(number)
                else:
                    waiting.append(more)
                    origin = np.append(origin, np.full(more.num_rows, number))
        if not waiting:
            return
        rows = pa.concat_tables(waiting).unify_dictionaries().combine_chunks()
        order = order_of(rows, sorted_by)
        rows, origin = rows.take(pa.array(order)), origin[order]
        # What comes after the last row of a source that goes on may have to let more of it pass.
        end = min((int(np.flatnonzero(origin == number)[-1]) + 1 for number in going_on), default=len(order))
        yield rows[:end]
        waiting, origin = [rows[end:]] if end < len(order) else [], origin[end:]


def order_of(rows: pa.Table, sorted_by: Iterable[str]) -> Ints:
    """The places of the rows in their order."""
    order: Ints = np.lexsort([_ranks(rows[name].combine_chunks()) for name in reversed(list(sorted_by))])
    return order


def _ranks(values: pa.Array) -> Ints:
    """Numbers in the order of the values, -1 for null."""
    if not pa.types.is_dictionary(values.type):
        plain: Ints = pc.fill_null(values.cast(pa.int64()), -1).to_numpy()
        return plain
    ranks = np.full(len(values.dictionary) + 1, -1)
    ranks[pc.sort_indices(values.dictionary).to_numpy()] = np.arange(len(values.dictionary))
    of_rows: Ints = ranks[pc.fill_null(values.indices, -1).to_numpy(zero_copy_only=False)]
    return of_rows


def _opened(stack: ExitStack, uri: str, names: Iterable[str]) -> pq.ParquetFile:
    """A file whose columns of names are read as dictionaries, those that it has."""
    system, path = opened(uri)
    source = stack.enter_context(system.open_input_file(path))
    metadata = pq.read_metadata(source)
    present = set(metadata.schema.to_arrow_schema().names)
    return pq.ParquetFile(source, metadata=metadata, read_dictionary=[name for name in names if name in present])


def _groups(file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """The row groups that have rows, with all columns; those that the file does not have are null."""
    for number in range(file.metadata.num_row_groups):
        rows = file.read_row_group(number, use_threads=False)
        present = set(rows.column_names)
        columns = [
            rows[field.name].cast(field.type) if field.name in present else pa.nulls(rows.num_rows, field.type) for field in schema
        ]
        if rows.num_rows:
            yield pa.Table.from_arrays(columns, schema=schema)


def _schema(table: Table) -> pa.Schema:
    names = set(dictionary_columns(table))
    fields = [
        field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in names else field for field in schema_of(table)
    ]
    return pa.schema(fields)
