"""The job `reverify`: judges every run of a day again from its record, and compares that with what was found online.

The same checker sees the same events (`spark_jobs.fold`), so it finds the same, unless the checker has changed since, a file is
damaged, or the online findings did not all get into the history. A run that was divided by key is judged once more in one piece if
something did not come in time there: on that other keys have a say. Each difference is a finding of its own:

* `missing`      found now, and not online.
* `additional`   found online, and not now.
* `status`       found both times, with another certainty.

A finding that was counted online, and whose row alone is not in the history, is `unlisted`, which is no fault. Findings of status info are
not compared. Neither are runs that cannot be judged as they were online: those of several processes, and those of which events are
not in the history.

The summary says by target what became known of its promises (`by_target`): the broken ones that were found online, too, those that were
found only now, and those of which nobody knows whether they were, since their runs are not compared or were cut short.

Reports: `runs`, `findings` (all but those of status info), `differences`. Exit code: 1 if a promise was broken or the judgements
differ, 3 if there was no run to judge, or the checker failed on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from prober.core.findings import FAILING, Status
from prober.core.verdict import Verdict
from prober.sinks.history.schema import ABOUT_TIME, EVENTS, FINDINGS, RUNS
from spark_jobs.fold import FOUND, folding
from spark_jobs.frames import collected, held, kept
from spark_jobs.history import folders_of, runs_of
from spark_jobs.packing import PACKAGES, PACKED_COLUMNS, JudgingPlan, packing
from spark_jobs.scan import Chunk, Scan, numbered
from spark_jobs.work import Exit, JobOutcome, Work, start_us

JOB: Final = "reverify"
SHARD_EVENTS: Final = 1_000_000
"""Events that one checker judges; a larger run is divided."""
RUN_DAYS_MAX: Final = 2
"""How many days before the one on which it ended a run may have begun; the first part of a longer one is a hole in its record."""
BROKEN: Final = tuple(sorted(status.value for status in FAILING))
COMPARED: Final = ("whole", "prefix")
"""The scopes of runs of which it is certain what was found online."""
_EXTENT: Final = "run_id string, process string, recorded long, highest long"
_EXTENT_NAMES: Final = ("run_id", "process", "recorded", "highest")
IDENTITY: Final = ("run_id", "subscription", "key", "kind", "witnesses")


def run(work: Work) -> JobOutcome:
    """Reports on the day."""
    first = work.day - timedelta(days=RUN_DAYS_MAX)
    rows = work.history.read(RUNS, folders_of(RUNS, first, work.day, hours_around=1))
    runs = held(of_day(runs_of(rows), work.day))
    began_us = collected(runs.agg(sf.min("began_us").alias("first")))[0]["first"]
    if began_us is None:
        return _nothing(work)
    events = work.history.events(folders_of(EVENTS, max(first, _day_of(began_us)), work.day, hours_around=1)).scan
    measured = held(extents(events, runs))
    plans = plans_of(collected(measured), work.settings.clock_error_s)
    with (
        kept(judged(events, plans, work.settings.clock_error_s)) as in_parts,
        kept(judged_whole(events, in_parts, plans, work.settings.clock_error_s)) as found,
    ):
        return _report(work, measured, found)


def of_day(runs: DataFrame, day: date) -> DataFrame:
    """The runs that ended on a day, and those that began on it and never ended."""
    within = (start_us(day), start_us(day + timedelta(days=1)) - 1)
    cut_short = sf.col("ended_us").isNull() & sf.col("began_us").between(*within)
    return runs.where(sf.col("ended_us").between(*within) | cut_short)


def extents(events: Scan, runs: DataFrame) -> DataFrame:
    """The runs with what is on record of them: `recorded` events, the `highest` number, how many `processes`, and the `scope`.

    scope   whole; prefix (judging stopped before the end); cut_short (it has no end); holed (events are missing); merged.
    """
    parts = events.reduced_whole(_extent, ("run_id", "process", "number"), _EXTENT)
    on_record = parts.groupBy("run_id").agg(
        sf.sum("recorded").alias("recorded"), sf.max("highest").alias("highest"), sf.count_distinct("process").alias("processes")
    )
    joined = runs.join(on_record, "run_id", "left").fillna({"recorded": 0, "highest": 0, "processes": 1})
    expected = sf.coalesce(sf.col("events") - sf.col("events_dropped"), sf.col("highest"))
    holed = (sf.col("recorded") < expected) | (sf.coalesce("events_dropped", sf.lit(0)) > 0)
    scope = (
        sf.when(sf.col("processes") > 1, "merged")
        .when(holed, "holed")
        .when(sf.col("ended_us").isNull(), "cut_short")
        .when(sf.col("judged_events").isNotNull(), "prefix")
        .otherwise("whole")
    )
    return joined.withColumn("scope", scope)


def _extent(chunk: Chunk) -> Iterator[pa.RecordBatch]:
    """How many events of each run and process, and the highest number of them."""
    place, count = numbered(chunk.places("run_id"), chunk.places("process"))
    example = np.zeros(count, np.int64)
    example[place] = np.arange(len(chunk))
    highest = np.zeros(count, np.int64)
    np.maximum.at(highest, place, chunk.numbers("number"))
    recorded = np.bincount(place, minlength=count)
    used = np.flatnonzero(recorded)
    names = [chunk.value(name, example[used]) for name in ("run_id", "process")]
    yield pa.RecordBatch.from_arrays([*names, pa.array(recorded[used]), pa.array(highest[used])], [*_EXTENT_NAMES])


def plans_of(runs: list[dict[str, Any]], clock_error_s: float) -> dict[str, JudgingPlan]:
    """How each run is to be judged, by its id."""
    return {
        row["run_id"]: JudgingPlan(
            rules=row["rules"],
            limit=row["judged_events"],
            settled=row["ended_us"] is not None and row["judged_events"] is None,
            merged=row["scope"] == "merged",
            clock_error_s=clock_error_s if row["scope"] == "merged" else 0.0,
            # Holes show in the numbering of a whole run only; what is merged has no common numbering.
            shards=1 if row["recorded"] != row["highest"] else -(-row["recorded"] // SHARD_EVENTS),
        )
        for row in runs
        if row["recorded"]
    }


def judged(events: Scan, plans: Mapping[str, JudgingPlan], clock_error_s: float) -> DataFrame:
    """What the checker says about these runs: rows of `spark_jobs.fold.FOUND`."""
    packages = events.reduced_whole(packing(plans, clock_error_s), PACKED_COLUMNS, PACKAGES)
    # As many parts as tasks that read: Spark would merge them by their size, which says nothing of the time that the checker takes.
    divided = packages.repartition(events.tasks_max, "run_id", "shard").sortWithinPartitions("run_id", "shard", "stretch")
    return divided.mapInArrow(folding(plans), FOUND)


def judged_whole(events: Scan, found: DataFrame, plans: Mapping[str, JudgingPlan], clock_error_s: float) -> DataFrame:
    """What was found, with the divided runs judged in one piece where a part of their keys does not say enough."""
    late = found.where(sf.col("kind").isin(*(kind.value for kind in ABOUT_TIME))).select("run_id").distinct()
    again = {
        run_id: replace(plans[run_id], shards=1)
        for run_id in (row["run_id"] for row in collected(late))
        if plans[run_id].shards > 1
    }
    if not again:
        return found
    return found.where(~sf.col("run_id").isin(*again)).unionByName(judged(events, again, clock_error_s))


def differences(found: DataFrame, online: DataFrame, runs: DataFrame) -> DataFrame:
    """How what was found now differs from the online findings: `IDENTITY`, difference, status, online_status, explanation."""
    telling = sf.col("status") != Status.INFO.value
    comparable = sf.broadcast(runs.where(~sf.col("scope").isin("merged", "holed")).select("run_id", "scope"))
    # What is found twice with the same proof differs if it is found once online.
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
    # The process that was cut short may not have had the time to write down what it found.
    excused = (sf.col("scope") == "cut_short") & (difference == "missing")
    rows = both.withColumn("difference", difference).where(sf.col("difference").isNotNull() & ~sf.coalesce(excused, sf.lit(False)))
    return _with_unlisted(rows, found, runs).select(
        *IDENTITY, "difference", "status", "online_status", sf.coalesce("explanation", "said").alias("explanation")
    )


def _with_unlisted(rows: DataFrame, found: DataFrame, runs: DataFrame) -> DataFrame:
    """What is missing among the online findings of a kind and status that were counted in full is unlisted."""
    online = runs.select("run_id", sf.explode("finding_counts").alias("one")).select("run_id", "one.*")
    now = found.groupBy("run_id", "kind", "status").agg(sf.count("*").alias("count"))
    agreed = now.join(online, ["run_id", "kind", "status", "count"], "left_semi").select(
        "run_id", "kind", "status", sf.lit(True).alias("agreed")
    )
    joined = rows.join(sf.broadcast(agreed), ["run_id", "kind", "status"], "left")
    unlisted = (sf.col("difference") == "missing") & sf.coalesce("agreed", sf.lit(False))
    return joined.withColumn("difference", sf.when(unlisted, "unlisted").otherwise(sf.col("difference")))


def verdicts(found: DataFrame, runs: DataFrame) -> DataFrame:
    """A row per run: what its record allows, how many events were judged, and the verdict, now and online."""
    failing = sf.col("kind").isNotNull() & sf.col("status").isin(*BROKEN)
    totals = found.groupBy("run_id").agg(
        sf.sum("events").alias("judged"),
        sf.coalesce(sf.bool_or("owed"), sf.lit(True)).alias("owed"),
        sf.max(sf.when(sf.col("crash") != "", sf.col("crash"))).alias("crash"),
        sf.count_if(failing).alias("failures"),
    )
    verdict: Column = (
        sf.when(sf.col("crash").isNotNull(), Verdict.UNKNOWN.value)
        .when(sf.col("failures") > 0, Verdict.FAIL.value)
        .when(sf.coalesce("owed", sf.lit(True)) | (sf.col("scope") != "whole"), Verdict.UNKNOWN.value)
        .otherwise(Verdict.PASS.value)
    )
    names = ("run_id", "target", "probe", "vantage", "scope", "recorded", "judged", "failures", "crash")
    online = sf.col("verdict").alias("online_verdict")
    return (
        runs.join(totals, "run_id", "left")
        .select(*names, online, verdict.alias("verdict_now"))
        .withColumnRenamed("verdict_now", "verdict")
    )


def by_target(found: DataFrame, different: DataFrame, judgements: DataFrame) -> dict[str, dict[str, Any]]:
    """What became known of each target: how many runs were judged, on how many the checker failed, and `broken`, by kind and status.

    also_online     broken promises that were found online, too.
    only_now        those that were not, or not as certain.
    online_unknown  those of runs of which it is not known what was found online.
    """
    targets: dict[str, dict[str, Any]] = {}
    judged_runs = sf.count_if(sf.col("crash").isNull() & (sf.coalesce("judged", sf.lit(0)) > 0)).alias("judged")
    crashes = sf.count_if(sf.col("crash").isNotNull()).alias("crashes")
    for row in collected(judgements.groupBy("target").agg(judged_runs, crashes).orderBy("target")):
        targets[row["target"]] = {"judged": row["judged"], "crashes": row["crashes"], "broken": []}
    for row in collected(_broken(found, different, judgements)):
        targets[row.pop("target")]["broken"].append(row)
    return targets


def _broken(found: DataFrame, different: DataFrame, judgements: DataFrame) -> DataFrame:
    """The broken promises by target, kind and status, counted as `by_target` says."""
    each = ("run_id", "kind", "status")
    broken, counted_online = sf.col("status").isin(*BROKEN), sf.coalesce(sf.col("online_status").isin(*BROKEN), sf.lit(False))
    unheard = different.where(broken & (sf.col("difference") != "unlisted") & ~counted_online)
    now = found.where(broken).groupBy(*each).agg(sf.count("*").alias("now"))
    counts = now.join(unheard.groupBy(*each).agg(sf.count("*").alias("unheard")), list(each), "left").fillna({"unheard": 0})
    compared = sf.col("scope").isin(*COMPARED)
    return (
        counts.join(judgements.select("run_id", "target", "scope"), "run_id")
        .groupBy("target", "kind", "status")
        .agg(
            sf.sum(sf.when(compared, sf.col("now") - sf.col("unheard")).otherwise(0)).alias("also_online"),
            sf.sum(sf.when(compared, sf.col("unheard")).otherwise(0)).alias("only_now"),
            sf.sum(sf.when(compared, 0).otherwise(sf.col("now"))).alias("online_unknown"),
        )
        .orderBy("target", "kind", "status")
    )


def _report(work: Work, runs: DataFrame, found: DataFrame) -> JobOutcome:
    draft = work.reports.draft(JOB, work.day)
    findings = found.where(sf.col("kind").isNotNull())
    about = sf.broadcast(runs.select("run_id", "target", "region", "probe", "vantage"))
    shown = (
        findings.where(sf.col("status") != Status.INFO.value).drop("shard", "events", "owed", "crash").join(about, "run_id", "left")
    )
    written = draft.write("findings", shown)
    online = work.history.read(FINDINGS, folders_of(FINDINGS, work.day - timedelta(days=RUN_DAYS_MAX), work.day, hours_around=1))
    different = draft.write("differences", differences(findings, online, runs))
    judgements = draft.write("runs", verdicts(found, runs))
    counts = {
        "runs": _counts(judgements, "verdict"),
        "scopes": _counts(judgements, "scope"),
        "findings": _counts(written, "status"),
        "kinds": _counts(written.where(sf.col("status").isin(*BROKEN)), "kind"),
        "differences": _counts(different, "difference"),
        "by_target": by_target(written, different, judgements),
        "crashes": judgements.where(sf.col("crash").isNotNull()).count(),
    }
    return work.publish(draft, _outcome(work, counts), counts)


def _outcome(work: Work, counts: Mapping[str, Any]) -> JobOutcome:
    broken = sum(count for status, count in counts["findings"].items() if status in BROKEN)
    different = sum(count for name, count in counts["differences"].items() if name != "unlisted")
    total = sum(counts["runs"].values())
    said = f"{total} runs judged again, {broken} broken promises, {different} differences from the online judgement"
    if counts["crashes"]:
        return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, {said}; the checker failed on {counts['crashes']} runs")
    failed = bool(broken or different)
    return JobOutcome(Exit.FAIL if failed else Exit.PASS, f"{JOB} {work.day}: {'FAIL' if failed else 'PASS'}, {said}")


def _nothing(work: Work) -> JobOutcome:
    return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, no run began or ended on that day")


def _counts(rows: DataFrame, name: str) -> dict[str, int]:
    return {row[name]: row["count"] for row in collected(rows.groupBy(name).count().orderBy(name))}


def _day_of(time_us: int) -> date:
    return date(1970, 1, 1) + timedelta(microseconds=time_us)
