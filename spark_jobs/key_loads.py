"""Load of each key and each subscription of a day, from the table `messages`, and the keys that may be hot.

A key belongs to a subscription. In a stream of other publishers it belongs to the topic instead: each run that observes the stream has a
subscription of its own, and a message that several runs received counts once. There the service's publish time represents the publish and
its confirmation. A message waits from its confirmation until `waited_until` (`prober.sinks.history.messages`).

A hot key meets one of these conditions, so only few keys must be examined minute by minute:

* `busy`: in one hour so many bytes that half of the documented limit may have been reached in a minute of it.
* `large`: among the few keys with most messages (`is_large` decides).
* `waiting`: the sum of its waits permits a wait of ten minutes, and either its messages waited for five seconds on average, or one was
  never acknowledged. Only runs of ten minutes or more count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from prober.slo.hot_keys import LIMIT_BYTES_PER_S, SHARE_MIN, is_large
from prober.slo.objectives import MICROS
from spark_jobs.history import run_hash

PLACE: Final = ("target", "environment", "region", "topic", "subscription")
HOUR_US: Final = 3600 * MICROS
BUSY_BYTES: Final = 0.5 * LIMIT_BYTES_PER_S * 60.0
WAITING_S: Final = 540.0
"""Minimum wait of a message that waits at the ends of ten minutes in succession, in seconds."""
WAIT_MEAN_S: Final = 5.0
RANKED_MAX: Final = 1000
SUMS: Final = ("publishes", "confirmed", "deliveries", "first_deliveries", "acks", "bytes")
KeyLoads = Mapping[tuple[int, str], Mapping[str, Any]]


def places_of(runs: DataFrame) -> DataFrame:
    """Return the subscriptions and streams of the runs with their numbers: `place` and the columns `PLACE`.

    observed   whether other publishers use the topic, so that no publishes are recorded.
    """
    rules = sf.from_json("rules", "map<string, struct<publishes_recorded: boolean>>")
    recorded = sf.coalesce(sf.try_element_at(rules, sf.col("subscription"))["publishes_recorded"], sf.lit(True))
    each = runs.withColumn("subscription", sf.explode("subscriptions")).withColumn("observed", ~recorded)
    named = each.withColumn("subscription", sf.when(sf.col("observed"), sf.col("topic")).otherwise(sf.col("subscription")))
    return named.select(*PLACE, "observed").distinct().withColumn("place", place_hash("subscription"))


def place_hash(subscription: Column | str) -> Column:
    """Return a subscription, or the topic of a stream in place of it, as a number."""
    return sf.xxhash64("target", "topic", subscription)


def lives(messages: DataFrame, runs: DataFrame) -> DataFrame:
    """Return the values that classify hot keys, for each message. Times are microseconds since 1970, null if unknown.

    place, key             subscription or stream, and key of the message.
    publishes, confirmed   number of its publishes and confirmations. bytes: of all its publishes.
    published_us           first publish.
    since_us, until_us     its wait, which is unknown if its run was cut short. end_us, length_us: of its run.
    received_us, acked_us  first delivery and acknowledgement. deliveries, redeliveries, subscriber_changes: as in the table.
    """
    others = sf.col("epoch").isNull()
    received_us, published_us = sf.unix_micros("received_at"), sf.unix_micros("published_at")
    published_us = sf.when(others, sf.coalesce(published_us, received_us)).otherwise(published_us)
    publishes = sf.when(others, 1).otherwise(sf.col("attempts"))
    ended = runs.where(sf.col("ended_us").isNotNull())
    about = ended.select("run", sf.col("ended_us").alias("end_us"), (sf.col("ended_us") - sf.col("began_us")).alias("length_us"))
    rows = messages.select(
        run_hash().alias("run"),
        place_hash(sf.when(others, sf.col("topic")).otherwise(sf.col("subscription"))).alias("place"),
        sf.when(others, sf.col("message_id")).alias("observed_id"),
        "key",
        publishes.alias("publishes"),
        sf.when(others, 1).otherwise(sf.col("confirmed")).alias("confirmed"),
        (sf.coalesce("bytes", sf.lit(0)) * publishes).alias("bytes"),
        published_us.alias("published_us"),
        sf.when(others, published_us).otherwise(sf.unix_micros("confirmed_at")).alias("since_us"),
        sf.unix_micros("waited_until").alias("until_us"),
        received_us.alias("received_us"),
        sf.unix_micros("acked_at").alias("acked_us"),
        "deliveries",
        "redeliveries",
        "subscriber_changes",
    )
    return _each_once(rows, runs).join(sf.broadcast(about), "run", "left")


def _each_once(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Return one row per message: of a stream that several runs received, the row of the first receiver."""
    if places_of(runs).where("observed").isEmpty():
        return rows
    observed = rows.where("observed_id IS NOT NULL").groupBy("place", "key", "observed_id")
    once = observed.agg(sf.min_by(sf.struct("*"), sf.struct("received_us", "run")).alias("row")).select("row.*")
    return rows.where("observed_id IS NULL").unionByName(once)


