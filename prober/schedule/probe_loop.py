"""The probe loop of one probe instance: runs by its schedule, reported to the run listeners; none under maintenance."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from prober.brokers.base import AdminOperation, Broker
from prober.brokers.endpoint import Endpoint
from prober.clock import monotonic_s, random_bits, wall_s
from prober.config.models import Maintenance, TargetSettings
from prober.core.verdict import Verdict
from prober.durations import write_duration
from prober.logs import lines_of_run
from prober.runs.backlog import Backlog, joined
from prober.runs.classification import Latency
from prober.runs.handover import Checkpoints, Handovers
from prober.runs.lifetimes import LONG, USUAL, names_in_metrics
from prober.runs.probe_instance import ProbeInstance
from prober.runs.recorder import PAUSE_MAX_S
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.runs.sink import RunSink
from prober.schedule import instances
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import SkipReason, TargetMetrics, families
from prober.slo.counts import SloCounters
from prober.slo.indicators import Indicator

STUCK_MARGIN_S: Final = 60.0
"""Time beyond the longest duration of a run after which the run is stuck, in seconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Shared objects of the probe loops of a target.

    They are its metrics, the status of each probe instance, the run listeners of each, counters, and checkpoints of long-lived probes.
    """

    metrics: TargetMetrics
    live: LiveState
    sinks: Callable[[ProbeInstance, Sequence[str]], Sequence[RunSink]]
    counters: SloCounters
    checkpoints: Checkpoints


@dataclass(frozen=True, slots=True)
class OpenProbe:
    """A probe instance with its connections."""

    probe_instance: instances.PlannedInstance
    endpoint: Endpoint
    broker: Broker
    instance: str

    @property
    def resource_name(self) -> str:
        """Start of the names of its topics and subscriptions."""
        return self.probe_instance.resource_name(self.instance)

    @property
    def names_in_metrics(self) -> tuple[str, ...]:
        """Names of its subscriptions in metrics; the first is also its topic's name."""
        return names_in_metrics(self.resource_name, self.probe_instance.experiment.subscriptions)

    @property
    def shown(self) -> ProbeInstance:
        """The probe instance as it is displayed, before its resources exist."""
        instance, target, schedule = self.probe_instance, self.probe_instance.target, self.probe_instance.settings.schedule
        return ProbeInstance(
            target=target.name,
            probe=instance.probe,
            vantage=instance.vantage,
            interval_s=schedule.longest_gap.total_seconds(),
            schedule=str(schedule.cron) if schedule.interval is None else f"every {write_duration(schedule.interval)}",
            environment=target.environment,
            region=target.region,
            endpoint=f"embedded ({self.endpoint})" if target.is_embedded else str(self.endpoint),
            guarantee=instance.experiment.guarantee,
            labels=target.labels,
            part=instance.part_shown,
        )


