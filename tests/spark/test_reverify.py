"""Verification again from the record: the same as online, and only as far as the record goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from prober.core.events import (
    Acked,
    Delivered,
    Ended,
    Event,
    Interrupted,
    Nacked,
    Opened,
    Published,
    PublishInvoked,
)
from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from prober.reports.reader import ReportReader
from prober.reports.values import ReverifiedTarget
from prober.sinks.history.schema import EVENTS, RUNS
from prober.traces.trace import read_trace
from spark_jobs import reverify
from spark_jobs.history import History, runs_of
from spark_jobs.reverify import of_day, verified
from spark_jobs.tables import collected, held
from spark_jobs.work import DAY_US, Exit, Reports, Work
from tests.commands import VECTORS
from tests.spark.taped import DAY, MIDNIGHT, S, Taped, frame, write
from tests.unit.sinks.history.older import make_older
from tests.unit.sinks.history.recording import as_recorded, held_up

R = "ordering-1"
RULES = Rules(delivery_deadline_s=60.0, unacked_deadline_s=60.0, stall_deadline_s=60.0)


def published(*seqs: int, key: str = "k", at: float = 0.0, run: str = R) -> list[Event]:
    events: list[Event] = []
    for seq in seqs:
        events.append(PublishInvoked(at + 0.1 * seq, key, run, seq))
        events.append(Published(at + 0.1 * seq + 0.05, key, run, seq, f"{key}{seq}"))
    return events


def received(*seqs: int, key: str = "k", at: float = 1.0, session: str = "A", run: str = R) -> list[Event]:
    return [Delivered(at + 0.1 * place, S, key, session, run, seq, f"{key}{seq}") for place, seq in enumerate(seqs)]


def skipping(key: str = "k") -> list[Event]:
    """Message 3 was acknowledged, and should nevertheless have been redelivered before message 4."""
    return [
        Opened(0.0, S, "A", "A"),
        *published(1, 2, 3, 4, key=key),
        *received(1, 2, 3, key=key),
        Acked(1.4, S, key, "A", f"{key}1"),
        Acked(1.41, S, key, "A", f"{key}3"),
        Nacked(1.5, S, key, "A", f"{key}2"),
        *received(2, 4, key=key, at=2.0),
        *(Acked(2.5, S, key, "A", f"{key}{seq}") for seq in (2, 3, 4)),
    ]


def online(run: Taped, events: Sequence[Event], *, finish: bool = True) -> Taped:
    """Records the events and what the checker found online: what was on hold is settled if deliveries were waited for."""
    drained_last = isinstance(events[-1], Ended) and events[-1].drained
    verifier = Verifier(next(iter(run.rules.values())), subscriptions=run.rules, rules_by_subscription=run.rules)
    counts: dict[tuple[str, str], int] = {}
    for number, event in enumerate(events, 1):
        run.add(event)
        for finding in verifier.observe(event):
            run.found(finding, number)
            counts[finding.kind, finding.status] = counts.get((finding.kind, finding.status), 0) + 1
    for finding in verifier.finish() if finish and drained_last else ():
        run.found(finding, len(events))
        counts[finding.kind, finding.status] = counts.get((finding.kind, finding.status), 0) + 1
    run.counts = [{"kind": str(kind), "status": str(status), "count": count} for (kind, status), count in counts.items()]
    return run


def again(spark: SparkSession, *taped: Taped) -> list[dict[str, Any]]:
    """All rows that verifying the runs again gives."""
    runs = held(of_day(runs_of(frame(spark, RUNS, *taped)), DAY))
    return collected(verified(frame(spark, EVENTS, *taped), runs))


def found_in(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str, str, list[int]]]:
    return sorted((row["run_id"], row["kind"], row["status"], row["witnesses"]) for row in rows if row["kind"] is not None)


SKIP = (R, "REDELIVERY_SKIP", "violation", [12, 16, 17])


def work_on(spark: SparkSession, folder: Path, *runs: Taped) -> Work:
    write(folder / "h", *runs)
    history, reports = History(spark, str(folder / "h")), Reports(spark, str(folder / "r"))
    return Work(spark, history, reports, DAY, MIDNIGHT + 2 * DAY_US / 1e6)


def test_the_same_is_found_in_runs_side_by_side_and_every_event_is_verified_once(spark: SparkSession) -> None:
    first = Taped(R, {S: RULES}).add(*skipping(), Ended(100.0, drained=True)).ended(0.0, 100.0, "FAIL")
    good = [Opened(0.0, S, "A", "A"), *published(1, 2, run="other"), *received(1, 2, run="other"), Ended(5.0, drained=True)]
    second = Taped("other", {S: RULES}).add(*good).ended(0.0, 100.0, "FAIL")
    rows = again(spark, first, second)
    assert found_in(rows) == [SKIP]
    assert {row["run_id"]: (row["verified"], row["verdict_now"]) for row in rows if row["kind"] is None} == {
        R: (len(first.events), "FAIL"),
        "other": (len(second.events), "UNKNOWN"),
    }


def test_a_run_with_two_subscriptions_is_verified_by_the_rules_of_each(spark: SparkSession) -> None:
    other = "projects/p/subscriptions/other"
    rules = {S: RULES, other: Rules(subscription_predates_first_publish=False)}
    opened = [Opened(0.0, S, "A", "A"), Opened(0.0, other, "B", "B")]
    events = [
        *opened,
        *published(1, 2),
        *received(2, 1),
        *(Delivered(2.0 + seq, other, "k", "B", R, seq, f"k{seq}") for seq in (2,)),
    ]
    run = Taped(R, rules).add(*events).ended(0.0, 10.0, "FAIL")
    rows = again(spark, run)
    assert {(row["subscription"], row["kind"]) for row in rows if row["status"] == "violation"} == {
        (S, "ORDER_GAP"),
        (S, "ORDER_INVERSION"),
        (S, "REALTIME_INVERSION"),
    }


def test_events_after_the_last_verified_one_are_left_out(spark: SparkSession) -> None:
    run = Taped(R, {S: RULES}).add(*skipping()).ended(0.0, 10.0, "UNKNOWN", verified_events=15)
    rows = again(spark, run)
    assert found_in(rows) == []
    assert [(row["scope"], row["verified"], row["verdict_now"]) for row in rows] == [("prefix", 15, "UNKNOWN")]


def test_a_run_that_was_cut_short_is_verified_as_far_as_it_goes(spark: SparkSession) -> None:
    rows = again(spark, Taped(R, {S: RULES}).add(*skipping()).began(0.0))
    assert found_in(rows) == [SKIP]
    assert [(row["scope"], row["verdict_now"]) for row in rows if row["kind"] is None] == [("cut_short", "FAIL")]


def overtaken() -> list[Event]:
    """Message 1 may be on its way on the other stream of the same client."""
    streams = [Opened(0.0, S, "A", "client"), Opened(0.0, S, "B", "client")]
    return [*streams, *published(1, 2), *received(2, session="B")]


def test_what_is_on_hold_is_settled_only_if_deliveries_were_waited_for(spark: SparkSession) -> None:
    """The target was gone before; or the prober was stopped, or killed. Online nothing is found there either."""
    gone = Taped(R, {S: RULES}).add(*overtaken())
    assert found_in(again(spark, gone.ended(0.0, 10.0, "UNKNOWN"))) == []
    stopped = Taped(R, {S: RULES}).add(*overtaken()).began(0.0)
    assert found_in(again(spark, stopped)) == []
    drained = Taped(R, {S: RULES}).add(*overtaken(), Ended(9.0, drained=True)).ended(0.0, 10.0, "FAIL")
    assert [kind for _, kind, _, _ in found_in(again(spark, drained))] == ["ORDER_GAP"]


def test_after_a_hole_nothing_from_before_counts(spark: SparkSession) -> None:
    """Without message 3's delivery on record message 4 looks like a gap, which the hole explains."""
    run = Taped(R, {S: RULES}).add(Opened(0.0, S, "A", "A"), *published(1, 2, 3, 4), *received(1, 2))
    run.add(*received(4, at=1.3), number=13)
    run.ended(0.0, 10.0, "PASS", events=13)
    assert [(kind, status) for _, kind, status, _ in found_in(again(spark, run))] == [("ORDER_GAP", "indeterminate")]
    whole = Taped(R, {S: RULES}).add(Opened(0.0, S, "A", "A"), *published(1, 2, 3, 4), *received(1, 2, 4)).ended(0.0, 10.0)
    assert [kind for _, kind, _, _ in found_in(again(spark, whole))] == ["ORDER_GAP"]