def key_loads(rows: DataFrame) -> DataFrame:
    """Add up rows of `lives` by subscription and key: `SUMS`, `peak_bytes` of the busiest hour, and `waited_s` of all messages.

    Waits in runs of less than ten minutes are not counted.
    """
    is_long = sf.col("length_us") >= WAITING_S * MICROS
    waited_us = sf.when(is_long & (sf.col("until_us") > sf.col("since_us")), sf.col("until_us") - sf.col("since_us"))
    hourly = rows.groupBy("place", "key", sf.floor(sf.col("published_us") / HOUR_US).alias("hour")).agg(
        *(sf.sum(name).alias(name) for name in ("publishes", "confirmed", "deliveries", "bytes")),
        sf.count("received_us").alias("first_deliveries"),
        sf.count("acked_us").alias("acks"),
        sf.sum(waited_us).alias("waited_us"),
    )
    return hourly.groupBy("place", "key").agg(
        *(sf.sum(name).alias(name) for name in SUMS),
        sf.max("bytes").alias("peak_bytes"),
        (sf.coalesce(sf.sum("waited_us"), sf.lit(0)) / MICROS).alias("waited_s"),
    )


def outstanding(loads: DataFrame, candidates_max: int) -> DataFrame:
    """Return a row per subscription: its totals, the distribution of messages over keys, and the keys that may be hot.

    keys, messages, total_bytes   totals.
    median, p90, p99   quantiles of the number of messages per key (KLL sketch).
    ranked      messages of the largest keys, the largest first.
    busy, large, waiting   rows of `key_loads`, at most `candidates_max` each; `left_out` is the number of further busy or waiting keys.
    """
    row = sf.struct("key", *SUMS)
    busy = sf.col("peak_bytes") >= BUSY_BYTES
    slow = (sf.col("waited_s") >= WAIT_MEAN_S * sf.col("confirmed")) | (sf.col("acks") < sf.col("confirmed"))
    waiting = (sf.col("waited_s") >= WAITING_S) & slow
    sketch = sf.kll_sketch_agg_bigint("publishes")
    left_out = [sf.greatest(sf.count_if(condition) - candidates_max, sf.lit(0)) for condition in (busy, waiting)]
    return loads.groupBy("place").agg(
        sf.count("*").alias("keys"),
        sf.sum("publishes").alias("messages"),
        sf.sum("bytes").alias("total_bytes"),
        *(
            sf.kll_sketch_get_quantile_bigint(sketch, sf.lit(rank)).alias(name)
            for name, rank in (("median", 0.5), ("p90", 0.9), ("p99", 0.99))
        ),
        sf.max_by("publishes", "publishes", RANKED_MAX).alias("ranked"),
        sf.max_by(row, sf.when(busy, sf.col("peak_bytes")), candidates_max).alias("busy"),
        sf.max_by(row, sf.col("publishes"), int(1 / SHARE_MIN)).alias("large"),
        sf.max_by(row, sf.when(waiting, sf.col("waited_s")), candidates_max).alias("waiting"),
        (left_out[0] + left_out[1]).alias("left_out"),
    )


def sketched(rows: DataFrame, candidates_max: int, tracked: int) -> DataFrame:
    """Return the columns of `outstanding`, approximately, from sketches of constant size instead of counts per key.

    A large key is found if it has more than about 1.33 / `tracked` of the messages; all large keys are `busy`, so that they are examined
    minute by minute. Waiting keys cannot be found this way; findings name the stalled ones.
    """
    totals = (
        rows.where(sf.col("publishes") > 0)
        .groupBy("place")
        .agg(
            sf.approx_count_distinct("key").alias("keys"),
            sf.sum("publishes").alias("messages"),
            sf.sum("bytes").alias("total_bytes"),
            sf.expr(f"approx_top_k(key, {min(RANKED_MAX, tracked)}, {tracked})").alias("top"),
        )
    )
    largest = sf.transform(
        sf.slice("top", 1, candidates_max),
        lambda one: sf.struct(
            one["item"].alias("key"), *((one["count"] if name == "publishes" else sf.lit(0)).alias(name) for name in SUMS)
        ),
    )
    return totals.select(
        "place",
        "keys",
        "messages",
        "total_bytes",
        *(sf.lit(None).cast("long").alias(name) for name in ("median", "p90", "p99")),
        sf.transform("top", lambda one: one["count"]).alias("ranked"),
        largest.alias("busy"),
        *(sf.slice(largest, 1, 0).alias(name) for name in ("large", "waiting")),
        sf.lit(0).alias("left_out"),
    )


def candidates(rows: Iterable[Mapping[str, Any]]) -> set[tuple[int, str]]:
    """Return the keys that may be hot by more than their share, by place and key, from rows of `outstanding` or `sketched`."""
    return {(row["place"], load["key"]) for row in rows for why in ("busy", "waiting") for load in row[why] or ()}


def large_keys(rows: Iterable[Mapping[str, Any]]) -> KeyLoads:
    """Return the keys with far more messages than the others, by place and key with their loads."""
    return {
        (row["place"], load["key"]): load
        for row in rows
        for load in row["large"] or ()
        if is_large(load["publishes"] / max(1, row["messages"]), row["keys"])
    }
