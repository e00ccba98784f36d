"""Windows, budgets, alerts and spenders from counts per minute, as in the SRE workbook.

The arithmetic is that of `prober.slo.objectives` and `prober.slo.budgets`, which the service uses as well. Spark adds up. The result, a few
rows per objective and target, or a row per minute of the days that alerts cover, is evaluated in the driver.

Alerts are evaluated at the end of every minute of the day, as by a rule with an interval of one minute.

*Spenders* are the bad events of a day by key, subscription, probe, vantage and region, the largest shares first. Messages, redeliveries and
waits have a key. A check counted as bad has the key of the finding that made it bad; the key is null if no finding of the history names
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from prober.slo.budgets import STEP_S, MeasuredHours, budget_left, exhaustion_s
from prober.slo.objectives import MINUTE_S, POLICY, AlertState, BurnAlert, Objective, SliCounts, windows_s
from spark_jobs.history import MINUTE_US
from spark_jobs.slo_counts import breaching

ALERT_DAYS: Final = (
    "objective string, target string, severity string, long_s double, short_s double, factor double, threshold double, "
    "can_fire boolean, state string, firing_minutes long, quiet_minutes long, unknown_minutes long, "
    "firing array<struct<since: timestamp, until: timestamp>>"
)
"""A row per objective, target and alert of the policy: its latest state, the minutes in each state, and the times when it would have fired.

