"""The service as the API needs it: everything that is asked over HTTP is asked here."""

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
from prober.sinks.live.incidents import Acknowledgement
from prober.sinks.live.snapshot import Readiness, RunOrdered, StatusSnapshot
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.over_time import monthly_uptime
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective
from prober.slo.uptime import MonthlyUptime


class View(Protocol):
    """The service, as the API sees it. Every method answers from memory, on the event loop; all but `metrics` at once.

    `feed`: the events of the runs of this process, for the event loop only.
    """

    feed: LiveFeed

    def snapshot(self) -> StatusSnapshot:
        """How everything stands now, as far as this process knows by itself; one that does not probe knows of no probe instance."""
        ...

    def run_now(self, instance: InstanceKey) -> RunOrdered:
        """Starts a run beyond the schedule, or says why none starts. KeyError: this process has no such probe instance."""
        ...

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        """The answer to a scrape with this Accept header: content type and body. Written beside the loop, at most once a second."""
        ...

    def is_stored(self) -> bool:
        """Whether what this process knows reaches the status store; True for one that does not probe."""
        ...

    def is_unwritten(self, run_id: str) -> bool:
        """Whether a run of this process has ended and is still to be written to the status store."""
        ...

    def readiness(self) -> Readiness:
        """Whether runs are scheduled and can be recorded."""
        ...

    def alive(self) -> bool:
        """False when something has ended that only a restart brings back.

        A response proves that the event loop runs.
        """
        ...

    def failed(self, error: Exception) -> None:
        """A request could not be answered because of a mistake of ours; to be counted and logged."""
        ...


@dataclass(slots=True)
class Archive:
    """Where runs, findings and counts are kept, and which objectives they are counted for. Questions to it block: ask from a thread.

    reports       what the nightly jobs say; None: it is not known where they write it (`history.reports`).
    comparisons   the targets that are compared.
    detectable    how rare a fault may be that the schedule finds, by target and indicator.
    """

    queries: StatusQueries
    objectives: tuple[Objective, ...]
    reports: ReportReader | None = None
    comparisons: tuple[ConfiguredComparison, ...] = ()
    detectable: Mapping[tuple[str, Indicator], tuple[Detectable, ...]] = field(default_factory=dict)

    def compared(self, now: float) -> tuple[Comparison, ...]:
        """Every comparison by the runs until now, seconds since 1970. Raises what the store raises."""
        return tuple(compare_stored(self.queries, each.settings, each.common, now) for each in self.comparisons)

    def monthly_uptime(self, now: float) -> tuple[MonthlyUptime, ...]:
        """Uptime of each target by month, the newest month first. Raises what the store raises."""
        return monthly_uptime(self.queries.database, now)

    def newest_hot_keys(self, limit: int = ROWS_MAX) -> HotKeysReport | None:
        """The newest report on hot keys, with so many of them; None: there is none. Raises HistoryError."""
        day = None if self.reports is None else self.reports.latest_day(Job.HOT_KEYS)
        return None if self.reports is None or day is None else self.reports.hot_keys(day, limit)

    def newest_burn(self, objective: str) -> BurnReport | None:
        """The newest report about an objective; None: there is none. Raises HistoryError."""
        day = None if self.reports is None else self.reports.latest_day(Job.SLO_BURN)
        return None if self.reports is None or day is None else self.reports.slo_burn(day, objective=objective)

    def acknowledge(self, incident_id: str, said: Acknowledgement) -> bool:
        """Stores an acknowledgement of an incident.

        False: no incident has this name. Raises the errors of the store.
        """
        return StatusStore(self.queries.database).acknowledge(incident_id, said)

    def follow(self, config: Config) -> None:
        """Another configuration is in force from now on."""
        self.objectives, self.comparisons, self.detectable = config.objectives, comparisons_of(config), detectable_on(config)

    @classmethod
    def of(cls, config: Config, queries: StatusQueries) -> Archive:
        """The archive that a configuration names. Raises HistoryError for a place where no reports can be."""
        location = config.history.reports
        reports = None if location is None else ReportReader(str(location))
        return cls(queries, config.objectives, reports, comparisons_of(config), detectable_on(config))
