"""The job `nightly`: all jobs for one day, and again for earlier days with late data.

The jobs that only read run in parallel: while the driver plans for one of them, executors work for another. Retention runs last, so that it
deletes nothing that the others read. A job that fails does not stop the others. An earlier day is processed again if new files have arrived
since its reports were made, or if a job failed on it, up to `look_back_days` back.

Report: the outcome of every job. Exit code: the worst of them, where 1 is worse than 3 and 3 worse than 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Final, NamedTuple

from prober.clock import monotonic_s
from prober.sinks.history.schema import TABLES
from prober.slo.objectives import objectives_as_json
from spark_jobs import hot_keys, retention, reverify, slo_burn
from spark_jobs.derive import Night
from spark_jobs.history import Inputs, folders_of
from spark_jobs.storage import FAILURES, JobError, reason_of
from spark_jobs.work import Exit, JobOutcome, Work, days_until, unknown

JOB: Final = "nightly"
JOBS: Final[Mapping[str, Callable[[Work], JobOutcome]]] = {
    hot_keys.JOB: hot_keys.run,
    slo_burn.JOB: slo_burn.run,
    reverify.JOB: reverify.run,
    retention.JOB: retention.run,
}
"""The jobs by name, in their order."""

_GRAVITY: Final = (Exit.PASS, Exit.UNKNOWN, Exit.FAIL)


def run(work: Work) -> JobOutcome:
    """Run all jobs for the day and for earlier days with late data."""
    late = [day for day in days_until(work.day - timedelta(days=1), work.settings.look_back_days) if _is_late(work, day)]
    nights = [_night(replace(work, day=day, began_s=monotonic_s())) for day in [*late, work.day]]
    worst = max((night.exit for night in nights), key=_GRAVITY.index)
    again = f"; done again: {', '.join(map(str, late))}" if late else ""
    return JobOutcome(worst, nights[-1].line + again)


def _night(work: Work) -> JobOutcome:
    noted = inputs_of(work, work.day).noted()
    ends = _carried_out(work)
    if any(end.failed for end in ends.values()):
        noted = {}
    worst = max((end.outcome.exit for end in ends.values()), key=_GRAVITY.index)
    said = ", ".join(f"{name} {end.outcome.exit.name}" for name, end in ends.items())
    jobs = {name: {"verdict": end.outcome.exit.name, "line": end.outcome.line} for name, end in ends.items()}
    outcome = JobOutcome(worst, f"{JOB} {work.day}: {worst.name}, {said}")
    return work.publish(work.reports.draft(JOB, work.day), outcome, {"jobs": jobs, **noted})


class _End(NamedTuple):
    """Outcome of a job, and whether the job itself failed."""

    outcome: JobOutcome
    failed: bool


def _carried_out(work: Work) -> dict[str, _End]:
    """Run all jobs, those that only read in parallel; return their ends by name."""
    readers = [name for name in JOBS if name != retention.JOB]
    together = replace(work, night=Night())
    with ThreadPoolExecutor(len(readers)) as pool:
        ends = dict(zip(readers, pool.map(partial(_end_of, together), readers), strict=True))
    return ends | {name: _end_of(work, name) for name in JOBS if name not in ends}


def _end_of(work: Work, name: str) -> _End:
    began_s = monotonic_s()
    work.say(f"{work.day}: {name} begins")
    try:
        end = _End(JOBS[name](replace(work, began_s=began_s)), failed=False)
    except JobError as error:
        end = _End(unknown(name, work, str(error)), failed=True)
    except FAILURES as error:
        end = _End(unknown(name, work, reason_of(error)), failed=True)
    work.say(f"{end.outcome.line} ({monotonic_s() - began_s:.0f} s)")
    return end


def _is_late(work: Work, day: date) -> bool:
    return inputs_of(work, day).are_news_to(work.reports.summary(JOB, day))


def inputs_of(work: Work, day: date) -> Inputs:
    """Return the inputs of a day's reports, without files of other days."""
    folders = [folder for table in TABLES.values() for folder in folders_of(table, day, day)]
    return work.history.inputs(folders, objectives_as_json(work.settings.objectives))
