"""The keys that may be hot, minute by minute: what was published, moved, waited, and how old the oldest message was.

Everything here is exact, and concerns only the few keys that `loads` let through. What a key becomes is one row of evidence; at most 1,440
points of a day are in memory for it.

Whether a series of such points rises, and how fast, is told by rank statistics over all pairs of them, which one odd point cannot fool:

* Mann (1945) and Kendall: S counts the pairs of points that rise less those that fall. `tau` is S as a share of all pairs; `z` is how
  many standard deviations S is from what chance would give, with Kendall's correction for equal values.
* Theil (1950) and Sen (1968): the slope is the median of the slopes of all pairs; up to 29 % of the points may be anything.

Points of a backlog depend on each other, which makes z too large: a rise is believed only if tau is large as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from spark_jobs.history import MINUTE_US, run_hash
from spark_jobs.loads import NANOS_PER_MICRO

# --- trends ------------------------------------------------------------------------------------------------------------------


Floats: TypeAlias = NDArray[np.float64]

POINTS_MIN: Final = 10
Z_MIN: Final = 3.09
"""One in a thousand, one-sided."""
TAU_MIN: Final = 0.5
RANKS_MAX: Final = 200
COUNT_MIN: Final = 10


@dataclass(frozen=True, slots=True)
class Trend:
    """The slope is per step of the series."""

    slope: float
    tau: float
    z: float

    @property
    def rises(self) -> bool:
        """Whether the series rises beyond doubt, over most of its length."""
        return self.slope > 0.0 and self.tau >= TAU_MIN and self.z >= Z_MIN


def trend_of(values: Floats) -> Trend | None:
    """The trend of values at equal distances, None if they are too few to say anything. Memory and time grow with their square."""
    count = len(values)
    if count < POINTS_MIN:
        return None
    first, second = np.triu_indices(count, 1)
    rises = values[second] - values[first]
    score = float(np.sign(rises).sum())
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    variance = (_moment(np.array([float(count)])) - _moment(ties)) / 18.0
    z = (score - np.sign(score)) / np.sqrt(variance) if variance > 0.0 else 0.0
    return Trend(float(np.median(rises / (second - first))), score / len(rises), float(z))


def slope_of(x: Floats, y: Floats) -> float | None:
    """The Theil-Sen slope of points with different `x`, None if there are fewer than two."""
    if len(x) < 2:
        return None
    first, second = np.triu_indices(len(x), 1)
    return float(np.median((y[second] - y[first]) / (x[second] - x[first])))


def zipf_exponent(counts: Floats) -> float | None:
    """The exponent s of counts that fall as rank ** -s, from the largest ones; None if they are too few, or too small, to tell.

    Ranks that were counted less than ten times are left out: there the count is mostly chance.
    """
    largest = np.sort(counts)[::-1][:RANKS_MAX]
    known = largest[largest >= COUNT_MIN]
    if len(known) < POINTS_MIN:
        return None
    slope = slope_of(np.log(np.arange(1.0, len(known) + 1.0)), np.log(known))
    return None if slope is None else -slope


def longest_run(holds: NDArray[np.bool_]) -> int:
    """The length of the longest stretch in which something holds."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], holds, [False])).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0


def _moment(sizes: Floats) -> float:
    return float((sizes * (sizes - 1.0) * (2.0 * sizes + 5.0)).sum())


# --- minutes -----------------------------------------------------------------------------------------------------------------


POINTS: Final = ("publishes", "bytes", "moves", "delta", "age_us")
EVIDENCE: Final = (
    "candidate int, minutes long, messages long, bytes long, peak_messages_per_s double, peak_bytes_per_s double, "
    "mean_bytes_per_s double, bytes_slope_per_s double, bytes_rise boolean, backlog_max long, backlog_last long, "
    "backlog_slope_per_s double, backlog_rises boolean, age_max_s double, age_last_s double, age_slope double, age_rises boolean, "
    "standstill_minutes long"
)
"""A row per candidate. Slopes are per second; that of the age has no unit. `standstill_minutes`: the longest time in which something
waited and nothing was received or acknowledged."""


