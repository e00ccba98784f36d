"""The job `slo-burn`: burn rates of budgets, the times of alerts, and the spenders of the budgets.

It works in two steps. The counts per minute of a day (`slo-minutes`, a report of its own) need the day's messages; windows and alerts need
only the counts of a whole period. So no data of an earlier day is read twice, unless new files of it have arrived.

Reports: `windows` (a row per objective, target and window), `alerts` (a row per objective, target and alert), `spenders`. Exit code: 1 if a
budget is overspent or an alert would have fired on the day, 3 if no objective has a decided event in its period.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from functools import reduce
from math import ceil
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from prober.sinks.history.schema import EVENTS, FINDINGS, MESSAGES, RUNS
from prober.slo.objectives import DAY_S, Objective, objectives_as_json
from spark_jobs.burn import ALERT_DAYS, alert_days, breaches_of, spenders, window_lengths_min, window_rows, window_sums
from spark_jobs.history import MINUTE_US, Inputs, folders_of
from spark_jobs.slo_counts import check_counts, message_counts, proven_counts, redelivery_counts
from spark_jobs.slo_waits import long_waits, sampled_counts
from spark_jobs.tables import collected, frame_of, kept, kept_if_any
from spark_jobs.work import NOT_RECORDED, Draft, Exit, JobOutcome, Work, days_until, start_us

JOB: Final = "slo-burn"
MINUTES_JOB: Final = "slo-minutes"
NAMES_SHOWN: Final = 5
ONE_DAY: Final = timedelta(days=1)

COUNTS_TABLE: Final = "tallies"
"""Old name of the table of counts, on disk: stored reports must stay readable."""
MINUTES: Final = "objective string, target string, minute long, good long, bad long, undecided long"
WINDOWS: Final = (
    "objective string, indicator string, target string, window_s double, good long, bad long, undecided long, minutes long, "
    "error_ratio double, error_ratio_low double, error_ratio_high double, error_ratio_least double, error_ratio_most double, "
    "burn_rate double, burn_rate_low double, burn_rate_high double, budget_left double, exhausted_in_s double, never_exhausted boolean"
)


def run(work: Work) -> JobOutcome:
    """Report on the day."""
    objectives = [one for one in work.settings.objectives if one.indicator not in NOT_RECORDED]
    period_days = ceil(max((one.window_s for one in objectives), default=DAY_S) / DAY_S)
    days = days_until(work.day, max(period_days, 4))  # an alert looks three days back from the day's first minute
    for day in days:
        count_minutes(work, day, objectives)
    counted = work.reports.read(MINUTES_JOB, COUNTS_TABLE, days, MINUTES)
    with kept(counted) as minutes:
        draft = work.reports.draft(JOB, work.day)
        windows = _write_windows(work, draft, minutes, objectives)
        alerts = _write_alerts(work, draft, minutes, objectives)
    worst = _write_spenders(work, draft)
    return work.publish(draft, _outcome(work, windows, alerts), _summary(work, windows, alerts, worst))


def count_minutes(work: Work, day: date, objectives: Sequence[Objective]) -> None:
    """Update the report of a day's counts if it is out of date."""
    summary = work.reports.summary(MINUTES_JOB, day)
    if summary and day < work.day - timedelta(days=work.settings.look_back_days):
        return
    inputs = inputs_of(work, day, objectives)
    if not inputs.are_news_to(summary):
        return
    work.say(f"{MINUTES_JOB}: counting {day}")
    tables, messages = work.tables, work.messages(day)
    runs, findings = messages.runs, tables.findings(day - ONE_DAY, day + ONE_DAY)
    draft = work.reports.draft(MINUTES_JOB, day)
    with day_counts(messages.since(day - ONE_DAY), runs, findings, objectives, day) as counts:
        minutes = draft.write(COUNTS_TABLE, minute_counts(counts, runs))
        with kept_if_any(counts.where(sf.col("bad") > 0)) as bad:
            draft.write("spenders", spenders(bad, breaches_of(tables.findings(day, day), objectives), runs))
    totals = collected(minutes.groupBy("objective").agg(*(sf.sum(name).alias(name) for name in ("good", "bad", "undecided"))))
    draft.publish(inputs.noted() | {"counted": {row.pop("objective"): row for row in totals}})


