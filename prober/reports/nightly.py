"""What the reports of the nightly jobs say, told to the metrics every few minutes: when each job last succeeded, how many keys are hot."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

from prober.config.models import Config
from prober.reports.reader import ReportReader
from prober.reports.values import HotKeyClass
from prober.sinks.history.store import HistoryError
from prober.sinks.metrics import ProberHealth
from prober.sinks.metrics.families import Component, Job

EVERY_S: Final = 60.0
KEYS_COUNTED_MAX: Final = 10_000

_log = logging.getLogger(__name__)


class NightlyReports:
    """Looks where the configuration says that reports are; without that it does nothing. `error`: why the last look failed, or empty."""

    def __init__(self, config: Config, health: ProberHealth) -> None:
        self.error = ""
        self._config, self._health = config, health

    async def watch(self) -> None:
        """Looks again and again, until it is cancelled."""
        location = self._config.history.reports
        while location is not None:
            try:
                await asyncio.to_thread(self._look, str(location))
                self.error = ""
            except HistoryError as error:
                self.error = str(error)
            except Exception:  # a mistake of ours must not end the watch
                self._health.internal_error(Component.METRICS)
                _log.exception("internal error while reading the reports of the nightly jobs")
            await asyncio.sleep(EVERY_S)

    def _look(self, location: str) -> None:
        reports = ReportReader(location)
        for job in Job:
            at = reports.last_success(job)
            if at is not None:
                self._health.job_succeeded(job, at)
        day = reports.latest_day(Job.HOT_KEYS)
        report = None if day is None else reports.hot_keys(day, KEYS_COUNTED_MAX)
        if report is not None:
            counted = Counter((key.target, key.heat) for key in report.keys)
            for target in self._config.targets:
                self._health.hot_keys(target, {heat: counted[target.name, heat] for heat in HotKeyClass})
