"""What every key carries on a day: one row per subscription and key, and of each subscription what stands out.

Executors count file by file (`loads_of`), Spark adds up. Memory does not grow with the number of keys: Spark's aggregation spills
to the disk, and what reaches the driver is bounded.

Of a stream that others publish nobody records the publishes. There the first delivery of a message stands for its publish and its
confirmation: at its publish time, with the size of its data.

Which keys may be hot is decided here, by conditions that a hot key cannot fail to meet:

* `busy`: so many bytes in one hour that in a minute of it half of the documented limit may have been reached.
* `large`: among the few keys with most messages, and with so many as `is_large` says.
* `waiting`: its messages waited together so long that one of them may have waited for ten minutes, and either each of them waited for five
  seconds on average, or one was never acknowledged. By Little's law the sum of the waits is that of the times of acknowledgement less
  that of the times of confirmation, so that no single message has to be looked at. Only runs that took ten minutes are looked at; what is
  never acknowledged waits until its run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from prober.slo.hot_keys import LIMIT_BYTES_PER_S, SHARE_MIN, is_large
from prober.slo.objectives import MICROS
from spark_jobs.history import run_hash
from spark_jobs.scan import Chunk, Ints, Scan, numbered, rows_of

# --- what executors count ----------------------------------------------------------------------------------------------------


HOUR_US: Final = 3600 * MICROS
NANOS_PER_MICRO: Final = 1000
UNRECORDED: Final = -1
"""Stands for a size or time that was not recorded."""
COUNTED: Final[Mapping[str, str]] = {
    "publishes": "publish",
    "confirmed": "published",
    "deliveries": "delivered",
    "acks": "acked",
    "nacks": "nacked",
}
"""What is counted of a key, by the event that counts."""
LOAD_COLUMNS: Final = ("event", "subscription", "key", "run_id", "time", "message_bytes")
OBSERVED_COLUMNS: Final = ("message_id", "publish_time_ns")
"""What is read beside them where others publish. Ids are different for each message, so that reading them costs as much as the rest."""
LOADS: Final = (
    "run_id string, subscription string, key string, hour long, publishes long, confirmed long, deliveries long, acks long, "
    "nacks long, bytes long, confirmed_us long, acked_us long"
)
"""Sums of one key, run and hour; `confirmed_us` and `acked_us` are the sums of the times of confirmations and acknowledgements, since
the time that was given to `loads_of`."""

_LOADS: Final = pa.schema(
    [(name, pa.string()) for name in ("run_id", "subscription", "key")]
    + [(name, pa.int64()) for name in ("hour", *COUNTED, "bytes", "confirmed_us", "acked_us")]
)


def loads_of(since_us: int, *, observed: bool) -> Callable[[Chunk], Iterator[pa.RecordBatch]]:
    """The reduction of events to `LOADS`. `observed`: whether others publish anything."""

    def reduce(chunk: Chunk) -> Iterator[pa.RecordBatch]:
        if not len(chunk):
            return
        if observed:
            yield from _observed(chunk, since_us)
        hours = chunk.time_us // HOUR_US
        later = np.flatnonzero(hours[1:] != hours[:-1]) + 1
        starts = np.union1d(chunk.segments("subscription", "key", "run_id"), later)
        stretch = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(chunk))))
        columns: dict[str, pa.Array | Ints] = {name: chunk.value(name, starts) for name in ("run_id", "subscription", "key")}
        columns["hour"] = hours[starts]
        for name, kind in COUNTED.items():
            rows = chunk.where(kind)
            columns[name] = np.bincount(stretch[rows], minlength=len(starts))
            if kind == "publish":
                columns["bytes"] = _sums(stretch[rows], chunk.numbers("message_bytes")[rows], len(starts))
            if kind in ("published", "acked"):
                total = _sums(stretch[rows], chunk.time_us[rows] - since_us, len(starts))
                columns["confirmed_us" if kind == "published" else "acked_us"] = total
        yield rows_of(_LOADS, columns, len(starts))

    return reduce


def _observed(chunk: Chunk, since_us: int) -> Iterator[pa.RecordBatch]:
    """What others published, by the first deliveries: only of these a delivery has a size."""
    delivered = chunk.where("delivered")
    rows = delivered[chunk.numbers("message_bytes", UNRECORDED)[delivered] != UNRECORDED]
    if not len(rows):
        return
    ids = chunk.column("message_id").take(pa.array(rows)).dictionary_encode()
    messages = np.stack((chunk.owners[rows], ids.indices.to_numpy(zero_copy_only=False)))
    rows = rows[np.sort(np.unique(messages, axis=1, return_index=True)[1])]
    published_us = chunk.numbers("publish_time_ns", UNRECORDED)[rows] // NANOS_PER_MICRO
    published_us = np.where(published_us < 0, chunk.time_us[rows], published_us)
    place, count = numbered(chunk.owners[rows], published_us // HOUR_US)
    example = np.full(count, -1)
    example[place] = np.arange(len(rows))
    used = example >= 0
    columns: dict[str, pa.Array | Ints] = {
        name: chunk.value(name, rows[example[used]]) for name in ("run_id", "subscription", "key")
    }
    columns["hour"] = published_us[example[used]] // HOUR_US
    for name in (*COUNTED, "acked_us"):
        columns[name] = np.zeros(int(used.sum()), np.int64)
    columns["publishes"] = columns["confirmed"] = np.bincount(place, minlength=count)[used]
    columns["bytes"] = _sums(place, chunk.numbers("message_bytes")[rows], count)[used]
    columns["confirmed_us"] = _sums(place, published_us - since_us, count)[used]
    yield rows_of(_LOADS, columns, int(used.sum()))


def _sums(place: Ints, values: Ints, count: int) -> Ints:
    totals = np.zeros(count, np.int64)
    np.add.at(totals, place, values)
    return totals


# --- what Spark adds up ------------------------------------------------------------------------------------------------------


BUSY_BYTES: Final = 0.5 * LIMIT_BYTES_PER_S * 60.0
WAITING_S: Final = 540.0
"""To be seen waiting at the ends of ten minutes one after the other."""
WAIT_MEAN_S: Final = 5.0
RANKED_MAX: Final = 1000
VOLUMES: Final = (*COUNTED, "bytes")


def places_of(runs: DataFrame) -> DataFrame:
    """The subscriptions of the runs with their numbers: place, target, environment, region, topic, subscription.

    observed   whether others publish on the topic, and nobody recorded what.
    """
    names = ("target", "environment", "region", "topic", "subscription")
    each = runs.withColumn("subscription", sf.explode("subscriptions")).withColumn("recorded", _publishes_recorded())
    return each.groupBy(*names).agg((~sf.bool_and("recorded")).alias("observed")).withColumn("place", place_hash())


def _publishes_recorded() -> Column:
    """What the rules of a subscription of a run say."""
    rules = sf.from_json("rules", "map<string, struct<publishes_recorded: boolean>>")
    return sf.coalesce(sf.try_element_at(rules, sf.col("subscription"))["publishes_recorded"], sf.lit(True))


def place_hash() -> Column:
    """A subscription as a number."""
    return sf.xxhash64("target", "topic", "subscription")


def key_loads(scan: Scan, runs: DataFrame, since_us: int, *, several: bool, observed: bool) -> DataFrame:
    """One row per subscription (`place`) and key: `VOLUMES`, `peak_bytes` of its busiest hour, and `waited_s` of all its messages.

    several   whether any run has more than one subscription; if not, subscriptions need not be told apart event by event.
    observed  whether others publish on the topic of any (`places_of`).
    """
    columns = (*LOAD_COLUMNS, *OBSERVED_COLUMNS) if observed else LOAD_COLUMNS
    totals = scan.reduced(loads_of(since_us, observed=observed), columns, LOADS).withColumn("run", run_hash()).drop("run_id")
    long_run = sf.col("ended_us") - sf.col("began_us") >= WAITING_S * MICROS
    end_s = sf.when(long_run, (sf.col("ended_us") - since_us) / MICROS)
    about = runs.select("run", "target", "topic", "subscriptions", end_s.alias("end_s"))
    owed_to = sf.col("subscriptions")
    if several:
        owed_to = sf.when(sf.col("subscription").isNull(), owed_to).otherwise(sf.array("subscription"))
    each = totals.join(sf.broadcast(about), "run").withColumn("subscription", sf.explode(owed_to))
    moments_s = (sf.col("acked_us") - sf.col("confirmed_us")) / MICROS
    waited_s = moments_s + (sf.col("confirmed") - sf.col("acks")) * sf.col("end_s")  # of the hours of a run together
    known = each.withColumn("waited_s", sf.when(sf.col("end_s").isNotNull(), waited_s)).withColumn("place", place_hash())
    sums = (*VOLUMES, "waited_s")
    hourly = known.groupBy("place", "key", "hour").agg(*(sf.sum(name).alias(name) for name in sums))
    return hourly.groupBy("place", "key").agg(
        *(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in sums), sf.max("bytes").alias("peak_bytes")
    )


def outstanding(loads: DataFrame, candidates_max: int) -> DataFrame:
    """A row per subscription: its totals, how messages are spread over keys, and the keys that may be hot.

    keys, messages, total_bytes   how many in all.
    median, p90, p99   messages of the key that half, 90 % and 99 % of the keys have no more than (KLL sketch).
    ranked      the messages of the largest keys, the largest first.
    busy, large, waiting   rows of `key_loads`, at most `candidates_max` each; `left_out` counts those beyond that.
    """
    row = sf.struct("key", *VOLUMES, "waited_s")
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


# --- too many keys to count each ---------------------------------------------------------------------------------------------


def sketched(events: DataFrame, runs: DataFrame, candidates_max: int, tracked: int) -> DataFrame:
    """The same columns as `outstanding` without any count per key, from sketches of constant size: what they give is approximate.

    The keys with most messages are found if they have more than about 1.33 / `tracked` of them, and all of them are `busy`, so that
    they are looked at more closely. What waits cannot be seen this way; findings tell of keys that stand still.
    """
    names = ("target", "topic")
    totals = (
        events.where((sf.col("event") == "publish") | ((sf.col("event") == "delivered") & sf.col("message_bytes").isNotNull()))
        .groupBy(*names)
        .agg(
            sf.approx_count_distinct("key").alias("keys"),
            sf.count("*").alias("messages"),
            sf.sum("message_bytes").alias("total_bytes"),
            sf.expr(f"approx_top_k(key, {min(RANKED_MAX, tracked)}, {tracked})").alias("top"),
        )
    )
    subscriptions = runs.select(*names, sf.explode("subscriptions").alias("subscription")).distinct()
    unknown, none = sf.lit(None).cast("long"), sf.lit(0).cast("long")
    row = sf.transform(
        sf.slice("top", 1, candidates_max),
        lambda one: sf.struct(
            one["item"].alias("key"),
            one["count"].alias("publishes"),
            *(none.alias(name) for name in VOLUMES[1:]),
            sf.lit(0.0).alias("waited_s"),
        ),
    )
    return totals.join(sf.broadcast(subscriptions), list(names)).select(
        place_hash().alias("place"),
        "keys",
        "messages",
        "total_bytes",
        *(unknown.alias(name) for name in ("median", "p90", "p99")),
        sf.transform("top", lambda one: one["count"]).alias("ranked"),
        row.alias("busy"),
        sf.slice(row, 1, 0).alias("large"),
        sf.slice(row, 1, 0).alias("waiting"),
        none.alias("left_out"),
    )


# --- what is looked at more closely ------------------------------------------------------------------------------------------


def candidates(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[int, str], Mapping[str, Any]]:
    """The keys that may be hot by more than their share, by place and key with their loads, from rows of `outstanding` or `sketched`."""
    return {(row["place"], load["key"]): load for row in rows for why in ("busy", "waiting") for load in row[why] or ()}


def large_keys(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[int, str], Mapping[str, Any]]:
    """The keys that carry far more than the others, in the same form."""
    return {
        (row["place"], load["key"]): load
        for row in rows
        for load in row["large"] or ()
        if is_large(load["publishes"] / max(1, row["messages"]), row["keys"])
    }
