"""The rounds of one site: run after run as the schedule asks, each told to everybody who shows runs, and none under maintenance."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from prober import snapshot
from prober.board import Board
from prober.brokers.base import Broker
from prober.brokers.endpoint import Endpoint
from prober.clock import monotonic_s, wall_s
from prober.config.models import Config
from prober.config.values import write_duration
from prober.core.indicators import Indicator
from prober.core.verdict import Verdict
from prober.ledger import Ledger
from prober.measurements import Measurements
from prober.metrics import Backlog, Component, Health, Operation, Skip, TargetMetrics, exemplar_of
from prober.results import RunResult
from prober.runner import Ground, Run
from prober.sites import Site
from prober.tallies import Tallies
from prober.tracing import Tracing, trace_id_of

STUCK_MARGIN_S: Final = 60.0
"""A run that takes this much longer than everything it may wait for is stuck."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Audience:
    """Who hears of the runs on a target."""

    metrics: TargetMetrics
    tallies: Tallies
    health: Health
    board: Board
    tracing: Tracing


class Rounds:
    """Runs the experiment of one site, one run at a time."""

    def __init__(self, config: Config, site: Site, broker: Broker, endpoint: Endpoint, instance: str) -> None:
        self.site = site
        self._config, self._broker = config, broker
        self._target = site.at(endpoint, lasting=True)
        self._ground = Ground(site.lasting_place(self._target, instance), Ledger(self._target.rules.delivery_deadline_s))
        self._running_since_t: float | None = None
        self.shown = _shown(site, endpoint, self._ground)

    @property
    def topic(self) -> str:
        """The topic's own name, without its project."""
        return _own_name(self._ground.place.topic)

    @property
    def subscription(self) -> str:
        """The subscription's own name, without its project."""
        return _own_name(self._ground.place.subscription)

    def backlog(self) -> Backlog:
        """What is owed right now."""
        return self._ground.ledger.backlog(monotonic_s())

    def stuck(self) -> bool:
        """Whether a run goes on although everything that it may wait for has an end by now."""
        longest_s = self._target.act_timeout_s + self._target.drain_s + STUCK_MARGIN_S
        return self._running_since_t is not None and monotonic_s() - self._running_since_t > longest_s

    async def go(self, audience: Audience) -> None:
        """One run, unless the target is under maintenance; one that ends under maintenance is not counted."""
        if self._under_maintenance(audience):
            audience.metrics.skipped(self.site.probe, Skip.MAINTENANCE)
            return
        run = self._new_run(audience)
        measurements = self._measure(run, audience)
        self._running_since_t = monotonic_s()
        audience.board.started(self.shown, wall_s())
        try:
            result = await run.carry_out()
        finally:
            self._running_since_t = None
        if not self._under_maintenance(audience):
            measurements.ended(result)
            self._tell(result, audience)
            await asyncio.to_thread(audience.tracing.told, result, run.recording.events)

    def _new_run(self, audience: Audience) -> Run:
        def administered(operation: Operation, latency_s: float) -> None:
            audience.metrics.administered(operation, latency_s)
            audience.tallies.took(Indicator.CONTROL_PLANE_LATENCY, latency_s)

        return Run(
            self.site.experiment,
            self._broker,
            self._target,
            self.site.workload,
            secrets.randbits(32),
            ground=self._ground,
            administered=administered,
        )

    def _measure(self, run: Run, audience: Audience) -> Measurements:
        topic, subscription = audience.metrics.topic(self.topic), audience.metrics.subscription(self.subscription)
        exemplar = exemplar_of(run.run_id, trace_id_of(run.run_id))
        measurements = Measurements(topic, subscription, audience.tallies, run.run_id, exemplar)
        run.listen(measurements.listen)
        return measurements

    def _under_maintenance(self, audience: Audience) -> bool:
        now = wall_s()
        window = self._config.maintenance_of(self.site.target, datetime.fromtimestamp(now, UTC))
        audience.board.under_maintenance(self.shown, None if window is None else window.reason, now)
        return window is not None

    def _tell(self, result: RunResult, audience: Audience) -> None:
        ended_at = wall_s()
        audience.metrics.run(self.site.probe, result.verdict, ended_at)
        audience.board.ended(self.shown, result, ended_at)
        if result.internal_error:
            audience.health.internal_error(Component.PROBE)
        _log.log(
            logging.INFO if result.verdict is Verdict.PASS else logging.WARNING,
            "%s: %s after %.1f s%s",
            self.site.name,
            result.verdict,
            result.duration_s,
            f"; {result.reason}" if result.reason else "",
            extra={"run_id": result.run_id, "site": self.site.name, "verdict": str(result.verdict), "seed": result.seed},
        )


def _shown(site: Site, endpoint: Endpoint, ground: Ground) -> snapshot.Site:
    """The site as the board shows it."""
    target, schedule = site.target, site.settings.schedule
    return snapshot.Site(
        target=target.name,
        probe=site.probe,
        vantage=site.vantage,
        interval_s=schedule.longest_gap.total_seconds(),
        schedule=str(schedule.cron) if schedule.interval is None else f"every {write_duration(schedule.interval)}",
        environment=target.environment,
        region=target.region,
        endpoint=f"embedded ({endpoint})" if target.is_embedded else str(endpoint),
        promise=site.experiment.promise,
        topic=ground.place.topic,
        subscription=ground.place.subscription,
        labels=target.labels,
    )


def _own_name(full_name: str) -> str:
    return full_name.rpartition("/")[2]
