"""What a part of a file says about the few keys that are looked at closely (`candidates`), as rows of `SIGHTINGS`.

What happened in a minute is counted here. What only several files together can answer goes on in parcels (`spark_jobs.parcels`) to where
all of it meets, and is answered there (`spark_jobs.backlogs`): so neither here nor there does Spark see a row for each event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.backlogs import (
    ACKED,
    OBSERVED,
    PUBLISHED,
    STRETCH_BITS,
    UNENDED,
    Columns,
    first_deliveries,
    others_publishes,
    stretches,
    waits,
)
from spark_jobs.hashes import Hashes, hashed_names, hashes, mixed
from spark_jobs.history import MINUTE_US
from spark_jobs.loads import NANOS_PER_MICRO, UNRECORDED
from spark_jobs.parcels import parcels, rows_in
from spark_jobs.scan import Chunk, Ints, numbered, rows_of

COLUMNS: Final = (
    "event",
    "target",
    "topic",
    "subscription",
    "key",
    "run_id",
    "epoch",
    "number",
    "time",
    "seq",
    "message_id",
    "message_bytes",
    "session",
    "subscriber",
)
OBSERVED_COLUMNS: Final = (*COLUMNS, "publish_time_ns")
"""Where others publish."""

_PLACE: Final = ("target", "topic", "subscription", "key")
_KINDS: Final = ("publish", "published", "delivered", "acked")
_NUMBERS: Final = (
    "minute",
    "publishes",
    "bytes",
    "moves",
    "delta",
    "since_us",
    "run",
    "session",
    "number",
    "deliveries",
    "first_deliveries",
    "subscriber",
)
_SIGHTINGS: Final = pa.schema(
    [("bucket", pa.int32()), ("about", pa.string()), ("parcel", pa.binary()), ("candidate", pa.int32())]
    + [(name, pa.int64()) for name in _NUMBERS]
)
SIGHTINGS: Final = f"bucket int, about string, parcel binary, candidate int, {', '.join(f'{name} long' for name in _NUMBERS)}"
"""Rows of these kinds, told apart by `about`; columns that a kind does not have are null. `candidate` says of which key.

MINUTE      of a `minute`: how much was published (`publishes`, `bytes`) and how often something was received or acknowledged (`moves`), by
            how many more messages wait at its end (`delta`), or when the oldest of them was confirmed (`since_us`). Rows add up.
STRETCH     from delivery `number` of a `run` on, so many `deliveries` went to the `session`.
RECEIVED    how many messages were received: `first_deliveries`.
OPENED      whose the `session` of a `run` is: `subscriber`. Of all keys.
WAITS, DELIVERIES, MESSAGES   a parcel for a `bucket`, which becomes rows of the first three.