@contextmanager
def day_counts(
    messages: DataFrame, runs: DataFrame, findings: DataFrame, objectives: Sequence[Objective], day: date
) -> Iterator[DataFrame]:
    """Provide all counts for the objectives on a day, rows of `slo_counts`; computed once, and stored until the block ends.

    messages    of the day and the day before. runs, findings: of the day and those around it.
    """
    span = start_us(day), start_us(day + ONE_DAY)
    midnight = sf.timestamp_micros(sf.lit(span[0]))
    today = messages.where(sf.col("intended_at") >= midnight)
    # Messages of the day before that wait beyond midnight count on this day too. Spark skips most of its files.
    lasting = messages.where(sf.col("waited_until") >= midnight)
    with kept_if_any(long_waits(lasting, runs, objectives)) as waits:
        parts = [
            message_counts(today, runs, findings, objectives, *span),
            check_counts(runs, objectives, *span),
            proven_counts(runs, findings, objectives, *span),
            redelivery_counts(messages, runs, objectives, *span),
            *sampled_counts(lasting, waits, runs, objectives, *span),
        ]
        with kept(reduce(DataFrame.unionByName, parts)) as counts:
            yield counts


def minute_counts(counts: DataFrame, runs: DataFrame) -> DataFrame:
    """Add up rows of `slo_counts` by objective, target and minute; the target of an unknown run is empty."""
    return (
        counts.join(sf.broadcast(runs.select("run", "target")), "run", "left")
        .groupBy("objective", sf.coalesce("target", sf.lit("")).alias("target"), "minute")
        .agg(*(sf.sum(name).cast("long").alias(name) for name in ("good", "bad", "undecided")))
    )


def inputs_of(work: Work, day: date, objectives: Iterable[Objective]) -> Inputs:
    """Return the input files of a day's counts, with the objectives; none if there was no run."""
    if not work.history.files([*folders_of(EVENTS, day, day), *folders_of(RUNS, day, day)]):
        return Inputs()
    around = folders_of(EVENTS, day, day, hours_around=1)
    # The next day's folders of the other tables fill all day; their rows for this day arrive with the events of its first hour.
    around += [folder for table in (RUNS, FINDINGS, MESSAGES) for folder in folders_of(table, day - ONE_DAY, day)]
    return work.history.inputs(around, objectives_as_json(objectives))


def _write_windows(work: Work, draft: Draft, minutes: DataFrame, objectives: Sequence[Objective]) -> list[dict[str, Any]]:
    lengths = sorted({length for one in objectives for length in window_lengths_min(one)})
    if not lengths:
        return []
    until = -(-work.until_us // MINUTE_US)
    rows = window_rows(collected(window_sums(minutes, lengths, until)), objectives, until)
    draft.write("windows", frame_of(work.spark, rows, WINDOWS))
    return rows


def _write_alerts(work: Work, draft: Draft, minutes: DataFrame, objectives: Sequence[Objective]) -> list[dict[str, Any]]:
    since, until = work.since_us // MINUTE_US, -(-work.until_us // MINUTE_US)
    rows = alert_days(minutes, objectives, since, max(until, since + 1))
    return collected(draft.write("alerts", frame_of(work.spark, rows, ALERT_DAYS)))


def _write_spenders(work: Work, draft: Draft) -> list[dict[str, Any]]:
    schema = "objective string, target string, by string, value string, bad long, share double, others long"
    rows = draft.write("spenders", work.reports.read(MINUTES_JOB, "spenders", [work.day], schema))
    return collected(rows.where((sf.col("by") == "key") & (sf.col("others") == 0)).orderBy(sf.desc("bad")).limit(10))


def _summary(
    work: Work, windows: Sequence[Mapping[str, Any]], alerts: Sequence[Mapping[str, Any]], worst: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    known = {row["objective"] for row in windows}
    return {
        "objectives": [row for row in windows if _is_period(work, row)],
        "fired": [row for row in alerts if row["firing"]],
        "spenders": list(worst),
        "without_data": sorted({one.name for one in work.settings.objectives} - known),
    }


def _outcome(work: Work, windows: Sequence[Mapping[str, Any]], alerts: Sequence[Mapping[str, Any]]) -> JobOutcome:
    periods = [row for row in windows if _is_period(work, row)]
    decided = [row for row in periods if row["burn_rate"] is not None]
    overspent = sorted({f"{row['objective']} of {row['target']}" for row in decided if row["budget_left"] < 0})
    fired = sorted({f"{row['objective']} of {row['target']}" for row in alerts if row["firing"]})
    if not decided:
        return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, nothing was decided for any objective")
    said = [f"{len(decided)} objectives looked at"]
    if overspent:
        said.append(f"overspent: {_few(overspent)}")
    if fired:
        said.append(f"alerts fired: {_few(fired)}")
    failed = bool(overspent or fired)
    return JobOutcome(Exit.FAIL if failed else Exit.PASS, f"{JOB} {work.day}: {'FAIL' if failed else 'PASS'}, {'; '.join(said)}")


def _is_period(work: Work, row: Mapping[str, Any]) -> bool:
    return any(one.name == row["objective"] and one.window_s == row["window_s"] for one in work.settings.objectives)


def _few(names: Sequence[str]) -> str:
    rest = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
