"""Runs as the other transforms need them: one row per run, with what may be said about its events.

A run is *trusted* if what it measured can be held against the service: not when the prober failed or stood still meanwhile. It is
*whole* if it has ended with a verdict and nothing of it is missing, so that what is not in its record did not happen.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

MICROS: Final = 1_000_000
MINUTE_US: Final = 60 * MICROS
DIMENSIONS: Final = ("target", "environment", "region", "probe", "vantage", "topic")


def run_hash(column: str = "run_id") -> Column:
    """A run as a number, which joins and groups far faster than its name; two names give one number once in 10^10 days."""
    return sf.xxhash64(sf.col(column))


def micros(seconds: Column) -> Column:
    """Whole microseconds."""
    return sf.round(seconds * MICROS).cast("long")


def runs_of(rows: DataFrame) -> DataFrame:
    """One row per run from rows of the table `runs`: that of the end if there is one, whose columns are null otherwise.

    run          its hash. `run_id` and the dimensions are its own.
    subscriptions   full names; `subscription` is the first.
    began_us, ended_us   microseconds since 1970 by the clock of its events; `ended_us` is null for a run that was cut short.
    trusted, whole   see the head of this file.
    keys         how many keys it used, null if unknown.
    checks       what counts for objectives, as in the table.
    """
    ended = sf.col("verdict").isNotNull()
    latest = rows.groupBy("run_id").agg(sf.max_by(sf.struct("*"), ended).alias("row")).select("row.*")
    time_us = sf.unix_micros("time")
    return latest.select(
        run_hash().alias("run"),
        "run_id",
        *DIMENSIONS,
        "subscription",
        sf.json_object_keys("rules").alias("subscriptions"),
        sf.when(ended, time_us - micros(sf.col("duration_s"))).otherwise(time_us).alias("began_us"),
        sf.when(ended, time_us).alias("ended_us"),
        "verdict",
        (~sf.coalesce("internal_error", sf.lit(False)) & sf.col("judged_events").isNull()).alias("trusted"),
        sf.coalesce(
            sf.col("verdict").isin("PASS", "FAIL") & (sf.col("events_dropped") == 0) & sf.col("judged_events").isNull(),
            sf.lit(False),
        ).alias("whole"),
        sf.col("counters")["keys"].alias("keys"),
        "checks",
        "rules",
        "events",
        "events_dropped",
        "judged_events",
        "finding_counts",
    )


def several_subscriptions(runs: DataFrame) -> bool:
    """Whether any run has more than one subscription."""
    return not runs.where(sf.size("subscriptions") > 1).isEmpty()
