"""Days that are too old are deleted, of every table, and no others."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from prober.core.events import PublishInvoked
from prober.core.findings import Finding, Kind, Status
from prober.sinks.history.schema import EVENTS, FINDINGS, RUNS
from spark_jobs import retention
from spark_jobs.history import History
from spark_jobs.work import Exit, Reports, Settings, Work
from tests.spark.taped import DAY, MIDNIGHT, S, Taped, write

OLD = DAY - timedelta(days=30)
DAY_S = 86_400.0


@pytest.fixture
def work(spark: SparkSession, tmp_path: Path) -> Work:
    """A run on the day, and one a month before; it is the second day after."""
    for number, at in enumerate((60.0, 60.0 - 30 * DAY_S), 1):
        run = Taped(f"ordering-{number}").add(PublishInvoked(at, "k", f"ordering-{number}", 1))
        run.found(Finding(Kind.ORDER_GAP, Status.VIOLATION, S, "k", at, (1,)), 1).ended(at, at + 10.0)
        write(tmp_path / "h", run, segment=number)
    history, reports = History(spark, str(tmp_path / "h")), Reports(spark, str(tmp_path / "r"))
    return Work(spark, history, reports, DAY, MIDNIGHT + 2 * DAY_S)


def test_old_days_go_and_the_others_stay(work: Work) -> None:
    kept = Work(work.spark, work.history, work.reports, DAY, work.now, Settings(keep_days=7))
    outcome = retention.run(kept)
    assert (outcome.exit, outcome.line) == (Exit.PASS, f"retention {DAY}: PASS, 1 days too old and deleted")
    assert [work.history.dates(table) for table in (EVENTS, RUNS, FINDINGS)] == [[DAY]] * 3
    assert work.reports.summary(retention.JOB, DAY)["days_deleted"] == [OLD.isoformat()]
    assert retention.run(kept).line.endswith("PASS, 0 days too old and deleted")


def test_a_day_is_kept_as_long_as_it_says(work: Work) -> None:
    retention.run(Work(work.spark, work.history, work.reports, DAY, work.now, Settings(keep_days=32)))
    assert work.history.dates(EVENTS) == [OLD, DAY]


def test_without_a_limit_nothing_goes(work: Work) -> None:
    assert retention.run(work).line == f"retention {DAY}: PASS, every day is kept"
    assert work.history.dates(EVENTS) == [OLD, DAY]