Names are numbers here (`spark_jobs.hashes`)."""
MINUTE, STRETCH, RECEIVED, OPENED = "minute", "stretch", "received", "opened"
WAITS, DELIVERIES, MESSAGES = "waits", "deliveries", "messages"


class Candidate(NamedTuple):
    """A key of a subscription that is looked at closely, by its number."""

    number: int
    target: str
    topic: str
    subscription: str
    key: str


# --- in a part of a file -----------------------------------------------------------------------------------------------------


def sightings(
    candidates: Sequence[Candidate], ends_us: Mapping[str, int], buckets: int, *, observed: bool
) -> Callable[[Chunk], Iterator[pa.RecordBatch]]:
    """The reduction of events to `SIGHTINGS`, into so many buckets.

    ends_us    when runs ended, by their ids; of other runs nothing waits.
    observed   whether others publish on the topic of any of the candidates.
    """

    def reduce(chunk: Chunk) -> Iterator[pa.RecordBatch]:
        if not len(chunk):
            return
        bucket = int(chunk.time_us[0] % buckets)  # any will do for what meets nothing
        yield _openings(chunk, bucket)
        rows, candidate = _matching(chunk, candidates)
        if len(rows):
            seen = _Seen(chunk, rows, candidate, observed)
            yield _minutes(seen, bucket)
            for about, columns, belonging in (_waits(seen, ends_us), _deliveries(seen), _messages(seen)):
                yield _parceled(about, columns, belonging, buckets)

    return reduce


@dataclass(frozen=True)
class _Seen:
    """The events of candidates in a chunk: its rows, and whose each of them is. A row may stand there for several candidates."""

    chunk: Chunk
    rows: Ints
    candidate: Ints
    observed: bool

    def of(self, *kinds: str) -> Ints:
        """Where among these events those of a kind are."""
        wanted = np.array([name in kinds for name in self.chunk.names("event").to_pylist()], np.bool_)
        return np.flatnonzero(wanted[self.chunk.places("event")[self.rows]])

    @cached_property
    def of_others(self) -> Ints:
        """Where among these events deliveries of what others published are: only of these a delivery has a size."""
        delivered = self.of("delivered") if self.observed else np.zeros(0, np.int64)
        others: Ints = delivered[self.chunk.numbers("message_bytes", UNRECORDED)[self.rows[delivered]] != UNRECORDED]
        return others

    @cached_property
    def time_us(self) -> Ints:
        """When they happened."""
        return self.chunk.time_us[self.rows]

    @cached_property
    def runs(self) -> Hashes:
        """Their runs."""
        return hashed_names(self.chunk, "run_id")[self.rows]

    def ids(self, places: Ints) -> Hashes:
        """Which messages they are about, by the ids that the service gave."""
        return hashes(self.chunk.column("message_id").take(pa.array(self.rows[places])))


def _matching(chunk: Chunk, candidates: Sequence[Candidate]) -> tuple[Ints, Ints]:
    """The rows that concern candidates, and whom; what a publisher did concerns every subscription."""
    starts = chunk.segments("event", *_PLACE)
    lengths = np.diff(np.append(starts, len(chunk)))
    numbers = {column: {name: place for place, name in enumerate(chunk.names(column).to_pylist())} for column in _PLACE}
    places = {column: chunk.places(column)[starts] for column in _PLACE}
    relevant = np.array([name in _KINDS for name in chunk.names("event").to_pylist()], np.bool_)[chunk.places("event")[starts]]
    rows, whose = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for one in candidates:
        if one.key in numbers["key"]:
            same = {column: places[column] == numbers[column].get(getattr(one, column), -2) for column in _PLACE}
            owed = same["subscription"] | (places["subscription"] == -1)
            stretch = np.flatnonzero(relevant & same["key"] & same["target"] & same["topic"] & owed)
            ends = np.cumsum(lengths[stretch])
            rows.append(
                np.repeat(starts[stretch] - (ends - lengths[stretch]), lengths[stretch]) + np.arange(lengths[stretch].sum())
            )
            whose.append(np.full(len(rows[-1]), one.number))
    return np.concatenate(rows), np.concatenate(whose)


def _openings(chunk: Chunk, bucket: int) -> pa.RecordBatch:
    rows = chunk.where("opened")
    names = {"run": "run_id", "session": "session", "subscriber": "subscriber"}
    columns = {name: _signed(hashed_names(chunk, column)[rows]) for name, column in names.items()}
    return _rows(OPENED, columns | {"bucket": np.full(len(rows), bucket)}, len(rows))


def _minutes(seen: _Seen, bucket: int) -> pa.RecordBatch:
    place, count = numbered(seen.candidate, seen.time_us // MINUTE_US)
    example = np.full(count, -1)
    example[place] = np.arange(len(place))
    used = example >= 0
    sizes = np.zeros(count, np.int64)
    sized = seen.of("publish") if seen.observed else np.arange(len(place))
    np.add.at(sizes, place[sized], seen.chunk.numbers("message_bytes")[seen.rows[sized]])
    columns = {
        "bucket": np.full(used.sum(), bucket),
        "candidate": seen.candidate[example[used]],
        "minute": seen.time_us[example[used]] // MINUTE_US,
        "publishes": np.bincount(place[seen.of("publish")], minlength=count)[used],
        "bytes": sizes[used],
        "moves": np.bincount(place[seen.of("delivered", "acked")], minlength=count)[used],
    }
    return _rows(MINUTE, columns, int(used.sum()))


def _waits(seen: _Seen, ends_us: Mapping[str, int]) -> tuple[str, Columns, Hashes]:
    """What says since when and until when messages waited."""
    runs = seen.chunk.names("run_id").to_pylist()
    end = np.array([ends_us[name] // MINUTE_US + 1 if name in ends_us else UNENDED for name in runs], np.int32)
    end = end[seen.chunk.places("run_id")[seen.rows]]
    own = {PUBLISHED: seen.of("published"), ACKED: seen.of("acked")}
    places = {kind: rows[end[rows] != UNENDED] for kind, rows in own.items()} | {OBSERVED: seen.of_others}
    chosen = np.concatenate(list(places.values()))
    message = mixed(seen.candidate[chosen], seen.runs[chosen], seen.ids(chosen))
    columns = {
        "candidate": seen.candidate[chosen].astype(np.int32),
        "message": message,
        "kind": np.repeat(np.array([*places], np.int8), [len(rows) for rows in places.values()]),
        "time_us": np.concatenate([seen.time_us[places[PUBLISHED]], seen.time_us[places[ACKED]], _published_us(seen)]),
        "end": end[chosen],
    }
    if seen.observed:
        columns["bytes"] = seen.chunk.numbers("message_bytes")[seen.rows[chosen]]
    return WAITS, columns, message


def _published_us(seen: _Seen) -> Ints:
    """When others published what was received, as far as that is known."""
    if not len(seen.of_others):
        return np.zeros(0, np.int64)
    stored_us = seen.chunk.numbers("publish_time_ns", UNRECORDED)[seen.rows[seen.of_others]] // NANOS_PER_MICRO
    return np.where(stored_us < 0, seen.time_us[seen.of_others], stored_us)


def _deliveries(seen: _Seen) -> tuple[str, Columns, Hashes]:
    places = seen.of("delivered")
    rows = seen.rows[places]
    number, run, candidate = seen.chunk.numbers("number")[rows], seen.runs[places], seen.candidate[places].astype(np.int32)
    columns: Columns = {"candidate": candidate, "run": run, "number": number, "session": hashed_names(seen.chunk, "session")[rows]}
    return DELIVERIES, columns, mixed(candidate, run, number >> STRETCH_BITS)


def _messages(seen: _Seen) -> tuple[str, Columns, Hashes]:
    """Which messages were received: a sequence number of a publisher; of what others published, which may have none, an id."""
    places = seen.of("delivered")
    number = seen.chunk.numbers("seq", UNRECORDED)[seen.rows].astype(np.uint64)
    number[seen.of_others] = seen.ids(seen.of_others)
    candidate, epoch = seen.candidate[places].astype(np.int32), hashed_names(seen.chunk, "epoch")[seen.rows[places]]
    message, first = np.unique(mixed(candidate, seen.runs[places], epoch, number[places]), return_index=True)
    return MESSAGES, {"candidate": candidate[first], "message": message}, message


def _parceled(about: str, columns: Columns, belonging: Hashes, buckets: int) -> pa.RecordBatch:
    rows = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})
    bucket, parcel = parcels(rows, belonging, buckets)
    return _rows(about, {"bucket": bucket, "parcel": parcel}, len(bucket))


# --- where parcels meet --------------------------------------------------------------------------------------------------------


def unparceled(rows: pa.Table) -> pa.Table:
    """`SIGHTINGS` of one bucket with answers in place of parcels."""
    sent = {about: rows.filter(pc.equal(rows["about"], about))["parcel"] for about in (WAITS, DELIVERIES, MESSAGES)}
    known = rows.filter(pc.is_null(rows["parcel"])).to_batches()
    contents = {about: _columns(rows_in(parcel)) for about, parcel in sent.items() if len(parcel)}
    return pa.Table.from_batches([*known, *_answers(contents)], _SIGHTINGS)


def _answers(contents: Mapping[str, Columns]) -> Iterable[pa.RecordBatch]:
    if WAITS in contents:
        said = contents[WAITS]
        found = [*waits(said), *([others_publishes(said)] if "bytes" in said else [])]
        yield from (_rows(MINUTE, columns, len(columns["candidate"])) for columns in found)
    if DELIVERIES in contents:
        moved = stretches(contents[DELIVERIES])
        signed = {name: _signed(moved[name]) for name in ("run", "session")}
        yield _rows(STRETCH, moved | signed, len(moved["candidate"]))
    if MESSAGES in contents:
        received = first_deliveries(contents[MESSAGES])
        yield _rows(RECEIVED, received, len(received["candidate"]))


def _columns(rows: pa.Table) -> Columns:
    return {name: rows[name].to_numpy() for name in rows.column_names}


def _rows(about: str, columns: Mapping[str, Any], count: int) -> pa.RecordBatch:
    return rows_of(_SIGHTINGS, {"about": pa.repeat(about, count), **columns}, count)


def _signed(hashed: Hashes) -> Ints:
    return hashed.view(np.int64)
