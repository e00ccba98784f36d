"""Scheduled drills of a service, one after the other, beside the probes; none counts in metrics or objectives of the service."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from secrets import randbits
from types import TracebackType
from typing import Final, Self

from prober.config.models import Schedule
from prober.config.sections import Drills
from prober.core.verdict import Verdict
from prober.drills.chain import open_chain
from prober.drills.drill import Drill, DrillResult
from prober.drills.plans import chosen
from prober.schedule.scheduler import Scheduler
from prober.sinks.metrics import Component, DrillMetrics, ProberHealth, SkipReason

NAME: Final = "drills"
STOP_GRACE_S: Final = 1.0

_log = logging.getLogger(__name__)


def drills_of(settings: Drills) -> tuple[str, ...]:
    """Return the names of the drills that a service with these settings runs; none without a schedule."""
    return () if settings.cron is None else tuple(plan.name for plan in chosen(settings.faults))


class FireDrills:
    """The drills of a service; their results are logged and counted.

    Without a schedule it does nothing.
    """

    def __init__(self, settings: Drills, metrics: DrillMetrics, health: ProberHealth) -> None:
        self._settings, self._metrics, self._health = settings, metrics, health
        self._scheduler = Scheduler(self)
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Start the schedule. Raises ConfigError if the port for pages is taken."""
        if self._settings.cron is None:
            return self
        self._chain = await self._resources.enter_async_context(open_chain(self._settings, self._metrics))
        self._resources.push_async_callback(self._scheduler.stop, STOP_GRACE_S)
        self._scheduler.add(NAME, Schedule(cron=self._settings.cron), 0.0, self._drill)
        self._scheduler.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._resources.aclose()

    async def _drill(self) -> None:
        for plan in chosen(self._settings.faults):
            self._tell(await Drill(plan, self._chain, randbits(32)).carry_out())

    def _tell(self, result: DrillResult) -> None:
        if result.internal_error:
            self._health.internal_error(Component.PROBE)
        _log.log(
            logging.INFO if result.verdict is Verdict.PASS else logging.WARNING,
            "drill %s: %s after %.1f s%s",
            result.drill,
            result.verdict,
            result.duration_s,
            f"; {result.reason}" if result.reason else "",
            extra={"drill": result.drill, "verdict": str(result.verdict), "seed": result.seed}
            | {f"{step}_s": round(took_s, 1) for step, took_s in result.steps_s.items() if took_s is not None},
        )

    # --- events of the schedule ----------------------------------------------------------------------------------------------

    def expected(self, name: str) -> None:
        """Ignore the scheduled time: only skips and failures are reported."""

    def skipped(self, name: str, reason: SkipReason) -> None:
        """Log that scheduled drills do not start."""
        _log.warning("%s were skipped: %s", name, reason)

    def failed(self, name: str, error: BaseException) -> None:
        """Count and log an internal error of the drills."""
        self._health.internal_error(Component.SCHEDULER)
        _log.error("internal error in %s", name, exc_info=error)
