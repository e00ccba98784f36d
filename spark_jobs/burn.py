"""From counts per minute to what the SRE workbook asks for: windows, budgets and alerts.

The arithmetic is that of `prober.core.slo`. Sums over windows are Spark's; what remains are a few rows per objective and target, whose
burn rates, budgets and confidence bounds are computed here in the driver, by the functions that the service itself uses.

Alerts are looked at at the end of every minute of the day, as a rule that is evaluated once a minute would, each with its long and its
short window. The comparison is exact: bad x denominator > numerator x decided, in whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from prober.core.slo import MINUTE_S, POLICY, BurnAlert, Objective, State, Tally, exact, windows_s

SUMS: Final = ("good", "bad", "undecided")
_SERIES: Final = ("objective", "target")
_WIDE: Final = "decimal(38,0)"  # no product of a count and a threshold exceeds it


# --- windows -----------------------------------------------------------------------------------------------------------------


def window_sums(tallies: DataFrame, lengths_min: Iterable[int], until: int) -> DataFrame:
    """Sums over windows that end where minute `until` begins: a row per objective, target and window.

    tallies   objective, target, minute, good, bad, undecided.
    minutes   of the window in which anything was decided; what is missing to its length is what nobody looked at.
    """
    lengths = sorted(set(lengths_min))
    inside = {length: sf.col("minute").between(until - length, until - 1) for length in lengths}
    decided = sf.col("good") + sf.col("bad") > 0
    columns = [
        sf.sum(sf.when(inside[length], sf.col(name)).otherwise(0)).alias(f"{name}_{length}") for length in lengths for name in SUMS
    ] + [sf.count_if(inside[length] & decided).alias(f"minutes_{length}") for length in lengths]
    names = (*SUMS, "minutes")
    structs = [
        sf.struct(sf.lit(length).alias("window_min"), *(sf.col(f"{name}_{length}").alias(name) for name in names))
        for length in lengths
    ]
    return (
        tallies.groupBy(*_SERIES)
        .agg(*columns)
        .select(*_SERIES, sf.explode(sf.array(*structs)).alias("one"))
        .select(*_SERIES, "one.*")
    )


def window_rows(sums: Iterable[Mapping[str, Any]], objectives: Iterable[Objective]) -> list[dict[str, object]]:
    """What the sums of each objective's own windows say, as rows of the report; what cannot be said is null."""
    named = {objective.name: objective for objective in objectives}
    tallies = {(row["objective"], row["target"], row["window_min"]): row for row in sums}
    rows = []
    for (name, target, length_min), row in sorted(tallies.items()):
        objective = named[name]
        if length_min in window_lengths_min(objective):
            period = tallies[name, target, _minutes(objective.window_s)]
            rows.append(_window_row(objective, target, row, objective.remaining(tally_of(period))))
    return rows


def window_lengths_min(objective: Objective) -> list[int]:
    """The windows that the objective is looked at in, in minutes, its period among them."""
    return [_minutes(length_s) for length_s in windows_s(objective)]


def tally_of(row: Mapping[str, Any]) -> Tally:
    """The counts of a row."""
    return Tally(row["good"], row["bad"], row["undecided"])


def _window_row(objective: Objective, target: str, row: Mapping[str, Any], remaining: float | None) -> dict[str, object]:
    tally = tally_of(row)
    rate = objective.burn_rate(tally)
    low, high = tally.error_ratio_confidence()
    certain_low, certain_high = tally.error_ratio_bounds
    exhaustion_s = objective.exhaustion_s(remaining, rate)
    return {
        "objective": objective.name,
        "indicator": objective.indicator.value,
        "target": target,
        "window_s": row["window_min"] * MINUTE_S,
        "good": tally.good,
        "bad": tally.bad,
        "undecided": tally.undecided,
        "minutes": row["minutes"],
        "error_ratio": tally.error_ratio,
        "error_ratio_low": low if tally.decided else None,
        "error_ratio_high": high if tally.decided else None,
        "error_ratio_least": certain_low,
        "error_ratio_most": certain_high,
        "burn_rate": rate,
        "burn_rate_low": low / objective.budget if tally.decided else None,
        "burn_rate_high": high / objective.budget if tally.decided else None,
        "budget_left": remaining,
        "exhausted_in_s": None if exhaustion_s in (None, inf) else exhaustion_s,
        "never_exhausted": exhaustion_s == inf,
    }


# --- alerts ------------------------------------------------------------------------------------------------------------------


