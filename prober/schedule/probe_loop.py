"""The probe loop of one site: run after run as the schedule asks, each told to everybody who shows runs, and none under maintenance."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from prober.brokers.base import AdminOperation, Broker
from prober.brokers.endpoint import Endpoint
from prober.clock import monotonic_s, wall_s
from prober.config.models import Config
from prober.config.values import write_duration
from prober.core.verdict import Verdict
from prober.runs.backlog import Backlog
from prober.runs.classification import Latency
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.runs.sink import RunSink
from prober.runs.site import Site
from prober.schedule import instances
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import SkipReason, TargetMetrics
from prober.slo.counts import SloCounters
from prober.slo.indicators import Indicator

STUCK_MARGIN_S: Final = 60.0
"""A run that takes this much longer than everything it may wait for is stuck."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the probe loops of a target share: its metrics, how every site stands, who hears of the runs, by site, and what is counted."""

    metrics: TargetMetrics
    live: LiveState
    sinks: Callable[[Site, str], Sequence[RunSink]]
    counters: SloCounters


@dataclass(frozen=True, slots=True)
class ProbeInstance:
    """A site with what it takes to work there."""

    site: instances.PlannedSite
    endpoint: Endpoint
    broker: Broker
    instance: str

    @property
    def resource_name(self) -> str:
        """What the names of its topics and subscriptions begin with."""
        return self.site.resource_name(self.instance)

    @property
    def shown(self) -> Site:
        """The site as it is shown, before anything is made there."""
        site, target, schedule = self.site, self.site.target, self.site.settings.schedule
        return Site(
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

    def __init__(self, config: Config, probe_instance: ProbeInstance, around: Surroundings) -> None:
        self.probe_instance = probe_instance
        self._config, self._metrics, self._live, self._counters = config, around.metrics, around.live, around.counters
        self._target = probe_instance.site.at(probe_instance.endpoint)
        self._provisioner = Provisioner(self._target, probe_instance.resource_name, lasting=True, administered=self._administered)
        self._sinks = around.sinks(self.shown, self.name)
        self._subscription = around.metrics.subscription(self.name)
        self._subscription.probes(probe_instance.site.keys)
        self._running: Run | None = None
        self._running_since_t: float | None = None

    @property
    def name(self) -> str:
        """What its topics and subscriptions are called in metrics: their names without the part that changes."""
        return self._provisioner.name

    @property
    def shown(self) -> Site:
        """The site as it is shown, with the topic and subscription of the run under way, or else of the next one."""
        resources = self._provisioner.resources
        return replace(self.probe_instance.shown, topic=resources.topic, subscription=resources.subscription)

    def backlog(self) -> Backlog:
        """What is owed right now."""
        return self._provisioner.backlog_tracker.backlog(monotonic_s())

    def age(self) -> None:
        """Notes for the run under way how old the oldest unacknowledged message is; to be called once a second."""
        if self._running is not None:
            age_s = self.backlog().oldest_unacked_age_s
            self._running.recording.timings.took(Latency(Indicator.OLDEST_UNACKED_MESSAGE_AGE, age_s))

    def count_slice(self) -> None:
        """Counts a slice of time for the objectives that are about time."""
        backlog = self.backlog()
        age_s = backlog.oldest_unacked_age_s
        if not self._counters.took(Indicator.OLDEST_UNACKED_MESSAGE_AGE, age_s, self._lagged_s(age_s)):
            self._metrics.undecided(Indicator.OLDEST_UNACKED_MESSAGE_AGE)
        moving = max(0, self.probe_instance.site.keys - backlog.stalled_keys)
        self._counters.ended(Indicator.STALLED_KEYS, good=moving, bad=backlog.stalled_keys)

    def stuck(self) -> bool:
        """Whether a run goes on although everything that it may wait for has an end by now."""
        longest_s = self._target.act_timeout_s + self._target.drain_s + STUCK_MARGIN_S
        return self._running_since_t is not None and monotonic_s() - self._running_since_t > longest_s

    def maintenance(self) -> str | None:
        """Why the target is under maintenance now, which may be empty; None: it is not. The live state hears of it."""
        now = wall_s()
        window = self._config.maintenance_of(self.probe_instance.site.target, datetime.fromtimestamp(now, UTC))
        reason = None if window is None else window.reason
        self._live.under_maintenance(self.probe_instance.shown, reason, now)
        return reason

    async def go(self, run_id: str = "") -> None:
        """One run, of that id if it has one already, unless the target is under maintenance; one that ends so is not counted."""
        probe_instance = self.probe_instance
        site = probe_instance.site
        if self.maintenance() is not None:
            self._metrics.skipped(site.probe, SkipReason.MAINTENANCE)
            return
        seed = secrets.randbits(32)
        run = Run(site.experiment, probe_instance.broker, self._target, self._provisioner, site.workload, seed, run_id)
        run.begin(self.shown, self._sinks)
        self._running, self._running_since_t = run, monotonic_s()
        try:
            result = await run.carry_out(counts=lambda: self.maintenance() is None)
        finally:
            self._running = self._running_since_t = None
        self._say(result)

    async def leave(self) -> None:
        """Deletes what was made at the target. Nothing is probed here any more, which the number of keys says."""
        self._subscription.probes(0)
        await self._provisioner.leave(self.probe_instance.broker.admin)

    def _administered(self, operation: AdminOperation, latency_s: float) -> None:
        if self._counters.took(Indicator.CONTROL_PLANE_LATENCY, latency_s, self._lagged_s(latency_s)):
            self._metrics.administered(operation, latency_s)
        else:
            self._metrics.undecided(Indicator.CONTROL_PLANE_LATENCY)

    def _lagged_s(self, taken_s: float) -> float:
        """For how long of what took so long, until now, the event loop lagged, as far as a run that goes on knows."""
        return 0.0 if self._running is None else self._running.recording.lagged_s(taken_s)

    def _say(self, result: RunResult) -> None:
        _log.log(
            logging.INFO if result.verdict is Verdict.PASS else logging.WARNING,
            "%s: %s after %.1f s%s",
            self.probe_instance.site.name,
            result.verdict,
            result.duration_s,
            f"; {result.reason}" if result.reason else "",
            extra={
                "run_id": result.run_id,
                "site": self.probe_instance.site.name,
                "verdict": str(result.verdict),
                "seed": result.seed,
            },
        )
