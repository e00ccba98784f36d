"""How files become one, without Spark: however little of them is in memory at once, the rows are in order and all there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prober.core.events import PublishInvoked
from prober.sinks.history.arrow import in_order, schema_of
from prober.sinks.history.schema import EVENTS
from spark_jobs.merging import merge_files, merged
from tests.spark.taped import Taped, rows_of, write
from tests.unit.sinks.history.older import ADDED, make_older

ROWS = pa.schema([("name", pa.dictionary(pa.int32(), pa.string())), ("number", pa.int64())])


def tables(rows: Sequence[tuple[str | None, int]], length: int) -> Iterator[pa.Table]:
    """Rows in order, so many at a time; each table knows only the names that it has."""
    ordered = sorted(rows, key=lambda row: (row[0] is not None, row))
    for at in range(0, len(ordered), length):
        yield pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in ordered[at : at + length]], ROWS)


@pytest.mark.parametrize("rows_at_once", [1, 7, 40, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_all_rows_come_in_order(seed: int, rows_at_once: int) -> None:
    chance = Random(seed)
    sources = [
        [(chance.choice([None, "a", "b", "ä", "z"]), chance.randrange(30)) for _ in range(chance.randrange(40))] for _ in range(4)
    ]
    parts = list(merged([tables(rows, chance.randrange(1, 9)) for rows in sources], ("name", "number"), rows_at_once))
    found = [tuple(row.values()) for part in parts for row in part.to_pylist()]
    wanted = sorted(
        (row for rows in sources for row in rows), key=lambda row: (row[0] is not None, (row[0] or "").encode(), row[1])
    )
    assert found == wanted


def test_of_long_sources_little_is_in_memory() -> None:
    sources = [[("a", number) for number in range(start, 1000, 3)] for start in range(3)]
    parts = list(merged([tables(rows, 5) for rows in sources], ("name", "number"), 30))
    assert max(part.num_rows for part in parts) <= 60
    assert sum(part.num_rows for part in parts) == 1000


def test_without_sources_there_is_nothing() -> None:
    assert list(merged([], ("name",))) == []


def test_what_older_files_do_not_have_is_null(tmp_path: Path) -> None:
    runs = [Taped(name).add(*(PublishInvoked(float(at), "k", name, at) for at in range(5))) for name in ("one", "two")]
    older = write(tmp_path / "older", runs[0])
    make_older(tmp_path / "older")
    newer = write(tmp_path / "newer", runs[1])
    target = tmp_path / "merged.parquet"
    merge_files([str(path) for path in (*older, *newer)], str(target), EVENTS, {"said": "of it"})
    file = pq.ParquetFile(target)
    rows = [row | dict.fromkeys(ADDED) for row in rows_of(EVENTS, runs[:1])] + rows_of(EVENTS, runs[1:])
    assert file.read() == in_order(pa.Table.from_pylist(rows, schema_of(EVENTS)), EVENTS)
    assert file.metadata.metadata[b"said"] == b"of it"
