"""What the reports of the nightly jobs say, told to the metrics every minute.

When each job last succeeded, how many keys are hot, and which broken promises were found only when the runs of a day were judged again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

from prober.config.models import Config
from prober.reports.reader import ReportReader
from prober.reports.values import HotKeyClass, ReverifiedTarget
from prober.sinks.history.store import HistoryError
from prober.sinks.metrics import ProberHealth
from prober.sinks.metrics.families import Component, Job

EVERY_S: Final = 60.0
KEYS_COUNTED_MAX: Final = 10_000
NOTHING_KNOWN: Final = ReverifiedTarget(complete=False, news={})

_log = logging.getLogger(__name__)


class NightlyReports:
    """Looks where the configuration says that reports are; without that it does nothing. `error`: why the last look failed, or empty."""

    def __init__(self, config: Config, health: ProberHealth) -> None:
        self.error = ""
        self._reverified = False
        self._config, self._health = config, health

    def follow(self, config: Config) -> None:
        """Tells of the targets of this configuration from now on."""
        self._config = config

    async def watch(self) -> None:
        """Looks again and again, until it is cancelled."""
        location = self._config.history.reports
        while location is not None:
            try:
                await asyncio.to_thread(self.look, str(location))
                self.error = ""
            except HistoryError as error:
                self.error = str(error)
            except Exception:  # a mistake of ours must not end the watch
                self._health.internal_error(Component.METRICS)
                _log.exception("internal error while reading the reports of the nightly jobs")
            await asyncio.sleep(EVERY_S)

    def look(self, location: str) -> None:
        """Looks once. Raises `HistoryError` if the place cannot be reached; then what was told last stays."""
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
        """Of a target that is not in the newest report nothing is known. Without a report what was told is known no more."""
        day = reports.latest_day(Job.REVERIFY)
        found = None if day is None else reports.reverified(day)
        if found is not None or self._reverified:
            self._reverified = True
            for target in self._config.targets:
                about = (found or {}).get(target.name, NOTHING_KNOWN)
                self._health.reverified(target, about.news, complete=about.complete)
