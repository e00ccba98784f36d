"""The job `retention`: deletion of the days of the history that are too old.

The service deletes data older than its own `history.retention`. This job is for histories that several services write, or for a store where
only the nightly jobs may delete. Without `--keep-days` it deletes nothing.

Report: the deleted days. The exit code is 0.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from prober.sinks.history.schema import TABLES
from spark_jobs.work import Exit, JobOutcome, Work

JOB: Final = "retention"


def run(work: Work) -> JobOutcome:
    """Delete all days before the last `keep_days` ones, of all tables. Raises `JobError` if the history cannot be read."""
    gone = _too_old(work)
    for table in TABLES.values():
        for day in gone:
            work.history.storage.delete(f"{table.name}/date={day.isoformat()}")
    kept = "every day is kept" if work.settings.keep_days is None else f"{len(gone)} days too old and deleted"
    outcome = JobOutcome(Exit.PASS, f"{JOB} {work.day}: PASS, {kept}")
    return work.publish(work.reports.draft(JOB, work.day), outcome, {"days_deleted": [day.isoformat() for day in gone]})


def _too_old(work: Work) -> list[date]:
    if work.settings.keep_days is None:
        return []
    today = date(1970, 1, 1) + timedelta(seconds=work.now)
    oldest = today - timedelta(days=work.settings.keep_days)
    return sorted({day for table in TABLES.values() for day in work.history.dates(table) if day < oldest})