Times are spans of whole minutes in ascending order, `until` not included.
"""

_SERIES: Final = ("objective", "target")

Sums: TypeAlias = NDArray[np.int64]
Row: TypeAlias = dict[str, Any]


# --- windows -----------------------------------------------------------------------------------------------------------------


def window_sums(by_minute: DataFrame, lengths_min: Iterable[int], until: int) -> DataFrame:
    """Sum the counts of each window without those of the next shorter one; all windows end at the start of minute `until`.

    by_minute   objective, target, minute, good, bad, undecided.
    window_min  length of the shortest window that contains these minutes; null: none does.
    minutes     number of minutes with a decided result.
    hours       clock hours of these minutes, counted since 1970.
    since       first minute with a count.
    """
    decided = sf.col("good") + sf.col("bad") > 0
    windows = [sf.when(sf.col("minute").between(until - length, until - 1), length) for length in sorted(set(lengths_min))]
    return by_minute.groupBy(*_SERIES, sf.coalesce(*windows).alias("window_min")).agg(
        *(sf.sum(name).alias(name) for name in ("good", "bad", "undecided")),
        sf.count_if(decided).alias("minutes"),
        sf.collect_set(sf.when(decided, sf.floor(sf.col("minute") / _minutes(STEP_S)))).alias("hours"),
        sf.min("minute").alias("since"),
    )


def window_rows(sums: Iterable[Mapping[str, Any]], objectives: Iterable[Objective], until: int) -> list[Row]:
    """Return the report's rows for each objective's own windows, from rows of `window_sums`; unknown values are null."""
    named = {objective.name: objective for objective in objectives}
    by_series: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in sums:
        if row["objective"] in named:
            by_series.setdefault((row["objective"], row["target"]), []).append(row)
    rows = []
    for (name, target), parts in sorted(by_series.items()):
        objective = named[name]
        windows = {length: _window(parts, length) for length in window_lengths_min(objective)}
        since = min(row["since"] for row in parts)
        remaining = _left(objective, windows[_minutes(objective.window_s)], since, until)
        rows += [_window_row(objective, target, length, row, remaining) for length, row in windows.items()]
    return rows


def window_lengths_min(objective: Objective) -> list[int]:
    """Return the windows of an objective in minutes, the shortest first; its period is among them."""
    return [_minutes(length_s) for length_s in windows_s(objective)]


def _window(parts: Iterable[Mapping[str, Any]], length_min: int) -> Row:
    inside = [row for row in parts if row["window_min"] is not None and row["window_min"] <= length_min]
    counts = sum((SliCounts(row["good"], row["bad"], row["undecided"]) for row in inside), SliCounts())
    hours = {hour for row in inside for hour in row["hours"]}
    return {"counts": counts, "minutes": sum(row["minutes"] for row in inside), "hours": hours}


def _left(objective: Objective, period: Mapping[str, Any], since: int, until: int) -> float | None:
    hours = MeasuredHours.of(hour * STEP_S for hour in period["hours"])
    began_s = max(since * MINUTE_S, until * MINUTE_S - objective.window_s)
    return budget_left(objective, period["counts"], hours.share(objective.window_s, began_s, until * MINUTE_S))


def _window_row(objective: Objective, target: str, length_min: int, row: Mapping[str, Any], remaining: float | None) -> Row:
    counts: SliCounts = row["counts"]
    rate = objective.burn_rate(counts)
    low, high = counts.error_ratio_confidence()
    certain_low, certain_high = counts.error_ratio_bounds
    seconds = exhaustion_s(objective, remaining, rate)
    return {
        "objective": objective.name,
        "indicator": objective.indicator.value,
        "target": target,
        "window_s": length_min * MINUTE_S,
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
) -> list[Row]:
    """Return the states of every alert in the minutes from `since` to before `until`, as rows of `ALERT_DAYS`.

    The driver holds the counts of these minutes and of the longest window before them, at most a few thousand for each series.
    """
    first = since - max(_minutes(alert.long_s) for alert in policy)
    named = {objective.name: objective for objective in objectives}
    near = minutes.where(sf.col("minute").between(first, until - 1) & sf.col("objective").isin(*named))
    table = near.select(*_SERIES, "minute", "good", "bad").toArrow().sort_by([(name, "ascending") for name in _SERIES])
    places, counts = table["minute"].to_numpy() - first + 1, [table[name].to_numpy() for name in ("good", "bad")]
    series = list(zip(*(table[name].to_pylist() for name in _SERIES), strict=True))
    rows = []
    for (name, target), members in groupby(range(len(series)), key=series.__getitem__):
        chosen = list(members)
        good, bad = (np.cumsum(np.bincount(places[chosen], one[chosen], until - first + 1).astype(np.int64)) for one in counts)
        about = {"objective": name, "target": target}
        rows += [about | _alert_row(alert, named[name], good, bad, since, until) for alert in policy]
    return rows


def alert_states(alert: BurnAlert, objective: Objective, good: Sums, bad: Sums, minutes: int) -> Iterator[AlertState]:
    """Yield the state of an alert at the end of each of the last `minutes` minutes.

    good, bad: running totals that start before the first window.
    """
    long_min, short_min = _minutes(alert.long_s), _minutes(alert.short_s)
    for at in range(len(good) - minutes, len(good)):
        windows = [SliCounts(int(good[at] - good[at - back]), int(bad[at] - bad[at - back])) for back in (long_min, short_min)]
        yield alert.state(objective, *windows)


def _alert_row(alert: BurnAlert, objective: Objective, good: Sums, bad: Sums, since: int, until: int) -> Row:
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


def _minutes(length_s: float) -> int:
    return max(1, round(length_s / MINUTE_S))


# --- spenders ----------------------------------------------------------------------------------------------------------------


BY: Final = ("key", "subscription", "probe", "vantage", "region")
SHOWN: Final = 20
"""Number of named spenders per objective, target and dimension; a row without a name contains the sum of the others."""


def spenders(counts: DataFrame, breaches: DataFrame, runs: DataFrame, *, shown: int = SHOWN) -> DataFrame:
    """Rank the spenders: objective, target, dimension (`by`), `value`, `bad`, and its share of the target's bad events of the objective.

    counts      rows of `slo_counts`. breaches: rows of `breaches_of`.
    others      number of unnamed spenders that a row sums up; 0 for a named spender.
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
    """Count the findings that cause bad events: objective, run, key, count."""
    return breaching(findings, objectives).groupBy("objective", "run", "key").agg(sf.count("*").alias("count"))


def _with_keys(bad: DataFrame, breaches: DataFrame) -> DataFrame:
    """Divide bad events without a key among the keys of the run's findings, as far as they go."""
    found = breaches.select("objective", "run", sf.col("key").alias("found"), "count")
    without = bad.where(sf.col("key").isNull()).drop("key").join(found, ["objective", "run"], "left")
    same = Window.partitionBy("objective", "run", "subscription").orderBy(sf.desc("count"), "found")
    before = sf.coalesce(sf.sum("count").over(same.rowsBetween(Window.unboundedPreceding, -1)), sf.lit(0))
    part = sf.greatest(sf.least(sf.coalesce("count", sf.lit(0)), sf.col("bad") - before), sf.lit(0))
    # The rest after the last key's part has no key.
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
