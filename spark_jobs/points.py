"""The keys that may be hot, minute by minute: what was published, moved, waited, and how old the oldest message was.

Everything here is exact, and concerns only the few keys that `loads` let through. Executors look at their events (`spark_jobs.sightings`);
Spark adds up what they say, a row per minute. What a key becomes is one row of evidence; at most 1,440 points of a day are in memory for
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_jobs.frames import collected
from spark_jobs.history import MINUTE_US
from spark_jobs.scan import Scan
from spark_jobs.sightings import (
    COLUMNS,
    MINUTE,
    OBSERVED_COLUMNS,
    OPENED,
    RECEIVED,
    SIGHTINGS,
    STRETCH,
    Candidate,
    sightings,
    unparceled,
)
from spark_jobs.trends import Floats, Trend, longest_run, trend_of

POINTS: Final = ("publishes", "bytes", "moves", "delta", "age_us")
EVIDENCE: Final = (
    "candidate int, minutes long, messages long, bytes long, peak_messages_per_s double, peak_bytes_per_s double, "
    "mean_bytes_per_s double, bytes_slope_per_s double, bytes_rise boolean, backlog_max long, backlog_last long, "
    "backlog_slope_per_s double, backlog_rises boolean, age_max_s double, age_last_s double, age_slope double, age_rises boolean, "
    "standstill_minutes long"
)
"""A row per candidate. Slopes are per second; that of the age has no unit. `standstill_minutes`: the longest time in which something
waited and nothing was received or acknowledged."""


def sighted(scan: Scan, chosen: Sequence[Mapping[str, Any]], runs: DataFrame, buckets: int) -> DataFrame:
    """What there is to say about candidates: `SIGHTINGS` without parcels.

    chosen    dicts with candidate, target, topic, subscription, key, and observed: whether others publish there (`places_of`).
    buckets   among how many groups the events of all of them are divided (`spark_jobs.parcels`).
    """
    listed = [Candidate(one["candidate"], one["target"], one["topic"], one["subscription"], one["key"]) for one in chosen]
    observed = any(one["observed"] for one in chosen)
    ended = collected(runs.where(sf.col("ended_us").isNotNull()).select("run_id", "ended_us"))
    reduction = sightings(listed, {row["run_id"]: row["ended_us"] for row in ended}, buckets, observed=observed)
    columns = OBSERVED_COLUMNS if observed else COLUMNS
    rows = scan.reduced_keys(reduction, columns, SIGHTINGS, [one.key for one in listed])
    return rows.groupBy("bucket").applyInArrow(unparceled, SIGHTINGS)


def key_evidence(rows: DataFrame) -> DataFrame:
    """What the minutes of each candidate say (`EVIDENCE`), from `sighted` rows."""
    return minute_points(rows).groupBy("candidate").applyInArrow(_weighed, EVIDENCE)


def minute_points(rows: DataFrame) -> DataFrame:
    """A row per candidate and minute in which anything happened or waited: `POINTS`.

    delta    by how many more messages wait at its end than at that of the minute before.
    age_us   how old the oldest of them is then; null if none waits.
    """
    age_us = (sf.col("minute") + 1) * MINUTE_US - sf.min("since_us")
    return (
        rows.where(sf.col("about") == MINUTE)
        .groupBy("candidate", "minute")
        .agg(*(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in POINTS[:-1]), age_us.alias("age_us"))
    )


def receipts(rows: DataFrame) -> DataFrame:
    """Of each candidate: deliveries, how many of them were the first of their message, and how often the subscriber changed."""
    of_run = ["run", "session"]
    owners = rows.where(sf.col("about") == OPENED).select(*of_run, "subscriber").dropDuplicates(of_run)
    stretches = rows.where(sf.col("about") == STRETCH).drop("subscriber").join(sf.broadcast(owners), of_run, "left")
    owner = sf.coalesce("subscriber", "session")
    in_order = Window.partitionBy("candidate", "run").orderBy("number")
    moved = stretches.select("candidate", "deliveries", (owner != sf.lag(owner).over(in_order)).alias("changed"))
    received = rows.where(sf.col("about") == RECEIVED).select("candidate", "first_deliveries")
    return (
        moved.unionByName(received, allowMissingColumns=True)
        .groupBy("candidate")
        .agg(
            sf.sum("deliveries").alias("deliveries"),
            sf.sum("first_deliveries").alias("first_deliveries"),
            sf.count_if("changed").alias("subscriber_changes"),
        )
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
