"""The job `reverify`: a second verification of each run of a day from its record, compared with the online findings.

The same checker verifies the same events (`spark_jobs.verification`), so its findings are the same, unless the checker has changed since, a
file is damaged, or some online findings are missing in the history. Each difference is a finding of its own:

* `missing`      found now, not online.
* `additional`   found online, not now.
* `status`       found both times, with different certainty.

A finding that was counted online, but whose row is missing in the history, is `unlisted`, which is no fault. Findings of status info are
not compared. Runs that cannot be verified as online are not compared either: those with events missing in the history, and those of several
processes, which are not verified.

The summary counts violated guarantees by target (`by_target`): those also found online, those found only now, and those with an unknown
online result, since their runs are not compared or were cut short.

Reports: `runs`, `findings` (all but those of status info), `differences`. Exit code: 1 if a guarantee was violated or the results differ, 3
if there was no run to verify, or the checker failed on one. Nothing is verified if a file of events is damaged.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from prober.core.findings import FAILING, Status
from prober.core.verdict import Verdict
from prober.sinks.history.checking import RunRecord
from prober.slo.objectives import MICROS
from spark_jobs.storage import JobError
from spark_jobs.tables import collected, frame_of, held, kept
from spark_jobs.verification import COLUMNS, FOUND, OUTCOME, RunPlan, verification
from spark_jobs.work import Exit, JobOutcome, Work, start_us

JOB: Final = "reverify"
RUN_DAYS_MAX: Final = 2
"""Maximum number of days between start and end of a run; the first part of a longer one is missing in its record."""
BROKEN: Final = tuple(sorted(status.value for status in FAILING))
HOUR_US: Final = 3600 * MICROS
COMPARED: Final = ("whole", "prefix", "stopped")
"""Scopes of runs whose online findings are known."""
UNCOMPARED: Final = ("merged", "holed", "damaged")
IDENTITY: Final = ("run_id", "subscription", "key", "kind", "witnesses")


def run(work: Work) -> JobOutcome:
    """Report on the day."""
    tables = work.tables
    first, last = work.day - timedelta(days=RUN_DAYS_MAX), work.day + timedelta(days=1)
    runs = held(of_day(tables.runs(first, last), work.day))
    began_us = collected(runs.agg(sf.min("began_us").alias("first")))[0]["first"]
    if began_us is None:
        return _nothing(work)
    # An hour around, for the rows of a run are not of quite the same time as its first and last events.
    since_us, until_us = max(start_us(first), began_us) - HOUR_US, start_us(last) + HOUR_US - 1
    if damaged := tables.damaged_events(since_us, until_us):
        raise JobError(f"damaged, so that nothing was verified: {', '.join(damaged)}")
    events = tables.events(since_us, until_us, each_once=False)  # the checker skips duplicates
    with kept(verified(events, runs)) as found:
        return _report(work, with_outcomes(runs, found), found, tables.findings(first, last))


def of_day(runs: DataFrame, day: date) -> DataFrame:
    """Return the runs that ended on a day, and those that started on it and never ended."""
    within = (start_us(day), start_us(day + timedelta(days=1)) - 1)
    cut_short = sf.col("ended_us").isNull() & sf.col("began_us").between(*within)
    return runs.where(sf.col("ended_us").between(*within) | cut_short)


def verified(events: DataFrame, runs: DataFrame) -> DataFrame:
    """Verify these runs; return rows of `spark_jobs.verification.FOUND`. `events` may contain other runs, and duplicates."""
    plans = {row["run_id"]: RunPlan(sys.intern(row["rules"]), RunRecord.of(row)) for row in collected(runs)}
    wanted = events.select(*COLUMNS).join(sf.broadcast(runs.select("run_id")), "run_id", "left_semi")
    # An explicit number of parts: Spark would merge them by size, which is unrelated to the time of the checker.
    parts = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return (
        wanted.repartition(parts, "run_id")
        .sortWithinPartitions("run_id", "number", "process")
        .mapInArrow(verification(plans), FOUND)
    )


def with_outcomes(runs: DataFrame, found: DataFrame) -> DataFrame:
    """Return the runs with the outcome of their verification, `OUTCOME`; null for a run without events."""
    empty = frame_of(
        runs.sparkSession,
        ({"run_id": row["run_id"], "empty_scope": RunRecord.of(row).scope(0, 0).value} for row in collected(runs)),
        "run_id string, empty_scope string",
    )
    outcomes = found.where(sf.col("kind").isNull()).select("run_id", *OUTCOME)
    return held(
        runs.join(empty, "run_id")
        .join(outcomes, "run_id", "left")
        .withColumn("scope", sf.coalesce("scope", "empty_scope"))
        .drop("empty_scope")
        .fillna({"recorded": 0, "verdict_now": Verdict.UNKNOWN.value})
    )


def differences(found: DataFrame, online: DataFrame, runs: DataFrame) -> DataFrame:
    """Return the differences between present and online findings: `IDENTITY`, difference, status, online_status, explanation."""
    telling = sf.col("status") != Status.INFO.value
    comparable = sf.broadcast(runs.where(~sf.col("scope").isin(*UNCOMPARED)).select("run_id", "scope"))
    # Two present findings with the same proof differ from one online.
    place = sf.row_number().over(Window.partitionBy(*IDENTITY).orderBy("status")).alias("place")
    now = found.where(telling).join(comparable, "run_id").select(*IDENTITY, place, "scope", "status", "explanation")
    then = (
        online.where(telling)
        .join(comparable, "run_id")
        .select(
            *IDENTITY,
            place,
            sf.col("scope").alias("online_scope"),
            sf.col("status").alias("online_status"),
            sf.col("explanation").alias("said"),
        )
    )
    both = now.join(then, [*IDENTITY, "place"], "full_outer")
    difference = (
        sf.when(sf.col("online_status").isNull(), "missing")
        .when(sf.col("status").isNull(), "additional")
        .when(sf.col("status") != sf.col("online_status"), "status")
    )
    # The process that was cut short may not have had the time to record its findings.
    excused = (sf.col("scope") == "cut_short") & (difference == "missing")
    rows = both.withColumn("difference", difference).where(sf.col("difference").isNotNull() & ~sf.coalesce(excused, sf.lit(False)))
    return _with_unlisted(rows, found, runs).select(
        *IDENTITY, "difference", "status", "online_status", sf.coalesce("explanation", "said").alias("explanation")
    )


def _with_unlisted(rows: DataFrame, found: DataFrame, runs: DataFrame) -> DataFrame:
    """Mark missing findings as `unlisted` if the online count of their kind and status equals the present one."""
    online = runs.select("run_id", sf.explode("finding_counts").alias("one")).select("run_id", "one.*")
    now = found.groupBy("run_id", "kind", "status").agg(sf.count("*").alias("count"))
    agreed = now.join(online, ["run_id", "kind", "status", "count"], "left_semi").select(
        "run_id", "kind", "status", sf.lit(True).alias("agreed")
    )
    joined = rows.join(sf.broadcast(agreed), ["run_id", "kind", "status"], "left")
    unlisted = (sf.col("difference") == "missing") & sf.coalesce("agreed", sf.lit(False))
    return joined.withColumn("difference", sf.when(unlisted, "unlisted").otherwise(sf.col("difference")))


def verdicts(findings: DataFrame, runs: DataFrame) -> DataFrame:
    """Return a row per run: scope of its record, number of verified events, and the verdict, now and online."""
    failures = findings.where(sf.col("status").isin(*BROKEN)).groupBy("run_id").agg(sf.count("*").alias("failures"))
    names = ("run_id", "target", "probe", "vantage", "scope", "recorded", "verified", "failures", "crash")
    online, now = sf.col("verdict").alias("online_verdict"), sf.col("verdict_now").alias("verdict")
    return runs.join(failures, "run_id", "left").select(*names, online, now)


def by_target(found: DataFrame, different: DataFrame, verifications: DataFrame) -> dict[str, dict[str, Any]]:
    """Return the results by target.

    These are the number of verified runs, the number of runs on which the checker failed, and `broken`, by kind and status.

    also_online     violated guarantees also found online.
    only_now        violated guarantees not found online, or with less certainty.
    online_unknown  violated guarantees of runs whose online findings are unknown.
    """
    targets: dict[str, dict[str, Any]] = {}
    verified_runs = sf.count_if(sf.col("crash").isNull() & (sf.coalesce("verified", sf.lit(0)) > 0)).alias("verified")
    crashes = sf.count_if(sf.col("crash").isNotNull()).alias("crashes")
    for row in collected(verifications.groupBy("target").agg(verified_runs, crashes).orderBy("target")):
        targets[row["target"]] = {"verified": row["verified"], "crashes": row["crashes"], "broken": []}
    for row in collected(_broken(found, different, verifications)):
        targets[row.pop("target")]["broken"].append(row)
    return targets


def _broken(found: DataFrame, different: DataFrame, verifications: DataFrame) -> DataFrame:
    """Return the violated guarantees by target, kind and status, with the counts of `by_target`."""
    each = ("run_id", "kind", "status")
    broken, counted_online = sf.col("status").isin(*BROKEN), sf.coalesce(sf.col("online_status").isin(*BROKEN), sf.lit(False))
    unheard = different.where(broken & (sf.col("difference") != "unlisted") & ~counted_online)
    now = found.where(broken).groupBy(*each).agg(sf.count("*").alias("now"))
    counts = now.join(unheard.groupBy(*each).agg(sf.count("*").alias("unheard")), list(each), "left").fillna({"unheard": 0})
    compared = sf.col("scope").isin(*COMPARED)
    return (
        counts.join(verifications.select("run_id", "target", "scope"), "run_id")
        .groupBy("target", "kind", "status")
        .agg(
            sf.sum(sf.when(compared, sf.col("now") - sf.col("unheard")).otherwise(0)).alias("also_online"),
            sf.sum(sf.when(compared, sf.col("unheard")).otherwise(0)).alias("only_now"),
            sf.sum(sf.when(compared, 0).otherwise(sf.col("now"))).alias("online_unknown"),
        )
        .orderBy("target", "kind", "status")
    )


def _report(work: Work, runs: DataFrame, found: DataFrame, online: DataFrame) -> JobOutcome:
    draft = work.reports.draft(JOB, work.day)
    findings = found.where(sf.col("kind").isNotNull()).drop(*OUTCOME)
    about = sf.broadcast(runs.select("run_id", "target", "region", "probe", "vantage"))
    shown = findings.where(sf.col("status") != Status.INFO.value).join(about, "run_id", "left")
    written = draft.write("findings", shown)
    different = draft.write("differences", differences(findings, online, runs))
    verifications = draft.write("runs", verdicts(findings, runs))
    counts = {
        "runs": _counts(verifications, "verdict"),
        "scopes": _counts(verifications, "scope"),
        "findings": _counts(written, "status"),
        "kinds": _counts(written.where(sf.col("status").isin(*BROKEN)), "kind"),
        "differences": _counts(different, "difference"),
        "by_target": by_target(written, different, verifications),
        "crashes": verifications.where(sf.col("crash").isNotNull()).count(),
    }
    return work.publish(draft, _outcome(work, counts), counts)


def _outcome(work: Work, counts: Mapping[str, Any]) -> JobOutcome:
    broken = sum(count for status, count in counts["findings"].items() if status in BROKEN)
    different = sum(count for name, count in counts["differences"].items() if name != "unlisted")
    total = sum(counts["runs"].values())
    said = f"{total} runs verified again, {broken} violated guarantees, {different} differences from the online verification"
    if counts["crashes"]:
        return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, {said}; the checker failed on {counts['crashes']} runs")
    failed = bool(broken or different)
    return JobOutcome(Exit.FAIL if failed else Exit.PASS, f"{JOB} {work.day}: {'FAIL' if failed else 'PASS'}, {said}")


def _nothing(work: Work) -> JobOutcome:
    return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, no run began or ended on that day")


def _counts(rows: DataFrame, name: str) -> dict[str, int]:
    return {row[name]: row["count"] for row in collected(rows.groupBy(name).count().orderBy(name))}
