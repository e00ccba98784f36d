"""What is read of the tables of a history, and what is refused."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from shutil import copyfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from prober.sinks.history.schema import EVENTS, FINDINGS, MESSAGES, RUNS, SCHEMA_VERSION
from spark_jobs.storage import JobError
from spark_jobs.tables import Tables
from tests.notation import history
from tests.unit.sinks.history.older import ADDED, make_older
from tests.unit.sinks.history.recording import BEGAN_AT, Recorder

GAP = "P1,2,3 A<1@1 A<3@1.2 A<2@1.4 end @500"
DAY = date(2026, 1, 2)
DURING = int(BEGAN_AT * 1e6), int((BEGAN_AT + 500.0) * 1e6)


@pytest.fixture
def location(tmp_path: Path) -> Path:
    recorder = Recorder(tmp_path)
    recorder.record(history(GAP))
    recorder.save()
    recorder.kill()
    return tmp_path


def test_rows_come_once_although_their_files_are_there_twice(spark: SparkSession, location: Path) -> None:
    for path in list(location.rglob("*.parquet")):
        copyfile(path, path.with_name(path.name.replace("p1", "p1-again")))
    tables = Tables(spark, str(location))
    assert tables.runs(DAY, DAY).count() == 1
    assert tables.events(*DURING).count() == len(history(GAP))
    found = pq.read_table(next((location / "findings").rglob("findings-p1-0*.parquet")), partitioning=None).num_rows
    assert tables.findings(DAY, DAY).count() == found > 0


def test_columns_that_a_file_does_not_have_are_null(spark: SparkSession, location: Path) -> None:
    assert make_older(location)
    rows = Tables(spark, str(location)).events(*DURING)
    assert rows.columns == list(EVENTS.column_names)
    assert not any(row[name] for row in rows.collect() for name in ADDED)


def test_days_of_which_there_is_nothing_have_no_rows(spark: SparkSession, location: Path) -> None:
    tables, later = Tables(spark, str(location)), DAY + timedelta(days=7)
    for table in (RUNS, FINDINGS, MESSAGES, EVENTS):
        empty = tables.read(table, later, later)
        assert empty.columns == list(table.column_names)
        assert empty.isEmpty()
        assert not tables.read(table, DAY - timedelta(days=1), later).isEmpty()
    assert tables.runs(later, later).isEmpty()


def test_only_files_with_the_names_of_a_history_are_read(spark: SparkSession, location: Path) -> None:
    (path,) = (location / "runs").rglob("*.parquet")
    for name in (".runs-p1-00000009.parquet", "_runs-p1-00000009.parquet", "copy.parquet"):
        copyfile(path, path.with_name(name))
    assert Tables(spark, str(location)).read(RUNS, DAY, DAY).count() == 2


def test_a_newer_version_is_refused_in_one_line(spark: SparkSession, location: Path) -> None:
    (path,) = (location / "runs").rglob("*.parquet")
    rows = pq.ParquetFile(path).read()
    place = rows.column_names.index(SCHEMA_VERSION)
    newer = pc.add(rows.column(SCHEMA_VERSION), pa.scalar(1))
    pq.write_table(rows.set_column(place, SCHEMA_VERSION, newer), path)
    with pytest.raises(JobError, match=r"written under version 2 of the schema, this program knows 1; use a newer one$"):
        Tables(spark, str(location)).runs(DAY, DAY)
