"""Events packed and unpacked, without Spark: all of them come, in the order of judging, however they were divided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from random import Random

import pyarrow as pa
import pytest

from prober.core.events import Acked, Delivered, Event, Opened, Published, PublishInvoked
from prober.sinks.history.arrow import schema_of
from prober.sinks.history.schema import EVENTS
from spark_jobs import packing
from spark_jobs.packing import PACKED_COLUMNS, JudgingPlan, Recorded, unpacked
from spark_jobs.scan import Chunk
from tests.spark.taped import MIDNIGHT, Row, S, Taped

KEYS = ("a", "b", "c")


def events() -> list[Event]:
    """As many as one key after another has, with one that concerns all keys at the beginning."""
    lives = (
        (
            PublishInvoked(at, key, "e", seq),
            Published(at + 0.1, key, "e", seq, f"{key}{seq}"),
            Delivered(at + 0.2, S, key, "A", "e", seq, f"{key}{seq}"),
            Acked(at + 0.3, S, key, "A", f"{key}{seq}"),
        )
        for seq in range(1, 6)
        for key in KEYS
        for at in (10.0 * seq,)
    )
    return [Opened(0.0, S, "A", "A"), *(event for life in lives for event in life)]


def judged(rows: Sequence[Row], plan: JudgingPlan, *, files: int = 1, clock_error_s: float = 0.0) -> dict[int, list[Recorded]]:
    """What each shard of a run gets, from rows that chance divides among files."""
    chance = Random(1)
    shares: list[list[Row]] = [[] for _ in range(files)]
    for row in chance.sample(rows, len(rows)):
        chance.choice(shares).append(row)
    pack = packing.packing({"ordering-1": plan}, clock_error_s)
    packages = [package for share in shares for batch in pack(chunk_of(share)) for package in batch.to_pylist()]
    packages.sort(key=itemgetter("run_id", "shard", "stretch"))
    found: dict[int, list[Recorded]] = {}
    for (shard, _), members in groupby(packages, key=itemgetter("shard", "stretch")):
        found.setdefault(shard, []).extend(unpacked([one["events"] for one in members], merged=plan.merged))
    return found


def chunk_of(rows: Iterable[Row]) -> Chunk:
    return Chunk(pa.Table.from_pylist(list(rows), schema_of(EVENTS)).select(PACKED_COLUMNS))


def moved(event: Event) -> Event:
    """As it is recorded: `Taped` counts from midnight, the recorder's clock says 1000 then."""
    return type(event)(**{**{name: getattr(event, name) for name in event.__dataclass_fields__}, "t": event.t + 1000.0})


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("length", [4, 1000])
def test_a_run_comes_in_its_order(monkeypatch: pytest.MonkeyPatch, files: int, length: int) -> None:
    monkeypatch.setattr(packing, "STRETCH_EVENTS", length)
    found = judged(Taped("ordering-1").add(*events()).events, JudgingPlan(""), files=files)
    assert [event for event, *_ in found[0]] == [moved(event) for event in events()]
    assert [number for _, number, *_ in found[0]] == list(range(1, len(events()) + 1))
    assert found[0][0][3] == MIDNIGHT


def test_a_key_goes_to_one_shard_and_what_concerns_all_keys_to_each() -> None:
    found = judged(Taped("ordering-1").add(*events()).events, JudgingPlan("", shards=2), files=2)
    keys = {shard: {getattr(event, "key", None) for event, *_ in members[1:]} for shard, members in found.items()}
    assert sorted(str(key) for members in keys.values() for key in members) == list(KEYS)
    assert [members[0][0] for members in found.values()] == [moved(Opened(0.0, S, "A", "A"))] * 2
    assert sum(map(len, found.values())) == len(events()) + 1


def test_a_merged_run_comes_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "STRETCH_US", 10_000_000)
    run = Taped("ordering-1")
    for event in events():
        run.add(event, process="p2" if isinstance(event, Delivered) else "p1")
    found = judged(run.events, JudgingPlan("", merged=True), files=3, clock_error_s=0.02)
    walls = [wall_t for *_, wall_t in found[0]]
    assert walls == sorted(walls)
    assert {process for _, _, process, _ in found[0]} == {"p1", "p2"}
    assert walls[1] == pytest.approx(MIDNIGHT + 10.0 - 0.04)


def test_a_run_without_a_plan_stays_where_it_is() -> None:
    assert judged(Taped("another").add(*events()).events, JudgingPlan("")) == {}
