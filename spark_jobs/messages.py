"""What became of each message: the events of a day as one row per message and subscription.

A message is a sequence number of a run and key, whatever its generations: it was to be sent when the first of them was, was confirmed
when the first confirmation came, and received when the first of its copies was. Messages of other runs that a run receives are not its
own and do not count.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.runs import micros, run_hash

_PUBLISHING: Final = ("publish", "published", "publish_failed", "publish_unknown")


def messages(events: DataFrame, runs: DataFrame, *, several: bool) -> DataFrame:
    """One row per message whose publish is among the events, and per subscription that it is owed to.

    run, key, seq   which message.
    subscription    to whom; null if each run has only one (`several` is False), which spares work.
    intended_us     when it was to be sent, microseconds since 1970 like the other times.
    confirmed_us    when a publish of it was confirmed first; null if none was.
    received_us     when it was received first; null if it was not.
    attempts, confirmed, refused   how many publishes there were, and how many of them ended which way.
    """
    event, time_us = sf.col("event"), sf.unix_micros("time")
    intended_us = time_us - sf.coalesce(micros(sf.col("t") - sf.col("intended_t")), sf.lit(0))
    own = (event != "delivered") | (sf.col("epoch") == sf.col("run_id"))
    relevant = events.where(event.isin(*_PUBLISHING, "delivered") & own).withColumn("run", run_hash())
    rows = addressed(relevant, runs, several=several).groupBy("run", "key", "seq", "subscription")
    grouped = rows.agg(
        sf.min(sf.when(event == "publish", intended_us)).alias("intended_us"),
        sf.min(sf.when(event == "published", time_us)).alias("confirmed_us"),
        sf.min(sf.when(event == "delivered", time_us)).alias("received_us"),
        sf.count_if(event == "publish").alias("attempts"),
        sf.count_if(event == "published").alias("confirmed"),
        sf.count_if(event.isin("publish_failed", "publish_unknown")).alias("refused"),
    )
    return grouped.where(sf.col("intended_us").isNotNull())


def addressed(events: DataFrame, runs: DataFrame, *, several: bool) -> DataFrame:
    """Events of the frame with their column `run`; what a publisher did once for each subscription of its run.

    If no run has several, the subscription is null instead: then it need not be told apart.
    """
    if not several:
        return events.withColumn("subscription", sf.lit(None).cast("string"))
    owed = sf.broadcast(runs.select("run", sf.explode("subscriptions").alias("owed_to")))
    publishing = events.where(sf.col("subscription").isNull()).join(owed, "run").withColumn("subscription", sf.col("owed_to"))
    return publishing.drop("owed_to").unionByName(events.where(sf.col("subscription").isNotNull()))


def wait_times() -> list[Column]:
    """Of the confirmations and acknowledgements of one message: since when it waited, and until when (null if it still does)."""
    time_us = sf.unix_micros("time")
    return [
        sf.min(sf.when(sf.col("event") == "published", time_us)).alias("since_us"),
        sf.min(sf.when(sf.col("event") == "acked", time_us)).alias("acked_us"),
    ]
