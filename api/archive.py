"""What was: everything that the API answers beyond this moment, whichever prober it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from prober.config.models import Config
from prober.reports.reader import ReportReader
from prober.sinks.status.queries import StatusQueries
from prober.slo.objectives import Objective


@dataclass(frozen=True, slots=True)
class Archive:
    """Where runs, findings and counts are kept, and which objectives they are counted for. Questions to it block: ask from a thread.

    reports   what the nightly jobs say; None: it is not known where they write it (`history.reports`).
    """

    queries: StatusQueries
    objectives: tuple[Objective, ...]
    reports: ReportReader | None = None

    @classmethod
    def of(cls, config: Config, queries: StatusQueries) -> Archive:
        """What a configuration says there is. Raises HistoryError for a place where no reports can be."""
        location = config.history.reports
        return cls(queries, config.objectives, None if location is None else ReportReader(str(location)))
