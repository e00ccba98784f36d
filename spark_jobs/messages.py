"""What became of each message that executors could not finish: a row per message and subscription, put together from what files say.

A message is a sequence number of a run and key, whatever its generations: it was to be sent when the first of them was, was confirmed
when the first confirmation came, and received when the first of its copies was. Messages of other runs that a run receives are not its
own and do not count.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.parts import UNFINISHED


def messages(parts: DataFrame, runs: DataFrame, *, several: bool) -> DataFrame:
    """One row per unfinished message whose publish is among the parts (`spark_jobs.parts`), and per subscription that it is owed to.

    run, key, seq   which message.
    subscription    to whom; null if each run has only one (`several` is False), which spares work.
    intended_us     when it was to be sent, microseconds since 1970 like the other times.
    confirmed_us    when a publish of it was confirmed first; null if none was.
    received_us     when it was received first; null if it was not.
    attempts, confirmed, refused   how many publishes there were, and how many of them ended which way.
    """
    unfinished = parts.where(sf.col("part") == UNFINISHED)
    grouped = addressed(unfinished, runs, several=several).groupBy("run", "key", "seq", "subscription")
    earliest = [sf.min(name).alias(name) for name in ("intended_us", "confirmed_us", "received_us")]
    totals = [sf.sum(name).alias(name) for name in ("attempts", "confirmed", "refused")]
    return grouped.agg(*earliest, *totals).where(sf.col("intended_us").isNotNull())


def addressed(parts: DataFrame, runs: DataFrame, *, several: bool) -> DataFrame:
    """Rows with their column `run`; what a publisher did once for each subscription of its run.

    If no run has several, the subscription is null instead: then it need not be told apart.
    """
    if not several:
        return parts.withColumn("subscription", sf.lit(None).cast("string"))
    owed = sf.broadcast(runs.select("run", sf.explode("subscriptions").alias("owed_to")))
    publishing = parts.where(sf.col("subscription").isNull()).join(owed, "run").withColumn("subscription", sf.col("owed_to"))
    return publishing.drop("owed_to").unionByName(parts.where(sf.col("subscription").isNotNull()))
