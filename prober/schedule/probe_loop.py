"""The probe loop of one site: run after run as the schedule asks, each told to everybody who shows runs, and none under maintenance."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from prober.brokers.base import Broker, Operation
from prober.brokers.endpoint import Endpoint
from prober.clock import monotonic_s, wall_s
from prober.config.models import Config
from prober.config.values import write_duration
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.backlog import Backlog
from prober.runs.recorder import Recording
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.schedule.instances import Site
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.run_log import RunLog
from prober.sinks.history.writer import HistoryWriter
from prober.sinks.live import snapshot
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import Component, Health, Skip, TargetMetrics, exemplar_of
from prober.sinks.metrics.measurements import Measurements
from prober.sinks.status.records import Recorded
from prober.sinks.status.writer import StatusWriter
from prober.sinks.tracing.spans import Tracing, trace_id_of
from prober.slo.counts import Tallies

STUCK_MARGIN_S: Final = 60.0
"""A run that takes this much longer than everything it may wait for is stuck."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Audience:
    """Who hears of the runs on a target."""

    metrics: TargetMetrics
    tallies: Tallies
    health: Health
    board: LiveState
    tracing: Tracing
    history: HistoryWriter | None
    status: StatusWriter


@dataclass(frozen=True, slots=True)
class ProbeInstance:
    """A site with what it takes to work there."""

    site: Site
    endpoint: Endpoint
    broker: Broker
    instance: str

    @property
    def resource_name(self) -> str:
        """What the names of its topics and subscriptions begin with."""
        return self.site.resource_name(self.instance)

    @property
    def shown(self) -> snapshot.Site:
        """The site as the board shows it, before anything is made there."""
        site, target, schedule = self.site, self.site.target, self.site.settings.schedule
        return snapshot.Site(
            target=target.name,
            probe=site.probe,
            vantage=site.vantage,
            interval_s=schedule.longest_gap.total_seconds(),
            schedule=str(schedule.cron) if schedule.interval is None else f"every {write_duration(schedule.interval)}",
            environment=target.environment,
            region=target.region,
            endpoint=f"embedded ({self.endpoint})" if target.is_embedded else str(self.endpoint),
            promise=site.experiment.promise,
            labels=target.labels,
            part=site.part_shown,
        )


