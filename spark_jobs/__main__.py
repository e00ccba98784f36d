"""The command line of the jobs: `python -m spark_jobs JOB --history URI --reports URI --date YYYY-MM-DD`, or the same under spark-submit.

Exit codes: 0 no problem; 1 a guarantee was violated, an objective missed or a key urgently hot, see each job; 2 wrong usage; 3 undecided.
With `--exit-zero-on-findings` code 1 becomes 0, for schedulers that treat any other code as a failed job. Standard output gets one line
with the result, standard error the log. With `--log-format json` standard output gets both, as one JSON object per line; the last one is
the result.
"""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any, Final, NoReturn

from prober.clock import wall_s
from prober.logs import set_up
from spark_jobs import nightly
from spark_jobs.history import History
from spark_jobs.session import DRIVER_MEMORY, session
from spark_jobs.storage import FAILURES, JobError, reason_of
from spark_jobs.work import Exit, JobOutcome, Reports, Settings, Work, read_objectives, unknown

_log = logging.getLogger("spark_jobs")

_JOBS: Final = {**nightly.JOBS, nightly.JOB: nightly.run}


class _Parser(ArgumentParser):
    """Argument parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job of the arguments; return the exit code."""
    asked = _parser().parse_args(arguments)
    as_json = asked.log_format == "json"
    set_up(sys.stdout if as_json else sys.stderr, "info", as_json=as_json)
    try:
        outcome = _carried_out(asked)
    except JobError as error:
        _log.error("%s", error)
        return Exit.USAGE
    if as_json:
        level = logging.INFO if outcome.exit is Exit.PASS else logging.WARNING
        _log.log(level, "%s", outcome.line, extra={"job": asked.job, "verdict": outcome.exit.name})
    else:
        print(outcome.line)
    return Exit.PASS if asked.exit_zero_on_findings and outcome.exit is Exit.FAIL else outcome.exit


def _carried_out(asked: Any) -> JobOutcome:
    settings = Settings(
        objectives=read_objectives(asked.objectives),
        keys_max=asked.keys_max,
        top=asked.top,
        keep_days=asked.keep_days,
        look_back_days=asked.look_back,
    )
    now = wall_s()
    day = asked.date or _day_before(now)
    with session(asked.master, name=f"ordering-prober {asked.job}", memory=asked.memory) as spark:
        work = Work(
            spark, History(spark, asked.history), Reports(spark, asked.reports), day, now, settings, partial(_log.info, "%s")
        )
        try:
            return _JOBS[asked.job](work)
        except FAILURES as error:
            return unknown(asked.job, work, reason_of(error))


def _parser() -> ArgumentParser:
    parser = _Parser(
        prog="python -m spark_jobs", description="What the history of a day shows. See docs/jobs.md.", allow_abbrev=False
    )
    add = parser.add_argument
    add("job", choices=_JOBS, help="what to do; nightly is all of it in order")
    add("--history", required=True, metavar="URI", help="the folder of the history: a path, gs://, s3:// or hdfs://")
    add("--reports", required=True, metavar="URI", help="where reports go")
    add("--date", type=_date, metavar="YYYY-MM-DD", help="the UTC day; by default yesterday")
    add("--master", metavar="URL", help="of the Spark cluster; by default this machine, under spark-submit what that says")
    add("--memory", default=DRIVER_MEMORY, metavar="SIZE", help="of Spark on this machine (%(default)s)")
    add("--objectives", metavar="FILE", help="JSON list of objectives; by default those of the service's defaults")
    add(
        "--keys-max",
        type=_count,
        default=Settings().keys_max,
        metavar="N",
        help="count up to so many keys one by one (%(default)s)",
    )
    add("--top", type=_count, default=Settings().top, metavar="N", help="hot keys named per subscription (%(default)s)")
    add("--keep-days", type=_count, metavar="N", help="retention deletes what is older; by default nothing")
    add(
        "--look-back",
        type=int,
        choices=range(31),
        default=Settings().look_back_days,
        metavar="DAYS",
        help="for late data (%(default)s)",
    )
    add("--log-format", choices=("text", "json"), default="text", help="json: log and result on standard output (%(default)s)")
    add(
        "--exit-zero-on-findings",
        action="store_true",
        help="exit with 0, not 1, if something wrong was found; the reports say what",
    )
    return parser


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date like 2026-11-20") from None


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _day_before(now: float) -> date:
    return date(1970, 1, 1) + timedelta(seconds=now) - timedelta(days=1)


if __name__ == "__main__":
    sys.exit(main())
