"""From counts per minute to what the SRE workbook asks for: windows, budgets, alerts, and who spent the budget.

The arithmetic is that of `prober.slo.objectives` and `prober.slo.budgets`, the same that the service uses. Sums over windows are Spark's.
What remains of them are a few rows per objective and target, whose burn rates, budgets and confidence bounds are computed in the driver;
alerts are computed where the minutes of an objective and target are.

Alerts are looked at at the end of every minute of the day, as a rule that is evaluated once a minute would, each with its long and its
short window.

*Spenders* are the bad things of a day by key, subscription, probe, vantage and region, the largest parts first. Keys are known of bad
messages, redeliveries and waits themselves. For what a run's checks call bad they come from the findings that made it bad; what no finding
of the history names is left with the key null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from prober.core.findings import FAILING
from prober.slo.budgets import STEP_S, MeasuredHours, budget_left, exhaustion_s
from prober.slo.counts import BREACHES
from prober.slo.objectives import MINUTE_S, POLICY, AlertState, BurnAlert, Objective, SliCounts, windows_s
from spark_jobs.frames import frame_of
from spark_jobs.history import MINUTE_US, run_hash

SUMS: Final = ("good", "bad", "undecided")
ALERT_DAYS: Final = (
    "objective string, target string, severity string, long_s double, short_s double, factor double, threshold double, "
    "can_fire boolean, state string, firing_minutes long, quiet_minutes long, unknown_minutes long, "
    "firing array<struct<since: timestamp, until: timestamp>>"
)
"""A row per objective, target and alert of the policy: its latest state, the minutes in each state, and when it would have fired: spans of
whole minutes, `until` not included, the first one first."""

_SERIES: Final = ("objective", "target")

Sums: TypeAlias = NDArray[np.int64]


# --- windows -----------------------------------------------------------------------------------------------------------------


def window_sums(by_minute: DataFrame, lengths_min: Iterable[int], until: int) -> DataFrame:
    """Sums over windows that end where minute `until` begins: a row per objective, target and window.

    by_minute   objective, target, minute, good, bad, undecided.
    minutes     of the window in which anything was decided.
    hours       clock hours of the window in which anything was decided, counted since 1970.
    since       first minute in which anything was counted, in the window or before.
    """
    lengths = sorted(set(lengths_min))
    inside = {length: sf.col("minute").between(until - length, until - 1) for length in lengths}
    decided = sf.col("good") + sf.col("bad") > 0
    columns = [
        sf.sum(sf.when(inside[length], sf.col(name)).otherwise(0)).alias(f"{name}_{length}") for length in lengths for name in SUMS
    ]
    hour = sf.floor(sf.col("minute") / _minutes(STEP_S))
    for length in lengths:
        measured = inside[length] & decided
        columns += [
            sf.count_if(measured).alias(f"minutes_{length}"),
            sf.collect_set(sf.when(measured, hour)).alias(f"hours_{length}"),
        ]
    names = (*SUMS, "minutes", "hours")
    structs = [
        sf.struct(sf.lit(length).alias("window_min"), *(sf.col(f"{name}_{length}").alias(name) for name in names))
        for length in lengths
    ]
    return (
        by_minute.groupBy(*_SERIES)
        .agg(sf.min("minute").alias("since"), *columns)
        .select(*_SERIES, "since", sf.explode(sf.array(*structs)).alias("one"))
        .select(*_SERIES, "since", "one.*")
    )


def window_rows(sums: Iterable[Mapping[str, Any]], objectives: Iterable[Objective], until: int) -> list[dict[str, object]]:
    """Rows of the report for each objective's own windows, which end where minute `until` begins; what cannot be said is null."""
    named = {objective.name: objective for objective in objectives}
    by_window = {(row["objective"], row["target"], row["window_min"]): row for row in sums}
    rows = []
    for (name, target, length_min), row in sorted(by_window.items()):
        objective = named[name]
        if length_min in window_lengths_min(objective):
            period = by_window[name, target, _minutes(objective.window_s)]
            rows.append(_window_row(objective, target, row, _left(objective, period, until)))
    return rows


def window_lengths_min(objective: Objective) -> list[int]:
    """The windows that the objective is looked at in, in minutes, its period among them."""
    return [_minutes(length_s) for length_s in windows_s(objective)]


def counts_of(row: Mapping[str, Any]) -> SliCounts:
    """The counts of a row."""
    return SliCounts(row["good"], row["bad"], row["undecided"])


def _left(objective: Objective, period: Mapping[str, Any], until: int) -> float | None:
    hours = MeasuredHours.of(hour * STEP_S for hour in period["hours"])
    since = max(period["since"] * MINUTE_S, until * MINUTE_S - objective.window_s)
    return budget_left(objective, counts_of(period), hours.share(objective.window_s, since, until * MINUTE_S))


