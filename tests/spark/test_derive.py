"""What Spark makes of the events of runs is what the service wrote of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from shutil import copyfile
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from prober.core.events import Delivered, Event, PublishAbandoned, Published, PublishFailed, PublishInvoked, PublishUnknown
from prober.core.rules import Mode
from prober.simulation.world import Simulated
from prober.sinks.history.encoding import Origin, message_batches
from prober.sinks.history.messages import MessageRows
from prober.sinks.history.schema import MESSAGES, MESSAGES_WRITTEN, SCHEMA_VERSION
from prober.slo.objectives import DAY_S
from spark_jobs import derive as derivation
from spark_jobs.derive import DayMessages, Night, derive
from spark_jobs.tables import Tables
from tests.simulation.faults import FAULTS
from tests.simulation.service import simulate_run
from tests.spark.simulated import QUIET
from tests.spark.taped import DAY
from tests.unit.sinks.history.recording import BEGAN_AT, Recorder, context, result

SEEDS: Final = 80
CUT_SHORT_EVERY: Final = 5
LAGGED: Final = 0.05
"""The share of events that show a lag."""
FIRST: Final = date(2026, 1, 2)
"""The day of `BEGAN_AT`."""
NEXT: Final = FIRST + timedelta(days=1)
DAYS: Final = 4
MIDNIGHT_S: Final = DAY_S - BEGAN_AT % DAY_S
"""How long after that the next day begins."""

OF_A_PUBLISHER: Final = (PublishInvoked, Published, PublishFailed, PublishUnknown, PublishAbandoned, Delivered)

Row = dict[str, Any]
_IDENTITY: Final = ("run_id", "subscription", "key", "epoch", "seq", "message_id")


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [str(row[name]) for name in _IDENTITY])


def rows_of(frame: DataFrame) -> list[Row]:
    assert frame.columns == list(MESSAGES.column_names)
    return sorted_rows(frame.toArrow().to_pylist())


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """The history of many runs with faults, broken connections and restarts, some of them cut short, and the rows of these."""
    location = tmp_path_factory.mktemp("simulated")
    recorder = Recorder(location)
    cut_short: list[Row] = []
    for seed in range(SEEDS):
        cut_short += record(recorder, seed)
        if seed % 20 == 0:
            recorder.save()
    recorder.save()
    recorder.kill()
    return location, cut_short


def record(recorder: Recorder, seed: int) -> Iterator[Row]:
    """A run as the service would record it; yields the rows that it cannot write, since the run is cut short."""
    mode = list(Mode)[seed % len(Mode)]
    fault = None if seed % 4 == 0 else FAULTS[mode][seed // len(Mode) % len(FAULTS[mode])]
    run, run_id, rng = simulate_run(seed, mode, fault), f"{mode}-{seed}", Random(seed)
    recorder.clock.now = run.events[0].t
    log = recorder.begin(run_id, run.rules_by_subscription)
    messages = MessageRows(run_id, run.rules_by_subscription, BEGAN_AT)
    own = next((event.epoch for event in run.events if isinstance(event, PublishInvoked)), "")
    for event in run.events:
        ours = as_recorded(event)
        if isinstance(ours, OF_A_PUBLISHER) and ours.epoch == own:
            ours = replace(ours, epoch=run_id)
        lagged_s = rng.random() if rng.random() < LAGGED else 0.0
        log.record(ours, lagged_s=lagged_s)
        messages.add(ours, lagged_s)
        recorder.clock.now = event.t
    if seed % CUT_SHORT_EVERY:
        log.ended(result(run_id))
        return
    log.release()
    about = replace(context(run_id, run.rules_by_subscription), run_id=run_id)
    for batch in message_batches(messages.rows(None), about, Origin("p1", BEGAN_AT)):
        shared = {name: getattr(about, name) for name in ("run_id", "target", "environment", "region", "probe", "vantage", "topic")}
        for row in batch.to_pylist():
            whole = row | shared | {"process": "p1"}
            yield {name: whole[name] for name in MESSAGES.column_names}


def as_recorded(event: Event) -> Event:
    """The service states when a message was stored in nanoseconds; a simulation in seconds, perhaps with a number behind them."""
    if not isinstance(event, Delivered) or isinstance(event.publish_time, int | None):
        return event
    seconds, _, number = str(event.publish_time).partition("s#")
    return replace(event, publish_time=round(float(seconds) * 1e9) + int(number or 0))


def test_derived_rows_are_the_written_ones(spark: SparkSession, simulated: tuple[Path, list[Row]]) -> None:
    location, cut_short = simulated
    tables, last = Tables(spark, str(location)), FIRST + timedelta(days=DAYS)
    runs = tables.runs(FIRST, last)
    written = rows_of(tables.read(MESSAGES, FIRST, last))
    assert len({row["run_id"] for row in written}) == SEEDS - SEEDS // CUT_SHORT_EVERY
    since_us = int(BEGAN_AT * 1e6)
    derived = rows_of(derive(tables.events(since_us, since_us + DAYS * derivation.RUN_MAX_US), runs))
    assert derived == sorted_rows([*written, *cut_short])
    seen = {row["outcome"] for row in derived}
    assert seen >= {"acked", "delivered", "published", "publish_failed", "publish_unknown", "sought"}
    assert any(row["redeliveries"] and row["redeliveries"][0]["due_at"] for row in derived)
    assert any(row["subscriber_changes"] for row in derived)
    assert any(row["received_lagged_us"] for row in derived)


# --- which runs -----------------------------------------------------------------------------------------------------------------


def recorded(location: Path, process: str, *run_ids: str) -> Path:
    """Runs on both sides of midnight, and if its name says so, one that is cut short."""
    recorder = Recorder(location, process)
    for run_id in run_ids:
        recorder.clock.now = MIDNIGHT_S - 10.0
        log = recorder.begin(run_id)
        for number in range(4):
            log.record(PublishInvoked(recorder.clock.now + 5.0 * number, "k", run_id, number + 1))
        recorder.clock.now += 20.0
        if run_id == "cut short":
            log.release()
        else:
            log.ended(result(run_id, duration_s=20.0))
    recorder.save()
    recorder.kill()
    return location


def counted(tables: Tables, first: date, last: date) -> dict[str, int]:
    """The messages of each run that were to be sent in these days, each of them once and with one publish."""
    rows = rows_of(DayMessages(tables, last).since(first))
    assert len({tuple(row[name] for name in _IDENTITY) for row in rows}) == len(rows)
    assert {row["attempts"] for row in rows} == {1}
    return Counter(row["run_id"] for row in rows)


def test_nothing_is_derived_if_all_rows_are_there(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "derive", None)
    tables = Tables(spark, str(recorded(tmp_path, "p1", "one", "two")))
    assert counted(tables, FIRST, FIRST) == {"one": 2, "two": 2}


def test_the_rows_of_runs_that_lack_some_or_have_too_many_are_derived(spark: SparkSession, tmp_path: Path) -> None:
    location = tmp_path / "[history]"
    for process in ("whole", "lost", "twice", "older"):
        recorded(location, process, process)
    recorded(location, "cut", "cut short")
    (location / "messages" / f"date={NEXT}" / "messages-lost-00000001.parquet").unlink()
    for path in list(location.rglob("*-twice-*.parquet")):
        copyfile(path, path.with_name(path.name.replace("twice", "again")))
    for path in list(location.rglob("messages-older-*.parquet")):
        path.unlink()
    for path in location.rglob("runs-older-*.parquet"):
        pq.write_table(pq.ParquetFile(path).read().drop_columns([MESSAGES_WRITTEN, SCHEMA_VERSION]), path)
    tables, names = Tables(spark, str(location)), ("whole", "lost", "twice", "older", "cut short")
    assert counted(tables, FIRST, NEXT) == dict.fromkeys(names, 4)
    assert counted(tables, NEXT, NEXT) == dict.fromkeys(names, 2)


def test_jobs_of_one_night_derive_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[DataFrame] = []

    def noted(events: DataFrame, runs: DataFrame) -> DataFrame:
        asked.append(events)
        return derive(events, runs)

    monkeypatch.setattr(derivation, "derive", noted)
    night, tables = Night(), Tables(spark, str(recorded(tmp_path, "cut", "cut short")))
    assert night.messages(tables, NEXT).since(FIRST).count() == 2 * night.messages(tables, NEXT).since(NEXT).count() == 4
    assert len(asked) == 1


def test_the_service_writes_what_is_derived(
    spark: SparkSession, simulated_days: tuple[Path, list[Simulated]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two days of simulated probers with faults, a process that is killed, and one that pauses."""
    tables, last = Tables(spark, str(simulated_days[0])), DAY
    runs = tables.runs(QUIET, last)
    ended = {row["run_id"] for row in runs.where(sf.col("ended_us").isNotNull()).collect()}
    written = rows_of(tables.read(MESSAGES, QUIET, last))
    unknown = runs.withColumn(MESSAGES_WRITTEN, sf.lit(None).cast("long"))
    monkeypatch.setattr(tables, "runs", lambda _first, _last: unknown)
    derived = rows_of(DayMessages(tables, last).since(QUIET))
    assert [row for row in derived if row["run_id"] in ended] == written
