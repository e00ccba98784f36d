from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from prober.core.events import Delivered, Published, PublishFailed, PublishInvoked, PublishUnknown
from prober.core.rules import Rules
from prober.sinks.history.schema import RUNS
from spark_jobs.history import runs_of
from spark_jobs.messages import messages
from spark_jobs.slo_burn import parts_of
from tests.spark.taped import MIDNIGHT, S, Taped, events_of, frame

R = "ordering-1"


def test_a_message_is_all_generations_of_its_sequence_number(spark: SparkSession, tmp_path: Path) -> None:
    run = Taped().add(
        PublishInvoked(2.0, "k", R, 1, intended_t=1.5),
        PublishUnknown(3.0, "k", R, 1),
        PublishInvoked(3.5, "k", R, 1, generation=1),
        Published(4.0, "k", R, 1, "m1", generation=1),
        Delivered(4.5, S, "k", "A1", R, 1, "m0"),
        Delivered(5.0, S, "k", "A1", R, 1, "m1", generation=1),
        PublishInvoked(6.0, "k", R, 2),
        PublishFailed(6.5, "k", R, 2),
        Delivered(7.0, S, "k", "A1", "ordering-0", 9, "m9"),
    )
    run.ended(0.0, 10.0)
    parts = parts_of(events_of(spark, tmp_path, run), runs_of(frame(spark, RUNS, run)), [], several=False)
    rows = messages(parts, runs_of(frame(spark, RUNS, run)), several=False).orderBy("seq").collect()
    assert [_without_run(row.asDict()) for row in rows] == [
        _message(seq=1, intended=1.5, confirmed=4.0, received=4.5, attempts=2, confirmations=1, refused=1),
        _message(seq=2, intended=6.0, attempts=1, refused=1),
    ]


def test_a_message_is_owed_to_every_subscription_of_its_run(spark: SparkSession, tmp_path: Path) -> None:
    other = "projects/p/subscriptions/other"
    run = Taped(rules={S: Rules(), other: Rules()}).add(
        PublishInvoked(1.0, "k", R, 1), Published(1.1, "k", R, 1, "m1"), Delivered(1.2, other, "k", "B1", R, 1, "m1")
    )
    run.ended(0.0, 10.0)
    parts = parts_of(events_of(spark, tmp_path, run), runs_of(frame(spark, RUNS, run)), [], several=True)
    rows = messages(parts, runs_of(frame(spark, RUNS, run)), several=True).orderBy("subscription").collect()
    assert [(row.subscription, row.received_us) for row in rows] == [(other, _us(1.2)), (S, None)]


def _message(
    seq: int,
    intended: float,
    confirmed: float | None = None,
    received: float | None = None,
    *,
    attempts: int,
    confirmations: int = 0,
    refused: int = 0,
) -> dict[str, object]:
    return {
        "key": "k",
        "seq": seq,
        "subscription": None,
        "intended_us": _us(intended),
        "confirmed_us": _us(confirmed),
        "received_us": _us(received),
        "confirmed_lagged_us": 0,
        "received_lagged_us": 0,
        "attempts": attempts,
        "confirmed": confirmations,
        "refused": refused,
    }


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else round((MIDNIGHT + seconds) * 1e6)


def _without_run(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "run"}
