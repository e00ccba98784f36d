"""What became of each message: what executors say file by file, and what Spark puts together of it, for `counts` and `waits`.

A message is a sequence number of a run and key, whatever its generations: it was to be sent when the first of them was, was confirmed
when the first confirmation came, and received when the first of its copies was. Messages of other runs that a run receives are not its
own and do not count.

A file nearly always holds the whole life of a message. Such a message is finished there: its outcome is counted. What files say of any
other, one that is published in one and received in another, goes on in parcels (`spark_jobs.parcels`) to where all of it meets, and
most messages are finished then. Of what is left, such as refused publishes, Spark gets each event, and puts them together. Which is which
does not depend on chance:

* A message is *finished* if all that can ever be said of its publish is there: one attempt, the first generation, confirmed,
  received. A message of a later generation never is, since an earlier one may be in another file.
* What waited is told in `spark_jobs.waiting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from prober.core.events import EVENT_TYPES
from prober.sinks.history.schema import LAGGED
from prober.slo.indicators import UNPUBLISHED, Indicator
from prober.slo.objectives import MICROS
from spark_jobs.hashes import Hashes, hashed_names, mixed
from spark_jobs.history import MINUTE_US
from spark_jobs.parcels import rows_in
from spark_jobs.scan import NEVER_US, Chunk, Flags, Ints, earliest, numbered, rows_of, times
from spark_jobs.waiting import WAIT, WaitQuestion, sent

# --- what executors say ------------------------------------------------------------------------------------------------------


MESSAGE_COLUMNS: Final = (
    "event",
    "subscription",
    "key",
    "run_id",
    "epoch",
    "time",
    "t",
    "intended_t",
    "seq",
    "generation",
    LAGGED,
)
WAIT_COLUMNS: Final = ("message_id",)
MESSAGE_TIMES: Final = ("intended_us", "confirmed_us", "received_us")
MESSAGE_LAGS: Final = ("confirmed_lagged_us", "received_lagged_us")
MESSAGE_COUNTS: Final = ("attempts", "confirmed", "refused")
FINISHED, UNFINISHED = "finished", "unfinished"
PUBLISH, AGAIN, CONFIRMED, REFUSED, RECEIVED = _KINDS = range(5)
"""What an event says of a message: it is published, for the first time or again; that was confirmed, refused or not answered; it came."""

_UNPUBLISHED: Final = tuple(name for name, event_type in EVENT_TYPES.items() if event_type in UNPUBLISHED)


class Question(NamedTuple):
    """An objective as it is judged here: which latency may be how long."""

    indicator: Indicator
    threshold_us: int


def parts_schema(questions: Sequence[Question]) -> pa.Schema:
    """Rows of three kinds, told apart by `part`; columns that a kind does not have are null.

    finished    how many messages were to be sent in a minute (`messages`), and how many of them are `good_0`, `bad_0`, `undecided_0`
                for the first question, and so on. Of those that are bad for any question, `key` says which.
    unfinished  what a chunk says about a message: `intended_us`, `confirmed_us`, `received_us`, for how long of that the prober lagged
                (`confirmed_lagged_us`, `received_lagged_us`), and the counts `attempts`, `confirmed`, `refused`.
    wait        `since_us`, when a message was confirmed, or `until_us`, when it was acknowledged, or both.

    A row with a `parcel` stands for many rows of its part, which meet others in their `bucket`.
    """
    texts = ("part", "run_id", "subscription", "key", "message_id")
    numbers = ("minute", "messages", "seq", *MESSAGE_TIMES, *MESSAGE_LAGS, *MESSAGE_COUNTS)
    asked = [f"{name}_{number}" for number in range(len(questions)) for name in ("good", "bad", "undecided")]
    longs = (*numbers, "since_us", "until_us", "bucket", *asked)
    return pa.schema([(name, pa.string()) for name in texts] + [(name, pa.int64()) for name in longs] + [("parcel", pa.binary())])


_SPARK_NAMES: Final = {pa.string(): "string", pa.int64(): "long", pa.binary(): "binary"}


def ddl_of(schema: pa.Schema) -> str:
    """The same for Spark."""
    return ", ".join(f"{field.name} {_SPARK_NAMES[field.type]}" for field in schema)


def messages_of(
    questions: Sequence[Question], waiting: WaitQuestion, buckets: int, *, several: bool
) -> Callable[[Chunk], Iterator[pa.RecordBatch]]:
    """The reduction of events to rows of `parts_schema`, with parcels for so many buckets.

    several     whether a message is owed to several subscriptions; then nothing is finished on executors, and there are no parcels.
    """
    schema = parts_schema(questions)

    def reduce(chunk: Chunk) -> Iterator[pa.RecordBatch]:
        if not len(chunk):
            return
        if several:
            yield _unfinished(_said(chunk, _kinds_of(chunk)), schema)
            yield waiting.each(chunk, schema)
            return
        said = _said(chunk, _kinds_of(chunk))
        finished, rest = _divided(Chunk(said))
        yield from _outcomes(Chunk(said), finished, questions, schema, buckets)
        left = said.take(pa.array(rest))
        yield sent(UNFINISHED, left, _message_hashes(Chunk(left)), buckets, schema)
        yield waiting.sent(chunk, buckets, schema)

    return reduce


def meeting(questions: Sequence[Question], waiting: WaitQuestion, buckets: int) -> Callable[[pa.Table], pa.Table]:
    """What becomes of rows of `parts_schema` where all parcels of a bucket meet: rows without parcels."""
    schema = parts_schema(questions)

    def meet(rows: pa.Table) -> pa.Table:
        met = rows.filter(pc.is_null(rows["parcel"])).to_batches()
        for part, answer in ((UNFINISHED, unfinished), (WAIT, waits)):
            parcels = rows.filter(pc.and_kleene(pc.equal(rows["part"], part), pc.is_valid(rows["parcel"])))["parcel"]
            met += answer(rows_in(parcels)) if len(parcels) else []
        return pa.Table.from_batches(met, schema)

    def unfinished(said: pa.Table) -> list[pa.RecordBatch]:
        finished, rest = _divided(Chunk(said))
        return [*_outcomes(Chunk(said), finished, questions, schema, buckets), _unfinished(said.take(pa.array(rest)), schema)]

    def waits(said: pa.Table) -> list[pa.RecordBatch]:
        return [waiting.met(said, schema)]

    return meet


# --- what is said of messages ----------------------------------------------------------------------------------------------------


def _kinds_of(chunk: Chunk) -> Mapping[int, Ints]:
    """The rows that are about messages of the run itself, by what they say of them."""
    publishes = chunk.where("publish")
    again = chunk.numbers("generation")[publishes] > 0
    return {
        PUBLISH: publishes[~again],
        AGAIN: publishes[again],
        CONFIRMED: chunk.where("published"),
        REFUSED: chunk.where(*_UNPUBLISHED),
        RECEIVED: _own_deliveries(chunk),
    }


def _said(chunk: Chunk, kinds: Mapping[int, Ints]) -> pa.Table:
    """These events, with what counts of them: `time_us` is of a publish when it was to be sent."""
    rows = np.concatenate(list(kinds.values()))
    kind = np.repeat(np.array([*kinds], np.int8), [len(some) for some in kinds.values()])
    time_us = chunk.time_us[rows]
    is_publish = kind <= AGAIN
    time_us[is_publish] = _intended_us(chunk, rows[is_publish])
    names = {name: chunk.dictionary(name).take(pa.array(rows)) for name in ("run_id", "subscription", "key")}
    numbers = {"seq": chunk.numbers("seq")[rows], "time_us": time_us, "lagged_us": chunk.micros(LAGGED)[rows], "kind": kind}
    return pa.table(names | {name: pa.array(values) for name, values in numbers.items()})


def _message_hashes(said: Chunk) -> Hashes:
    return mixed(hashed_names(said, "run_id"), hashed_names(said, "key"), said.numbers("seq"))


def _divided(said: Chunk) -> tuple[_Lives, Ints]:
    """The messages of these events that are finished, and the events of the others."""
    place, count = numbered(said.owners, said.numbers("seq"))
    kind, time_us, lagged_us = said.numbers("kind"), said.numbers("time_us"), said.numbers("lagged_us")
    rows = {one: np.flatnonzero(kind == one) for one in _KINDS}
    counts = {one: np.bincount(place[rows[one]], minlength=count) for one in _KINDS}
    finished = (counts[PUBLISH] == 1) & (counts[CONFIRMED] == 1) & (counts[RECEIVED] > 0) & (counts[AGAIN] + counts[REFUSED] == 0)
    first = np.zeros(count, np.int64)
    first[place[rows[PUBLISH]]] = rows[PUBLISH]
    times_us = [earliest(place[rows[one]], time_us[rows[one]], count)[finished] for one in (PUBLISH, CONFIRMED, RECEIVED)]
    lags_us = [_largest(place[rows[one]], lagged_us[rows[one]], count)[finished] for one in (CONFIRMED, RECEIVED)]
    return _Lives(first[finished], *times_us, *lags_us), np.flatnonzero(~finished[place])


class _Lives(NamedTuple):
    """Finished messages: the row of the publish, when it was to be sent, was confirmed, and was received first, and the lag in that."""

    rows: Ints
    intended_us: Ints
    confirmed_us: Ints
    received_us: Ints
    confirmed_lagged_us: Ints
    received_lagged_us: Ints


def _largest(place: Ints, values: Ints, count: int) -> Ints:
    """Of each place the largest value: of several events one alone shows the lag."""
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, place, values)
    return largest


def _outcomes(
    chunk: Chunk, lives: _Lives, questions: Sequence[Question], schema: pa.Schema, buckets: int
) -> Iterator[pa.RecordBatch]:
    doubtful = {question.indicator: _doubtful(lives, question.indicator, questions) for question in questions}
    good = [_in_time(lives, question) & ~doubtful[question.indicator] for question in questions]
    bad = [~is_good & ~doubtful[question.indicator] for question, is_good in zip(questions, good, strict=True)]
    flawless = ~np.logical_or.reduce([np.zeros(len(lives.rows), np.bool_), *bad])
    for chosen, key in ((flawless, False), (~flawless, True)):
        rows, minutes = lives.rows[chosen], lives.intended_us[chosen] // MINUTE_US
        place, count = numbered(chunk.owners[rows] if key else chunk.places("run_id")[rows], minutes)
        example = np.full(count, -1)
        example[place] = np.arange(len(rows))
        used = example >= 0
        example = example[used]
        columns: dict[str, pa.Array | Ints] = {
            "part": pa.repeat(FINISHED, len(example)),
            "bucket": minutes[example] % buckets,
            "run_id": chunk.value("run_id", rows[example]),
            "minute": minutes[example],
            "messages": np.bincount(place, minlength=count)[used],
        }
        if key:
            columns["key"] = chunk.value("key", rows[example])
        for number, question in enumerate(questions):
            for name, which in (("good", good[number]), ("bad", bad[number]), ("undecided", doubtful[question.indicator])):
                columns[f"{name}_{number}"] = np.bincount(place[which[chosen]], minlength=count)[used]
        yield rows_of(schema, columns, len(example))


def _in_time(lives: _Lives, question: Question, without_us: Ints | int = 0) -> Flags:
    if question.indicator is Indicator.PUBLISH_AVAILABILITY:
        return np.ones(len(lives.rows), np.bool_)
    ended_us = lives.confirmed_us if question.indicator is Indicator.PUBLISH_LATENCY else lives.received_us
    in_time: Flags = ended_us - lives.intended_us - without_us <= question.threshold_us
    return in_time


def _doubtful(lives: _Lives, indicator: Indicator, questions: Sequence[Question]) -> Flags:
    """Which are late for any question about the indicator, perhaps only because the prober lagged (`Objective.is_doubtful`)."""
    lagged_us = lives.confirmed_lagged_us if indicator is Indicator.PUBLISH_LATENCY else lives.received_lagged_us
    about = [question for question in questions if question.indicator is indicator]
    doubtful = (~_in_time(lives, question) & _in_time(lives, question, lagged_us) for question in about)
    any_doubt: Flags = np.logical_or.reduce([np.zeros(len(lives.rows), np.bool_), *doubtful])
    return any_doubt


def _unfinished(said: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """A row for each event."""
    events = Chunk(said)
    kind, time_us, lagged_us = events.numbers("kind"), events.numbers("time_us"), events.numbers("lagged_us")
    rows = np.arange(len(events))
    columns: dict[str, pa.Array | Ints] = {name: events.value(name, rows) for name in ("run_id", "subscription", "key")}
    columns["part"] = pa.repeat(UNFINISHED, len(rows))
    columns["seq"] = events.numbers("seq")
    columns["intended_us"] = times(np.where(kind <= AGAIN, time_us, NEVER_US))
    columns["confirmed_us"] = times(np.where(kind == CONFIRMED, time_us, NEVER_US))
    columns["received_us"] = times(np.where(kind == RECEIVED, time_us, NEVER_US))
    columns["confirmed_lagged_us"] = np.where(kind == CONFIRMED, lagged_us, 0)
    columns["received_lagged_us"] = np.where(kind == RECEIVED, lagged_us, 0)
    columns["attempts"] = (kind <= AGAIN).astype(np.int64)
    columns["confirmed"] = (kind == CONFIRMED).astype(np.int64)
    columns["refused"] = (kind == REFUSED).astype(np.int64)
    return rows_of(schema, columns, len(rows))


def _intended_us(chunk: Chunk, rows: Ints) -> Ints:
    """When publishes were to be sent, which may be before they were."""
    picked = pa.array(rows)
    late_s = pc.subtract(chunk.column("t").take(picked), chunk.column("intended_t").take(picked))
    late_us = np.floor(pc.fill_null(late_s, 0.0).to_numpy() * MICROS + 0.5).astype(np.int64)
    intended_us: Ints = chunk.time_us[rows] - late_us
    return intended_us


def _own_deliveries(chunk: Chunk) -> Ints:
    """Deliveries of messages that the run published itself."""
    rows = chunk.where("delivered")
    runs = {name: number for number, name in enumerate(chunk.names("run_id").to_pylist())}
    run_of_epoch = np.array([*(runs.get(name, -2) for name in chunk.names("epoch").to_pylist()), -2])
    own: Ints = rows[run_of_epoch[chunk.places("epoch")[rows]] == chunk.places("run_id")[rows]]
    return own


# --- what Spark puts together ------------------------------------------------------------------------------------------------


def messages(parts: DataFrame, runs: DataFrame, *, several: bool) -> DataFrame:
    """One row per unfinished message whose publish is among the parts (`spark_jobs.messages`), and per subscription that it is owed to.

    run, key, seq   which message.
    subscription    to whom; null if each run has only one (`several` is False), which spares work.
    intended_us     when it was to be sent, microseconds since 1970 like the other times.
    confirmed_us    when a publish of it was confirmed first; null if none was.
    received_us     when it was received first; null if it was not.
    confirmed_lagged_us, received_lagged_us   for how long of that the prober's event loop lagged.
    attempts, confirmed, refused   how many publishes there were, and how many of them ended which way.
    """
    unfinished = parts.where(sf.col("part") == UNFINISHED)
    grouped = addressed(unfinished, runs, several=several).groupBy("run", "key", "seq", "subscription")
    earliest = [sf.min(name).alias(name) for name in MESSAGE_TIMES]
    lags = [sf.max(name).alias(name) for name in MESSAGE_LAGS]
    totals = [sf.sum(name).alias(name) for name in MESSAGE_COUNTS]
    return grouped.agg(*earliest, *lags, *totals).where(sf.col("intended_us").isNotNull())


def addressed(parts: DataFrame, runs: DataFrame, *, several: bool) -> DataFrame:
    """Rows with their column `run`; what a publisher did once for each subscription of its run.

    If no run has several, the subscription is null instead: then it need not be told apart.
    """
    if not several:
        return parts.withColumn("subscription", sf.lit(None).cast("string"))
    owed = sf.broadcast(runs.select("run", sf.explode("subscriptions").alias("owed_to")))
    publishing = parts.where(sf.col("subscription").isNull()).join(owed, "run").withColumn("subscription", sf.col("owed_to"))
    return publishing.drop("owed_to").unionByName(parts.where(sf.col("subscription").isNotNull()))
