"""Reader of the nightly jobs' reports, without Spark.

The API and the metrics show these data about keys and budgets.

A report is a folder `REPORTS/<job>/date=YYYY-MM-DD/` with `summary.json` and a folder of Parquet files for each table, as `spark_jobs.work`
writes it. It counts if its summary exists and each table has the number of rows in the summary. Otherwise the report is incomplete, and
ignored. The reader caches nothing between two calls, and is safe for several threads.

Every minute the metrics are updated: the last success of each job, the number of hot keys, and the violations found only when the
runs of a day were verified again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import date, datetime
from heapq import nlargest
from types import MappingProxyType
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from prober.config.models import Config
from prober.core.findings import Kind
from prober.core.verdict import Verdict
from prober.reports.values import (
    REPORT_VERSION,
    SUMMARY,
    BurnAlertDay,
    BurnReport,
    BurnWindow,
    HotKeysReport,
    JobSummary,
    KeyCourse,
    ReportedKey,
    ReverifiedTarget,
    Spender,
    Spread,
)
from prober.sinks.history.store import HistoryError, HistoryStore
from prober.sinks.metrics import ProberHealth
from prober.sinks.metrics.label_values import Component, Job
from prober.slo.hot_keys import HotKeyClass

SUMMARY_BYTES_MAX: Final = 16 << 20
ROWS_MAX: Final = 20_000
"""Number of rows of a table that are read; further ones are left out, and counted."""
SUCCESS_DAYS: Final = 8
"""Number of latest report days among which a job's last success is searched."""

_ATTEMPTS: Final = 3
_COMMON: Final = frozenset({"version", "job", "date", "rows", "verdict", "line", "finished_at", "duration_s"})


_Answer = TypeVar("_Answer")
_Report = TypeVar("_Report", HotKeysReport, BurnReport)
_Row = TypeVar("_Row", Spread, BurnWindow, BurnAlertDay, Spender)
EVERY_S: Final = 60.0
KEYS_COUNTED_MAX: Final = 10_000
NOTHING_KNOWN: Final = ReverifiedTarget(complete=False, news={})
_log = logging.getLogger(__name__)


# --- questions ---------------------------------------------------------------------------------------------------------------


