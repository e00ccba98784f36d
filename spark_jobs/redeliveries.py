"""How long redeliveries took: from the refusal, or the end of the lease that was set last, to the next receipt of the message.

A receipt before that has another cause, such as a stream that broke, and does not count; neither does one after an acknowledgement. That
nothing came again at all is no latency: liveness findings say so.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective
from spark_jobs.counts import COUNTS
from spark_jobs.runs import MICROS, MINUTE_US, micros, run_hash


def redelivery_counts(
    events: DataFrame, runs: DataFrame, objectives: Iterable[Objective], since_us: int, until_us: int
) -> list[DataFrame]:
    """What redeliveries that became due in that time count, one frame for each objective about them; columns as in `counts`."""
    listed = [objective for objective in objectives if objective.indicator is Indicator.REDELIVERY_LATENCY]
    if not listed:
        return []
    rows = redeliveries(events).where(sf.col("due_us").between(since_us, until_us - 1))
    about = rows.join(sf.broadcast(runs.select("run", "trusted")), "run", "left")
    return [_counts(about, objective) for objective in listed]


def redeliveries(events: DataFrame) -> DataFrame:
    """Receipts that a refusal or the end of a lease preceded: run, subscription, key, due_us, received_us."""
    answering = events.where(sf.col("event").isin("nacked", "lease_modified", "delivered", "acked")).withColumn("run", run_hash())
    message = ["run", "subscription", "key", "message_id"]
    refused = answering.where(sf.col("event").isin("nacked", "lease_modified")).select(*message).distinct()
    in_order = Window.partitionBy(*message).orderBy("number")
    time_us = sf.unix_micros("time")
    due_us = sf.when(sf.col("event") == "nacked", time_us).when(
        sf.col("event") == "lease_modified", time_us + micros(sf.col("seconds"))
    )
    sequence = answering.join(refused, message, "left_semi").select(
        *message, "event", time_us.alias("received_us"), sf.lag(due_us).over(in_order).alias("due_us")
    )
    return sequence.where((sf.col("event") == "delivered") & (sf.col("due_us") <= sf.col("received_us"))).drop(
        "event", "message_id"
    )


def _counts(rows: DataFrame, objective: Objective) -> DataFrame:
    trusted = sf.coalesce("trusted", sf.lit(False))
    late = sf.col("received_us") - sf.col("due_us") > round((objective.threshold_s or 0.0) * MICROS)
    state = rows.select(
        "run",
        "subscription",
        sf.floor(sf.col("due_us") / MINUTE_US).alias("minute"),
        sf.when(late & trusted, sf.col("key")).alias("key"),
        sf.lit(objective.name).alias("objective"),
        (trusted & ~late).cast("long").alias("good"),
        (trusted & late).cast("long").alias("bad"),
        (~trusted).cast("long").alias("undecided"),
    )
    names = ("run", "subscription", "minute", "key", "objective")
    return state.groupBy(*names).agg(*(sf.sum(name).alias(name) for name in ("good", "bad", "undecided"))).select(*COUNTS)