class ProbeLoop:
    """Runs the experiment of one probe instance, one run at a time."""

    def __init__(
        self, maintenance_of: Callable[[TargetSettings, datetime], Maintenance | None], open_probe: OpenProbe, around: Surroundings
    ) -> None:
        self.open_probe = open_probe
        self._series = around.metrics.probe_instance(open_probe.shown.key)
        self._maintenance_of = maintenance_of
        self._metrics, self._live, self._counters = around.metrics, around.live, around.counters
        self._target = open_probe.probe_instance.at(open_probe.endpoint)
        experiment = open_probe.probe_instance.experiment
        self._provisioner = Provisioner(
            self._target,
            open_probe.resource_name,
            experiment.subscriptions,
            lasting=not experiment.fresh,
            topic=open_probe.probe_instance.foreign_topic,
            lifetime=LONG if experiment.long_lived else USUAL,
            administered=self._administered,
        )
        name = open_probe.probe_instance.name
        self._handovers = Handovers(name, around.checkpoints, self._provisioner) if experiment.long_lived else None
        self._sinks = around.sinks(self.shown, self._provisioner.names)
        self._subscription = around.metrics.subscription(self.name)
        self._subscription.probes(open_probe.probe_instance.keys)
        self._series.set(families.PROBE_ASSIGNED, wall_s())
        self._calls = Counter[AdminOperation]()
        self._running: Run | None = None
        self._running_since_t: float | None = None

    @property
    def name(self) -> str:
        """Name of its topic and first subscription in metrics, without their variable part."""
        return self._provisioner.name

    @property
    def shown(self) -> ProbeInstance:
        """The probe instance as it is displayed, with the resources of the current or the next run."""
        resources = self._provisioner.resources
        return replace(self.open_probe.shown, topic=resources.topic, subscription=resources.subscription)

    @property
    def backlogs(self) -> dict[str, Backlog]:
        """Pending messages by subscription, with its name in metrics."""
        return self._provisioner.backlogs

    def age(self) -> None:
        """Record the age of the oldest unacknowledged message for the current run; to be called once a second."""
        if self._running is not None:
            age_s = joined(self.backlogs.values()).oldest_unacked_age_s
            self._running.recording.timings.took(Latency(Indicator.OLDEST_UNACKED_MESSAGE_AGE, age_s))

    def count_slice(self) -> None:
        """Count a slice of time of each subscription for the objectives about time.

        Pending messages of other publishers are unknown. A key that stalled while the event loop lagged is undecided.
        """
        if self.open_probe.probe_instance.foreign_topic:
            return
        is_ours = self._lagged_s(self._target.rules.delivery_deadline_s) > PAUSE_MAX_S
        for backlog in self.backlogs.values():
            age_s = backlog.oldest_unacked_age_s
            if not self._counters.took(Indicator.OLDEST_UNACKED_MESSAGE_AGE, age_s, self._lagged_s(age_s)):
                self._metrics.count(families.UNDECIDED_DURATIONS, Indicator.OLDEST_UNACKED_MESSAGE_AGE)
            moving = max(0, self.open_probe.probe_instance.keys - backlog.stalled_keys)
            bad, undecided = (0, backlog.stalled_keys) if is_ours else (backlog.stalled_keys, 0)
            self._counters.ended(Indicator.STALLED_KEYS, good=moving, bad=bad, undecided=undecided)

    @property
    def longest_s(self) -> float:
        """Longest duration of a run, in seconds."""
        return self._target.act_timeout_s + self._target.drain_s + STUCK_MARGIN_S

    def expected(self) -> None:
        """Record that a run is due."""
        self._series.count(families.PROBE_RUNS_EXPECTED)
        self._live.expected(self.open_probe.shown)

    def skipped(self, reason: SkipReason) -> None:
        """Record that a due run does not start."""
        self._series.count(families.SCHEDULER_SKIPS, reason)
        self._live.skipped(self.open_probe.shown, reason, wall_s())

    def stuck(self) -> bool:
        """Return whether a run continues although all its waits have ended by now."""
        return self._running_since_t is not None and monotonic_s() - self._running_since_t > self.longest_s

    def maintenance(self) -> str | None:
        """Return the reason for the target's maintenance, perhaps empty; None without maintenance.

        Updates the live state.
        """
        now = wall_s()
        window = self._maintenance_of(self.open_probe.probe_instance.target, datetime.fromtimestamp(now, UTC))
        reason = None if window is None else window.reason
        self._live.under_maintenance(self.open_probe.shown, reason, now)
        return reason

    async def go(self, run_id: str = "") -> None:
        """Carry out a run, by its id if given, unless the target is under maintenance; a run that ends under maintenance is not counted."""
        open_probe = self.open_probe
        instance = open_probe.probe_instance
        if self.maintenance() is not None:
            self._series.count(families.SCHEDULER_SKIPS, SkipReason.MAINTENANCE)
            return
        seed = random_bits(32)
        handover = None if self._handovers is None else await self._handovers.next(open_probe.broker.admin)
        run = Run(
            instance.experiment, open_probe.broker, self._target, self._provisioner, instance.workload, seed, run_id, handover
        )
        run.begin(self.shown, self._sinks)
        self._running, self._running_since_t = run, monotonic_s()
        self._calls.clear()
        with lines_of_run(run.run_id):
            try:
                result = await run.carry_out(counts=lambda: self.maintenance() is None)
            finally:
                self._running = self._running_since_t = None
            self._say(result)
        undone = result.unreachable or run.admin_unavailable
        if undone and self.maintenance() is None:
            for operation, planned in instance.experiment.admin_calls.items():
                self._undone(operation, planned - self._calls[operation], ours=run.recording.stood_still)

    def give_up(self) -> None:
        """Report in the metrics that this prober no longer runs the probe."""
        self._series.remove(families.PROBE_ASSIGNED)

    async def leave(self) -> None:
        """Delete the resources at the target, and report 0 probed keys."""
        self._subscription.probes(0)
        await self._provisioner.leave(self.open_probe.broker.admin)

    def _administered(self, operation: AdminOperation, latency_s: float, *, failed: bool) -> None:
        """Record the end of an administration call. A failure is undecided after a process pause: the prober may have missed the answer."""
        lagged_s = self._lagged_s(latency_s)
        self._calls[operation] += 1
        if failed:
            self._undone(operation, 1, ours=lagged_s > PAUSE_MAX_S)
        elif self._counters.took(Indicator.CONTROL_PLANE_LATENCY, latency_s, lagged_s):
            self._metrics.took(families.CONTROL_PLANE_LATENCY, latency_s, operation)
        else:
            self._metrics.count(families.UNDECIDED_DURATIONS, Indicator.CONTROL_PLANE_LATENCY)

    def _undone(self, operation: AdminOperation, count: int, *, ours: bool) -> None:
        """Count failed administration calls, and calls not made since the target or its administration was unreachable."""
        for _ in range(count):
            if ours:
                self._counters.ended(Indicator.CONTROL_PLANE_LATENCY, undecided=1)
                self._metrics.count(families.UNDECIDED_DURATIONS, Indicator.CONTROL_PLANE_LATENCY)
            else:
                self._counters.ended(Indicator.CONTROL_PLANE_LATENCY, bad=1)
                self._metrics.count(families.CONTROL_PLANE_FAILURES, operation)

    def _lagged_s(self, taken_s: float) -> float:
        """Return how long the event loop lagged during the last `taken_s` seconds, in seconds; 0 without a current run."""
        return 0.0 if self._running is None else self._running.recording.lagged_s(taken_s)

    def _say(self, result: RunResult) -> None:
        _log.log(
            logging.INFO if result.verdict is Verdict.PASS else logging.WARNING,
            "%s: %s after %.1f s%s",
            self.open_probe.probe_instance.name,
            result.verdict,
            result.duration_s,
            f"; {result.reason}" if result.reason else "",
            extra={
                "run_id": result.run_id,
                "probe_instance": self.open_probe.probe_instance.name,
                "verdict": str(result.verdict),
                "seed": result.seed,
            },
        )
