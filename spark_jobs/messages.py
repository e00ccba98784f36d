"""What became of each message: what executors say file by file, and what Spark puts together of it, for `counts` and `waits`.

A message is a sequence number of a run and key, whatever its generations: it was to be sent when the first of them was, was confirmed
when the first confirmation came, and received when the first of its copies was. Messages of other runs that a run receives are not its
own and do not count.

A file nearly always holds the whole life of a message. Such a message is finished here: its outcome is counted, its wait looked at. Of any
other message, one that is published in one file and received in another, what the file says goes on as it is, and Spark puts it
together. Which is which does not depend on chance:

* A message is *finished* if all that can ever be said of its publish is in the chunk: one attempt, the first generation, confirmed,
  received. A message of a later generation never is, since an earlier one may be in another file.
* A wait is *over* if the confirmation and an acknowledgement of the message are in the chunk, on one run and key.
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
from spark_jobs.history import MINUTE_US
from spark_jobs.scan import NEVER_US, Chunk, Flags, Ints, earliest, numbered, rows_of, times

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
FINISHED, UNFINISHED, WAIT = "finished", "unfinished", "wait"

_UNPUBLISHED: Final = tuple(name for name, event_type in EVENT_TYPES.items() if event_type in UNPUBLISHED)
_PUBLISHING: Final = ("publish", "published", *_UNPUBLISHED)


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
    wait        `since_us`, when a message was confirmed, or `until_us`, when it was acknowledged.
    """
    texts = ("part", "run_id", "subscription", "key", "message_id")
    numbers = ("minute", "messages", "seq", *MESSAGE_TIMES, *MESSAGE_LAGS, *MESSAGE_COUNTS)
    asked = [f"{name}_{number}" for number in range(len(questions)) for name in ("good", "bad", "undecided")]
    longs = (*numbers, "since_us", "until_us", *asked)
    return pa.schema([(name, pa.string()) for name in texts] + [(name, pa.int64()) for name in longs])


def ddl_of(schema: pa.Schema) -> str:
    """The same for Spark."""
    return ", ".join(f"{field.name} {'string' if field.type == pa.string() else 'long'}" for field in schema)


def messages_of(
    questions: Sequence[Question], limits_us: Mapping[str, int], *, several: bool
) -> Callable[[Chunk], Iterator[pa.RecordBatch]]:
    """The reduction of events to rows of `parts_schema`.

    limits_us   by the runs whose waits count, how long a message may wait; of other runs nothing is said about waits.
    several     whether a message is owed to several subscriptions; then none is finished here.
    """
    schema = parts_schema(questions)

    def reduce(chunk: Chunk) -> Iterator[pa.RecordBatch]:
        if len(chunk):
            yield from _messages(chunk, questions, schema, several=several)
            yield from _waits(chunk, limits_us, schema, several=several)

    return reduce


def _messages(chunk: Chunk, questions: Sequence[Question], schema: pa.Schema, *, several: bool) -> Iterator[pa.RecordBatch]:
    kinds = {kind: chunk.where(kind) for kind in _PUBLISHING} | {"delivered": _own_deliveries(chunk)}
    rows = np.concatenate(list(kinds.values()))
    if several:
        yield _unfinished(chunk, kinds, rows, schema)
        return
    place, count = numbered(chunk.owners[rows], chunk.numbers("seq")[rows])
    places = dict(zip(kinds, np.split(place, np.cumsum([len(one) for one in kinds.values()])[:-1]), strict=True))
    counts = {kind: np.bincount(one, minlength=count) for kind, one in places.items()}
    again = chunk.numbers("generation")[kinds["publish"]] > 0
    finished = (counts["publish"] == 1) & (counts["published"] == 1) & (counts["delivered"] > 0)
    finished &= sum(counts[kind] for kind in _UNPUBLISHED) == 0
    finished[places["publish"][again]] = False
    first = np.zeros(count, np.int64)
    first[places["publish"]] = kinds["publish"]
    lives = _Lives(
        first[finished],
        _intended_us(chunk, first[finished]),
        earliest(places["published"], chunk.time_us[kinds["published"]], count)[finished],
        earliest(places["delivered"], chunk.time_us[kinds["delivered"]], count)[finished],
        _lagged_us(chunk, places["published"], kinds["published"], count)[finished],
        _lagged_us(chunk, places["delivered"], kinds["delivered"], count)[finished],
    )
    yield from _outcomes(chunk, lives, questions, schema)
    yield _unfinished(chunk, kinds, rows[~finished[place]], schema)


class _Lives(NamedTuple):
    """Finished messages: the row of the publish, when it was to be sent, was confirmed, and was received first, and the lag in that."""

    rows: Ints
    intended_us: Ints
    confirmed_us: Ints
    received_us: Ints
    confirmed_lagged_us: Ints
    received_lagged_us: Ints