def test_a_hole_that_the_recorder_marked_is_enough(spark: SparkSession) -> None:
    run = Taped(R, {S: RULES}).add(Opened(0.0, S, "A", "A"), *published(1, 2, 3, 4), *received(1, 2))
    run.add(Interrupted(1.25), number=12).add(*received(4, at=1.3))
    run.ended(0.0, 10.0, "PASS", events=13)
    rows = again(spark, run)
    assert [(kind, status) for _, kind, status, _ in found_in(rows)] == [("ORDER_GAP", "indeterminate")]
    assert [row["verified"] for row in rows if row["kind"] is None] == [13]


def test_an_event_that_is_there_twice_counts_once(spark: SparkSession) -> None:
    run = Taped(R, {S: RULES}).add(*skipping(), Ended(100.0, drained=True))
    run.events += run.events[5:12]
    run.ended(0.0, 100.0, "FAIL", events=len(run.events) - 7)
    assert found_in(again(spark, run)) == [SKIP]


def test_a_run_of_two_processes_is_not_verified(spark: SparkSession) -> None:
    run = Taped(R, {S: RULES}).add(Opened(0.0, S, "A", "client"), *published(1, 2), *received(2, at=1.0), process="p1")
    run.add(Opened(0.0, S, "B", "client"), *received(1, at=1.5, session="B"), process="p2")
    (row,) = again(spark, run.ended(0.0, 10.0))
    assert (row["kind"], row["scope"], row["verdict_now"]) == (None, "merged", "UNKNOWN")
    assert (row["recorded"], row["verified"]) == (len(run.events), 0)