def candidate_events(events: DataFrame, chosen: Sequence[dict[str, Any]], spark: SparkSession) -> DataFrame:
    """The events of candidates, each with the number of its candidate.

    Candidates are dicts with candidate, target, topic, subscription, key, and observed: whether others publish there (`places_of`).
    """
    about = spark.createDataFrame(
        [(one["candidate"], one["target"], one["topic"], one["subscription"], one["key"]) for one in chosen],
        "candidate int, of_target string, of_topic string, of_subscription string, of_key string",
    )
    kinds = ("publish", "published", "delivered", "acked")
    relevant = events.where(sf.col("key").isin(sorted({one["key"] for one in chosen})) & sf.col("event").isin(*kinds))
    same = (
        (sf.col("key") == sf.col("of_key"))
        & (sf.col("target") == sf.col("of_target"))
        & (sf.col("topic") == sf.col("of_topic"))
        & (sf.col("subscription").isNull() | (sf.col("subscription") == sf.col("of_subscription")))
    )
    columns = ("candidate", "event", "seq", "session", "number", "time", "message_bytes", "publish_time_ns")
    hashes = run_hash().alias("run"), sf.xxhash64("epoch").alias("epoch"), sf.xxhash64("message_id").alias("message_id")
    rows = relevant.join(sf.broadcast(about), same).select(*columns, *hashes)
    if any(one["observed"] for one in chosen):
        rows = _with_others(rows)
    return rows.drop("publish_time_ns")


def _with_others(rows: DataFrame) -> DataFrame:
    """With publishes that nobody recorded: of what others published, the first delivery stands for them (`spark_jobs.loads`).

    Such messages are known by their ids: a number they may not have.
    """
    observed = (sf.col("event") == "delivered") & sf.col("message_bytes").isNotNull()
    others = rows.where(observed).dropDuplicates(["candidate", "run", "message_id"])
    stored = sf.coalesce(sf.timestamp_micros(sf.floor(sf.col("publish_time_ns") / NANOS_PER_MICRO)), sf.col("time"))
    published = [others.withColumn("time", stored).withColumn("event", sf.lit(event)) for event in ("publish", "published")]
    named = rows.withColumn("seq", sf.when(observed, sf.col("message_id")).otherwise(sf.col("seq")))
    whole = named.withColumn("message_bytes", sf.when(sf.col("event") == "publish", sf.col("message_bytes")))
    return whole.unionByName(published[0]).unionByName(published[1].withColumn("message_bytes", sf.lit(None).cast("long")))


