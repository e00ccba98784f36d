"""Evidence on the keys that may be hot, minute by minute: publishes, deliveries, acknowledgements, backlog and ages.

Spark counts minutes; an Arrow function per key applies trend tests (`trend_of`) to at most 1,440 of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.history import MINUTE_US
from spark_jobs.slo_waits import last_minute, minutes_of

COUNTED: Final = ("messages", "bytes", "deliveries", "first_deliveries", "subscriber_changes")
POINTS: Final = (*COUNTED, "moves", "delta", "age_us")
PART_MINUTES: Final = 30
COURSE: Final = "course array<struct<at: long, bytes_per_s: double, backlog: long, age_s: double>>"
EVIDENCE: Final = (
    "place long, key string, minutes long, messages long, bytes long, deliveries long, first_deliveries long, subscriber_changes long, "
    "peak_messages_per_s double, peak_bytes_per_s double, mean_bytes_per_s double, bytes_slope_per_s double, bytes_rise boolean, "
    "backlog_max long, backlog_last long, backlog_slope_per_s double, backlog_rises boolean, age_max_s double, age_last_s double, "
    f"age_slope double, age_rises boolean, stalled_minutes long, {COURSE}"
)
"""A row per key. Slopes are per second; that of the age has no unit. `stalled_minutes`: the longest time in which messages waited and none
was received or acknowledged. `course`: mean throughput, largest backlog and largest age by part of the day, `at` seconds since 1970.
"""


def key_evidence(rows: DataFrame) -> DataFrame:
    """Return the evidence on each key (`EVIDENCE`) from its rows of `spark_jobs.key_loads.lives`."""
    return minute_points(rows).groupBy("place", "key").applyInArrow(_weighed, EVIDENCE)


def minute_points(rows: DataFrame) -> DataFrame:
    """Return a row per key and minute with an event, or with a waiting message at its end: `POINTS`.

    messages, bytes   published in it. deliveries and the other counts: of these messages.
    moves    receipts and first acknowledgements in it.
    delta    change of the number of waiting messages from the end of the minute before to its end.
    age_us   age of the oldest waiting message at its end, null if none waits.
    """
    place = ("place", "key")
    since, until = _minute("since_us"), sf.greatest(last_minute() + 1, _minute("since_us"))
    # Messages that share all their minutes are counted before they are divided into minutes.
    alike = (
        rows.withColumn("waits", sf.col("since_us").isNotNull() & sf.col("until_us").isNotNull())
        .groupBy(
            *place,
            _minute("published_us").alias("published"),
            _minute("received_us").alias("received"),
            _minute("acked_us").alias("acked"),
            sf.when(sf.col("waits"), since).alias("since"),
            sf.when(sf.col("waits"), until).alias("until"),
        )
        .agg(
            sf.count("*").alias("number"),
            sf.sum("publishes").alias("messages"),
            *(sf.sum(name).alias(name) for name in ("bytes", "deliveries", "subscriber_changes")),
            sf.count("received_us").alias("first_deliveries"),
            sf.min("since_us").alias("oldest"),
        )
    )
    number = sf.col("number")
    steps = [
        _step(sf.coalesce("published", "received"), **{name: sf.col(name) for name in COUNTED}),
        _step(sf.col("received"), moves=number),
        _step(sf.col("acked"), moves=number),
        _step(sf.col("since"), delta=number),
        _step(sf.col("until"), delta=-number),
    ]
    again = rows.where(sf.col("redeliveries").isNotNull()).select(*place, sf.explode("redeliveries.received_at").alias("at"))
    moved = again.withColumn("us", sf.unix_micros("at")).select(*place, _step(_minute("us"), moves=sf.lit(1)).alias("step"))
    spans = alike.where("since IS NOT NULL").selectExpr(*place, "since AS first", "until - 1 AS last", "oldest")
    age_us = (sf.col("minute") + 1) * MINUTE_US - sf.col("oldest")
    oldest = minutes_of(spans, *place).select(*place, "minute", age_us.alias("age_us"))
    points = alike.select(*place, sf.explode(sf.array(*steps)).alias("step")).unionByName(moved).select(*place, "step.*")
    return (
        points.where("minute IS NOT NULL")
        .unionByName(oldest, allowMissingColumns=True)
        .groupBy(*place, "minute")
        .agg(*(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in POINTS[:-1]), sf.max("age_us").alias("age_us"))
    )


def _minute(name: str) -> Column:
    return sf.floor(sf.col(name) / MINUTE_US)


def _step(minute: Column, **counts: Column) -> Column:
    """Return the counts of a minute; missing counts are 0."""
    numbers = [counts.get(name, sf.lit(0)).cast("long").alias(name) for name in POINTS[:-1]]
    return sf.struct(minute.alias("minute"), *numbers)


def _weighed(points: pa.Table) -> pa.Table:
    """Turn the points of one key into its evidence. Runs on executors."""
    series = _dense(points)
    backlog, age_s, bytes_per_s = np.cumsum(series["delta"]), series["age_us"] / 1e6, series["bytes"] / 60.0
    peak = int(backlog.argmax()) + 1
    publishing = np.flatnonzero(series["messages"])
    active = bytes_per_s[publishing[0] : publishing[-1] + 1] if len(publishing) else bytes_per_s[:0]
    rise, growth, ageing = trend_of(active), trend_of(backlog[:peak]), trend_of(age_s[:peak])
    row = {
        "place": points["place"][0].as_py(),
        "key": points["key"][0].as_py(),
        "minutes": len(backlog),
        **{name: int(series[name].sum()) for name in COUNTED},
        "peak_messages_per_s": float(series["messages"].max()) / 60.0,
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
        "stalled_minutes": longest_run((backlog > 0) & (series["moves"] == 0)),
        "course": _course(int(points["minute"].to_numpy().min()), backlog, age_s, bytes_per_s),
    }
    return pa.Table.from_pylist([row])


def _course(first: int, backlog: Floats, age_s: Floats, bytes_per_s: Floats) -> list[dict[str, float]]:
    """Return the measurements by part of the day, of the minutes from the `first` one on."""
    parts = (first + np.arange(len(backlog))) // PART_MINUTES
    inside = ((part, parts == part) for part in np.unique(parts))
    return [
        {
            "at": int(part) * PART_MINUTES * 60,
            "bytes_per_s": float(bytes_per_s[within].mean()),
            "backlog": int(backlog[within].max()),
            "age_s": float(age_s[within].max()),
        }
        for part, within in inside
    ]


def _dense(points: pa.Table) -> dict[str, Floats]:
    """Return the points with 0 for missing minutes, from the first minute to the last one with an event or a waiting message."""
    minute = points["minute"].to_numpy()
    first, length = int(minute.min()), int(minute.max() - minute.min()) + 1
    series = {name: np.zeros(length) for name in POINTS}
    for name, values in series.items():
        values[minute - first] = points[name].fill_null(0).to_numpy()
    alive = np.flatnonzero(series["messages"] + series["moves"] + series["age_us"])
    return {name: values[: alive[-1] + 1] for name, values in series.items()}


def _slope(trend: Trend | None) -> float:
    return 0.0 if trend is None else trend.slope / 60.0


# --- rising trends in a series of points: rank statistics over all pairs, robust against single outliers ----------------------


Floats: TypeAlias = NDArray[np.float64]

POINTS_MIN: Final = 10
Z_MIN: Final = 3.09
"""One-sided significance of 1 in 1,000."""
TAU_MIN: Final = 0.5
RANKS_MAX: Final = 200
COUNT_MIN: Final = 10


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of a series. The slope is per step of the series.

    * Mann (1945) and Kendall: S counts the pairs of points that rise less those that fall. `tau` is S as a share of all pairs; `z` is the
      distance of S from random order in standard deviations, with Kendall's correction for equal values.
    * Theil (1950) and Sen (1968): the slope is the median of the slopes of all pairs; up to 29 % of the points may be outliers.

    Points of a backlog depend on each other, which makes z too large: a rise is accepted only if tau is large as well.
    """

    slope: float
    tau: float
    z: float

    @property
    def rises(self) -> bool:
        """Whether the series rises beyond doubt, over most of its length."""
        return self.slope > 0.0 and self.tau >= TAU_MIN and self.z >= Z_MIN


def trend_of(values: Floats) -> Trend | None:
    """Return the trend of values at equal distances, or None if there are too few. Memory and time grow with their square."""
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
    """Return the Theil-Sen slope of points with different `x`, or None for fewer than two."""
    if len(x) < 2:
        return None
    first, second = np.triu_indices(len(x), 1)
    return float(np.median((y[second] - y[first]) / (x[second] - x[first])))


def zipf_exponent(counts: Floats) -> float | None:
    """Return the exponent s of counts that fall as rank ** -s, from the largest ones; None if they are too few or too small.

    Ranks with a count below ten are left out: there the count is mostly noise.
    """
    largest = np.sort(counts)[::-1][:RANKS_MAX]
    known = largest[largest >= COUNT_MIN]
    if len(known) < POINTS_MIN:
        return None
    slope = slope_of(np.log(np.arange(1.0, len(known) + 1.0)), np.log(known))
    return None if slope is None else -slope


def longest_run(holds: NDArray[np.bool_]) -> int:
    """Return the length of the longest stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], holds, [False])).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0


def _moment(sizes: Floats) -> float:
    return float((sizes * (sizes - 1.0) * (2.0 * sizes + 5.0)).sum())
