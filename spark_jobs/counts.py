"""Good, bad and undecided things by objective: what happened on a day, in the minute in which it is due.

What is good, bad and undecided is said in `prober.slo.indicators`; the same day gives the same numbers here and online. A message counts
in the minute in which it was to be sent, whatever became of it later; what a run's checks say counts in the minute in which the run
ended, as it does online. Rows have the columns

    run, subscription   where it happened; the subscription is null where it is the run's only one.
    minute              whole minutes since 1970.
    key                 of bad things their ordering key, where that is known; otherwise null.
    objective, good, bad, undecided

More than online is undecided where nobody was left to say so: the checks of a run that was cut short, but for what its findings prove,
and everything that was measured in a run of which events are missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from prober.core.findings import FAILING
from prober.slo.counts import BREACHES, OVERDUE
from prober.slo.indicators import DISTURBED, Indicator
from prober.slo.objectives import Objective
from spark_jobs.frames import frame_of
from spark_jobs.history import MINUTE_US, run_hash
from spark_jobs.messages import FINISHED, Question, messages

COUNTS: Final = ("run", "subscription", "minute", "key", "objective", "good", "bad", "undecided")
BY_MESSAGE: Final = frozenset({Indicator.PUBLISH_AVAILABILITY, Indicator.PUBLISH_LATENCY, Indicator.END_TO_END_LATENCY})
BY_RUN: Final = frozenset(BREACHES)
CHECKED: Final = BY_RUN | {Indicator.PUBLISH_AVAILABILITY}
"""What the checks of runs count for. Of availability they say only what was never sent; the rest is what messages say."""

_PUBLISHED: Final = ""  # stands where an objective's name does, and counts the messages of a run
_OVERDUE: Final = " overdue"  # as well, and counts those that passed their deadline and were not received


class OutcomeColumns(NamedTuple):
    """How many things of a row ended which way."""

    good: Column
    bad: Column
    undecided: Column


def message_counts(
    parts: DataFrame,
    runs: DataFrame,
    findings: DataFrame,
    objectives: Sequence[Objective],
    since_us: int,
    until_us: int,
    *,
    several: bool,
) -> DataFrame:
    """What messages that were to be sent in that time count for objectives about publishes and first receipts.

    Checks that were never made count too: of runs that were cut short every message is undecided for each objective about checks, and
    what is overdue is bad for completeness.

    parts      rows of `spark_jobs.messages`, made with the `questions_of` these objectives.
    findings   rows of the table, of the time around.
    """
    listed = by_message(objectives)
    rows = _with_overdue(messages(parts, runs, several=several), runs, findings, several=several)
    totals = _finished(parts, runs, len(listed), since_us, until_us).unionByName(
        _unfinished(rows, runs, listed, since_us, until_us)
    )
    counted = _unpivoted(totals, [*(one.name for one in listed), _PUBLISHED, _OVERDUE])
    decided = counted.where(~sf.col("objective").isin(_PUBLISHED, _OVERDUE))
    decided = _undisturbed(decided, runs, listed)
    return decided.unionByName(_unchecked(counted.where(sf.col("objective") == _PUBLISHED), runs, objectives)).unionByName(
        _missing(counted.where(sf.col("objective") == _OVERDUE), runs, objectives)
    )


def _with_overdue(rows: DataFrame, runs: DataFrame, findings: DataFrame, *, several: bool) -> DataFrame:
    """With `overdue`: whether what is missing on the key of the message passed its deadline, and the run counts that."""
    bad = sf.exists("checks", lambda one: (one["indicator"] == Indicator.COMPLETENESS.value) & (one["bad"] > 0))
    counting = runs.where(sf.col("ended_us").isNull() | sf.coalesce(bad, sf.lit(False))).select("run")
    kinds, statuses = (kind.value for kind in OVERDUE), (status.value for status in FAILING)
    keys = (
        findings.where(sf.col("kind").isin(*kinds) & sf.col("status").isin(*statuses))
        .select(run_hash().alias("run"), "key", (sf.col("subscription") if several else sf.lit(None).cast("string")).alias("of"))
        .distinct()
        .join(sf.broadcast(counting), "run", "left_semi")
        .select(sf.col("run").alias("of_run"), sf.col("key").alias("of_key"), "of")
    )
    same = (sf.col("run") == sf.col("of_run")) & (sf.col("key") == sf.col("of_key"))
    found = rows.join(sf.broadcast(keys), same & sf.col("subscription").eqNullSafe(sf.col("of")), "left")
    missing = sf.col("confirmed_us").isNotNull() & sf.col("received_us").isNull()
    return found.withColumn("overdue", sf.col("of_key").isNotNull() & missing).drop("of_run", "of_key", "of")


def _undisturbed(counts: DataFrame, runs: DataFrame, objectives: Iterable[Objective]) -> DataFrame:
    """Without what probes disturb themselves (`indicators.DISTURBED`)."""
    for indicator, probes in DISTURBED.items():
        names = [objective.name for objective in objectives if objective.indicator is indicator]
        disturbed = runs.where(sf.col("probe").isin(*probes)).select(
            "run", sf.explode(sf.array(*map(sf.lit, names))).alias("objective")
        )
        counts = counts.join(sf.broadcast(disturbed), ["run", "objective"], "left_anti") if names else counts
    return counts


def by_message(objectives: Iterable[Objective]) -> list[Objective]:
    """The objectives about publishes and first receipts."""
    return [objective for objective in objectives if objective.indicator in BY_MESSAGE]


def questions_of(objectives: Iterable[Objective]) -> list[Question]:
    """The same as executors are asked."""
    return [Question(objective.indicator, objective.threshold_us) for objective in by_message(objectives)]


def _finished(parts: DataFrame, runs: DataFrame, questions: int, since_us: int, until_us: int) -> DataFrame:
    """The outcomes of messages that executors could finish."""
    within = sf.col("minute").between(since_us // MINUTE_US, until_us // MINUTE_US - 1)
    rows = parts.where((sf.col("part") == FINISHED) & within).join(sf.broadcast(runs.select("run", "complete")), "run", "left")
    outcomes = [
        _recorded(OutcomeColumns(*(sf.col(f"{field}_{number}") for field in OutcomeColumns._fields))) for number in range(questions)
    ]
    outcomes.append(OutcomeColumns(sf.col("messages"), sf.lit(0), sf.lit(0)))
    outcomes.append(OutcomeColumns(sf.lit(0), sf.lit(0), sf.lit(0)))  # they were all received
    key = sf.when(sf.coalesce("complete", sf.lit(False)), sf.col("key"))
    return rows.select("run", sf.lit(None).cast("string").alias("subscription"), "minute", key.alias("key"), *_numbered(outcomes))


def _unfinished(messages: DataFrame, runs: DataFrame, listed: Sequence[Objective], since_us: int, until_us: int) -> DataFrame:
    about = sf.broadcast(runs.select("run", sf.col("subscription").alias("first"), "complete"))
    rows = messages.where(sf.col("intended_us").between(since_us, until_us - 1)).join(about, "run", "left")
    outcomes = [_recorded(_OUTCOMES[one.indicator](one, listed)) for one in listed]
    first = _number(sf.coalesce(sf.col("subscription") == sf.col("first"), sf.lit(True)))
    outcomes.append(OutcomeColumns(first, sf.lit(0), sf.lit(0)))
    outcomes.append(OutcomeColumns(sf.lit(0), _number(sf.col("overdue")), sf.lit(0)))
    any_bad = sf.greatest(*(outcome.bad for outcome in outcomes), sf.lit(0)) > 0
    grouped = rows.groupBy(
        "run",
        "subscription",
        sf.floor(sf.col("intended_us") / MINUTE_US).alias("minute"),
        sf.when(any_bad, sf.col("key")).alias("key"),
    )
    return grouped.agg(*map(sf.sum, _numbered(outcomes))).toDF("run", "subscription", "minute", "key", *_fields(len(outcomes)))


def _numbered(outcomes: Sequence[OutcomeColumns]) -> list[Column]:
    columns = [column for outcome in outcomes for column in outcome]
    return [column.cast("long").alias(name) for column, name in zip(columns, _fields(len(outcomes)), strict=True)]


def _fields(outcomes: int) -> list[str]:
    return [f"{field}_{number}" for number in range(outcomes) for field in OutcomeColumns._fields]


def proven_counts(runs: DataFrame, findings: DataFrame, objectives: Iterable[Objective], since_us: int, until_us: int) -> DataFrame:
    """What the findings of runs that were cut short prove to be bad, in the minute of the finding; but for completeness."""
    pairs = [
        {"kind": kind.value, "objective": one.name}
        for one in objectives
        for kind in BREACHES.get(one.indicator, ())
        if one.indicator is not Indicator.COMPLETENESS
    ]
    about = frame_of(findings.sparkSession, pairs, "kind string, objective string")
    cut_short = runs.where(sf.col("ended_us").isNull()).select("run")
    time_us = sf.unix_micros("time")
    zero = sf.lit(0).cast("long")
    return (
        findings.where(sf.col("status").isin(*(status.value for status in FAILING)) & time_us.between(since_us, until_us - 1))
        .withColumn("run", run_hash())
        .join(sf.broadcast(cut_short), "run", "left_semi")
        .join(sf.broadcast(about), "kind")
        .select(
            "run",
            sf.lit(None).cast("string").alias("subscription"),
            sf.floor(time_us / MINUTE_US).alias("minute"),
            "key",
            "objective",
            zero.alias("good"),
            sf.lit(1).cast("long").alias("bad"),
            zero.alias("undecided"),
        )
    )


def check_counts(runs: DataFrame, objectives: Iterable[Objective], since_us: int, until_us: int) -> DataFrame:
    """What the checks of runs that ended in that time count."""
    names = _by_indicator(objectives, CHECKED)
    if not names:
        return runs.limit(0).select(*_none_of(COUNTS))
    objective = sf.create_map(*(part for name, ours in names.items() for part in (sf.lit(name), sf.array(*map(sf.lit, ours)))))
    return (
        runs.where(sf.col("ended_us").between(since_us, until_us - 1))
        .select("*", sf.explode("checks").alias("check"))
        .where(sf.col("check.indicator").isin(*names))
        .select("*", sf.explode(objective[sf.col("check.indicator")]).alias("objective"))
        .select(
            "run",
            sf.lit(None).cast("string").alias("subscription"),
            sf.floor(sf.col("ended_us") / MINUTE_US).alias("minute"),
            sf.lit(None).cast("string").alias("key"),
            "objective",
            "check.good",
            "check.bad",
            "check.undecided",
        )
    )


def minute_counts(counts: DataFrame, runs: DataFrame) -> DataFrame:
    """Counts by objective, target and minute; what no run is known of has the target "" ."""
    return (
        counts.join(sf.broadcast(runs.select("run", "target")), "run", "left")
        .groupBy("objective", sf.coalesce("target", sf.lit("")).alias("target"), "minute")
        .agg(*(sf.sum(name).cast("long").alias(name) for name in ("good", "bad", "undecided")))
    )


def decided(good: Column, bad: Column, undecided: Column) -> OutcomeColumns:
    """The outcome of a row that is one thing at most; the first that is true holds."""
    bad_only = ~sf.coalesce(good, sf.lit(False)) & sf.coalesce(bad, sf.lit(False))
    rest = ~sf.coalesce(good, sf.lit(False)) & ~sf.coalesce(bad, sf.lit(False)) & sf.coalesce(undecided, sf.lit(False))
    return OutcomeColumns(_number(good), _number(bad_only), _number(rest))


def doubtful(about: Objective, listed: Iterable[Objective], took_us: Column, lagged_us: Column) -> Column:
    """Whether it is late for any objective about the indicator, perhaps only because the prober lagged (`Objective.is_doubtful`)."""
    thresholds_us = [one.threshold_us for one in listed if one.indicator is about.indicator]
    least_us = took_us - sf.coalesce(lagged_us, sf.lit(0))
    return reduce(or_, [(took_us > threshold_us) & (least_us <= threshold_us) for threshold_us in thresholds_us])


def _availability(_objective: Objective, _listed: Iterable[Objective]) -> OutcomeColumns:
    unanswered = sf.greatest(sf.col("attempts") - sf.col("confirmed") - sf.col("refused"), sf.lit(0))
    return _of_first(OutcomeColumns(sf.col("confirmed"), sf.col("refused"), unanswered))


def _publish_latency(objective: Objective, listed: Iterable[Objective]) -> OutcomeColumns:
    took_us = sf.col("confirmed_us") - sf.col("intended_us")
    doubt = sf.coalesce(doubtful(objective, listed, took_us, sf.col("confirmed_lagged_us")), sf.lit(False))
    unanswered = sf.col("attempts") > sf.col("confirmed") + sf.col("refused")
    return _of_first(decided(~doubt & (took_us <= objective.threshold_us), ~doubt & took_us.isNotNull(), doubt | unanswered))


def _end_to_end_latency(objective: Objective, listed: Iterable[Objective]) -> OutcomeColumns:
    took_us = sf.col("received_us") - sf.col("intended_us")
    doubt = sf.coalesce(doubtful(objective, listed, took_us, sf.col("received_lagged_us")), sf.lit(False))
    unreceived = sf.col("confirmed_us").isNotNull()
    late = ~doubt & took_us.isNotNull() | sf.col("overdue")
    return _of_first(decided(~doubt & (took_us <= objective.threshold_us), late, doubt | unreceived))


_OUTCOMES: Final = {
    Indicator.PUBLISH_AVAILABILITY: _availability,
    Indicator.PUBLISH_LATENCY: _publish_latency,
    Indicator.END_TO_END_LATENCY: _end_to_end_latency,
}


def _recorded(outcome: OutcomeColumns) -> OutcomeColumns:
    """Undecided if the record of its run is not complete: what is missing there may have come in time."""
    complete = sf.coalesce("complete", sf.lit(False))
    total = outcome.good + outcome.bad + outcome.undecided
    return OutcomeColumns(
        sf.when(complete, outcome.good).otherwise(0),
        sf.when(complete, outcome.bad).otherwise(0),
        sf.when(complete, outcome.undecided).otherwise(total),
    )


def _of_first(outcome: OutcomeColumns) -> OutcomeColumns:
    """A message that is owed to several subscriptions of its run counts for the first one only, as online."""
    first = sf.coalesce(sf.col("subscription") == sf.col("first"), sf.lit(True))
    return OutcomeColumns(*(sf.when(first, column).otherwise(0) for column in outcome))


def _unchecked(published: DataFrame, runs: DataFrame, objectives: Iterable[Objective]) -> DataFrame:
    names = [name for ours in _by_indicator(objectives, BY_RUN).values() for name in ours]
    cut_short = runs.where(sf.col("ended_us").isNull()).select("run")
    rows = published.join(sf.broadcast(cut_short), "run", "left_semi").where(sf.lit(bool(names)))
    each = sf.explode(sf.array(*map(sf.lit, names)) if names else sf.lit(None).cast("array<string>"))
    zero = sf.lit(0).cast("long")
    return rows.select("run", "subscription", "minute", "key", each.alias("objective"), sf.col("good").alias("undecided")).select(
        "run", "subscription", "minute", "key", "objective", zero.alias("good"), zero.alias("bad"), "undecided"
    )


def _missing(overdue: DataFrame, runs: DataFrame, objectives: Iterable[Objective]) -> DataFrame:
    """What is overdue in runs that were cut short is bad for completeness; of the others their checks say so."""
    names = _by_indicator(objectives, {Indicator.COMPLETENESS}).get(Indicator.COMPLETENESS.value, [])
    cut_short = runs.where(sf.col("ended_us").isNull()).select("run")
    rows = overdue.drop("objective").join(sf.broadcast(cut_short), "run", "left_semi").where(sf.lit(bool(names)))
    each = sf.explode(sf.array(*map(sf.lit, names)) if names else sf.lit(None).cast("array<string>"))
    return rows.select("run", "subscription", "minute", "key", each.alias("objective"), "good", "bad", "undecided")


def _by_indicator(objectives: Iterable[Objective], indicators: Collection[Indicator]) -> Mapping[str, list[str]]:
    """The names of the objectives about some indicators, by indicator."""
    names: dict[str, list[str]] = {}
    for objective in objectives:
        if objective.indicator in indicators:
            names.setdefault(objective.indicator.value, []).append(objective.name)
    return names


def _unpivoted(totals: DataFrame, names: Sequence[str]) -> DataFrame:
    """From a column per objective and outcome to a row per objective of which anything was counted."""
    fields = OutcomeColumns._fields
    structs = [
        sf.struct(sf.lit(name).alias("objective"), *(sf.col(f"{field}_{number}").alias(field) for field in fields))
        for number, name in enumerate(names)
    ]
    rows = totals.select("run", "subscription", "minute", "key", sf.explode(sf.array(*structs)).alias("one"))
    flat = rows.select("run", "subscription", "minute", "key", "one.*")
    return flat.where(sf.col("good") + sf.col("bad") + sf.col("undecided") > 0)


def _none_of(names: Iterable[str]) -> list[Column]:
    types = {"run": "long", "minute": "long", "good": "long", "bad": "long", "undecided": "long"}
    return [sf.lit(None).cast(types.get(name, "string")).alias(name) for name in names]


def _number(condition: Column) -> Column:
    return sf.coalesce(condition, sf.lit(False)).cast("int")
