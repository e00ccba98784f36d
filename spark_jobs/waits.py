"""How long messages wait: minutes in which the oldest was too old, minutes in which a key stood still, and how long redeliveries took.

A message waits from its confirmation until it is acknowledged first; one that is not, until its run ends, since nothing is known from
then on. A minute counts if a run was going on at any time of it. In a run that is shorter than what is asked about nothing can have
waited so long, so its events are not looked at; of one that was cut short nobody knows.

* `oldest_unacked_message_age`: a minute of a subscription is bad if at its end, or that of the run, a message had waited longer than the
  threshold.
* `stalled_keys`: a minute of a key is bad if at its end, or that of the run, a message had waited longer than the run's delivery deadline
  and nothing of the key had been received or acknowledged for as long.

Online, both are sampled once a minute by the same definition (`prober.slo.indicators`), between runs too.

A redelivery took from the refusal, or the end of the lease that was set last, to the next receipt of the message. A receipt
before that has another cause, such as a stream that broke, and does not count; neither does one after an acknowledgement. That nothing
came again at all is no latency: liveness findings say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from prober.sinks.history.schema import LAGGED
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective
from spark_jobs.counts import COUNTS, doubtful
from spark_jobs.frames import collected, frame_of
from spark_jobs.history import MINUTE_US, Events, micros, run_hash
from spark_jobs.messages import addressed
from spark_jobs.scan import Chunk, Ints, numbered, rows_of
from spark_jobs.waiting import WAIT, Limit

_ENDLESS_US: Final = 2**62
_FEW_KEYS: Final = 1000
_PLACE: Final = ("run", "subscription", "key")
_MOVED_COLUMNS: Final = ("event", "subscription", "key", "run_id", "time")
_MOVED: Final = "run_id string, subscription string, key string, minute long, moved_us long"
_MOVED_SCHEMA: Final = pa.schema(
    [(name, pa.string()) for name in ("run_id", "subscription", "key")] + [(name, pa.int64()) for name in ("minute", "moved_us")]
)
_MOVEMENTS: Final = "run long, subscription string, key string, minute long, moved_us long"


def long_runs(runs: DataFrame, objectives: Iterable[Objective]) -> DataFrame:
    """The runs in which something can have waited too long for any of the objectives, with how long that is: `limit_us`."""
    limits = [one.threshold_us for one in objectives if one.indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE]
    stalls = any(one.indicator is Indicator.STALLED_KEYS for one in objectives)
    limit_us = sf.least(*map(sf.lit, [*limits, _ENDLESS_US, _ENDLESS_US]), deadline_us() if stalls else sf.lit(_ENDLESS_US))
    return runs.withColumn("limit_us", limit_us).where(sf.col("ended_us") - sf.col("began_us") > sf.col("limit_us"))


def limits_of(runs: DataFrame, objectives: Iterable[Objective]) -> dict[str, Limit]:
    """The same for executors."""
    asked = list(objectives)
    ages_us = [one.threshold_us for one in asked if one.indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE]
    rows = collected(long_runs(runs, asked).select("run_id", "limit_us", "ended_us", deadline_us().alias("deadline_us")))
    return {row["run_id"]: Limit(row["limit_us"], row["ended_us"], (*ages_us, row["deadline_us"])) for row in rows}


def long_waits(parts: DataFrame, runs: DataFrame, objectives: Iterable[Objective], *, several: bool) -> DataFrame:
    """Messages that waited long enough for any of the objectives: run, subscription, key, since_us, until_us, end_us.

    parts   rows of `spark_jobs.messages`, which say nothing of runs that are not `long_runs`.
    """
    each = addressed(parts.where(sf.col("part") == WAIT), runs, several=several)
    waits = each.groupBy(*_PLACE, "message_id").agg(sf.min("since_us").alias("since_us"), sf.min("until_us").alias("acked_us"))
    about = long_runs(runs, objectives).select("run", "ended_us", "limit_us", sf.col("subscription").alias("only"))
    return (
        waits.where(sf.col("since_us").isNotNull())
        .join(sf.broadcast(about), "run")
        .withColumn("until_us", sf.least(sf.coalesce("acked_us", "ended_us"), "ended_us"))
        .where(sf.col("until_us") - sf.col("since_us") > sf.col("limit_us"))
        .select(
            "run",
            sf.coalesce("subscription", "only").alias("subscription"),
            "key",
            "since_us",
            "until_us",
            sf.col("ended_us").alias("end_us"),
        )
    )


def age_counts(waits: DataFrame, runs: DataFrame, objective: Objective) -> DataFrame:
    """Minutes of each subscription, by whether something had waited too long; of a bad one with the key of the oldest message."""
    limit_us = objective.threshold_us
    late = waits.where(sf.col("until_us") - sf.col("since_us") > limit_us)
    # Waits that become too long in the same minute cover together what the longest of them covers.
    spans = late.groupBy("run", "subscription", _minute(sf.col("since_us") + limit_us).alias("first")).agg(
        sf.max(_last_minute()).alias("last"), sf.min(sf.struct("since_us", "key")).alias("oldest")
    )
    bad_minutes = minutes_of(spans.where("first <= last"), "run", "subscription")
    watched = watched_minutes(runs).join(bad_minutes, ["run", "subscription", "minute"], "left")
    slices = watched.groupBy("subscription", "minute").agg(
        sf.max("run").alias("run"),
        sf.bool_or("trusted").alias("known"),
        sf.min(sf.when(sf.col("trusted"), sf.col("oldest"))).alias("oldest"),
    )
    bad = sf.col("oldest").isNotNull()
    return _counts(slices.withColumn("key", sf.col("oldest.key")), objective, ~bad & sf.col("known"), bad, ~bad & ~sf.col("known"))


def stall_counts(stalled: DataFrame, runs: DataFrame, objective: Objective) -> DataFrame:
    """Minutes of each key, by whether it stood still: a row per bad one, the first of which counts the good ones of the minute too."""
    watched = watched_minutes(runs)
    bad = (
        watched.where("trusted").join(stalled, ["run", "subscription", "minute"]).select("subscription", "minute", "key").distinct()
    )
    totals = watched.groupBy("subscription", "minute").agg(
        sf.max("run").alias("run"),
        sf.bool_or("trusted").alias("known"),
        sf.max(sf.coalesce("keys", sf.lit(1))).alias("keys"),
    )
    minute = Window.partitionBy("subscription", "minute")
    rows = totals.join(bad, ["subscription", "minute"], "left").select(
        "*", sf.count("key").over(minute).alias("stalled"), sf.row_number().over(minute.orderBy("key")).alias("place")
    )
    rest = sf.when(sf.col("place") == 1, sf.greatest(sf.col("keys") - sf.col("stalled"), sf.lit(0))).otherwise(0)
    known = sf.col("known")
    is_bad = sf.col("key").isNotNull()
    return _counts(rows, objective, sf.when(known, rest).otherwise(0), is_bad, sf.when(known, 0).otherwise(rest))


def stalled_minutes(events: Events, waits: DataFrame, runs: DataFrame) -> DataFrame:
    """The minutes at whose end a key stood still: run, subscription, key, minute."""
    limits = sf.broadcast(runs.select("run", deadline_us().alias("limit_us")))
    late = waits.join(limits, "run").where(sf.col("until_us") - sf.col("since_us") > sf.col("limit_us"))
    spans = late.groupBy(*_PLACE, "end_us", "limit_us", _minute(sf.col("since_us") + sf.col("limit_us")).alias("first")).agg(
        sf.max(_last_minute()).alias("last")
    )
    overdue = minutes_of(spans.where("first <= last"), *_PLACE).withColumn(
        "mark_us", sf.least((sf.col("minute") + 1) * MINUTE_US, sf.col("end_us"))
    )
    so_far = Window.partitionBy(*_PLACE).orderBy("minute").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    along = overdue.unionByName(_movements(events, overdue), allowMissingColumns=True)
    moved = along.withColumn("moved_us", sf.max("moved_us").over(so_far)).where(sf.col("mark_us").isNotNull())
    still = sf.col("moved_us").isNull() | (sf.col("mark_us") - sf.col("moved_us") > sf.col("limit_us"))
    return moved.where(still).select(*_PLACE, "minute")


def minutes_of(spans: DataFrame, *place: str) -> DataFrame:
    """Spans from minute `first` to `last` as a row per place and `minute`, from the span that began first of those that hold it.

    However many spans there are, a place has no more rows than minutes.
    """
    in_order = Window.partitionBy(*place).orderBy("first", sf.desc("last"))
    before = sf.max("last").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    alone = spans.withColumn("first", sf.greatest(sf.col("first"), before + 1)).where("first <= last")
    return alone.select("*", sf.explode(sf.sequence("first", "last")).alias("minute")).drop("first", "last")


def watched_minutes(runs: DataFrame) -> DataFrame:
    """The minutes in which runs went on: run, subscription, minute, keys, and whether anything of it is known (`trusted`)."""
    end_us = sf.coalesce("ended_us", "began_us")
    minutes = sf.explode(sf.sequence(_minute(sf.col("began_us")), sf.greatest(_minute(end_us), _minute(sf.col("began_us")))))
    trusted = sf.col("trusted") & sf.col("ended_us").isNotNull()
    each = runs.select("run", "keys", trusted.alias("trusted"), minutes.alias("minute"), "subscriptions")
    return each.select("run", "keys", "trusted", "minute", sf.explode("subscriptions").alias("subscription"))


def deadline_us() -> Column:
    """The delivery deadline of a run's first subscription, without end if it has none."""
    rules = sf.try_element_at(sf.map_values(sf.from_json("rules", "map<string,string>")), sf.lit(1))
    return sf.coalesce(micros(sf.get_json_object(rules, "$.delivery_deadline_s").cast("double")), sf.lit(_ENDLESS_US))