class ProbeLoop:
    """Runs the experiment of one site, one run at a time."""

    def __init__(self, config: Config, probe_instance: ProbeInstance, audience: Audience) -> None:
        self.probe_instance = probe_instance
        self._config, self._audience = config, audience
        self._target = probe_instance.site.at(probe_instance.endpoint)
        self._provisioner = Provisioner(self._target, probe_instance.resource_name, lasting=True, administered=self._administered)
        self._topic = audience.metrics.topic(self._provisioner.name)
        self._subscription = audience.metrics.subscription(self._provisioner.name)
        self._subscription.probes(probe_instance.site.keys)
        self._running_since_t: float | None = None
        self._measurements: Measurements | None = None

    @property
    def name(self) -> str:
        """What its topics and subscriptions are called in metrics: their names without the part that changes."""
        return self._provisioner.name

    @property
    def shown(self) -> snapshot.Site:
        """The site as the board shows it, with the topic and subscription of the run under way, or else of the next one."""
        resources = self._provisioner.resources
        return replace(self.probe_instance.shown, topic=resources.topic, subscription=resources.subscription)

    def backlog(self) -> Backlog:
        """What is owed right now."""
        return self._provisioner.backlog_tracker.backlog(monotonic_s())

    def age(self) -> None:
        """Notes for the run under way how old the oldest unacknowledged message is; to be called once a second."""
        if self._measurements is not None:
            self._measurements.aged(self.backlog().oldest_unacked_age_s)

    def stuck(self) -> bool:
        """Whether a run goes on although everything that it may wait for has an end by now."""
        longest_s = self._target.act_timeout_s + self._target.drain_s + STUCK_MARGIN_S
        return self._running_since_t is not None and monotonic_s() - self._running_since_t > longest_s

    def maintenance(self) -> str | None:
        """Why the target is under maintenance now, which may be empty; None: it is not. The board hears of it."""
        now = wall_s()
        window = self._config.maintenance_of(self.probe_instance.site.target, datetime.fromtimestamp(now, UTC))
        reason = None if window is None else window.reason
        self._audience.board.under_maintenance(self.probe_instance.shown, reason, now)
        return reason

    async def go(self, run_id: str = "") -> None:
        """One run, of that id if it has one already, unless the target is under maintenance; one that ends so is not counted."""
        probe_instance, audience = self.probe_instance, self._audience
        if self.maintenance() is not None:
            audience.metrics.skipped(probe_instance.site.probe, Skip.MAINTENANCE)
            return
        seed = secrets.randbits(32)
        run = Run(
            probe_instance.site.experiment,
            probe_instance.broker,
            self._target,
            self._provisioner,
            probe_instance.site.workload,
            seed,
            run_id,
        )
        exemplar = exemplar_of(run.run_id, trace_id_of(run.run_id))
        measurements = Measurements(
            self._topic, self._subscription, audience.tallies, run.run_id, exemplar, probe_instance.site.probe
        )
        run.listen(measurements.listen)
        subscription = self._provisioner.resources.subscription
        self._measurements = measurements
        try:
            result = await self._carry_out(run, seed)
            self.age()
        finally:
            self._measurements = None
        if self.maintenance() is not None:
            _log.info("%s: run %s ended under maintenance and does not count", probe_instance.site.name, run.run_id)
            return
        measurements.ended(result)
        result = replace(result, durations=measurements.durations())
        self._tell(result)
        audience.status.ended(probe_instance.shown, result, wall_s(), _recorded(run.recording, {subscription: self._target.rules}))
        await asyncio.to_thread(audience.tracing.told, result, run.recording.events)

    async def _carry_out(self, run: Run, seed: int) -> RunResult:
        """The run itself; recorded in the history, if there is one."""
        self._running_since_t, started_at = monotonic_s(), wall_s()
        self._audience.board.started(self.shown, started_at)
        log = self._begin_log(run, seed, started_at)
        try:
            result = await run.carry_out()
            if log is not None:
                # What ends under maintenance does not count, wherever the record of it is counted later.
                counts = self.maintenance() is None
                log.ended(result if counts else replace(result, checks={}), run.recording.judged)
            return result
        finally:
            self._running_since_t = None
            self._audience.board.over(self.probe_instance.shown)
            if log is not None:
                log.release()

    def _begin_log(self, run: Run, seed: int, started_at: float) -> RunLog | None:
        history, site, resources = self._audience.history, self.probe_instance.site, self._provisioner.resources
        if history is None:
            return None
        context = RunContext(
            run_id=run.run_id,
            target=site.target.name,
            environment=site.target.environment,
            region=site.target.region,
            probe=site.probe,
            vantage=site.vantage,
            topic=resources.topic,
            rules={resources.subscription: self._target.rules},
            started_at=started_at,
            seed=seed,
        )
        log = history.begin(context)
        run.listen(log.record)
        return log

    async def leave(self) -> None:
        """Deletes what was made at the target. Nothing is probed here any more, which the number of keys says."""
        self._subscription.probes(0)
        await self._provisioner.leave(self.probe_instance.broker.admin)

    def _administered(self, operation: Operation, latency_s: float) -> None:
        self._audience.metrics.administered(operation, latency_s)

    def _tell(self, result: RunResult) -> None:
        ended_at = wall_s()
        site, audience = self.probe_instance.site, self._audience
        audience.metrics.run(site.probe, result.verdict, ended_at)
        audience.board.ended(self.probe_instance.shown, result, ended_at)
        audience.health.dropped(Component.RECORDER, self._provisioner.backlog_tracker.take_dropped())
        if result.internal_error:
            audience.health.internal_error(Component.PROBE)
        _log.log(
            logging.INFO if result.verdict is Verdict.PASS else logging.WARNING,
            "%s: %s after %.1f s%s",
            site.name,
            result.verdict,
            result.duration_s,
            f"; {result.reason}" if result.reason else "",
            extra={"run_id": result.run_id, "site": site.name, "verdict": str(result.verdict), "seed": result.seed},
        )


def _recorded(recording: Recording, rules: Mapping[str, Rules]) -> Recorded:
    return Recorded(recording.events, rules, recording.count, recording.judged, recording.unjudged_because)