# --- compared with what was found online -------------------------------------------------------------------------------------


def drained() -> list[Event]:
    return [*skipping(), Ended(100.0, drained=True)]


def test_the_same_as_online_makes_no_difference_and_is_no_news(spark: SparkSession, tmp_path: Path) -> None:
    """A target without findings is there, too."""
    run = online(Taped(R, {S: RULES}), drained())
    good = [Opened(0.0, S, "A", "A"), *published(1, 2, run="other"), *received(1, 2, run="other"), Ended(100.0, drained=True)]
    other = Taped("other", {S: RULES}, target="another").add(*good)
    work = work_on(spark, tmp_path, run.ended(0.0, 100.0, "FAIL", finding_counts=run.counts), other.ended(0.0, 100.0, "PASS"))
    outcome = reverify.run(work)
    assert outcome.exit is Exit.FAIL
    assert (
        outcome.line
        == f"reverify {DAY}: FAIL, 2 runs verified again, 1 violated guarantees, 0 differences from the online verification"
    )
    summary = work.reports.summary("reverify", DAY)
    assert (summary["runs"], summary["kinds"], summary["differences"]) == ({"FAIL": 1, "UNKNOWN": 1}, {"REDELIVERY_SKIP": 1}, {})
    assert ReportReader(str(tmp_path / "r")).reverified(DAY) == {
        "another": ReverifiedTarget(complete=True, news={}),
        "prod": ReverifiedTarget(complete=True, news={"REDELIVERY_SKIP": 0}),
    }


def test_every_vector_is_verified_as_online(spark: SparkSession, tmp_path: Path) -> None:
    """Each as a run of its own, with all that recorders know: publish times, regions, flow control, pulls."""
    runs = []
    for path in sorted(VECTORS.glob("*.jsonl")):
        with read_trace(path) as trace:
            events = [as_recorded(event) for event in trace]
        run = online(Taped(path.stem, {trace.header.subscription: trace.header.rules}), events)
        runs.append(run.ended(0.0, events[-1].t + 1.0, "PASS", finding_counts=run.counts))
    work = work_on(spark, tmp_path, *runs)
    reverify.run(work)
    summary = work.reports.summary("reverify", DAY)
    assert (sum(summary["runs"].values()), summary["differences"], summary["crashes"]) == (len(runs), {}, 0)


def test_files_without_the_columns_that_were_added_are_verified_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    run = online(Taped(R, {S: RULES}), drained())
    work = work_on(spark, tmp_path, run.ended(0.0, 100.0, "FAIL", finding_counts=run.counts))
    assert make_older(tmp_path / "h")
    assert reverify.run(work).line.endswith("1 violated guarantees, 0 differences from the online verification")


