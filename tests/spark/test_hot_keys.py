"""Which keys are hot: what they carry, minute by minute, against the same in plain Python, and what is made of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from prober.core.events import Acked, Delivered, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.sinks.history.schema import MESSAGES, RUNS
from prober.slo.hot_keys import HotKeyClass, is_large
from spark_jobs import hot_keys
from spark_jobs.history import History, runs_of
from spark_jobs.hot_keys import ADVICE, ADVICE_OBSERVED, Heat, heat_of
from spark_jobs.key_loads import candidates, key_loads, large_keys, lives, outstanding, place_hash, places_of, sketched
from spark_jobs.key_minutes import key_evidence, minute_points
from spark_jobs.tables import collected
from spark_jobs.work import DAY_US, Exit, Reports, Settings, Work
from tests.spark.taped import DAY, MIDNIGHT, TOPIC, S, Taped, frame, write

R = "ordering-1"
OTHER = "projects/p/subscriptions/other"
FIRST_MINUTE = round(MIDNIGHT / 60)

CALM: dict[str, Any] = {
    "minutes": 600,
    "messages": 6000,
    "peak_bytes_per_s": 1000.0,
    "mean_bytes_per_s": 1000.0,
    "bytes_slope_per_s": 0.0,
    "bytes_rise": False,
    "backlog_rises": False,
    "backlog_slope_per_s": 0.0,
    "age_rises": False,
    "stalled_minutes": 0,
}


@dataclass(frozen=True)
class Message:
    """One message of a key: when it was confirmed and acknowledged; None: never."""

    key: str
    seq: int
    confirmed: float
    acked: float | None


def life_of(messages: list[Message]) -> list[Event]:
    events: list[Event] = []
    for one in messages:
        message_id = f"{one.key}-{one.seq}"
        events.append(PublishInvoked(one.confirmed, one.key, R, one.seq, size=100))
        events.append(Published(one.confirmed, one.key, R, one.seq, message_id))
        if one.acked is not None:
            events.append(Delivered(one.acked, S, one.key, "A", R, one.seq, message_id))
            events.append(Acked(one.acked, S, one.key, "A", message_id))
    return sorted(events, key=lambda event: event.t)


# --- what the evidence says --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "share", "expected"),
    [
        ({}, 0.1, None),
        ({"stalled_minutes": 9}, 0.1, None),
        ({"stalled_minutes": 60}, 0.1, Heat((HotKeyClass.STALLED,), 0.1)),
        ({"peak_bytes_per_s": 799_999.0}, 0.1, None),
        ({"peak_bytes_per_s": 800_000.0}, 0.1, Heat((HotKeyClass.THROUGHPUT_BOUND,), 0.8)),
        ({"backlog_rises": True}, 0.1, None),
        ({"backlog_rises": True, "age_rises": True, "backlog_slope_per_s": 0.05}, 0.1, Heat((HotKeyClass.CONSUMER_BOUND,), 0.3)),
        ({}, 0.15, Heat((HotKeyClass.SKEWED,), 0.15)),
        (
            {"backlog_rises": True, "age_rises": True, "backlog_slope_per_s": 0.05, "stalled_minutes": 30},
            0.2,
            Heat((HotKeyClass.STALLED, HotKeyClass.CONSUMER_BOUND, HotKeyClass.SKEWED), 0.3),
        ),
    ],
)
def test_what_a_key_is(seen: dict[str, Any], share: float, expected: Heat | None) -> None:
    heat = heat_of(CALM | seen, share, keys=100)
    if expected is None:
        assert heat is None
    else:
        assert heat is not None
        assert (heat.reasons, heat.limit_in_s) == (expected.reasons, None)
        assert heat.score == pytest.approx(expected.score)


def test_a_key_that_rises_becomes_hot_if_it_gets_there_within_a_day() -> None:
    rising = CALM | {"mean_bytes_per_s": 400_000.0, "bytes_rise": True, "peak_bytes_per_s": 500_000.0}
    heat = heat_of(rising | {"bytes_slope_per_s": 10.0}, 0.1, 100)
    assert heat is not None
    assert heat.reasons == (HotKeyClass.THROUGHPUT_BOUND,)
    assert heat.limit_in_s == (1_000_000 - (400_000 + 10.0 * 300 * 60)) / 10.0
    assert heat_of(rising | {"bytes_slope_per_s": 1.0}, 0.1, 100) is None


def test_one_of_few_keys_is_not_skewed() -> None:
    assert not is_large(0.25, 4)
    assert is_large(0.25, 12)
    assert not is_large(0.14, 1000)


def test_every_class_says_what_to_do() -> None:
    assert set(ADVICE) == set(HotKeyClass) == set(ADVICE_OBSERVED)


def test_no_subscriber_of_others_is_blamed_that_nobody_sees() -> None:
    for waiting in (HotKeyClass.STALLED, HotKeyClass.CONSUMER_BOUND):
        assert "no subscriber is the reason" in ADVICE_OBSERVED[waiting]


# --- loads -------------------------------------------------------------------------------------------------------------------


def lives_of(spark: SparkSession, run: Taped) -> DataFrame:
    return lives(frame(spark, MESSAGES, run), runs_of(frame(spark, RUNS, run)))


def test_what_each_key_carries(spark: SparkSession) -> None:
    messages = [Message("a", 1, 10.0, 30.0), Message("a", 2, 20.0, None), Message("b", 1, 4000.0, 4001.0)]
    run = Taped().add(*life_of(messages), Nacked(5000.0, S, "b", "A", "b-1")).ended(0.0, 7000.0)
    rows = {row.key: row for row in key_loads(lives_of(spark, run)).collect()}
    numbers = ("publishes", "confirmed", "deliveries", "acks", "bytes", "peak_bytes", "waited_s")
    assert [rows["a"][name] for name in numbers] == [2, 2, 1, 1, 200, 200, 20.0 + 6980.0]
    assert [rows["b"][name] for name in numbers] == [1, 1, 1, 1, 100, 100, 1.0]
    (place,) = collected(places_of(runs_of(frame(spark, RUNS, run))))
    assert (place["place"], place["topic"], place["subscription"], place["observed"]) == (rows["a"].place, TOPIC, S, False)


def test_a_subscription_on_which_others_publish_is_known_by_its_rules(spark: SparkSession) -> None:
    run = Taped(rules={S: Rules(publishes_recorded=False), OTHER: Rules()}).ended(0.0, 7000.0)
    found = collected(places_of(runs_of(frame(spark, RUNS, run))))
    assert {row["subscription"]: row["observed"] for row in found} == {TOPIC: True, OTHER: False}


def observed_run(run_id: str, subscription: str, since: int, until: int) -> Taped:
    """A run that observes a stream of others on a subscription of its own; it receives a message each second, the odd ones on one key."""
    received: list[Event] = []
    for number in range(since, until):
        key, message_id = "odd" if number % 2 else f"k{number}", f"m{number}"
        received += [
            Delivered(
                number + 0.1, subscription, key, "A", "", 0, message_id, publish_time=int((MIDNIGHT + number) * 1e9), data_size=10
            ),
            Acked(number + 0.2, subscription, key, "A", message_id),
        ]
    rules = {subscription: Rules(publishes_recorded=False)}
    return Taped(run_id, rules, probe="observe").add(*received).ended(since - 1.0, until + 1.0)


def test_a_stream_is_one_however_many_runs_observed_it_and_counts_once_where_they_overlap(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = [observed_run("observe-1", S, 10, 60), observed_run("observe-2", OTHER, 40, 100)]
    assert hot_keys.run(work_on(spark, tmp_path, *runs)).line == f"hot-keys {DAY}: PASS, 1 skewed"
    summary = work_on(spark, tmp_path).reports.summary("hot-keys", DAY)
    assert [(key["subscription"], key["key"], key["messages"]) for key in summary["keys"]] == [(TOPIC, "odd", 45)]
    assert [(one["subscription"], one["keys"], one["messages"]) for one in summary["subscriptions"]] == [(TOPIC, 46, 90)]


def test_short_runs_do_not_wait(spark: SparkSession) -> None:
    (row,) = key_loads(lives_of(spark, Taped().add(*life_of([Message("a", 1, 10.0, None)])).ended(0.0, 500.0))).collect()
    assert row.waited_s == 0.0


def test_what_is_published_weighs_on_every_subscription(spark: SparkSession) -> None:
    run = Taped(rules={S: Rules(), OTHER: Rules()}).add(*life_of([Message("a", 1, 10.0, 11.0)])).ended(0.0, 1000.0)
    places = {row["place"]: row["subscription"] for row in collected(places_of(runs_of(frame(spark, RUNS, run))))}
    rows = key_loads(lives_of(spark, run)).collect()
    assert {places[row.place]: (row.publishes, row.deliveries, round(row.waited_s)) for row in rows} == {
        S: (1, 1, 1),
        OTHER: (1, 0, 990),
    }


def test_the_busiest_hour_and_not_the_whole_day_makes_a_key_busy(spark: SparkSession) -> None:
    def published(key: str, seq: int, at: float) -> PublishInvoked:
        return PublishInvoked(at, key, R, seq, size=10_000_000)

    spread = [published("spread", hour, 3600.0 * hour) for hour in range(1, 20)]
    burst = [published("burst", seq, 100.0 + seq) for seq in range(1, 4)]
    (row,) = collected(outstanding(key_loads(lives_of(spark, Taped().add(*burst, *spread).ended(0.0, 80_000.0))), 10))
    assert [one["key"] for one in row["busy"]] == ["burst"]
    assert (row["keys"], row["messages"], row["ranked"], row["left_out"]) == (2, 22, [19, 3], 0)
    assert {key for _, key in candidates([row])} == {"burst"}


def test_no_more_candidates_than_asked_for_and_the_rest_is_counted(spark: SparkSession) -> None:
    messages = [Message(f"k{number}", 1, 10.0 + number, None) for number in range(5)]
    (row,) = collected(outstanding(key_loads(lives_of(spark, Taped().add(*life_of(messages)).ended(0.0, 1000.0))), 2))
    assert ([one["key"] for one in row["waiting"]], row["left_out"]) == (["k0", "k1"], 3)


def test_sketches_find_the_same_large_keys(spark: SparkSession) -> None:
    rng = random.Random(1)
    keys = [f"k{min(int(rng.paretovariate(1.2)), 200)}" for _ in range(1500)]
    run = Taped().add(*(PublishInvoked(1.0 + number, key, R, number, size=1) for number, key in enumerate(keys, 1)))
    rows = lives_of(spark, run.ended(0.0, 2000.0))
    (exact,) = collected(outstanding(key_loads(rows), 10))
    (rough,) = collected(sketched(rows, 10, 1000))
    assert (rough["place"], rough["messages"], rough["ranked"][:20]) == (exact["place"], 1500, exact["ranked"][:20])
    assert rough["keys"] == pytest.approx(len(set(keys)), rel=0.1)
    assert {key for _, key in candidates([rough])} >= {key for _, key in large_keys([exact])} != set()


# --- minutes -----------------------------------------------------------------------------------------------------------------


def test_backlog_and_oldest_age_of_every_minute(spark: SparkSession) -> None:
    """Random waits of two keys, some of them endless and many out of order, against a count at the end of each minute."""
    rng = random.Random(3)
    messages = []
    for key in ("a", "b"):
        for seq in range(1, 120):
            confirmed = rng.uniform(0.0, 3000.0)
            acked = None if rng.random() < 0.03 else confirmed + rng.expovariate(1 / 120.0)
            messages.append(Message(key, seq, round(confirmed, 3), None if acked is None or acked > 3599.0 else round(acked, 3)))
    run = Taped().add(*life_of(messages)).ended(0.0, 3599.5)
    points = minute_points(lives_of(spark, run)).orderBy("key", "minute").collect()
    for key in ("a", "b"):
        own = [one for one in messages if one.key == key]
        seen = {row.minute - FIRST_MINUTE: (row.delta, row.age_us) for row in points if row.key == key}
        backlog = 0
        for minute in range(60):
            end = (minute + 1) * 60.0
            waiting = [one.confirmed for one in own if one.confirmed < end and (one.acked is None or one.acked >= end)]
            age_us = round((end - min(waiting)) * 1e6) if waiting else None
            delta, seen_us = seen.get(minute, (0, None))
            backlog += delta
            assert (backlog, seen_us) == (len(waiting), age_us)
        assert sum(row.messages for row in points if row.key == key) == len(own)


def test_a_slow_consumer_and_a_stalled_key_show(spark: SparkSession) -> None:
    slow = [Message("slow", seq, 10.0 * seq, 15.0 * seq) for seq in range(1, 300)]
    stalled = [Message("stalled", seq, 10.0 * seq, 10.0 * seq + 0.1 if seq < 100 else None) for seq in range(1, 300)]
    fine = [Message("fine", seq, 10.0 * seq, 10.0 * seq + 1.0) for seq in range(1, 300)]
    run = Taped().add(*life_of([*slow, *stalled, *fine])).ended(0.0, 4600.0)
    found = {row["key"]: row for row in collected(key_evidence(lives_of(spark, run)))}
    assert (found["slow"]["backlog_rises"], found["slow"]["age_rises"], found["slow"]["stalled_minutes"]) == (True, True, 0)
    assert found["slow"]["backlog_slope_per_s"] == pytest.approx(0.1 - 1 / 15, rel=0.05)
    assert found["stalled"]["stalled_minutes"] == 60
    assert (found["stalled"]["backlog_max"], found["stalled"]["backlog_last"]) == (200, 200)
    assert found["stalled"]["age_last_s"] == pytest.approx(77 * 60 - 1000.0)
    calm = ("backlog_rises", "age_rises", "bytes_rise", "stalled_minutes", "backlog_last")
    assert [found["fine"][name] for name in calm] == [False, False, False, 0, 0]
    assert found["fine"]["peak_bytes_per_s"] == pytest.approx(600 / 60)
    assert [part["at"] - MIDNIGHT for part in found["stalled"]["course"]] == [0, 1800, 3600]
    assert [part["backlog"] for part in found["stalled"]["course"]] == [80, 200, 200]
    assert found["stalled"]["course"][-1]["age_s"] == found["stalled"]["age_last_s"]
    assert found["fine"]["course"][0]["bytes_per_s"] == pytest.approx(10.0, rel=0.05)


def test_redeliveries_and_changes_of_subscriber(spark: SparkSession) -> None:
    def delivered(at: float, session: str, seq: int) -> Delivered:
        return Delivered(at, S, "k", session, R, seq, f"m{seq}")

    run = Taped().add(
        *(Opened(0.0, S, f"stream-{name}", name[0]) for name in ("a1", "a2", "b1")),
        delivered(1.0, "stream-a1", 1),
        delivered(2.0, "stream-a2", 2),  # the same client on another stream
        delivered(3.0, "stream-b1", 2),
        delivered(4.0, "stream-a1", 3),
    )
    (row,) = collected(key_evidence(lives_of(spark, run.ended(0.0, 10.0))))
    assert [row[name] for name in ("deliveries", "first_deliveries", "subscriber_changes")] == [4, 3, 2]


# --- the job -----------------------------------------------------------------------------------------------------------------


def work_on(spark: SparkSession, folder: Path, *runs: Taped, **settings: Any) -> Work:
    write(folder / "h", *runs)
    history, reports = History(spark, str(folder / "h")), Reports(spark, str(folder / "r"))
    return Work(spark, history, reports, DAY, MIDNIGHT + 2 * DAY_US / 1e6, Settings(**settings))


def test_a_skewed_key_is_named_without_looking_at_its_minutes(spark: SparkSession, tmp_path: Path) -> None:
    messages = [Message(f"k{number % 20}", number // 20 + 1, 1.0 + number, 1.5 + number) for number in range(100)]
    messages += [Message("big", number + 1, 1.0 + number, 1.5 + number) for number in range(60)]
    work = work_on(spark, tmp_path, Taped().add(*life_of(messages)).ended(0.0, 200.0))
    assert hot_keys.run(work).line == f"hot-keys {DAY}: PASS, 1 skewed"
    summary = work.reports.summary("hot-keys", DAY)
    (key,) = summary["keys"]
    assert (key["key"], key["class"], key["share"], key["redelivery_amplification"], key["peak_bytes_per_s"]) == (
        "big",
        "skewed",
        0.375,
        1.0,
        None,
    )
    (spread,) = summary["subscriptions"]
    assert (spread["keys"], spread["messages"], spread["top_share"], spread["hot"], spread["exact"]) == (21, 160, 0.375, 1, True)


def test_too_many_keys_are_sketched(spark: SparkSession, tmp_path: Path) -> None:
    events = [PublishInvoked(1.0 + number, f"k{number}", R, 1, size=1) for number in range(300)]
    events += [PublishInvoked(400.0 + number, "big", R, number, size=1) for number in range(1, 200)]
    work = work_on(spark, tmp_path, Taped().add(*events).ended(0.0, 800.0), keys_max=50, top=5)
    assert hot_keys.run(work).line == f"hot-keys {DAY}: PASS, 1 skewed"
    (spread,) = work.reports.summary("hot-keys", DAY)["subscriptions"]
    assert (spread["exact"], spread["messages"], spread["median"]) == (False, 499, None)


def test_without_messages_nothing_is_known(spark: SparkSession, tmp_path: Path) -> None:
    outcome = hot_keys.run(work_on(spark, tmp_path, Taped().ended(0.0, 10.0)))
    assert (outcome.exit, outcome.line) == (Exit.UNKNOWN, f"hot-keys {DAY}: UNKNOWN, nothing was published")


def test_a_place_is_its_target_topic_and_subscription(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", "t", "s"), ("b", "t", "s"), ("a", "t", "s")], "target string, topic string, subscription string"
    )
    first, second, third = (row.place for row in rows.select(place_hash("subscription").alias("place")).collect())
    assert first == third != second