class ReportReader:
    """The reports at one location: a path, or a gs://, s3:// or hdfs:// URI with the options of a history's location.

    Raises `HistoryError` if the location is invalid. Every method raises `HistoryError` if the location cannot be reached. A missing
    location, a missing report and an incomplete report are no errors: the answer is None or empty then.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        # Spark names Amazon's store s3a, all others s3.
        self._files = HistoryStore(f"s3://{location.removeprefix('s3a://')}" if location.startswith("s3a://") else location).files

    def days(self, job: str, limit: int = 100) -> list[date]:
        """Return the days with a report of a job, the latest first."""
        selector = fs.FileSelector(job, allow_not_found=True)
        names = self._asked(lambda: [one.base_name for one in self._files.get_file_info(selector)])
        return nlargest(limit, [day for name in names if (day := _day_of(name)) is not None])

    def latest_day(self, job: str) -> date | None:
        """Return the latest day with a valid report of a job, of the last `SUCCESS_DAYS` report days; None if there is none."""
        return next((day for day in self.days(job, SUCCESS_DAYS) if self.summary(job, day) is not None), None)

    def summary(self, job: str, day: date) -> JobSummary | None:
        """Return the summary of a job about a day; None if there is no report."""
        path = f"{job}/date={day.isoformat()}/{SUMMARY}"
        text = self._asked(lambda: self._text(path))
        return None if text is None else _summary_of(text, job, day)

    def summaries(self, day: date) -> dict[str, JobSummary]:
        """Return the summaries of all jobs with a report on the day, by name."""
        found = {job: self.summary(job, day) for job in Job}
        return {job: summary for job, summary in found.items() if summary is not None}

    def last_success(self, job: str) -> float | None:
        """Return when a job last reached a verdict, good or bad, in seconds since 1970; None if never. UNKNOWN is no success."""
        found = [self.summary(job, day) for day in self.days(job, SUCCESS_DAYS)]
        return max((one.finished_at for one in found if one is not None and one.verdict is not Verdict.UNKNOWN), default=None)

    def hot_keys(
        self, day: date, limit: int = 100, *, target: str | None = None, subscription: str | None = None
    ) -> HotKeysReport | None:
        """Return the report of `hot-keys` about a day, of one target or subscription if given, at most `limit` keys; None without one."""

        def read(summary: JobSummary) -> HotKeysReport:
            about = {"target": target, "subscription": subscription}
            keys, more = self._rows(summary, "keys", about)
            spreads, _ = self._rows(summary, "subscriptions", about)
            largest = sorted(keys, key=lambda row: (-row["score"], row["subscription"], row["key"]))[:limit]
            left_out = more + len(keys) - len(largest) + summary.numbers.get("left_out", 0)
            return HotKeysReport(summary, tuple(map(_key_of, largest)), _values(Spread, spreads), left_out)

        return self._report(Job.HOT_KEYS, day, read)

    def slo_burn(self, day: date, *, objective: str | None = None) -> BurnReport | None:
        """Return the report of `slo-burn` about a day, optionally of one objective; None without a report."""

        def read(summary: JobSummary) -> BurnReport:
            about = {"objective": objective}
            windows, more_windows = self._rows(summary, "windows", about)
            alerts, more_alerts = self._rows(summary, "alerts", about)
            spenders, more_spenders = self._rows(summary, "spenders", about)
            ordered = sorted(spenders, key=lambda row: (row["objective"], row["target"], row["by"], row["others"], -row["bad"]))
            return BurnReport(
                summary,
                _values(BurnWindow, sorted(windows, key=lambda row: (row["objective"], row["target"], row["window_s"]))),
                _values(BurnAlertDay, map(_with_seconds, sorted(alerts, key=_alert_order))),
                _values(Spender, ordered),
                more_windows + more_alerts + more_spenders,
            )

        return self._report(Job.SLO_BURN, day, read)

    def reverified(self, day: date) -> Mapping[str, ReverifiedTarget] | None:
        """Return the findings of `reverify` about a day, by target; None without a report, or for one without targets."""
        summary = self.summary(Job.REVERIFY, day)
        try:
            return None if summary is None else {name: _target_of(row) for name, row in summary.numbers["by_target"].items()}
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    # --- files ---------------------------------------------------------------------------------------------------------------

    def _report(self, job: str, day: date, read: Callable[[JobSummary], _Report]) -> _Report | None:
        """Return summary and tables of one report, which may be replaced during the read; None if there is none."""
        for _ in range(_ATTEMPTS):
            summary = self.summary(job, day)
            if summary is None:
                return None
            try:
                report = read(summary)
            except (OSError, LookupError, TypeError, ValueError):  # pyarrow raises any of these for half a file
                report = None
            if self.summary(job, day) == summary:
                return report
        return None

    def _rows(self, summary: JobSummary, table: str, about: Mapping[str, str | None]) -> tuple[list[dict[str, Any]], int]:
        """Return matching rows of a table, and the number of further ones. Raises LookupError if the table does not match the summary."""
        if table not in summary.rows:
            return [], 0
        import pyarrow.dataset as ds  # loads pandas if it is there, which takes as long as a quarter of the start of the service

        folder = f"{summary.job}/date={summary.day.isoformat()}/{table}"
        found = self._files.get_file_info(fs.FileSelector(folder))
        paths = [one.path for one in found if one.type == fs.FileType.File and one.base_name[0] not in "._"]
        dataset = ds.dataset(paths, filesystem=self._files, format="parquet")
        if dataset.count_rows() != summary.rows[table]:
            raise LookupError(f"{folder} is not complete")
        question = pc.scalar(True)
        for name, value in about.items():
            if value is not None:
                question &= pc.field(name) == value
        rows = dataset.head(ROWS_MAX, filter=question).to_pylist()
        return rows, dataset.count_rows(filter=question) - len(rows) if len(rows) == ROWS_MAX else 0

    def _text(self, path: str) -> bytes | None:
        try:
            with self._files.open_input_file(path) as file:
                return bytes(file.read(SUMMARY_BYTES_MAX))
        except FileNotFoundError:
            return None

    def _asked(self, question: Callable[[], _Answer]) -> _Answer:
        try:
            return question()
        except (OSError, pa.ArrowException) as error:
            raise HistoryError(f"the reports at {self.location} cannot be read: {str(error).partition(chr(10))[0]}") from error


# --- rows --------------------------------------------------------------------------------------------------------------------


def _day_of(folder: str) -> date | None:
    name, _, text = folder.partition("=")
    try:
        return date.fromisoformat(text) if name == "date" else None
    except ValueError:
        return None


def _summary_of(text: bytes, job: str, day: date) -> JobSummary | None:
    """Parse a summary; None if it is truncated, or of another version."""
    try:
        said: dict[str, Any] = json.loads(text)
        if said["version"] != REPORT_VERSION:
            return None
        finished_at = datetime.fromisoformat(said["finished_at"]).timestamp()
        rows = MappingProxyType({table: int(count) for table, count in said["rows"].items()})
        numbers = MappingProxyType({name: value for name, value in said.items() if name not in _COMMON})
        return JobSummary(job, day, Verdict(said["verdict"]), said["line"], finished_at, float(said["duration_s"]), rows, numbers)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


_NAMED: Final = tuple(field.name for field in fields(ReportedKey) if field.name not in ("heat", "reasons", "evidence", "course"))


def _key_of(row: Mapping[str, Any]) -> ReportedKey:
    known = {*_NAMED, "class", "reasons", "course"}
    evidence = {name: value for name, value in row.items() if name not in known and value is not None}
    named = {name: row[name] for name in _NAMED}
    course = tuple(KeyCourse(**part) for part in row.get("course") or ())
    return ReportedKey(
        **named, heat=row["class"], reasons=tuple(row["reasons"]), evidence=MappingProxyType(evidence), course=course
    )


def _target_of(row: Mapping[str, Any]) -> ReverifiedTarget:
    news: Counter[str] = Counter()
    for one in row["broken"]:
        news[Kind(one["kind"])] += int(one["only_now"]) + int(one["online_unknown"])
    return ReverifiedTarget(row["verified"] > 0 and not row["crashes"], MappingProxyType(news))


def _alert_order(row: Mapping[str, Any]) -> tuple[str, str, float]:
    return row["objective"], row["target"], row["long_s"]


def _with_seconds(row: Mapping[str, Any]) -> dict[str, Any]:
    spans = tuple((span["since"].timestamp(), span["until"].timestamp()) for span in row["firing"])
    return {**row, "firing": spans}


def _values(kind: type[_Row], rows: Iterable[Mapping[str, Any]]) -> tuple[_Row, ...]:
    names = [field.name for field in fields(kind)]
    return tuple(kind(**{name: row[name] for name in names}) for row in rows)


class NightlyReports:
    """The watch of the configured report location, if there is one. `error`: why the last read failed, or empty."""

    def __init__(self, config: Config, health: ProberHealth) -> None:
        self.error = ""
        self._reverified = False
        self._config, self._health = config, health

    def follow(self, config: Config) -> None:
        """Report on the targets of this configuration from now on."""
        self._config = config

    async def watch(self) -> None:
        """Read the reports again and again, until cancelled."""
        location = self._config.history.reports
        while location is not None:
            try:
                await asyncio.to_thread(self.look, str(location))
                self.error = ""
            except HistoryError as error:
                self.error = str(error)
            except Exception:  # an internal error must not end the watch
                self._health.internal_error(Component.METRICS)
                _log.exception("internal error while reading the reports of the nightly jobs")
            await asyncio.sleep(EVERY_S)

    def look(self, location: str) -> None:
        """Read the reports once.

        Raises `HistoryError` if the location cannot be reached; the metrics stay unchanged then.
        """
        reports = ReportReader(location)
        for job in Job:
            at = reports.last_success(job)
            if at is not None:
                self._health.job_succeeded(job, at)
        self._look_for_hot_keys(reports)
        self._look_for_findings(reports)

    def _look_for_hot_keys(self, reports: ReportReader) -> None:
        day = reports.latest_day(Job.HOT_KEYS)
        report = None if day is None else reports.hot_keys(day, KEYS_COUNTED_MAX)
        if report is not None:
            counted = Counter((key.target, key.heat) for key in report.keys)
            for target in self._config.targets:
                self._health.hot_keys(target, {heat: counted[target.name, heat] for heat in HotKeyClass})

    def _look_for_findings(self, reports: ReportReader) -> None:
        """Report the findings of the newest report; targets without results in it are unknown.

        Without a report all earlier results become unknown.
        """
        day = reports.latest_day(Job.REVERIFY)
        found = None if day is None else reports.reverified(day)
        if found is not None or self._reverified:
            self._reverified = True
            for target in self._config.targets:
                about = (found or {}).get(target.name, NOTHING_KNOWN)
                self._health.reverified(target, about.news, complete=about.complete)
