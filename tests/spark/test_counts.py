"""What counts, and as what: messages, checks, waits and redeliveries of small runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from prober.core.events import (
    Acked,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Rules
from prober.sinks.history.schema import FINDINGS, MESSAGES, RUNS
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective
from spark_jobs.burn import breaches_of, spenders
from spark_jobs.history import runs_of
from spark_jobs.slo_burn import day_counts
from tests.spark.taped import DAY, MIDNIGHT, S, Taped, frame

R = "ordering-1"
OTHER = "projects/p/subscriptions/other"
FIRST_MINUTE = round(MIDNIGHT / 60)
ORDER = Objective("order", Indicator.ORDER, 0.999, 30 * DAY_S)
COMPLETENESS = Objective("completeness", Indicator.COMPLETENESS, 0.999, 30 * DAY_S)
AVAILABILITY = Objective("available", Indicator.PUBLISH_AVAILABILITY, 0.999, 30 * DAY_S)
PUBLISH = Objective("publish", Indicator.PUBLISH_LATENCY, 0.99, 30 * DAY_S, 0.5)
END_TO_END = Objective("end to end", Indicator.END_TO_END_LATENCY, 0.99, 30 * DAY_S, 1.0)
AGE = Objective("age", Indicator.OLDEST_UNACKED_MESSAGE_AGE, 0.99, 30 * DAY_S, 60.0)
STALLED = Objective("stalled", Indicator.STALLED_KEYS, 0.99, 30 * DAY_S)
AGAIN = Objective("again", Indicator.REDELIVERY_LATENCY, 0.99, 30 * DAY_S, 2.0)

Counts = dict[str, tuple[int, int, int]]


def counts_of(spark: SparkSession, objectives: Sequence[Objective], *taped: Taped) -> list[dict[str, Any]]:
    runs, findings = runs_of(frame(spark, RUNS, *taped)), frame(spark, FINDINGS, *taped)
    with day_counts(frame(spark, MESSAGES, *taped), runs, findings, objectives, DAY) as counts:
        return [row.asDict() for row in counts.collect()]


def totals(rows: Sequence[dict[str, Any]]) -> Counts:
    """Good, bad and undecided by objective."""
    found: Counts = {}
    for row in rows:
        before = found.get(row["objective"], (0, 0, 0))
        found[row["objective"]] = tuple(was + row[name] for was, name in zip(before, ("good", "bad", "undecided"), strict=True))
    return found


def by_run(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each run."""
    return [[row for row in rows if row["run"] == run] for run in {row["run"] for row in rows}]


def message(
    at: float, seq: int, *, confirmed: float | None = None, received: float | None = None, key: str = "k", run: str = R
) -> list[Event]:
    events: list[Event] = [PublishInvoked(at, key, run, seq)]
    if confirmed is not None:
        events.append(Published(confirmed, key, run, seq, f"m{seq}"))
    if received is not None:
        events.append(Delivered(received, S, key, "A", run, seq, f"m{seq}"))
    return events


def of_every_kind(run: str = R) -> list[Event]:
    return [
        *message(1.0, 1, confirmed=1.5, received=2.0, run=run),  # exactly at both thresholds: good
        *message(70.0, 2, confirmed=70.500001, received=71.000001, run=run),  # a microsecond over both
        *message(80.0, 3, confirmed=80.1, run=run),  # never received
        *message(90.0, 4, run=run),  # no answer
        PublishInvoked(95.0, "k", run, 5, intended_t=93.0),
        Published(95.1, "k", run, 5, "m5"),  # the prober was late itself: counts from when it was to be sent
        Delivered(95.2, S, "k", "A", run, 5, "m5"),
        PublishInvoked(96.0, "k", run, 6),
        PublishFailed(96.1, "k", run, 6),
        PublishInvoked(97.0, "k", run, 7),
        PublishUnknown(99.0, "k", run, 7),
        PublishInvoked(99.5, "k", run, 7, generation=1),
        Published(99.6, "k", run, 7, "m7", generation=1),
        Delivered(99.7, S, "k", "A", run, 7, "m7", generation=1),
    ]


DURATIONS = (AVAILABILITY, PUBLISH, END_TO_END)


def test_messages_are_good_bad_or_undecided(spark: SparkSession) -> None:
    rows = counts_of(spark, DURATIONS, Taped().add(*of_every_kind()).ended(0.0, 120.0, "FAIL"))
    assert totals(rows) == {"available": (5, 2, 1), "publish": (2, 3, 1), "end to end": (1, 3, 1)}
    minutes = {row["minute"] - FIRST_MINUTE for row in rows if row["objective"] == "end to end" and row["bad"]}
    assert minutes == {1}
    assert {row["key"] for row in rows if row["bad"]} == {"k"}