def alert_states(
    tallies: DataFrame, objectives: Sequence[Objective], since: int, until: int, policy: Sequence[BurnAlert] = POLICY
) -> DataFrame:
    """What every alert says at the end of each minute from `since` up to, and without, `until`.

    A row per objective, target, alert (its place in the policy) and minute, with a `state` of `prober.core.slo.State`.
    """
    lengths = sorted({_minutes(length_s) for alert in policy for length_s in (alert.long_s, alert.short_s)})
    rolled = _rolling(tallies, lengths, since, until)
    limits = rolled.sparkSession.createDataFrame(
        [
            (objective.name, number, *_limit(alert, objective).as_integer_ratio())
            for objective in objectives
            for number, alert in enumerate(policy)
        ],
        "objective string, alert int, numerator long, denominator long",
    )
    state: Column = sf.lit(None).cast("string")
    for number, alert in enumerate(policy):
        says = _state(_minutes(alert.long_s), _minutes(alert.short_s))
        state = sf.when(sf.col("alert") == number, says).otherwise(state)
    joined = rolled.join(sf.broadcast(limits), "objective")
    return joined.select(*_SERIES, "alert", "minute", state.alias("state"))


def alert_days(states: DataFrame) -> DataFrame:
    """A row per objective, target and alert: its latest state, the minutes in each state, and when it would have fired.

    firing   spans of whole minutes, `until` not included, the first one first; at most one for every two minutes.
    """
    series = [*_SERIES, "alert"]
    by_minute = Window.partitionBy(*series).orderBy("minute")
    firing = sf.col("state") == State.FIRING.value
    # Minutes that fire one after the other are equally far from their place among those that fire.
    island = sf.col("minute") - sf.sum(firing.cast("long")).over(by_minute)
    spans = (
        states.withColumn("island", island)
        .where(firing)
        .groupBy(*series, "island")
        .agg(
            sf.timestamp_seconds(sf.min("minute") * 60).alias("since"),
            sf.timestamp_seconds((sf.max("minute") + 1) * 60).alias("until"),
        )
    )
    fired = spans.groupBy(*series).agg(sf.array_sort(sf.collect_list(sf.struct("since", "until"))).alias("firing"))
    days = states.groupBy(*series).agg(
        sf.max_by("state", "minute").alias("state"),
        *(sf.count_if(sf.col("state") == state.value).alias(f"{state.value}_minutes") for state in State),
    )
    return days.join(fired, series, "left")


def _rolling(tallies: DataFrame, lengths: Sequence[int], since: int, until: int) -> DataFrame:
    """For each minute of the span the sums over what ends with it: `bad_5`, `decided_5` and so on for every length."""
    first = since - lengths[-1]
    every = (
        tallies.select(*_SERIES)
        .distinct()
        .select(*_SERIES, sf.explode(sf.sequence(sf.lit(first), sf.lit(until - 1))).alias("minute"))
    )
    decided = (sf.col("good") + sf.col("bad")).alias("decided")
    filled = every.join(tallies.select(*_SERIES, "minute", "bad", decided), [*_SERIES, "minute"], "left")
    series = Window.partitionBy(*_SERIES).orderBy("minute")
    total = series.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    summed = filled.select(
        *_SERIES, "minute", *(sf.sum(sf.coalesce(name, sf.lit(0))).over(total).alias(name) for name in ("bad", "decided"))
    )
    rolled = summed.select(
        *_SERIES,
        "minute",
        *(
            (sf.col(name) - sf.lag(name, length, 0).over(series)).alias(f"{name}_{length}")
            for length in lengths
            for name in ("bad", "decided")
        ),
    )
    return rolled.where(sf.col("minute") >= since)


def _state(long_min: int, short_min: int) -> Column:
    exceeded = [
        sf.col(f"bad_{length}").cast(_WIDE) * sf.col("denominator") > sf.col("numerator").cast(_WIDE) * sf.col(f"decided_{length}")
        for length in (long_min, short_min)
    ]
    unknown = (sf.col(f"decided_{long_min}") == 0) | (sf.col(f"decided_{short_min}") == 0)
    return sf.when(unknown, State.UNKNOWN.value).when(exceeded[0] & exceeded[1], State.FIRING.value).otherwise(State.QUIET.value)


def _limit(alert: BurnAlert, objective: Objective) -> Fraction:
    """The error ratio above which the alert fires, exactly."""
    return exact(alert.budget_part) * exact(objective.window_s) / exact(alert.long_s) * objective.budget_exact


def _minutes(length_s: float) -> int:
    return max(1, round(length_s / MINUTE_S))
