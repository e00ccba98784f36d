"""The command line: exit codes, one line for everything that is wrong, and the same under spark-submit."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from prober.core.events import Ended, Event, Opened, Published, PublishInvoked
from prober.sinks.history.schema import EVENTS, MESSAGES, Table
from prober.slo.objectives import DEFAULTS
from spark_jobs import hot_keys, nightly, reverify, slo_burn
from spark_jobs.__main__ import main
from spark_jobs.history import History
from spark_jobs.session import find_java
from spark_jobs.storage import JobError
from spark_jobs.work import Exit, Reports, Work
from tests.commands import ROOT
from tests.nightly import nightly_but
from tests.spark.taped import DAY, MIDNIGHT, S, Taped, write

PLACES = ("--history", "h", "--reports", "r")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required"),
        (["sing", *PLACES], "invalid choice: 'sing'"),
        (["nightly", *PLACES, "--date", "yesterday"], "'yesterday' is not a date like 2026-11-20"),
        (["nightly", *PLACES, "--top", "0"], "'0' is not a whole number from 1"),
        (["nightly", *PLACES, "--objectives", "nowhere.json"], "nowhere.json: No such file or directory"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: Sequence[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # main sets its own
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == Exit.USAGE
    logging.captureWarnings(False)
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(
        JobError, match=r"^Spark needs Java 17 or newer: none was found in JAVA_HOME and PATH; install it \(.*\) or"
    ):
        find_java({"PATH": str(tmp_path)})


def test_a_java_that_is_too_old_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    with pytest.raises(JobError, match=rf"^Spark needs Java 17 or newer: {java} is version 11; install"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\" 2023-10-17' >&2\n")
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}) == tmp_path


def test_a_history_that_is_not_there_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"^.*/nowhere: no such folder; give the location of a history$"):
        History(spark, str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("s3://bucket/history", r"^s3a://bucket/history cannot be used: .*S3AFileSystem"),
        ("nfs://host/history", r"^nfs://host/history cannot be used: .*nfs"),
        ("s3://bucket/history?region=eu", r"^s3://bucket/history\?region=eu: remove what follows the \?, which is for the service"),
    ],
)
def test_a_place_that_spark_does_not_know_is_one_line(spark: SparkSession, location: str, said: str) -> None:
    with pytest.raises(JobError, match=said) as raised:
        History(spark, location)
    assert "\n" not in str(raised.value)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def with_other_bytes(file: Path) -> None:
    """In the pages of one column, where Parquet itself notices nothing."""
    group, content = pq.read_metadata(file).row_group(0), bytearray(file.read_bytes())
    (column,) = (column for column in map(group.column, range(group.num_columns)) if column.path_in_schema == "key")
    begin = column.dictionary_page_offset or column.data_page_offset
    content[begin + column.total_compressed_size - 2] ^= 1
    file.write_bytes(content)


def test_a_file_whose_footer_is_damaged_is_not_verified(spark: SparkSession, tmp_path: Path) -> None:
    files = write(tmp_path / "h", Taped().add(PublishInvoked(1.0, "k", "ordering-1", 1)).ended(0.0, 3.0))
    (file,) = [path for path in files if path.is_relative_to(tmp_path / "h" / EVENTS.name)]
    work = Work(spark, History(spark, str(tmp_path / "h")), Reports(spark, str(tmp_path / "r")), DAY, MIDNIGHT + 200_000.0)
    reverify.run(work)
    content = file.read_bytes()
    name = content.rindex(b"message_id")
    file.write_bytes(content[:name] + b"n" + content[name + 1 :])
    with pytest.raises(JobError, match=rf"^damaged, so that nothing was verified: file:.*/{file.name}$"):
        reverify.run(work)


ENDS: Final = {
    EVENTS: "hot-keys PASS, slo-burn PASS, reverify UNKNOWN",
    MESSAGES: "hot-keys UNKNOWN, slo-burn UNKNOWN, reverify PASS",
}


@pytest.mark.parametrize(
    ("table", "spoil"),
    nightly_but([(EVENTS, with_other_bytes), (MESSAGES, cut_off)], product(ENDS, (cut_off, with_other_bytes))),
    ids=lambda one: getattr(one, "name", "") or one.__name__,
)
def test_a_damaged_file_leaves_the_other_jobs_alone(
    table: Table, spoil: Callable[[Path], None], spark: SparkSession, tmp_path: Path
) -> None:
    """The jobs that need it end UNKNOWN, and say why in one line."""
    events: list[Event] = [
        Opened(1.0, S, "A", "A"),
        PublishInvoked(1.0, "k", "ordering-1", 1),
        Published(1.1, "k", "ordering-1", 1, "m1"),
    ]
    files = write(tmp_path / "h", Taped().add(*events, Ended(2.0, drained=True)).ended(0.0, 3.0))
    (file,) = [path for path in files if path.is_relative_to(tmp_path / "h" / table.name)]
    spoil(file)
    work = Work(spark, History(spark, str(tmp_path / "h")), Reports(spark, str(tmp_path / "r")), DAY, MIDNIGHT + 200_000.0)
    lines: list[str] = []
    outcome = nightly.run(Work(work.spark, work.history, work.reports, work.day, work.now, say=lines.append))
    assert outcome.line == f"nightly {DAY}: UNKNOWN, {ENDS[table]}, retention PASS"
    assert all("\n" not in line for line in lines)
    assert any(file.name in line for line in lines), lines
    assert (work.reports.summary(hot_keys.JOB, DAY) == {}) == (table is MESSAGES)
    assert nightly.inputs_of(work, DAY).are_news_to(work.reports.summary(nightly.JOB, DAY))  # it is tried again the next night


def test_a_file_of_messages_that_comes_later_is_news(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "h", Taped().add(PublishInvoked(1.0, "k", "ordering-1", 1)).ended(0.0, 3.0))
    work = Work(spark, History(spark, str(tmp_path / "h")), Reports(spark, str(tmp_path / "r")), DAY, MIDNIGHT + 200_000.0)
    before = [nightly.inputs_of(work, DAY), slo_burn.inputs_of(work, DAY, DEFAULTS)]
    (file,) = (tmp_path / "h" / "messages").rglob("*.parquet")
    file.with_name("messages-p2-00000001.parquet").write_bytes(file.read_bytes())
    after = [nightly.inputs_of(work, DAY), slo_burn.inputs_of(work, DAY, DEFAULTS)]
    assert all(now.are_news_to(then.noted()) for now, then in zip(after, before, strict=True))


@pytest.mark.parametrize(("folder", "is_news"), [("runs", False), ("messages", False), ("events", True)])
def test_the_next_day_is_no_news_to_the_minutes_of_a_day_but_for_its_first_hour(
    folder: str, is_news: bool, spark: SparkSession, tmp_path: Path
) -> None:
    run = Taped().add(PublishInvoked(86_390.0, "k", "ordering-1", 1), Ended(86_410.0, drained=True)).ended(86_380.0, 86_420.0)
    write(tmp_path / "h", run)
    work = Work(spark, History(spark, str(tmp_path / "h")), Reports(spark, str(tmp_path / "r")), DAY, MIDNIGHT + 200_000.0)
    before = slo_burn.inputs_of(work, DAY, DEFAULTS)
    (path,) = (tmp_path / "h" / "events" / f"date={DAY + timedelta(days=1)}").rglob("*.parquet")
    copy = path.parent if folder == "events" else tmp_path / "h" / folder / f"date={DAY + timedelta(days=1)}"
    copy.mkdir(parents=True, exist_ok=True)
    (copy / f"{folder}-p2-00000001.parquet").write_bytes(path.read_bytes())
    assert slo_burn.inputs_of(work, DAY, DEFAULTS).are_news_to(before.noted()) == is_news


@pytest.mark.parametrize("log_format", nightly_but(["json"], ["text", "json"]))
def test_under_spark_submit_the_same_is_said(log_format: str, tmp_path: Path) -> None:
    """By the program that comes with PySpark, with its settings."""
    write(tmp_path / "h", Taped().ended(0.0, 3.0))
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", "--driver-memory", "512m"]
    job = [
        "spark_jobs/__main__.py",
        "retention",
        "--history",
        str(tmp_path / "h"),
        "--reports",
        str(tmp_path / "r"),
        "--date",
        str(DAY),
        "--log-format",
        log_format,
    ]
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}", "JAVA_HOME": str(find_java(os.environ))}
    done = subprocess.run([*submit, *job], cwd=ROOT, env=os.environ | paths, capture_output=True, text=True, check=False)
    result = f"retention {DAY}: PASS, every day is kept"
    if log_format == "json":
        line = json.loads(done.stdout)
        del line["time"]
        said = {"severity": "INFO", "logger": "spark_jobs", "message": result, "job": "retention", "verdict": "PASS"}
        assert line == said, done.stderr[-2000:]
    else:
        assert done.stdout == f"{result}\n", done.stderr[-2000:]
    assert done.returncode == Exit.PASS
    assert (tmp_path / "r" / "retention" / f"date={DAY}" / "summary.json").exists()