def test_what_did_not_come_before_the_record_ended_is_undecided(spark: SparkSession) -> None:
    """Whatever the verdict of its run, or without one."""

    def recorded(name: str) -> Taped:
        late = message(1.0, 1, confirmed=1.1, run=name)
        return Taped(name).add(*late, *message(2.0, 2, confirmed=2.1, received=2.2, run=name))

    runs = [recorded("ordering-none").began(0.0)]
    runs += [recorded(f"ordering-{verdict}").ended(0.0, 120.0, verdict) for verdict in ("PASS", "FAIL", "UNKNOWN")]
    rows = counts_of(spark, [END_TO_END], *runs)
    assert [totals(one) for one in by_run(rows)] == [{"end to end": (1, 0, 1)}] * len(runs)


def test_what_an_experiment_delays_itself_is_not_the_service_s_latency(spark: SparkSession) -> None:
    late = message(1.0, 1, confirmed=1.1, received=9.0)
    runs = [
        Taped(f"{probe}-1", probe=probe).add(*late).ended(0.0, 120.0, "PASS") for probe in ("ordering", "redelivery", "affinity")
    ]
    assert totals(counts_of(spark, [PUBLISH, END_TO_END], *runs)) == {"publish": (3, 0, 0), "end to end": (0, 1, 0)}


def test_a_record_of_which_something_is_missing_decides_nothing(spark: SparkSession) -> None:
    rows = counts_of(spark, DURATIONS, Taped().add(*of_every_kind()).ended(0.0, 120.0, "UNKNOWN", events_dropped=1))
    assert {name: (good, bad) for name, (good, bad, _) in totals(rows).items()} == dict.fromkeys(
        ("available", "publish", "end to end"), (0, 0)
    )
    assert totals(rows)["available"][2] == 8


def test_what_was_measured_is_measured_whether_it_was_verified_or_not(spark: SparkSession) -> None:
    """A service that is down keeps runs from being verified: it must not look available for that."""
    abouts: dict[str, dict[str, Any]] = {"whole": {}, "fault": {"internal_error": True}, "part": {"verified_events": 3}}
    runs = [Taped(name).add(*of_every_kind(name)).ended(0.0, 120.0, "UNKNOWN", **about) for name, about in abouts.items()]
    first, *others = [totals(one) for one in by_run(counts_of(spark, DURATIONS, *runs))]
    assert first.keys() == {one.name for one in DURATIONS}
    assert others == [first] * (len(runs) - 1)


def test_checks_count_when_the_run_ended_each_for_itself_whatever_its_verdict(spark: SparkSession) -> None:
    checks = [
        {"indicator": "order", "good": 5, "bad": 1, "undecided": 2},
        {"indicator": "affinity", "good": 9, "bad": 9, "undecided": 9},
    ]
    known = Taped("ordering-1").ended(0.0, 60.0, "FAIL", checks=checks)
    unknown = Taped("ordering-2").ended(0.0, 119.0, "UNKNOWN", checks=checks)
    yesterday = Taped("ordering-3").ended(-60.0, -1.0, "PASS", checks=checks)
    rows = counts_of(spark, [ORDER, replace(ORDER, name="also order")], known, unknown, yesterday)
    assert totals(rows) == {"order": (10, 2, 4), "also order": (10, 2, 4)}
    assert {row["minute"] - FIRST_MINUTE for row in rows} == {1}


def test_a_run_that_was_cut_short_leaves_its_messages_undecided(spark: SparkSession) -> None:
    run = Taped().add(*message(1.0, 1, confirmed=1.1, received=1.2), *message(2.0, 2, confirmed=2.1, received=2.2)).began(0.0)
    assert totals(counts_of(spark, [ORDER, COMPLETENESS], run)) == {"order": (0, 0, 2), "completeness": (0, 0, 2)}


def test_with_several_subscriptions_a_message_counts_for_the_first_one(spark: SparkSession) -> None:
    """It is received on the first one of the one run, and on the second one of the other; there it is redelivered."""
    runs = []
    for name, first in (("ordering-S", S), ("ordering-other", OTHER)):
        again: list[Event] = [Nacked(1.3, S, "k", "A", "m1"), Delivered(1.4, S, "k", "A", name, 1, "m1")]
        run = Taped(name, rules=dict.fromkeys((first, S, OTHER), Rules()))
        runs.append(run.add(*message(1.0, 1, confirmed=1.1, received=1.2, run=name), *again).ended(0.0, 120.0))
    found = [totals(one) for one in by_run(counts_of(spark, [*DURATIONS, AGAIN], *runs))]
    published = {"available": (1, 0, 0), "publish": (1, 0, 0)}
    expected: list[Counts] = [published | {"end to end": (1, 0, 0), "again": (1, 0, 0)}, published | {"end to end": (0, 0, 1)}]
    assert sorted(found, key=len) == sorted(expected, key=len)


def test_a_minute_is_bad_if_a_message_is_too_old_at_its_end(spark: SparkSession) -> None:
    run = Taped().add(
        *message(10.0, 1, confirmed=10.0, received=11.0),
        *message(20.0, 2, confirmed=20.0, received=21.0, key="slow"),
        Acked(70.0, S, "k", "A", "m1"),  # waited exactly as long as it may
        Acked(250.0, S, "slow", "A", "m2"),
    )
    rows = counts_of(spark, [AGE], run.ended(0.0, 310.0, "PASS"))
    assert totals(rows) == {"age": (3, 3, 0)}
    assert sorted(row["minute"] - FIRST_MINUTE for row in rows if row["bad"]) == [1, 2, 3]
    assert {row["key"] for row in rows if row["bad"]} == {"slow"}


