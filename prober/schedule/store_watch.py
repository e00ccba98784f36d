"""Metrics that are read from the status store every minute: comparisons of targets, and acknowledgements of incidents."""

from __future__ import annotations

import asyncio
import logging
from math import nan
from types import TracebackType
from typing import Final, Self

from prober.clock import wall_s
from prober.comparison.comparison import StoredComparisons
from prober.config.models import Config
from prober.schedule.scheduler import repeat
from prober.sinks.metrics import Component, Metrics, families
from prober.sinks.status.database import StatusError
from prober.sinks.status.queries import StatusQueries
from prober.slo.acknowledgements import Timeliness

EVERY_S: Final = 60.0
_log = logging.getLogger(__name__)


class StoreWatch:
    """Reads the status store periodically in a thread, while its context is entered. Values are unknown while the store does not answer."""

    def __init__(self, config: Config, metrics: Metrics, queries: StatusQueries) -> None:
        self._health, self._queries = metrics.health, queries
        self._comparisons = StoredComparisons(config, metrics.comparisons, queries)

    def follow(self, config: Config) -> None:
        """Compare the targets of this configuration from now on."""
        self._comparisons.follow(config)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(repeat(EVERY_S, self._look, self._failed), name="status store")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._task.cancel()

    def look(self) -> None:
        """Read once. Blocks."""
        self._comparisons.look()
        try:
            counts = dict[Timeliness, float](self._queries.acknowledgements(wall_s()).counts)
        except StatusError:  # the store's own failure is reported elsewhere
            counts = dict.fromkeys(Timeliness, nan)
        for timeliness, count in counts.items():
            self._health.set(families.INCIDENTS_ACKNOWLEDGED, count, timeliness)

    async def _look(self) -> None:
        await asyncio.to_thread(self.look)

    def _failed(self, fault: Exception) -> None:
        self._health.internal_error(Component.METRICS)
        _log.error("internal error while the status store was read for the metrics", exc_info=fault)
