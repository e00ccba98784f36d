"""Minutes with a message that is too old, or with a stalled key.

Both follow from the waits in the table `messages`.

A confirmed message waits while it is pending, at the latest until its run ends (`prober.sinks.history.messages`). A minute counts if a run
was active in it, by the messages that wait at its end or at the end of the run:

* `oldest_unacked_message_age`: a minute of a subscription is bad if a message has waited longer than the threshold.
* `stalled_keys`: a minute of a key is bad if a message has waited longer than the delivery deadline of its run, and no message of the key
  was received or acknowledged during that time.

The minutes of a run that was cut short are undecided, since the wait of its messages is unknown. A live prober samples both indicators once
a minute, between runs too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective
from spark_jobs.history import MINUTE_US, micros, run_hash
from spark_jobs.slo_counts import OutcomeColumns, exploded

SAMPLED: Final = frozenset({Indicator.OLDEST_UNACKED_MESSAGE_AGE, Indicator.STALLED_KEYS})
_NEVER_US: Final = 2**62
_PLACE: Final = ("run", "subscription", "key")


def long_waits(messages: DataFrame, runs: DataFrame, objectives: Iterable[Objective]) -> DataFrame:
    """Return the waits that are too long for any objective: run, subscription, key, since_us, until_us, end_us, deadline_us.

    Times are microseconds since 1970; `end_us` is the end of the run, `deadline_us` its delivery deadline.
    """
    asked = [one for one in objectives if one.indicator in SAMPLED]
    limits = [sf.lit(one.threshold_us) if one.threshold_s is not None else sf.col("deadline_us") for one in asked]
    limit_us = sf.least(*limits, sf.lit(_NEVER_US), sf.lit(_NEVER_US))
    ended = runs.where(sf.col("ended_us").isNotNull())
    about = ended.select("run", sf.col("ended_us").alias("end_us"), _deadline_us().alias("deadline_us")).withColumn(
        "limit_us", limit_us
    )
    waits = messages.where(sf.col("confirmed_at").isNotNull() & sf.col("waited_until").isNotNull()).select(
        run_hash().alias("run"),
        "subscription",
        "key",
        sf.unix_micros("confirmed_at").alias("since_us"),
        sf.unix_micros("waited_until").alias("until_us"),
    )
    found = waits.join(sf.broadcast(about), "run").where(sf.col("until_us") - sf.col("since_us") > sf.col("limit_us"))
    return found.drop("limit_us")


def sampled_counts(
    messages: DataFrame, waits: DataFrame, runs: DataFrame, objectives: Sequence[Objective], since_us: int, until_us: int
) -> list[DataFrame]:
    """Count the minutes of a period, microseconds since 1970, for each sampled objective; `waits` as in `long_waits`."""
    minutes = (since_us // MINUTE_US, until_us // MINUTE_US - 1)
    watched = _watched_minutes(runs).where(sf.col("minute").between(*minutes))
    counts = []
    for one in objectives:
        if one.indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE:
            counts.append(_age_counts(watched, waits, one))
        elif one.indicator is Indicator.STALLED_KEYS:
            counts.append(_stall_counts(watched, _stalled_minutes(messages, waits), one))
    return counts


def _age_counts(watched: DataFrame, waits: DataFrame, objective: Objective) -> DataFrame:
    """Count the minutes of each subscription; a bad one has the key of the oldest message."""
    late = minutes_of(_too_long(waits, sf.lit(objective.threshold_us), "run", "subscription"), "run", "subscription")
    slices = (
        watched.join(late, ["run", "subscription", "minute"], "left")
        .groupBy("subscription", "minute")
        .agg(
            sf.max("run").alias("run"),
            sf.bool_or("known").alias("known"),
            sf.min(sf.when(sf.col("known"), sf.col("oldest"))).alias("oldest"),
        )
    )
    bad = sf.col("oldest").isNotNull()
    outcome = OutcomeColumns(objective, ~bad & sf.col("known"), bad, ~bad & ~sf.col("known"))
    return exploded(slices.withColumn("key", sf.col("oldest.key")), [outcome])


def _stall_counts(watched: DataFrame, stalled: DataFrame, objective: Objective) -> DataFrame:
    """Count the minutes of each key: a row for each bad one, the first of which counts the other keys of the minute too."""
    bad = watched.where("known").join(stalled, ["run", "subscription", "minute"]).select("subscription", "minute", "key").distinct()
    totals = watched.groupBy("subscription", "minute").agg(
        sf.max("run").alias("run"),
        sf.bool_or("known").alias("known"),
        sf.max(sf.coalesce("keys", sf.lit(1))).alias("keys"),
    )
    minute = Window.partitionBy("subscription", "minute")
    rows = totals.join(bad, ["subscription", "minute"], "left").select(
        "*", sf.count("key").over(minute).alias("stalled"), sf.row_number().over(minute.orderBy("key")).alias("place")
    )
    others = sf.when(sf.col("place") == 1, sf.greatest(sf.col("keys") - sf.col("stalled"), sf.lit(0))).otherwise(0)
    good, undecided = sf.when(sf.col("known"), others).otherwise(0), sf.when(sf.col("known"), 0).otherwise(others)
    return exploded(rows, [OutcomeColumns(objective, good, sf.col("key").isNotNull(), undecided)])


def _stalled_minutes(messages: DataFrame, waits: DataFrame) -> DataFrame:
    """Return the minutes with a stalled key at their end: run, subscription, key, minute."""
    about = (*_PLACE, "end_us", "deadline_us")
    overdue = minutes_of(_too_long(waits, sf.col("deadline_us"), *about), *about).withColumn(
        "mark_us", sf.least((sf.col("minute") + 1) * MINUTE_US, sf.col("end_us"))
    )
    so_far = Window.partitionBy(*_PLACE).orderBy("minute").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    along = overdue.unionByName(_movements(messages, overdue), allowMissingColumns=True)
    moved = along.withColumn("moved_us", sf.max("moved_us").over(so_far)).where(sf.col("mark_us").isNotNull())
    still = sf.col("moved_us").isNull() | (sf.col("mark_us") - sf.col("moved_us") > sf.col("deadline_us"))
    return moved.where(still).select(*_PLACE, "minute")


def _movements(messages: DataFrame, keys: DataFrame) -> DataFrame:
    """Return the last receipt or first acknowledgement of a message of these keys in each minute: `moved_us`."""
    again = sf.coalesce(sf.col("redeliveries.received_at"), sf.array().cast("array<timestamp>"))
    moves = sf.explode(sf.concat(sf.array("received_at", "acked_at"), again)).alias("moved_at")
    rows = messages.withColumn("run", run_hash()).join(sf.broadcast(keys.select(*_PLACE).distinct()), list(_PLACE), "left_semi")
    moved = rows.select(*_PLACE, moves).select(*_PLACE, sf.unix_micros("moved_at").alias("moved_us"))
    return (
        moved.where("moved_us IS NOT NULL")
        .groupBy(*_PLACE, sf.floor(sf.col("moved_us") / MINUTE_US).alias("minute"))
        .agg(sf.max("moved_us").alias("moved_us"))
    )


def _too_long(waits: DataFrame, limit_us: Column, *place: str) -> DataFrame:
    """Return the spans of minutes, `first` to `last`, with a wait above a limit at a place, and the `oldest` message."""
    late = waits.where(sf.col("until_us") - sf.col("since_us") > limit_us)
    spans = late.groupBy(*place, sf.floor((sf.col("since_us") + limit_us) / MINUTE_US).alias("first"))
    return spans.agg(sf.max(last_minute()).alias("last"), sf.min(sf.struct("since_us", "key")).alias("oldest"))


def last_minute() -> Column:
    """Return the last minute at whose end a message waits; for a wait until the end of the run, the minute of that end."""
    until = sf.floor(sf.col("until_us") / MINUTE_US)
    return sf.when(sf.col("until_us") >= sf.col("end_us"), until).otherwise(until - 1)


def minutes_of(spans: DataFrame, *place: str) -> DataFrame:
    """Divide spans from minute `first` to `last` into minutes: a row for each place and `minute`.

    The span with the smallest `oldest` represents a minute, so a place has no more rows than minutes. Spans that start earlier must have a
    smaller `oldest`.
    """
    in_order = Window.partitionBy(*place).orderBy("first", "oldest")
    before = sf.max("last").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    alone = spans.where("first <= last").withColumn("first", sf.greatest(sf.col("first"), before + 1)).where("first <= last")
    return alone.select("*", sf.explode(sf.sequence("first", "last")).alias("minute")).drop("first", "last")


def _watched_minutes(runs: DataFrame) -> DataFrame:
    """Return the minutes in which runs were active: run, subscription, minute, keys, and whether the waits in it are `known`.

    They are unknown if the run was cut short, or the prober failed or paused.
    """
    first = sf.floor(sf.col("began_us") / MINUTE_US)
    last = sf.greatest(sf.floor(sf.coalesce("ended_us", "began_us") / MINUTE_US), first)
    known = (sf.col("trusted") & sf.col("ended_us").isNotNull()).alias("known")
    minutes = runs.select("run", "keys", known, "subscriptions", sf.explode(sf.sequence(first, last)).alias("minute"))
    return minutes.select("run", "keys", "known", "minute", sf.explode("subscriptions").alias("subscription"))


def _deadline_us() -> Column:
    """Return the delivery deadline of a run's first subscription, in microseconds; without one a time that never passes."""
    rules = sf.try_element_at(sf.map_values(sf.from_json("rules", "map<string,string>")), sf.lit(1))
    return sf.coalesce(micros(sf.get_json_object(rules, "$.delivery_deadline_s").cast("double")), sf.lit(_NEVER_US))