def test_a_key_stands_still_if_nothing_moves_although_something_waits(spark: SparkSession) -> None:
    run = Taped(rules={S: Rules(delivery_deadline_s=120.0)}).add(
        *message(10.0, 1, confirmed=10.0, key="stuck"),
        *message(10.0, 2, confirmed=10.0, received=11.0, key="slow"),
        *(
            event
            for seq in range(3, 9)  # always something moves on the slow key, although its first message waits
            for event in message(50.0 * seq, seq, confirmed=50.0 * seq + 0.1, received=50.0 * seq + 0.2, key="slow")
        ),
        *(Acked(50.0 * seq + 0.3, S, "slow", "A", f"m{seq}") for seq in range(3, 9)),
    )
    rows = counts_of(spark, [STALLED], run.ended(0.0, 470.0, "FAIL", counters={"keys": 2}))
    assert sorted((row["minute"] - FIRST_MINUTE, row["key"]) for row in rows if row["bad"]) == [
        (minute, "stuck") for minute in (2, 3, 4, 5, 6, 7)
    ]
    assert totals(rows) == {"stalled": (2 * 8 - 6, 6, 0)}


def test_minutes_of_a_run_that_was_cut_short_are_undecided(spark: SparkSession) -> None:
    run = Taped().add(*message(10.0, 1, confirmed=10.0)).began(0.0)
    assert totals(counts_of(spark, [AGE, STALLED], run)) == {"age": (0, 0, 1), "stalled": (0, 0, 1)}


def test_a_redelivery_counts_from_what_caused_it(spark: SparkSession) -> None:
    def delivered(at: float, seq: int) -> Delivered:
        return Delivered(at, S, "k", "A", R, seq, f"m{seq}")

    run = Taped().add(
        *(delivered(1.0, seq) for seq in range(1, 6)),
        Nacked(2.0, S, "k", "A", "m1"),
        delivered(4.0, 1),  # two seconds after the refusal: good
        LeaseModified(2.0, S, "k", "A", "m2", 10.0),
        delivered(15.0, 2),  # three seconds after the lease ended: bad
        LeaseModified(2.0, S, "k", "A", "m3", 100.0),
        delivered(16.0, 3),  # before it ended: another cause
        Nacked(2.0, S, "k", "A", "m4"),
        Acked(3.0, S, "k", "A", "m4"),
        delivered(17.0, 4),  # after an acknowledgement: another cause
        delivered(18.0, 5),  # nothing is known to have caused it
        *(Delivered(at, S, "k", "A", "ordering-0", 9, "m9") for at in (19.0, 20.0)),
        Nacked(21.0, S, "k", "A", "m9"),
        Delivered(29.0, S, "k", "A", "ordering-0", 9, "m9"),  # of another run
    )
    assert totals(counts_of(spark, [AGAIN], run.ended(0.0, 60.0))) == {"again": (1, 1, 0)}


def test_who_spent_the_budget(spark: SparkSession) -> None:
    def found(key: str, kind: Kind, status: Status) -> Finding:
        return Finding(kind, status, S, key, 5.0, (1,))

    checks = [{"indicator": "order", "good": 5, "bad": 4, "undecided": 0}]
    first = Taped("ordering-1", region="eu").ended(0.0, 60.0, "FAIL", checks=checks)
    first.found(found("a", Kind.ORDER_GAP, Status.VIOLATION), 1).found(found("a", Kind.ORDER_INVERSION, Status.VIOLATION), 1)
    first.found(found("b", Kind.ORDER_GAP, Status.VIOLATION), 1).found(found("b", Kind.ORDER_GAP, Status.INDETERMINATE), 1)
    second = Taped("ordering-2", region="us", probe="other").ended(0.0, 60.0, "FAIL", checks=checks)
    messages, findings, runs = (frame(spark, table, first, second) for table in (MESSAGES, FINDINGS, RUNS))
    runs = runs_of(runs)
    with day_counts(messages, runs, findings, [ORDER], DAY) as counts:
        rows = _spent(spenders(counts, breaches_of(findings, [ORDER]), runs))
        few = _spent(spenders(counts, breaches_of(findings, [ORDER]), runs, shown=1))
    assert rows["key"] == {("a", 2, 0), ("b", 1, 0), (None, 5, 0)}
    assert rows["region"] == {("eu", 4, 0), ("us", 4, 0)}
    assert rows["probe"] == {("ordering", 4, 0), ("other", 4, 0)}
    assert rows["subscription"] == {(S, 8, 0)}
    assert few["key"] == {(None, 5, 0), (None, 3, 2)}


def _spent(rows: DataFrame) -> dict[str, set[tuple[str | None, int, int]]]:
    found: dict[str, set[tuple[str | None, int, int]]] = {}
    for row in rows.collect():
        found.setdefault(row.by, set()).add((row.value, row.bad, row.others))
    return found
