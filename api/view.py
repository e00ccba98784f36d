"""Interface of the service for the API: all data of HTTP responses comes through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from prober.comparison.comparison import Comparison, compare_stored
from prober.comparison.pairs import ConfiguredComparison, comparisons_of
from prober.config.models import Config
from prober.reports.reader import ROWS_MAX, ReportReader
from prober.reports.values import BurnReport, HotKeysReport
from prober.runs.probe_instance import InstanceKey
from prober.schedule.forecast import Detectable, detectable_on
from prober.sinks.live.feed import LiveFeed
from prober.sinks.live.snapshot import Readiness, RunOrdered, StatusSnapshot
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.queries import StatusQueries
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective


class View(Protocol):
    """The service for the API. Every method answers from memory, on the event loop; all but `metrics` immediately.

    `feed`: events of this process' runs, for the event loop only.
    """

    feed: LiveFeed

    def snapshot(self) -> StatusSnapshot:
        """Return the current status as known to this process alone; without probing it contains no probe instance."""
        ...

    def run_now(self, instance: InstanceKey) -> RunOrdered:
        """Start an unscheduled run, or return the reason why none starts. KeyError: not a probe instance of this process."""
        ...

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        """Return content type and body of a scrape with this Accept header. Written in a thread, at most once a second."""
        ...

    def is_stored(self) -> bool:
        """Return whether the data of this process reaches the status store; True without probing."""
        ...

    def is_unwritten(self, run_id: str) -> bool:
        """Return whether a run of this process has ended and is not stored yet."""
        ...

    def readiness(self) -> Readiness:
        """Return whether runs are scheduled and can be recorded."""
        ...

    def alive(self) -> bool:
        """Return False if a part has ended that only a restart brings back.

        A response proves that the event loop runs.
        """
        ...

    def failed(self, error: Exception) -> None:
        """Count and log a request that failed because of an internal error."""
        ...


@dataclass(slots=True)
class Archive:
    """Stored runs, findings and counts, and the objectives of the counts. Queries block: call them in a thread.

    reports       reports of the nightly jobs; None: their location is unknown (`history.reports`).
    comparisons   compared targets.
    detectable    smallest detectable fault rate of the schedule, by target and indicator.
    """

    queries: StatusQueries
    objectives: tuple[Objective, ...]
    reports: ReportReader | None = None
    comparisons: tuple[ConfiguredComparison, ...] = ()
    detectable: Mapping[tuple[str, Indicator], tuple[Detectable, ...]] = field(default_factory=dict)

    def compared(self, now: float) -> tuple[Comparison, ...]:
        """Return all comparisons with the runs until now, seconds since 1970. Raises the errors of the store."""
        return tuple(compare_stored(self.queries, each.settings, each.common, now) for each in self.comparisons)

    def newest_hot_keys(self, limit: int = ROWS_MAX) -> HotKeysReport | None:
        """Return the newest report on hot keys, with at most `limit` keys; None without a report. Raises HistoryError."""
        day = None if self.reports is None else self.reports.latest_day(Job.HOT_KEYS)
        return None if self.reports is None or day is None else self.reports.hot_keys(day, limit)

    def newest_burn(self, objective: str) -> BurnReport | None:
        """Return the newest report about an objective; None without a report. Raises HistoryError."""
        day = None if self.reports is None else self.reports.latest_day(Job.SLO_BURN)
        return None if self.reports is None or day is None else self.reports.slo_burn(day, objective=objective)

    def follow(self, config: Config) -> None:
        """Apply another configuration."""
        self.objectives, self.comparisons, self.detectable = config.objectives, comparisons_of(config), detectable_on(config)

    @classmethod
    def of(cls, config: Config, queries: StatusQueries) -> Archive:
        """Return the archive of a configuration. Raises HistoryError for a location that cannot contain reports."""
        location = config.history.reports
        reports = None if location is None else ReportReader(str(location))
        return cls(queries, config.objectives, reports, comparisons_of(config), detectable_on(config))
