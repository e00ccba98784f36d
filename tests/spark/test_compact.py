"""Compaction, cut short at every step and with files that come meanwhile: every row counts once, before, between and after."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from shutil import copy, copytree
from signal import SIGKILL
from subprocess import Popen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from prober.core.events import Acked, Delivered, Published, PublishInvoked
from prober.core.findings import Finding, Kind, Status
from prober.sinks.history.arrow import in_order, schema_of
from prober.sinks.history.reader import HistoryReader
from prober.sinks.history.schema import EVENTS, FINDINGS, RUNS, folder_of
from spark_jobs import compact
from spark_jobs.compact import clear, merge, merge_files, merged
from spark_jobs.history import History, folders_of
from spark_jobs.storage import JobError
from spark_jobs.work import Exit, Reports, Settings, Work
from tests.commands import ROOT
from tests.spark.taped import DAY, MIDNIGHT, S, Taped, rows_of, write
from tests.unit.sinks.history.older import ADDED, make_older
from tests.unit.sinks.history.recording import findings_in

FOLDER = folder_of(EVENTS, DAY.isoformat(), 0)


class _Crash(Exception):
    """The process ends here."""


def _crashing_before(step: str) -> Callable[[str], None]:
    def crash(coming: str) -> None:
        if coming == step:
            raise _Crash

    return crash


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> History:
    """Three files in the first hour of the day."""
    for segment in (1, 2, 3):
        write(tmp_path / "h", _run(segment), segment=segment)
    return History(spark, str(tmp_path / "h"))


def _run(number: int, at: float = 60.0) -> Taped:
    run_id = f"ordering-{number}"
    run = Taped(run_id)
    for key in ("b", "a"):
        run.add(PublishInvoked(at, key, run_id, 1, size=10), Published(at + 0.1, key, run_id, 1, f"{run_id}-{key}"))
        run.add(Delivered(at + 0.2, S, key, "A", run_id, 1, f"{run_id}-{key}"), Acked(at + 0.3, S, key, "A", f"{run_id}-{key}"))
    run.found(Finding(Kind.ORDER_GAP, Status.VIOLATION, S, "a", at + 0.2, (2, 3)), 3)
    return run.ended(at, at + 10.0, checks=[{"indicator": "order", "good": 1, "bad": 1, "undecided": 0}], counters={"keys": 2})


def _names(history: History) -> list[tuple[str, int]]:
    rows = history.read(EVENTS, folders_of(EVENTS, DAY, DAY)).select("run_id", "number").collect()
    return sorted((row.run_id, row.number) for row in rows)


def _all(*numbers: int) -> list[tuple[str, int]]:
    return sorted((f"ordering-{number}", place) for number in numbers for place in range(1, 9))


def test_a_folder_becomes_one_sorted_file(history: History, tmp_path: Path) -> None:
    assert merge(history, EVENTS, FOLDER) == (3, 1)
    (file,) = (tmp_path / "h" / FOLDER).glob("*")
    table = pq.read_table(file, partitioning=None)
    order = [tuple(row[name] for name in EVENTS.sorted_by) for row in table.to_pylist()]
    assert order == sorted(order, key=lambda row: tuple((value is not None, value) for value in row))
    assert pq.read_metadata(file).row_group(0).column(EVENTS.column_names.index("key")).statistics.has_min_max
    assert _names(history) == _all(1, 2, 3)


def test_the_rows_are_what_they_were(spark: SparkSession, history: History, tmp_path: Path) -> None:
    location = str(tmp_path / "h")
    before = HistoryReader(location)
    events, runs, findings = [list(before.events(key)) for key in "ab"], list(before.runs()), findings_in(tmp_path / "h")
    for table in (EVENTS, RUNS, FINDINGS):
        for folder in folders_of(table, DAY, DAY):
            merge(history, table, folder)
    after = HistoryReader(location)
    assert [list(after.events(key)) for key in "ab"] == events
    assert sorted(after.runs(), key=lambda run: run.run_id) == sorted(runs, key=lambda run: run.run_id)
    assert sorted(map(repr, findings_in(tmp_path / "h"))) == sorted(map(repr, findings))
    assert len(list((tmp_path / "h").rglob("*.parquet"))) == 3


@pytest.mark.parametrize("step", ["write", "rename", "delete"])
def test_a_crash_loses_and_doubles_nothing(history: History, tmp_path: Path, step: str) -> None:
    with pytest.raises(_Crash):
        merge(history, EVENTS, FOLDER, _crashing_before(step))
    assert _names(history) == _all(1, 2, 3)
    clear(history)
    merge(history, EVENTS, FOLDER)
    assert _names(history) == _all(1, 2, 3)
    assert len(list((tmp_path / "h" / FOLDER).iterdir())) == 1
    assert not list((tmp_path / "h").glob("_*"))


def test_a_killed_compaction_loses_and_doubles_nothing(spark: SparkSession, history: History, tmp_path: Path) -> None:
    """Processes of their own, killed for good before each of the steps."""
    steps = ("write", "rename", "delete")
    for step in steps:
        copytree(tmp_path / "h", tmp_path / step)
    program = [sys.executable, "-m", "tests.spark.compactor"]
    started = [Popen([*program, str(tmp_path / step), FOLDER, step], cwd=ROOT, start_new_session=True) for step in steps]
    assert [process.wait(100.0) for process in started] == [-SIGKILL] * 3
    for step in steps:
        left = History(spark, str(tmp_path / step))
        assert _names(left) == _all(1, 2, 3)
        clear(left)
        merge(left, EVENTS, FOLDER)
        assert _names(left) == _all(1, 2, 3)
        assert len(list((tmp_path / step / FOLDER).iterdir())) == 1
        assert not list((tmp_path / step).glob("_*"))


def test_originals_of_which_some_are_deleted_do_not_count(history: History, tmp_path: Path) -> None:
    with pytest.raises(_Crash):
        merge(history, EVENTS, FOLDER, _crashing_before("delete"))
    next(path for path in (tmp_path / "h" / FOLDER).iterdir() if "merged" not in path.name).unlink()
    assert _names(history) == _all(1, 2, 3)
    assert merge(history, EVENTS, FOLDER) == (1, 1)
    assert len(list((tmp_path / "h" / FOLDER).iterdir())) == 1


def test_writers_that_go_on_meanwhile_lose_nothing(history: History, tmp_path: Path) -> None:
    """A thread writes file after file while the folder is merged again and again, and what is read in between is never too much."""
    numbers = range(4, 20)
    written: list[int] = [1, 2, 3]

    def write_on() -> None:
        for number in numbers:
            write(tmp_path / "h", _run(number), segment=number)
            written.append(number)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_on)
        while True:
            over = writing.done()
            before = list(written)
            merge(history, EVENTS, FOLDER)
            seen = _names(history)
            assert len(seen) == len(set(seen))
            assert set(_all(*before)) <= set(seen)
            if over:
                break
        writing.result()
    assert _names(history) == _all(*written)
    assert len(list((tmp_path / "h" / FOLDER).iterdir())) == 1


def test_of_compactions_side_by_side_none_harms_the_other(history: History, tmp_path: Path) -> None:
    def merged(_: int) -> str:
        try:
            merge(history, EVENTS, FOLDER)
        except JobError as refused:
            return str(refused)
        return ""

    with ThreadPoolExecutor(3) as pool:
        refusals = list(pool.map(merged, range(3)))
    assert "" in refusals
    assert _names(history) == _all(1, 2, 3)
    assert len(list((tmp_path / "h" / FOLDER).iterdir())) == 1


def test_what_comes_later_is_merged_later(history: History, tmp_path: Path) -> None:
    merge(history, EVENTS, FOLDER)
    write(tmp_path / "h", _run(4), segment=4)
    assert _names(history) == _all(1, 2, 3, 4)
    assert merge(history, EVENTS, FOLDER) == (2, 1)
    assert _names(history) == _all(1, 2, 3, 4)
    assert len(list((tmp_path / "h" / FOLDER).iterdir())) == 1


def test_a_file_that_comes_while_others_are_merged_is_left_alone(history: History, tmp_path: Path) -> None:
    def write_another(step: str) -> None:
        if step == "rename":
            write(tmp_path / "h", _run(4), segment=4)

    merge(history, EVENTS, FOLDER, write_another)
    assert _names(history) == _all(1, 2, 3, 4)


def test_a_file_that_comes_back_does_not_count(history: History, tmp_path: Path) -> None:
    original = next((tmp_path / "h" / FOLDER).iterdir())
    copy(original, tmp_path / "kept")
    merge(history, EVENTS, FOLDER)
    copy(tmp_path / "kept", original)
    assert _names(history) == _all(1, 2, 3)
    merge(history, EVENTS, FOLDER)
    assert not original.exists()


def test_of_two_compactions_the_one_that_has_seen_more_counts(history: History, tmp_path: Path) -> None:
    with pytest.raises(_Crash):
        merge(history, EVENTS, FOLDER, _crashing_before("delete"))
    (first,) = (tmp_path / "h" / FOLDER).glob("*merged*")
    copy(first, tmp_path / "kept")
    first.unlink()
    write(tmp_path / "h", _run(4), segment=4)
    with pytest.raises(_Crash):
        merge(history, EVENTS, FOLDER, _crashing_before("delete"))
    copy(tmp_path / "kept", first)
    assert _names(history) == _all(1, 2, 3, 4)


def test_merging_is_no_news(history: History) -> None:
    folders = folders_of(EVENTS, DAY, DAY)
    before = history.inputs(folders)
    merge(history, EVENTS, FOLDER)
    assert history.inputs(folders) == before


def test_the_job_merges_every_folder_and_deletes_old_days(spark: SparkSession, tmp_path: Path) -> None:
    for segment, at in enumerate((60.0, 70.0, 7200.0, 7300.0, -30 * 86400.0), 1):
        write(tmp_path / "h", _run(segment, at), segment=segment)
    history, reports = History(spark, str(tmp_path / "h")), Reports(spark, str(tmp_path / "r"))
    work = Work(spark, history, reports, DAY, MIDNIGHT + 2 * 86400.0, Settings(keep_days=7))
    outcome = compact.run(work)
    assert (outcome.exit, outcome.line) == (Exit.PASS, f"compact {DAY}: PASS, 12 files became 4, 1 days too old and deleted")
    assert _names(history) == _all(1, 2, 3, 4)
    assert history.dates(EVENTS) == [DAY]


def test_a_day_that_is_not_over_is_left_alone(spark: SparkSession, history: History, tmp_path: Path) -> None:
    work = Work(spark, history, Reports(spark, str(tmp_path / "r")), DAY, MIDNIGHT + 80_000.0)
    assert compact.run(work).exit is Exit.UNKNOWN
    assert len(list((tmp_path / "h" / FOLDER).iterdir())) == 3


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
