"""What files say about a key, however events are divided among them, against a count event by event. Without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.sinks.history.arrow import schema_of
from prober.sinks.history.schema import EVENTS
from spark_jobs.hashes import hashes
from spark_jobs.history import MINUTE_US
from spark_jobs.scan import Chunk
from spark_jobs.sightings import COLUMNS, MINUTE, OBSERVED_COLUMNS, OPENED, RECEIVED, STRETCH, Candidate, sightings, unparceled

CANDIDATES = (Candidate(0, "prod", "t", "s", "a"), Candidate(1, "prod", "t", "other", "a"), Candidate(2, "prod", "t", "s", "b"))
ENDS_US = {"ended": 9 * MINUTE_US}
"""The run `cut` has no end."""
STREAMS = ("x", "y", "yy")
SUBSCRIBERS = {"x": "X", "y": "Y"}
"""That of the stream `yy` is not on record."""

Row = dict[str, Any]


class Drawn(NamedTuple):
    """An event as it is drawn."""

    event: str
    key: str
    run: str
    minute: int
    later_us: int
    message: int
    stream: str
    subscription: str
    other: bool


DRAWN = st.builds(
    Drawn,
    st.sampled_from(("publish", "published", "delivered", "acked", "nacked")),
    st.sampled_from(("a", "b", "c")),
    st.sampled_from(("ended", "ended", "cut")),
    st.integers(0, 8),
    st.integers(0, MINUTE_US - 1),
    st.integers(0, 5),
    st.sampled_from(STREAMS),
    st.sampled_from(("s", "other")),
    st.booleans(),
)


def row_of(number: int, drawn: Drawn) -> Row:
    """As in the history. What others published has a size when it is received, and no sequence number."""
    row: Row = dict.fromkeys(EVENTS.column_names) | {"target": "prod", "topic": "t", "key": drawn.key, "run_id": drawn.run}
    row |= {"event": drawn.event, "number": number, "time": drawn.minute * MINUTE_US + drawn.later_us}
    if drawn.event == "publish":
        return row | {"seq": drawn.message, "message_bytes": 100}
    row["message_id"] = f"m{drawn.message}"
    if drawn.event == "published":
        return row | {"seq": drawn.message}
    row |= {"subscription": drawn.subscription, "session": drawn.stream}
    if drawn.event != "delivered":
        return row
    if drawn.other:  # the service stored it once, whenever it is received
        return row | {"message_bytes": 7, "publish_time_ns": drawn.message * 50_000_000_000, "epoch": None}
    return row | {"epoch": drawn.run, "seq": drawn.message}


def opening(number: int, run: str, stream: str) -> Row:
    row = dict.fromkeys(EVENTS.column_names) | {"event": "opened", "target": "prod", "topic": "t", "subscription": "s"}
    return row | {"number": number, "time": 0, "run_id": run, "session": stream, "subscriber": SUBSCRIBERS[stream]}


# --- by the files ------------------------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """What is said of a candidate: by minute publishes, bytes, moves, how many wait at its end, and since when the oldest does."""

    minutes: dict[int, tuple[int, int, int, int, int | None]]
    deliveries: int
    first_deliveries: int
    changes: int


def said(rows: Sequence[Row], files: int, buckets: int, *, observed: bool) -> dict[int, Said]:
    names = OBSERVED_COLUMNS if observed else COLUMNS
    reduction = sightings(CANDIDATES, ENDS_US, buckets, observed=observed)
    shares = [rows[number::files] for number in range(files)]
    chunks = [Chunk(pa.Table.from_pylist(share, schema_of(EVENTS)).select(names)) for share in shares if share]
    sent = pa.Table.from_batches([batch for chunk in chunks for batch in reduction(chunk)])
    met = [unparceled(sent.filter(pc.equal(sent["bucket"], bucket))) for bucket in range(buckets)]
    found = pa.concat_tables(met).to_pylist()
    assert sum(table.num_rows for table in met) == len(found) >= sent.filter(pc.is_null(sent["parcel"])).num_rows
    return {one.number: _together([row for row in found if row["candidate"] in (one.number, None)]) for one in CANDIDATES}


def _together(found: Iterable[Row]) -> Said:
    """What Spark makes of it."""
    by = {about: [row for row in found if row["about"] == about] for about in (MINUTE, STRETCH, RECEIVED, OPENED)}
    sums: dict[int, Counter[str]] = {}
    since: dict[int, int] = {}
    for row in by[MINUTE]:
        names = ("publishes", "bytes", "moves", "delta")
        sums.setdefault(row["minute"], Counter()).update({name: row[name] or 0 for name in names})
        if row["since_us"] is not None:
            since[row["minute"]] = min(row["since_us"], since.get(row["minute"], row["since_us"]))
    owners = {(row["run"], row["session"]): row["subscriber"] for row in by[OPENED]}
    minutes, waiting = {}, 0
    for minute in range(20):
        count = sums.get(minute, Counter())
        waiting += count["delta"]
        minutes[minute] = count["publishes"], count["bytes"], count["moves"], waiting, since.get(minute)
    stretches = sorted((row["run"], row["number"], owners.get((row["run"], row["session"]), row["session"])) for row in by[STRETCH])
    changes = sum(one[0] == two[0] and one[2] != two[2] for one, two in pairwise(stretches))
    return Said(
        minutes, sum(row["deliveries"] for row in by[STRETCH]), sum(row["first_deliveries"] for row in by[RECEIVED]), changes
    )


# --- event by event ------------------------------------------------------------------------------------------------------------


def counted(rows: Sequence[Row], one: Candidate, *, observed: bool) -> Said:
    own = [row for row in rows if row["key"] == one.key and row["subscription"] in (None, one.subscription)]
    own += list(_of_others(own)) if observed else []
    minutes = {minute: (*_moved(own, minute, observed=observed), *_waiting(own, minute)) for minute in range(20)}
    received = sorted((row["run_id"], row["number"], _owner(row), row) for row in own if row["event"] == "delivered")
    changes = sum(one[0] == two[0] and one[2] != two[2] for one, two in pairwise(received))
    return Said(minutes, len(received), len({_message(row, observed=observed) for *_, row in received}), changes)


def _of_others(own: Sequence[Row]) -> Iterable[Row]:
    """The publishes that first deliveries stand for."""
    first = {(row["run_id"], row["message_id"]): row for row in own if row["event"] == "delivered" and row["message_bytes"]}
    for row in first.values():
        stored = row | {"time": row["publish_time_ns"] // 1000}
        yield stored | {"event": "publish"}
        yield stored | {"event": "published", "message_bytes": None}


def _moved(own: Sequence[Row], minute: int, *, observed: bool) -> tuple[int, int, int]:
    now = [row for row in own if row["time"] // MINUTE_US == minute]
    sized = [
        row["message_bytes"] or 0 for row in now if row["event"] == "publish" or (row["event"] == "delivered" and not observed)
    ]
    kinds = Counter(row["event"] for row in now)
    return kinds["publish"], sum(sized), kinds["delivered"] + kinds["acked"]


def _waiting(own: Sequence[Row], minute: int) -> tuple[int, int | None]:
    """How many messages wait at the end of a minute, and since when the first of them does."""
    since: dict[object, int] = {}
    until: dict[object, int] = {}
    for row in own:
        name = row["run_id"], row["message_id"]
        times = {"published": since, "acked": until}.get(row["event"])
        if times is not None and row["run_id"] in ENDS_US:
            times[name] = min(row["time"], times.get(name, row["time"]))
    ends = {name: until[name] // MINUTE_US if name in until else ENDS_US["ended"] // MINUTE_US + 1 for name in since}
    waiting = [at for name, at in since.items() if at // MINUTE_US <= minute < max(ends[name], at // MINUTE_US)]
    return len(waiting), min(waiting, default=None)


def _owner(row: Row) -> str:
    session = str(row["session"])
    return SUBSCRIBERS.get(session, session)


def _message(row: Row, *, observed: bool) -> tuple[object, ...]:
    of_others = observed and row["message_bytes"] is not None
    return row["run_id"], row["epoch"], row["message_id"] if of_others else row["seq"]


def check(drawn: Sequence[Drawn], files: int, buckets: int, *, observed: bool) -> None:
    """Others publish only where that is observed."""
    known = [one if observed else one._replace(other=False) for one in drawn]
    openings = [opening(1, run, stream) for run in ("ended", "cut") for stream in SUBSCRIBERS]
    rows = [row_of(number, one) for number, one in enumerate(known, len(openings))]
    expected = {one.number: counted(rows, one, observed=observed) for one in CANDIDATES}
    found = said([*openings, *rows], files, buckets, observed=observed)
    assert {number: _named(one) for number, one in found.items()} == {number: _named(one) for number, one in expected.items()}


def _named(one: Said) -> Mapping[str, object]:
    return one._asdict()


@settings(max_examples=60, deadline=None)
@given(st.lists(DRAWN, max_size=60), st.integers(1, 4), st.integers(1, 3))
def test_files_together_say_of_a_key_what_its_events_say(drawn: list[Drawn], files: int, buckets: int) -> None:
    check(drawn, files, buckets, observed=False)


@settings(max_examples=60, deadline=None)
@given(st.lists(DRAWN, max_size=60), st.integers(1, 4), st.integers(1, 3))
def test_what_others_published_counts_once_when_they_did(drawn: list[Drawn], files: int, buckets: int) -> None:
    check(drawn, files, buckets, observed=True)


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(0, 5))
def test_equal_names_have_equal_numbers_wherever_they_stand(names: list[str], skipped: int) -> None:
    alone = [int(hashes(pa.array([name]))[0]) for name in names]
    assert hashes(pa.array(names, pa.string())[skipped:]).tolist() == alone[skipped:]
    assert len(set(alone)) == len(set(names))