def _window_row(objective: Objective, target: str, row: Mapping[str, Any], remaining: float | None) -> dict[str, object]:
    counts = counts_of(row)
    rate = objective.burn_rate(counts)
    low, high = counts.error_ratio_confidence()
    certain_low, certain_high = counts.error_ratio_bounds
    seconds = exhaustion_s(objective, remaining, rate)
    return {
        "objective": objective.name,
        "indicator": objective.indicator.value,
        "target": target,
        "window_s": row["window_min"] * MINUTE_S,
        "good": counts.good,
        "bad": counts.bad,
        "undecided": counts.undecided,
        "minutes": row["minutes"],
        "error_ratio": counts.error_ratio,
        "error_ratio_low": low if counts.decided else None,
        "error_ratio_high": high if counts.decided else None,
        "error_ratio_least": certain_low,
        "error_ratio_most": certain_high,
        "burn_rate": rate,
        "burn_rate_low": low / objective.budget if counts.decided else None,
        "burn_rate_high": high / objective.budget if counts.decided else None,
        "budget_left": remaining,
        "exhausted_in_s": None if seconds in (None, inf) else seconds,
        "never_exhausted": seconds == inf,
    }


# --- alerts ------------------------------------------------------------------------------------------------------------------


def alert_days(
    minutes: DataFrame, objectives: Sequence[Objective], since: int, until: int, policy: Sequence[BurnAlert] = POLICY
) -> DataFrame:
    """What every alert says over the minutes from `since` up to, and without, `until`: `ALERT_DAYS`.

    The minutes of one objective and target are in memory together, as many as the longest window and the span have.
    """
    reach = max(_minutes(alert.long_s) for alert in policy)
    near = minutes.where(sf.col("minute").between(since - reach, until - 1))
    named = {objective.name: objective for objective in objectives}
    known = near.where(sf.col("objective").isin(*named)).select(*_SERIES, "minute", "good", "bad")
    return known.groupBy(*_SERIES).applyInArrow(_watched(named, tuple(policy), since - reach, since, until), ALERT_DAYS)


def alert_states(alert: BurnAlert, objective: Objective, good: Sums, bad: Sums, minutes: int) -> Iterator[AlertState]:
    """What an alert says at the end of each of the last `minutes` minutes, from the running totals since before any window begins."""
    long_min, short_min = _minutes(alert.long_s), _minutes(alert.short_s)
    for at in range(len(good) - minutes, len(good)):
        windows = [SliCounts(int(good[at] - good[at - back]), int(bad[at] - bad[at - back])) for back in (long_min, short_min)]
        yield alert.state(objective, *windows)


def _watched(
    objectives: Mapping[str, Objective], policy: Sequence[BurnAlert], first: int, since: int, until: int
) -> Callable[[pa.Table], pa.Table]:
    """What becomes of the minutes of one series. Runs on executors."""

    def watch(minutes: pa.Table) -> pa.Table:
        objective, target = (minutes[name][0].as_py() for name in _SERIES)
        places = minutes["minute"].to_numpy() - first + 1
        totals = {}
        for name in ("good", "bad"):
            counts = np.zeros(until - first + 1, np.int64)
            np.add.at(counts, places, minutes[name].to_numpy())
            totals[name] = np.cumsum(counts)
        rows = [
            {"objective": objective, "target": target}
            | _alert_row(alert, objectives[objective], totals["good"], totals["bad"], since, until)
            for alert in policy
        ]
        return pa.Table.from_pylist(rows, _ALERT_DAYS)

    return watch


def _alert_row(alert: BurnAlert, objective: Objective, good: Sums, bad: Sums, since: int, until: int) -> dict[str, object]:
    states = list(alert_states(alert, objective, good, bad, until - since))
    spans = [(state, len(list(members))) for state, members in groupby(states)]
    ends = list(accumulate((length for _, length in spans), initial=since))
    firing = [
        {"since": begin * MINUTE_US, "until": end * MINUTE_US}
        for (state, _), (begin, end) in zip(spans, pairwise(ends), strict=True)
        if state is AlertState.FIRING
    ]
    return {
        "severity": alert.severity.value,
        "long_s": alert.long_s,
        "short_s": alert.short_s,
        "factor": alert.factor(objective),
        "threshold": alert.threshold(objective),
        "can_fire": alert.can_fire(objective),
        "state": states[-1].value,
        **{f"{state.value}_minutes": states.count(state) for state in AlertState},
        "firing": firing,
    }


_MOMENT: Final = pa.timestamp("us", "UTC")
_ALERT_DAYS: Final = pa.schema(
    [
        ("objective", pa.string()),
        ("target", pa.string()),
        ("severity", pa.string()),
        ("long_s", pa.float64()),
        ("short_s", pa.float64()),
        ("factor", pa.float64()),
        ("threshold", pa.float64()),
        ("can_fire", pa.bool_()),
        ("state", pa.string()),
        ("firing_minutes", pa.int64()),
        ("quiet_minutes", pa.int64()),
        ("unknown_minutes", pa.int64()),
        ("firing", pa.list_(pa.struct([("since", _MOMENT), ("until", _MOMENT)]))),
    ]
)


def _minutes(length_s: float) -> int:
    return max(1, round(length_s / MINUTE_S))


# --- spenders ----------------------------------------------------------------------------------------------------------------


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
    pairs = [{"kind": kind.value, "objective": one.name} for one in objectives for kind in BREACHES.get(one.indicator, ())]
    about = frame_of(findings.sparkSession, pairs, "kind string, objective string")
    failing = findings.where(sf.col("status").isin(*(status.value for status in FAILING)))
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