def _lagged_us(chunk: Chunk, place: Ints, rows: Ints, count: int) -> Ints:
    """Of each message the lag in its latency: of several events one alone shows it."""
    lagged_us = np.zeros(count, np.int64)
    np.maximum.at(lagged_us, place, chunk.micros(LAGGED)[rows])
    return lagged_us


def _outcomes(chunk: Chunk, lives: _Lives, questions: Sequence[Question], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
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


def _unfinished(chunk: Chunk, kinds: Mapping[str, Ints], rows: Ints, schema: pa.Schema) -> pa.RecordBatch:
    """A row for each event."""
    is_kind = {kind: np.isin(rows, members, assume_unique=True) for kind, members in kinds.items()}
    columns: dict[str, pa.Array | Ints] = {name: chunk.value(name, rows) for name in ("run_id", "subscription", "key")}
    columns["part"] = pa.repeat(UNFINISHED, len(rows))
    columns["seq"] = chunk.numbers("seq")[rows]
    columns["intended_us"] = times(np.where(is_kind["publish"], _intended_us(chunk, rows), NEVER_US))
    columns["confirmed_us"] = times(np.where(is_kind["published"], chunk.time_us[rows], NEVER_US))
    columns["received_us"] = times(np.where(is_kind["delivered"], chunk.time_us[rows], NEVER_US))
    lagged_us = chunk.micros(LAGGED)[rows]
    columns["confirmed_lagged_us"] = np.where(is_kind["published"], lagged_us, 0)
    columns["received_lagged_us"] = np.where(is_kind["delivered"], lagged_us, 0)
    columns["attempts"] = is_kind["publish"].astype(np.int64)
    columns["confirmed"] = is_kind["published"].astype(np.int64)
    columns["refused"] = np.logical_or.reduce([is_kind[kind] for kind in _UNPUBLISHED]).astype(np.int64)
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


# --- waits -------------------------------------------------------------------------------------------------------------------


def _waits(chunk: Chunk, limits_us: Mapping[str, int], schema: pa.Schema, *, several: bool) -> Iterator[pa.RecordBatch]:
    limits = np.array([limits_us.get(name, -1) for name in chunk.names("run_id").to_pylist()], np.int64)
    limit_us = limits[chunk.places("run_id")] if len(limits) else limits
    confirmed, acked = (rows[limit_us[rows] >= 0] for rows in (chunk.where("published"), chunk.where("acked")))
    rows = np.concatenate((confirmed, acked))
    if not len(rows):
        return
    over = np.zeros(len(rows), np.bool_) if several else _over(chunk, confirmed, acked, limit_us)
    rest = rows[~over]
    is_confirmed = np.arange(len(rows))[~over] < len(confirmed)
    columns: dict[str, pa.Array | Ints] = {name: chunk.value(name, rest) for name in ("run_id", "subscription", "key")}
    columns["part"] = pa.repeat(WAIT, len(rest))
    columns["message_id"] = chunk.column("message_id").take(pa.array(rest))
    columns["since_us"] = times(np.where(is_confirmed, chunk.time_us[rest], NEVER_US))
    columns["until_us"] = times(np.where(is_confirmed, NEVER_US, chunk.time_us[rest]))
    yield rows_of(schema, columns, len(rest))


def _over(chunk: Chunk, confirmed: Ints, acked: Ints, limit_us: Ints) -> Flags:
    """Of these rows, one after the other, whether they belong to a wait that is over and was not too long."""
    rows = np.concatenate((confirmed, acked))
    encoded = chunk.column("message_id").take(pa.array(rows)).dictionary_encode()
    message, count = encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)
    of_confirmed, of_acked = message[: len(confirmed)], message[len(confirmed) :]
    owner = np.full(count, -1)
    owner[of_confirmed] = chunk.owners[confirmed]
    ambiguous = np.zeros(count, np.bool_)  # one id for messages of two keys
    ambiguous[of_confirmed[owner[of_confirmed] != chunk.owners[confirmed]]] = True
    own = owner[of_acked] == chunk.owners[acked]
    since_us = earliest(of_confirmed, chunk.time_us[confirmed], count)
    until_us = earliest(of_acked[own], chunk.time_us[acked[own]], count)
    allowed_us = np.zeros(count, np.int64)
    allowed_us[of_confirmed] = limit_us[confirmed]
    known = (since_us != NEVER_US) & (until_us != NEVER_US) & ~ambiguous
    over = known & (np.where(known, until_us - np.where(known, since_us, 0), 0) <= allowed_us)
    return np.concatenate((over[of_confirmed], over[of_acked] & own))


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
