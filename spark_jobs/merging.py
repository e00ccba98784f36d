"""Files of a table, each of them sorted as the table is, become one: read, merged and written where an executor is.

Memory: so many rows as `ROWS_AT_ONCE`, or a row group of each file if that is more. Names stay dictionaries on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from prober.sinks.history.arrow import ROW_GROUP_ROWS, dictionary_columns, file_options, schema_of
from prober.sinks.history.schema import Table
from spark_jobs.scan import ROWS_AT_ONCE, Ints, opened


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
