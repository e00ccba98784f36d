"""However events are divided among files and chunks, together they say the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from prober.core.events import Acked, Delivered, Event, Nacked, Published, PublishFailed, PublishInvoked, PublishUnknown
from prober.sinks.history.arrow import schema_of, to_parquet
from prober.sinks.history.schema import EVENTS, FINDINGS, RUNS
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective
from spark_jobs.frames import collected
from spark_jobs.history import Events, runs_of
from spark_jobs.loads import LOAD_COLUMNS, key_loads, loads_of
from spark_jobs.messages import MESSAGE_COLUMNS
from spark_jobs.scan import Scan, chunks_of, chunks_of_keys, numbered, opened
from spark_jobs.slo_burn import day_counts
from spark_jobs.work import start_us
from tests.spark.taped import DAY, S, Taped, frame, rows_of

R = "ordering-1"
PERIOD_S = 30 * DAY_S
OBJECTIVES = (
    Objective("available", Indicator.PUBLISH_AVAILABILITY, 0.999, PERIOD_S),
    Objective("publish", Indicator.PUBLISH_LATENCY, 0.99, PERIOD_S, 0.5),
    Objective("end to end", Indicator.END_TO_END_LATENCY, 0.99, PERIOD_S, 1.0),
    Objective("age", Indicator.OLDEST_UNACKED_MESSAGE_AGE, 0.99, PERIOD_S, 60.0),
    Objective("stalled", Indicator.STALLED_KEYS, 0.99, PERIOD_S),
)


def lives(chance: random.Random, messages: int) -> list[Event]:
    """Messages of which anything can happen to any: republished, refused, late, lost, received again, with an id that another has."""
    events: list[Event] = []
    for number in range(messages):
        at, key, seq = round(chance.uniform(0.0, 600.0), 3), f"k{number % 5}", number // 5 + 1
        generation = 0
        if chance.random() < 0.2:
            unanswered = PublishUnknown if chance.random() < 0.5 else PublishFailed
            events += [PublishInvoked(at, key, R, seq), unanswered(at + 0.4, key, R, seq)]
            at, generation = at + 0.4, 1
        late_s = chance.choice([None, None, 0.3])
        message_id = f"m{number if chance.random() < 0.9 else number % 7}"
        events.append(PublishInvoked(at, key, R, seq, generation, intended_t=None if late_s is None else at - late_s))
        if chance.random() < 0.9:
            at += chance.choice([0.01, 0.6])
            events.append(Published(at, key, R, seq, message_id, generation))
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            at += chance.choice([0.02, 2.0, 150.0])
            events.append(Delivered(at, S, key, "A", chance.choice([R, R, R, "other"]), seq, message_id, generation))
            answer = (
                Acked(at + 0.1, S, key, "A", message_id) if chance.random() < 0.8 else Nacked(at + 0.1, S, key, "A", message_id)
            )
            events.append(answer)
    return sorted(events, key=lambda event: event.t)


def files(folder: Path, rows: Sequence[dict[str, Any]], count: int, chance: random.Random) -> list[tuple[str, int]]:
    """The rows in so many files, each of which holds what happened in one stretch of time."""
    cuts = [0, *sorted(chance.sample(range(1, len(rows)), count - 1)), len(rows)]
    written = []
    for low, high in pairwise(cuts):
        path = folder / f"events-p1-{count:04}{low:08}.parquet"
        path.write_bytes(to_parquet(pa.Table.from_pylist(list(rows[low:high]), schema_of(EVENTS)), EVENTS))
        written.append((str(path), path.stat().st_size))
    return written


def test_files_together_say_what_one_file_says(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(1)
    run = Taped(R).add(*lives(chance, 120)).ended(0.0, 1200.0, "FAIL", counters={"keys": 5})
    events, runs = frame(spark, EVENTS, run), runs_of(frame(spark, RUNS, run))
    rows = rows_of(EVENTS, [run])

    def told(several: int) -> tuple[list[Any], list[Any]]:
        scan = Scan(spark, files(tmp_path, rows, several, chance))
        with day_counts(Events(lambda: events, scan), runs, frame(spark, FINDINGS, run), OBJECTIVES, DAY) as counts:
            sums: Counter[tuple[str, int, str, str | None]] = Counter()
            for row in counts.collect():
                for outcome in ("good", "bad", "undecided"):
                    sums[row.objective, row.minute, outcome, row.key if outcome == "bad" else None] += row[outcome]
        loads = collected(key_loads(scan, runs, start_us(DAY), several=False, observed=False).orderBy("key"))
        for load in loads:
            load["waited_s"] = pytest.approx(load["waited_s"], abs=1e-5)
        return sorted(sums.items(), key=repr), loads

    one, many = told(1), told(7)
    assert many == one
    assert sum(count for (objective, *_), count in one[0] if objective == "end to end") >= 110
    assert {objective for (objective, _, outcome, _), count in one[0] if outcome == "bad" and count} == {o.name for o in OBJECTIVES}


@pytest.mark.parametrize("rows_max", [50, 1000, 10**9])
def test_chunks_hold_whole_keys_and_every_row_once(tmp_path: Path, rows_max: int) -> None:
    chance = random.Random(4)
    run = Taped(R).add(*lives(chance, 200))
    path = tmp_path / "events-p1-00000001.parquet"
    table = pa.Table.from_pylist(rows_of(EVENTS, [run]), schema_of(EVENTS)).sort_by(
        [("subscription", "ascending"), ("key", "ascending")]
    )
    pq.write_table(table, path, row_group_size=40)
    seen: Counter[tuple[str, int]] = Counter()
    parts = []
    for chunk in chunks_of(str(path), ("key", "number"), rows_max):
        keys = chunk.column("key").to_pylist()
        parts.append(set(keys))
        seen.update(zip(keys, chunk.column("number").to_pylist(), strict=True))
    assert seen == Counter((row["key"], row["number"]) for row in rows_of(EVENTS, [run]))
    assert sum(map(len, parts)) == len(set().union(*parts)) == 5
    assert len(parts) == (1 if rows_max > 10**6 else min(5, len(parts)))
    assert len(parts) > 1 or rows_max >= 1000


@pytest.mark.parametrize("rows_max", [50, 10**9])
def test_rows_of_some_keys_are_read_and_those_without_a_key_and_no_others(tmp_path: Path, rows_max: int) -> None:
    run = Taped(R).add(*lives(random.Random(4), 200))
    rows = [*rows_of(EVENTS, [run]), rows_of(EVENTS, [run])[0] | {"key": None, "number": 0}]
    path = tmp_path / "events-p1-00000001.parquet"
    table = pa.Table.from_pylist(rows, schema_of(EVENTS)).sort_by([("subscription", "ascending"), ("key", "ascending")])
    pq.write_table(table, path, row_group_size=40)
    chunks = list(chunks_of_keys(str(path), ("key", "number"), ["k1", "k3", "k9"], rows_max))
    seen = Counter(number for chunk in chunks for number in chunk.column("number").to_pylist())
    assert seen == Counter(row["number"] for row in rows if row["key"] in {"k1", "k3", None})
    assert max(map(len, chunks)) <= max(rows_max, 40)


def test_rows_without_a_key_are_left_out(tmp_path: Path) -> None:
    run = Taped(R).add(PublishInvoked(1.0, "k", R, 1))
    rows = [*rows_of(EVENTS, [run]), rows_of(EVENTS, [run])[0] | {"key": None}]
    path = tmp_path / "events-p1-00000001.parquet"
    path.write_bytes(to_parquet(pa.Table.from_pylist(rows, schema_of(EVENTS)), EVENTS))
    (chunk,) = chunks_of(str(path), LOAD_COLUMNS)
    assert len(chunk) == 1
    (batch,) = loads_of(0, observed=False)(chunk)
    assert batch.column("publishes").to_pylist() == [1]


def test_a_file_without_any_key_gives_nothing(tmp_path: Path) -> None:
    row = rows_of(EVENTS, [Taped(R).add(PublishInvoked(1.0, "k", R, 1))])[0] | {"key": None}
    path = tmp_path / "events-p1-00000001.parquet"
    path.write_bytes(to_parquet(pa.Table.from_pylist([row], schema_of(EVENTS)), EVENTS))
    assert [len(chunk) for chunk in chunks_of(str(path), MESSAGE_COLUMNS) if len(chunk)] == []


@pytest.mark.parametrize("far", [1, 10**12])
def test_pairs_are_numbered_however_far_their_numbers_are_apart(far: int) -> None:
    chance = random.Random(5)
    pairs = [(chance.randrange(4), chance.randrange(30) * far) for _ in range(200)]
    owner, number = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    place, count = numbered(owner, number)
    assert len(set(zip(place.tolist(), pairs, strict=True))) == len(set(pairs)) == len(set(place.tolist()))
    assert 0 <= place.min() <= place.max() < count <= 5 * len(pairs)


@pytest.mark.parametrize(
    ("uri", "path"), [("file:/data/a.parquet", "/data/a.parquet"), (Path("/data/a").as_uri(), "/data/a"), ("/data/a", "/data/a")]
)
def test_local_files_are_opened_however_spark_writes_them(uri: str, path: str) -> None:
    assert opened(uri)[1] == path
