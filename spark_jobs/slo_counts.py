"""Good, bad and undecided events of a day by objective and minute, from the tables `messages`, `runs` and `findings`.

`prober.slo.indicators` defines good, bad and undecided; a live prober has the same counts for the same day. A message counts in the minute
of its intended publish, checks count in the minute in which their run ended. Rows have the columns `COUNTS`:

run, subscription   run and subscription of the event; the subscription of a check is null.
minute              whole minutes since 1970.
key                 the ordering key of bad events, if known; otherwise null.
objective, good, bad, undecided

Two groups are undecided here that a live prober does not count: the checks of a run that was cut short, except for those that its findings
prove, and the measurements of a run whose record lacks events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from prober.core.findings import FAILING, Kind
from prober.probes.catalogue import DISTURBED
from prober.slo.counts import BREACHES, OVERDUE
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective
from spark_jobs.history import MINUTE_US, run_hash
from spark_jobs.tables import frame_of

COUNTS: Final = ("run", "subscription", "minute", "key", "objective", "good", "bad", "undecided")
BY_RUN: Final = frozenset(BREACHES)
CHECKED: Final = BY_RUN | {Indicator.PUBLISH_AVAILABILITY}
"""Indicators counted by the checks of runs. For availability, checks count the messages that were never sent."""

_GOOD, _BAD, _UNDECIDED = "good", "bad", "undecided"


class OutcomeColumns(NamedTuple):
    """Numbers of good, bad and undecided events of a row for an objective."""

    objective: Objective
    good: Column | int
    bad: Column | int
    undecided: Column | int


# --- publishes and first receipts ----------------------------------------------------------------------------------------------


def message_counts(
    messages: DataFrame, runs: DataFrame, findings: DataFrame, objectives: Sequence[Objective], since_us: int, until_us: int
) -> DataFrame:
    """Count publishes and first receipts of messages, and the missing checks.

    Counted are the messages that were to be sent in a period.

    In a run that was cut short a message is undecided for every objective about checks, and bad for completeness if it is overdue.

    messages, runs, findings   rows of the tables; findings of the days around as well.
    since_us, until_us         microseconds since 1970.
    """
    totals = _alike(messages, objectives, since_us, until_us)
    about = runs.select(
        "run", "probe", "complete", sf.col("subscription").alias("first"), sf.col("ended_us").isNull().alias("cut_short")
    )
    rows = totals.join(sf.broadcast(about), "run", "left").join(
        sf.broadcast(_overdue_keys(runs, findings)), ["run", "subscription", "key"], "left"
    )
    return exploded(rows, _message_outcomes(objectives))


def _alike(messages: DataFrame, objectives: Sequence[Objective], since_us: int, until_us: int) -> DataFrame:
    """Count the messages of each run, subscription and minute with equal outcomes, with the key if any outcome is bad.

    Grouping by outcome first costs less than half of a sum for every objective and outcome over all messages.
    """
    intended_us = sf.unix_micros("intended_at")
    refused = sf.col("rejected") + sf.col("unknown")
    unanswered = sf.greatest(sf.col("attempts") - sf.col("confirmed") - refused, sf.lit(0))
    latencies = {
        _outcome_name(one): latency_outcome(one, objectives, sf.unix_micros(end) - intended_us, sf.col(lagged_us))
        for one in objectives
        for end, lagged_us in [_ENDS.get(one.indicator, ("", ""))]
        if end
    }
    rows = messages.where((sf.col("attempts") > 0) & intended_us.between(since_us, until_us - 1)).select(
        run_hash().alias("run"),
        "subscription",
        "key",
        sf.floor(intended_us / MINUTE_US).alias("minute"),
        "confirmed",
        refused.alias("refused"),
        unanswered.alias("unanswered"),
        (sf.col("confirmed_at").isNotNull() & sf.col("received_at").isNull()).alias("missing"),
        *(outcome.alias(name) for name, outcome in latencies.items()),
    )
    noteworthy = reduce(or_, [sf.col("missing"), sf.col("refused") > 0, *(sf.col(name).eqNullSafe(_BAD) for name in latencies)])
    alike = [name for name in rows.columns if name != "key"]
    return rows.groupBy(*alike, sf.when(noteworthy, sf.col("key")).alias("key")).agg(sf.count("*").alias("messages"))


_ENDS: Final[Mapping[Indicator, tuple[str, str]]] = {
    Indicator.PUBLISH_LATENCY: ("confirmed_at", "confirmed_lagged_us"),
    Indicator.END_TO_END_LATENCY: ("received_at", "received_lagged_us"),
}
"""Columns of `messages` with the end of a latency, and with the event loop lag of the prober in it."""


def _outcome_name(objective: Objective) -> str:
    return f"{objective.name} outcome"


def latency_outcome(objective: Objective, listed: Iterable[Objective], took_us: Column, lagged_us: Column) -> Column:
    """Classify a duration as good, bad or undecided for an objective; null without a duration.

    If it is late for any of the `listed` objectives of the indicator only because of the lag of the prober's event loop, it is undecided
    for all of them (`Objective.is_doubtful`).
    """
    thresholds_us = [one.threshold_us for one in listed if one.indicator is objective.indicator]
    least_us = took_us - sf.coalesce(lagged_us, sf.lit(0))
    doubtful = reduce(or_, [(took_us > threshold_us) & (least_us <= threshold_us) for threshold_us in thresholds_us])
    in_time = took_us <= objective.threshold_us
    return sf.when(doubtful, _UNDECIDED).when(in_time, _GOOD).when(took_us.isNotNull(), _BAD)


def _message_outcomes(objectives: Iterable[Objective]) -> list[OutcomeColumns]:
    """Return the outcomes of rows of `_alike`. A message counts on the first subscription of its run only, as online."""
    is_first = sf.coalesce(sf.col("subscription") == sf.col("first"), sf.lit(True))
    of_first = sf.when(is_first, sf.col("messages")).otherwise(0)
    unchecked = sf.when(sf.col("cut_short"), of_first).otherwise(0)
    is_overdue = sf.col("missing") & sf.col("overdue").isNotNull()
    outcomes = []
    for one in objectives:
        outcome = sf.col(f"`{_outcome_name(one)}`")
        unanswered = sf.col("unanswered") > 0
        if one.indicator is Indicator.PUBLISH_AVAILABILITY:
            numbers = [of_first * sf.col(name) for name in ("confirmed", "refused", "unanswered")]
        elif one.indicator is Indicator.PUBLISH_LATENCY:
            numbers = _numbers(sf.coalesce(outcome, sf.when(unanswered, _UNDECIDED)), of_first)
        elif one.indicator is Indicator.END_TO_END_LATENCY:
            never = sf.when(is_overdue, _BAD).when(sf.col("missing"), _UNDECIDED)
            numbers = _numbers(sf.coalesce(outcome, never), of_first)
        else:
            if one.indicator in BY_RUN:
                outcomes.append(OutcomeColumns(one, 0, 0, unchecked))
            if one.indicator is Indicator.COMPLETENESS:
                lost = sf.when(sf.col("cut_short") & is_overdue, sf.col("messages")).otherwise(0)
                outcomes.append(OutcomeColumns(one, 0, lost, 0))
            continue
        outcomes.append(_measured(one, numbers))
    return outcomes


def _numbers(outcome: Column, count: Column) -> list[Column]:
    return [sf.when(outcome == name, count).otherwise(0) for name in (_GOOD, _BAD, _UNDECIDED)]


def _measured(objective: Objective, numbers: Sequence[Column]) -> OutcomeColumns:
    """Return the counts of a measurement: zero if the probe disturbs it, undecided if the record of the run lacks events."""
    good, bad, undecided = numbers
    complete = sf.coalesce("complete", sf.lit(False))
    disturbed = sf.coalesce(sf.col("probe").isin(*DISTURBED[objective.indicator]), sf.lit(False))
    return OutcomeColumns(
        objective,
        sf.when(complete & ~disturbed, good).otherwise(0),
        sf.when(complete & ~disturbed, bad).otherwise(0),
        sf.when(disturbed, 0).when(complete, undecided).otherwise(good + bad + undecided),
    )


def _overdue_keys(runs: DataFrame, findings: DataFrame) -> DataFrame:
    """Return the keys with overdue missing messages: run, subscription, key, overdue.

    Only for runs that count them: runs that were cut short, and runs whose checks of completeness state it.
    """
    bad = sf.exists("checks", lambda one: (one["indicator"] == Indicator.COMPLETENESS.value) & (one["bad"] > 0))
    counting = runs.where(sf.col("ended_us").isNull() | sf.coalesce(bad, sf.lit(False))).select("run")
    found = failing(findings).where(sf.col("kind").isin(*(kind.value for kind in OVERDUE)))
    keys = found.select(run_hash().alias("run"), "subscription", "key").distinct()
    return keys.join(sf.broadcast(counting), "run", "left_semi").withColumn("overdue", sf.lit(True))


def exploded(rows: DataFrame, outcomes: Sequence[OutcomeColumns]) -> DataFrame:
    """Return a row with the columns `COUNTS` for each nonzero outcome of each row."""
    if not outcomes:
        return frame_of(rows.sparkSession, (), _COUNTS)
    structs = [
        sf.struct(
            sf.lit(one.objective.name).alias("objective"),
            *(sf.lit(column).cast("long").alias(name) for name, column in zip(COUNTS[-3:], one[1:], strict=True)),
        )
        for one in outcomes
    ]
    each = rows.select("run", "subscription", "minute", "key", sf.explode(sf.array(*structs)).alias("outcome"))
    counts = each.select("run", "subscription", "minute", "key", "outcome.*")
    return counts.where(sf.col("good") + sf.col("bad") + sf.col("undecided") > 0)


_COUNTS: Final = "run long, subscription string, minute long, key string, objective string, good long, bad long, undecided long"


# --- checks --------------------------------------------------------------------------------------------------------------------


def check_counts(runs: DataFrame, objectives: Iterable[Objective], since_us: int, until_us: int) -> DataFrame:
    """Count the checks of the runs that ended in a period (microseconds since 1970)."""
    pairs = [{"indicator": one.indicator.value, "objective": one.name} for one in objectives if one.indicator in CHECKED]
    named = frame_of(runs.sparkSession, pairs, "indicator string, objective string")
    ended = runs.where(sf.col("ended_us").between(since_us, until_us - 1))
    checks = ended.select("run", sf.floor(sf.col("ended_us") / MINUTE_US).alias("minute"), sf.inline("checks"))
    unknown = [sf.lit(None).cast("string").alias(name) for name in ("subscription", "key")]
    return checks.join(sf.broadcast(named), "indicator").select("*", *unknown).select(*COUNTS)


def proven_counts(runs: DataFrame, findings: DataFrame, objectives: Iterable[Objective], since_us: int, until_us: int) -> DataFrame:
    """Count the bad events that the findings of runs cut short prove, in the minute of the finding.

    Not for completeness: `message_counts` counts overdue messages.
    """
    asked = [one for one in objectives if one.indicator is not Indicator.COMPLETENESS]
    time_us = sf.unix_micros("time")
    cut_short = runs.where(sf.col("ended_us").isNull()).select("run")
    rows = (
        breaching(findings, asked).where(time_us.between(since_us, until_us - 1)).join(sf.broadcast(cut_short), "run", "left_semi")
    )
    minute = sf.floor(time_us / MINUTE_US).alias("minute")
    bad = [sf.lit(number).cast("long").alias(name) for name, number in (("good", 0), ("bad", 1), ("undecided", 0))]
    return rows.select("run", "subscription", minute, "key", "objective", *bad)


def breaching(findings: DataFrame, objectives: Iterable[Objective]) -> DataFrame:
    """Return the findings that make checks bad, with their `run` and once for each `objective`."""
    pairs = [{"kind": kind.value, "objective": one.name} for one in objectives for kind in _breaches(one)]
    about = frame_of(findings.sparkSession, pairs, "kind string, objective string")
    return failing(findings).withColumn("run", run_hash()).join(sf.broadcast(about), "kind")


def _breaches(objective: Objective) -> Collection[Kind]:
    return BREACHES.get(objective.indicator, ())


def failing(findings: DataFrame) -> DataFrame:
    """Return the findings that prove a bad event."""
    return findings.where(sf.col("status").isin(*(status.value for status in FAILING)))


# --- redeliveries --------------------------------------------------------------------------------------------------------------


def redelivery_counts(
    messages: DataFrame, runs: DataFrame, objectives: Sequence[Objective], since_us: int, until_us: int
) -> DataFrame:
    """Count the redeliveries that became due in a period (microseconds since 1970), in the minute in which they did.

    A redelivery takes from the nack, or the end of the lease, that preceded it. A redelivery without either has another cause, such as a
    broken stream, and does not count; a missing redelivery is a finding and has no latency. As online, only messages that the run published
    itself count, on its first subscription.
    """
    about = runs.select("run", "probe", "complete", sf.col("subscription").alias("first"))
    again = messages.where(sf.col("own") & sf.col("redeliveries").isNotNull()).select(
        run_hash().alias("run"), "subscription", "key", sf.inline("redeliveries")
    )
    due_us = sf.unix_micros("due_at")
    rows = again.where(due_us.between(since_us, until_us - 1)).join(sf.broadcast(about), "run", "left")
    rows = rows.where(sf.coalesce(sf.col("subscription") == sf.col("first"), sf.lit(True)))
    took_us = sf.unix_micros("received_at") - due_us
    outcomes = []
    for one in objectives:
        if one.indicator is Indicator.REDELIVERY_LATENCY:
            numbers = _numbers(latency_outcome(one, objectives, took_us, sf.col("lagged_us")), sf.lit(1))
            outcomes.append(_measured(one, numbers))
    return exploded(rows.withColumn("minute", sf.floor(due_us / MINUTE_US)), outcomes)
