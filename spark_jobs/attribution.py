"""Who spent the budget: the bad things of a day by key, subscription, probe, vantage and region, the largest parts first.

Keys are known of bad messages, redeliveries and waits themselves. For what a run's checks call bad they come from the findings that made
it bad; what no finding of the history names is left with the key null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from prober.core.findings import Status
from prober.slo.checks import BREACHES, OVERDUE
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective
from spark_jobs.runs import run_hash

BY: Final = ("key", "subscription", "probe", "vantage", "region")
SHOWN: Final = 20
"""Spenders named per objective, target and dimension; what the others spent together is in a row without a name."""


def spenders(counts: DataFrame, breaches: DataFrame, runs: DataFrame, *, shown: int = SHOWN) -> DataFrame:
    """Rows of objective, target, dimension (`by`), who (`value`), `bad`, and its share of all bad things of the objective and target.

    counts      as in `counts`. breaches: objective, run, key, count, from `breaches_of`.
    others      how many spenders a row stands for beyond those that are named; 0 for one that is.
    """
    about = runs.select("run", "target", "probe", "vantage", "region", sf.col("subscription").alias("only"))
    bad = counts.where(sf.col("bad") > 0).groupBy("run", "subscription", "key", "objective").agg(sf.sum("bad").alias("bad"))
    named = _with_keys(bad, breaches).join(sf.broadcast(about), "run", "left")
    named = named.withColumn("subscription", sf.coalesce("subscription", "only"))
    each = sf.explode(sf.array(*(sf.struct(sf.lit(name).alias("by"), sf.col(name).alias("value")) for name in BY)))
    target = sf.coalesce("target", sf.lit("")).alias("target")
    parts = named.select("objective", target, "bad", each.alias("part")).select("objective", "target", "bad", "part.*")
    return _largest(parts.groupBy("objective", "target", "by", "value").agg(sf.sum("bad").alias("bad")), shown)


def breaches_of(findings: DataFrame, objectives: Iterable[Objective]) -> DataFrame:
    """How many findings make things bad: objective, run, key, count."""
    kinds = {indicator: BREACHES.get(indicator, frozenset()) for indicator in Indicator} | {Indicator.COMPLETENESS: OVERDUE}
    pairs = [(kind.value, one.name) for one in objectives for kind in kinds[one.indicator]]
    about = findings.sparkSession.createDataFrame(pairs, "kind string, objective string")
    failing = findings.where(sf.col("status").isin(Status.VIOLATION.value, Status.LIVENESS.value))
    rows = failing.join(sf.broadcast(about), "kind").withColumn("run", run_hash())
    return rows.groupBy("objective", "run", "key").agg(sf.count("*").alias("count"))


def _with_keys(bad: DataFrame, breaches: DataFrame) -> DataFrame:
    """What has no key is divided among the keys of the run's findings as far as they go."""
    found = breaches.select("objective", "run", sf.col("key").alias("found"), "count")
    without = bad.where(sf.col("key").isNull()).drop("key").join(found, ["objective", "run"], "left")
    same = Window.partitionBy("objective", "run", "subscription").orderBy(sf.desc("count"), "found")
    before = sf.coalesce(sf.sum("count").over(same.rowsBetween(Window.unboundedPreceding, -1)), sf.lit(0))
    part = sf.greatest(sf.least(sf.coalesce("count", sf.lit(0)), sf.col("bad") - before), sf.lit(0))
    # What is left when the last key has had its part goes to none.
    left = sf.when(
        sf.lead(sf.lit(1)).over(same).isNull(), sf.greatest(sf.col("bad") - before - sf.coalesce("count", sf.lit(0)), sf.lit(0))
    )
    nobody = sf.lit(None).cast("string").alias("key")
    shares = sf.array(sf.struct(sf.col("found").alias("key"), part.alias("bad")), sf.struct(nobody, left.alias("bad")))
    divided = without.withColumn("shares", shares).select("run", "subscription", "objective", sf.explode("shares").alias("share"))
    columns = ("run", "subscription", "objective", "key", "bad")
    keyed = bad.where(sf.col("key").isNotNull()).select(*columns)
    return keyed.unionByName(divided.select("run", "subscription", "objective", "share.*").where(sf.col("bad") > 0))


def _largest(parts: DataFrame, shown: int) -> DataFrame:
    rank = sf.struct("bad", "value")
    series = parts.groupBy("objective", "target", "by").agg(
        sf.max_by(sf.struct("value", "bad"), rank, shown).alias("largest"),
        sf.sum("bad").alias("whole"),
        sf.count("*").alias("spenders"),
    )
    zero = sf.lit(0).cast("long")
    named = sf.transform(
        "largest", lambda one: sf.struct(one["value"].alias("value"), one["bad"].alias("bad"), zero.alias("others"))
    )
    shown_bad = sf.aggregate("largest", zero, lambda total, one: total + one["bad"])
    rest = sf.struct(
        sf.lit(None).cast("string").alias("value"),
        (sf.col("whole") - shown_bad).alias("bad"),
        (sf.col("spenders") - sf.size("largest")).alias("others"),
    )
    rows = series.select("objective", "target", "by", "whole", sf.explode(sf.concat(named, sf.array(rest))).alias("one")).where(
        sf.col("one.bad") > 0
    )
    share = (sf.col("one.bad") / sf.col("whole")).alias("share")
    return rows.select("objective", "target", "by", "one.value", "one.bad", share, "one.others")