def key_evidence(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """What the minutes of each candidate say (`EVIDENCE`), from its events."""
    points = minute_points(rows, runs)
    return points.groupBy("candidate").applyInArrow(_weighed, EVIDENCE)


def minute_points(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """A row per candidate and minute in which anything happened or waited: `POINTS`.

    delta    by how many more messages wait at its end than at that of the minute before.
    age_us   how old the oldest of them is then; null if none waits.
    """
    time_us, event = sf.unix_micros("time"), sf.col("event")
    counts = rows.groupBy("candidate", sf.floor(time_us / MINUTE_US).alias("minute")).agg(
        sf.count_if(event == "publish").alias("publishes"),
        sf.sum("message_bytes").alias("bytes"),
        sf.count_if(event.isin("delivered", "acked")).alias("moves"),
    )
    waits = waits_of(rows, runs)
    steps = sf.explode(
        sf.array(
            sf.struct(sf.col("came").alias("minute"), sf.col("messages").alias("delta")),
            sf.struct(sf.col("gone").alias("minute"), (-sf.col("messages")).alias("delta")),
        )
    )
    deltas = (
        waits.select("candidate", steps.alias("step")).groupBy("candidate", "step.minute").agg(sf.sum("step.delta").alias("delta"))
    )
    joined = counts.unionByName(deltas, allowMissingColumns=True).unionByName(oldest_ages(waits), allowMissingColumns=True)
    return joined.groupBy("candidate", "minute").agg(
        *(sf.coalesce(sf.sum(name), sf.lit(0)).cast("long").alias(name) for name in POINTS[:-1]), sf.max("age_us").alias("age_us")
    )


def waits_of(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """How many confirmed `messages` came to wait in a minute (`came`) and did not any more at the end of another (`gone`).

    since_us   when the first of them was confirmed. One that is never acknowledged waits to the end of the minute in which its run ends;
    in a run that was cut short it does not count.
    """
    ends = runs.where(sf.col("ended_us").isNotNull()).select("run", "ended_us")
    messages = rows.where(sf.col("event").isin("published", "acked")).groupBy("candidate", "run", "message_id").agg(*_wait_times())
    known = messages.where(sf.col("since_us").isNotNull()).join(sf.broadcast(ends), "run")
    came = sf.floor(sf.col("since_us") / MINUTE_US)
    gone = sf.coalesce(sf.floor(sf.col("acked_us") / MINUTE_US), sf.floor(sf.col("ended_us") / MINUTE_US) + 1)
    return known.groupBy("candidate", came.alias("came"), sf.greatest(came, gone).alias("gone")).agg(
        sf.count("*").alias("messages"), sf.min("since_us").alias("since_us")
    )


def _wait_times() -> list[Column]:
    """Of the confirmations and acknowledgements of one message: since when it waited, and until when (null if it still does)."""
    time_us = sf.unix_micros("time")
    return [
        sf.min(sf.when(sf.col("event") == "published", time_us)).alias("since_us"),
        sf.min(sf.when(sf.col("event") == "acked", time_us)).alias("acked_us"),
    ]


def oldest_ages(waits: DataFrame) -> DataFrame:
    """How old the oldest waiting message of a candidate is at the end of each minute: candidate, minute, age_us.

    A message is the oldest from when all earlier ones are gone until it is gone itself, so no minute comes twice.
    """
    in_order = Window.partitionBy("candidate").orderBy("since_us")
    before = sf.max("gone").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    first = sf.greatest("came", sf.coalesce(before, sf.lit(0)))
    oldest = waits.withColumn("first", first).where("first < gone")
    minutes = oldest.select("candidate", "since_us", sf.explode(sf.sequence("first", sf.col("gone") - 1)).alias("minute"))
    age_us = (sf.col("minute") + 1) * MINUTE_US - sf.col("since_us")
    return minutes.groupBy("candidate", "minute").agg(sf.max(age_us).alias("age_us"))


def receipts(rows: DataFrame, openings: DataFrame) -> DataFrame:
    """Of each candidate: deliveries, how many of them were the first of their message, and how often the subscriber changed.

    openings   the events `opened`, which say whose a session is.
    """
    owners = openings.select(run_hash().alias("run"), "session", "subscriber").dropDuplicates(["run", "session"])
    delivered = rows.where(sf.col("event") == "delivered").join(sf.broadcast(owners), ["run", "session"], "left")
    in_order = Window.partitionBy("candidate", "run").orderBy("number")
    owner = sf.coalesce("subscriber", "session")
    moved = delivered.select("candidate", "run", "epoch", "seq", (owner != sf.lag(owner).over(in_order)).alias("changed"))
    messages = moved.groupBy("candidate", "run", "epoch", "seq").agg(
        sf.count("*").alias("deliveries"), sf.count_if("changed").alias("changes")
    )
    return messages.groupBy("candidate").agg(
        sf.sum("deliveries").alias("deliveries"),
        sf.count("*").alias("first_deliveries"),
        sf.sum("changes").alias("subscriber_changes"),
    )


def _weighed(points: pa.Table) -> pa.Table:
    """The points of one candidate become its evidence. Runs on executors."""
    series = _dense(points)
    length = len(series["moves"])
    backlog, age_s, bytes_per_s = np.cumsum(series["delta"]), series["age_us"] / 1e6, series["bytes"] / 60.0
    peak = int(backlog.argmax()) + 1
    publishing = np.flatnonzero(series["publishes"])
    active = bytes_per_s[publishing[0] : publishing[-1] + 1] if len(publishing) else bytes_per_s[:0]
    rise, growth, ageing = trend_of(active), trend_of(backlog[:peak]), trend_of(age_s[:peak])
    row = {
        "candidate": points["candidate"][0].as_py(),
        "minutes": length,
        "messages": int(series["publishes"].sum()),
        "bytes": int(series["bytes"].sum()),
        "peak_messages_per_s": float(series["publishes"].max()) / 60.0,
        "peak_bytes_per_s": float(bytes_per_s.max()),
        "mean_bytes_per_s": float(active.mean()) if len(active) else 0.0,
        "bytes_slope_per_s": _slope(rise),
        "bytes_rise": rise is not None and rise.rises,
        "backlog_max": int(backlog.max()),
        "backlog_last": int(backlog[-1]),
        "backlog_slope_per_s": _slope(growth),
        "backlog_rises": growth is not None and growth.rises,
        "age_max_s": float(age_s.max()),
        "age_last_s": float(age_s[-1]),
        "age_slope": _slope(ageing),
        "age_rises": ageing is not None and ageing.rises,
        "standstill_minutes": longest_run((backlog > 0) & (series["moves"] == 0)),
    }
    types = {"candidate": pa.int32()}
    return pa.table({name: pa.array([value], types.get(name)) for name, value in row.items()})


def _dense(points: pa.Table) -> dict[str, Floats]:
    """The points with 0 where there is none, from the first minute to the last one in which anything happened or waited."""
    minute = points["minute"].to_numpy()
    first, length = int(minute.min()), int(minute.max() - minute.min()) + 1
    series = {name: np.zeros(length) for name in POINTS}
    for name, values in series.items():
        values[minute - first] = points[name].fill_null(0).to_numpy()
    alive = np.flatnonzero(series["publishes"] + series["moves"] + series["age_us"])
    return {name: values[: alive[-1] + 1] for name, values in series.items()}


def _slope(trend: Trend | None) -> float:
    return 0.0 if trend is None else trend.slope / 60.0