def test_other_keys_have_a_say(spark: SparkSession, tmp_path: Path) -> None:
    run = online(Taped(R, {S: Rules()}), held_up(S))
    work = work_on(spark, tmp_path, run.ended(0.0, 510.0, "PASS", finding_counts=run.counts))
    assert reverify.run(work).line.endswith("0 violated guarantees, 0 differences from the online verification")
    assert work.reports.summary("reverify", DAY)["findings"] == {"indeterminate": 1}


def test_every_difference_is_named(spark: SparkSession, tmp_path: Path) -> None:
    def taped(name: str) -> Taped:
        return Taped(name, {S: RULES}).add(*_renamed(drained(), name))

    def finding(kind: Kind, status: Status, *witnesses: int) -> Finding:
        return Finding(kind, status, S, "k", 2.1, witnesses)

    skip = finding(Kind.REDELIVERY_SKIP, Status.VIOLATION, 12, 16, 17)
    missing = taped("missing").ended(0.0, 100.0, "PASS")
    additional = taped("additional").found(skip, 16).found(finding(Kind.ORDER_GAP, Status.VIOLATION, 3, 4), 5)
    status = taped("status").found(finding(Kind.REDELIVERY_SKIP, Status.INDETERMINATE, 12, 16, 17), 16)
    unlisted = taped("unlisted")
    counts = [{"kind": "REDELIVERY_SKIP", "status": "violation", "count": 1}]
    work = work_on(
        spark,
        tmp_path,
        missing,
        additional.ended(0.0, 100.0, "FAIL"),
        status.ended(0.0, 100.0, "PASS"),
        unlisted.ended(0.0, 100.0, "FAIL", finding_counts=counts),
        taped("cut-short").began(0.0),
        taped("dropped").ended(0.0, 100.0, "FAIL", events=30, events_dropped=13),
    )
    outcome = reverify.run(work)
    assert "3 differences" in outcome.line
    rows = spark.read.parquet(str(tmp_path / "r" / "reverify" / f"date={DAY}" / "differences")).collect()
    assert {(row.run_id, row.difference, row.status, row.online_status) for row in rows} == {
        ("missing", "missing", "violation", None),
        ("additional", "additional", None, "violation"),
        ("status", "status", "violation", "indeterminate"),
        ("unlisted", "unlisted", "violation", None),
    }
    summary = work.reports.summary("reverify", DAY)
    assert summary["scopes"] == {"cut_short": 1, "holed": 1, "whole": 4}
    skips = {"kind": "REDELIVERY_SKIP", "status": "violation", "also_online": 2, "only_now": 2, "online_unknown": 2}
    assert summary["by_target"] == {"prod": {"verified": 6, "crashes": 0, "broken": [skips]}}


def test_where_the_checker_fails_it_is_not_known_that_nothing_was_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Taped(R, {S: RULES}).add(*drained()).ended(0.0, 100.0, "FAIL")
    work = work_on(spark, tmp_path, run)
    real = reverify.verified
    monkeypatch.setattr(reverify, "verified", lambda *given: real(*given).withColumn("crash", sf.lit("wrong")))
    assert reverify.run(work).exit is Exit.UNKNOWN
    by_target = work.reports.summary("reverify", DAY)["by_target"]
    assert {name: (one["verified"], one["crashes"]) for name, one in by_target.items()} == {"prod": (0, 1)}


def test_a_run_belongs_to_the_day_on_which_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    events = [Opened(-60.0, S, "A", "A"), *published(1, 2, at=-50.0), *received(2, 1, at=10.0), Ended(90.0, drained=True)]
    run = online(Taped(R, {S: RULES}), events)
    work = work_on(spark, tmp_path, run.ended(-60.0, 90.0, "FAIL", finding_counts=run.counts))
    assert reverify.run(work).line.endswith("3 violated guarantees, 0 differences from the online verification")


def test_without_runs_nothing_is_known(spark: SparkSession, tmp_path: Path) -> None:
    work = work_on(spark, tmp_path, Taped(R).ended(-200_000.0, -190_000.0))
    assert reverify.run(work).exit is Exit.UNKNOWN


def _renamed(events: Sequence[Event], epoch: str) -> list[Event]:
    return [replace(event, epoch=epoch) if isinstance(event, PublishInvoked | Published | Delivered) else event for event in events]