def _movements(events: Events, keys: DataFrame) -> DataFrame:
    """The latest receipt or acknowledgement of these keys in every minute."""
    places = sf.broadcast(keys.select(*_PLACE).distinct())
    few = [row.key for row in keys.select("key").distinct().limit(_FEW_KEYS + 1).collect()]
    if not few:
        return frame_of(keys.sparkSession, (), _MOVEMENTS)
    # Of few keys files need not be read as a whole, since they are sorted by key.
    if len(few) <= _FEW_KEYS:
        rows = events.scan.reduced_keys(_moved, _MOVED_COLUMNS, _MOVED, few)
    else:
        rows = events.scan.reduced(_moved, _MOVED_COLUMNS, _MOVED)
    own = rows.withColumn("run", run_hash()).join(places, list(_PLACE), "left_semi")
    return own.groupBy(*_PLACE, "minute").agg(sf.max("moved_us").alias("moved_us"))


def _moved(chunk: Chunk) -> Iterator[pa.RecordBatch]:
    """The reduction of events to the latest receipt or acknowledgement of each key of a subscription in every minute."""
    rows = chunk.where("delivered", "acked") if len(chunk) else np.zeros(0, np.int64)
    if not len(rows):
        return
    owner = chunk.owners[rows] * (len(chunk.names("subscription")) + 1) + chunk.places("subscription")[rows] + 1
    place, count = numbered(owner, chunk.time_us[rows] // MINUTE_US)
    latest = np.full(count, -1)
    order = np.argsort(chunk.time_us[rows], kind="stable")
    latest[place[order]] = rows[order]
    latest = latest[latest >= 0]
    columns: dict[str, pa.Array | Ints] = {name: chunk.value(name, latest) for name in ("run_id", "subscription", "key")}
    columns |= {"minute": chunk.time_us[latest] // MINUTE_US, "moved_us": chunk.time_us[latest]}
    yield rows_of(_MOVED_SCHEMA, columns, len(latest))


def _counts(slices: DataFrame, objective: Objective, good: Column, bad: Column, undecided: Column) -> DataFrame:
    numbers = {"good": good, "bad": bad, "undecided": undecided}
    named = slices.withColumns(
        {name: column.cast("long") for name, column in numbers.items()} | {"objective": sf.lit(objective.name)}
    )
    return named.select(*COUNTS).where(sf.col("good") + sf.col("bad") + sf.col("undecided") > 0)


def _minute(time_us: Column) -> Column:
    return sf.floor(time_us / MINUTE_US)


def _last_minute() -> Column:
    """The last minute at whose end a wait goes on; a wait that ends with its run goes on at the end of that minute."""
    until = _minute(sf.col("until_us"))
    return sf.when(sf.col("until_us") == sf.col("end_us"), until).otherwise(until - 1)


# --- redeliveries ------------------------------------------------------------------------------------------------------------


def redelivery_counts(
    events: Events, runs: DataFrame, objectives: Iterable[Objective], since_us: int, until_us: int
) -> list[DataFrame]:
    """What redeliveries that became due in that time count, one frame for each objective about them; columns as in `counts`.

    Of a run with several subscriptions those of the first one count, as online.
    """
    listed = [objective for objective in objectives if objective.indicator is Indicator.REDELIVERY_LATENCY]
    if not listed:
        return []
    rows = redeliveries(events.rows).where(sf.col("due_us").between(since_us, until_us - 1))
    known = sf.broadcast(runs.select("run", "complete", sf.col("subscription").alias("first")))
    about = rows.join(known, "run", "left").where(sf.coalesce(sf.col("subscription") == sf.col("first"), sf.lit(True)))
    return [_redelivered(about, objective, listed) for objective in listed]


def redeliveries(events: DataFrame) -> DataFrame:
    """Receipts of a run's own messages that a refusal or the end of a lease preceded.

    run, subscription, key, due_us, received_us, and for how long of the time between the prober lagged: lagged_us.
    """
    answering = events.where(sf.col("event").isin("nacked", "lease_modified", "delivered", "acked")).withColumn("run", run_hash())
    message = ["run", "subscription", "key", "message_id"]
    refused = answering.where(sf.col("event").isin("nacked", "lease_modified")).select(*message).distinct()
    in_order = Window.partitionBy(*message).orderBy("number")
    time_us = sf.unix_micros("time")
    due_us = sf.when(sf.col("event") == "nacked", time_us).when(
        sf.col("event") == "lease_modified", time_us + micros(sf.col("seconds"))
    )
    own = sf.col("epoch") == sf.col("run_id")
    sequence = answering.join(refused, message, "left_semi").select(
        *message,
        "event",
        own.alias("own"),
        time_us.alias("received_us"),
        micros(sf.col(LAGGED)).alias("lagged_us"),
        sf.lag(due_us).over(in_order).alias("due_us"),
    )
    again = (sf.col("event") == "delivered") & sf.col("own") & (sf.col("due_us") <= sf.col("received_us"))
    return sequence.where(again).drop("event", "message_id", "own")


def _redelivered(rows: DataFrame, objective: Objective, listed: Iterable[Objective]) -> DataFrame:
    took_us = sf.col("received_us") - sf.col("due_us")
    known = sf.coalesce("complete", sf.lit(False)) & ~doubtful(objective, listed, took_us, sf.col("lagged_us"))
    late = took_us > objective.threshold_us
    state = rows.select(
        "run",
        "subscription",
        sf.floor(sf.col("due_us") / MINUTE_US).alias("minute"),
        sf.when(late & known, sf.col("key")).alias("key"),
        sf.lit(objective.name).alias("objective"),
        (known & ~late).cast("long").alias("good"),
        (known & late).cast("long").alias("bad"),
        (~known).cast("long").alias("undecided"),
    )
    names = ("run", "subscription", "minute", "key", "objective")
    return state.groupBy(*names).agg(*(sf.sum(name).alias(name) for name in ("good", "bad", "undecided"))).select(*COUNTS)
