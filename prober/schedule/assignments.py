"""The probe instances of this prober, their probe loops, and their schedule.

A prober that does not share its probe instances runs every one of them, and follows their changes (`Unshared`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from prober.brokers.base import Admin
from prober.clock import wall_s
from prober.config.models import Config, Maintenance, TargetSettings
from prober.runs.backlog import Backlog
from prober.runs.probe_instance import InstanceKey
from prober.runs.runner import new_run_id
from prober.schedule.probe_loop import OpenProbe, ProbeLoop, Surroundings
from prober.schedule.scheduler import Scheduler
from prober.sinks.live.snapshot import RunOrdered
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import Component, ProberHealth, SkipReason, families

STOP_GRACE_S: Final = 5.0
LEAVE_TIMEOUT_S: Final = 5.0
SCHEDULER_SILENT_MAX_S: Final = 10.0

UNDER_WAY: Final = "a run is under way"
NO_MORE: Final = "this prober begins no runs now: it starts, stops, or gives the probe up to another"

_log = logging.getLogger(__name__)
CLOSE_TIMEOUT_S: Final = 5.0


class Assignments:
    """Starts and ends the work at probe instances. On the event loop. KeyError for instances that are not in the configuration."""

    def __init__(self, config: Config, live: LiveState, health: ProberHealth) -> None:
        self._config, self._live, self._health = config, live, health
        self._scheduler = Scheduler(self)
        self._instances: dict[str, OpenProbe] = {}
        self._names: dict[InstanceKey, str] = {}
        self._surroundings: dict[tuple[str, str, str], Surroundings] = {}
        self._loops: dict[str, ProbeLoop] = {}
        self._leaving: list[ProbeLoop] = []

    def follow(self, config: Config, instances: Iterable[OpenProbe], around: Mapping[tuple[str, str, str], Surroundings]) -> None:
        """Replace the configured probe instances; `around`: shared objects of each target, by its series labels.

        Running probe loops are unaffected: those in `outdated` continue until they are renewed or given up.
        """
        self._config = config
        self._instances = {open_probe.probe_instance.name: open_probe for open_probe in instances}
        self._names = {open_probe.shown.key: name for name, open_probe in self._instances.items()}
        self._surroundings = dict(around)

    @property
    def probe_instances(self) -> tuple[str, ...]:
        """Names of all probe instances, running or not."""
        return tuple(self._instances)

    @property
    def taken(self) -> Collection[str]:
        """Names of the probe instances that this prober runs."""
        return self._loops.keys()

    @property
    def outdated(self) -> frozenset[str]:
        """Names of the running probe instances that were removed or changed in the configuration."""
        loops = self._loops.items()
        return frozenset(name for name, probe_loop in loops if self._instances.get(name) is not probe_loop.open_probe)

    @property
    def instances(self) -> tuple[OpenProbe, ...]:
        """All probe instances with their connections."""
        return tuple(self._instances.values())

    def admin_of(self, target: str) -> Admin | None:
        """Return the administration of a target by its name; None if it is not probed."""
        return next((one.broker.admin for one in self.instances if one.probe_instance.target.name == target), None)

    @property
    def used(self) -> tuple[OpenProbe, ...]:
        """All configured probe instances, the outdated ones, and those whose resources are still being deleted."""
        loops = (*self._loops.values(), *self._leaving)
        return (*self._instances.values(), *(probe_loop.open_probe for probe_loop in loops))

    # --- start and end of probe instances -----------------------------------------------------------------------------------

    def take(self, name: str) -> None:
        """Start to run a probe instance: its runs are scheduled from now on."""
        open_probe = self._instances[name]
        around = self._surroundings[open_probe.probe_instance.target.series]
        probe_loop = self._loops[name] = ProbeLoop(self._maintenance_of, open_probe, around)
        self._live.watched(probe_loop.shown, wall_s())
        settings = open_probe.probe_instance.settings
        self._scheduler.add(name, settings.schedule, settings.jitter.total_seconds(), probe_loop.go)

    async def give(self, name: str) -> None:
        """Give a probe instance up after its run has ended, within the longest duration of a run; delete its resources."""
        probe_loop = await self._end(name)
        self._live.left(probe_loop.open_probe.shown)
        await self._delete(probe_loop)

    async def renew(self, name: str) -> None:
        """Give a probe instance up and start its new version, if there is one; its counts continue."""
        probe_loop = await self._end(name)
        if name not in self._instances:
            self._live.left(probe_loop.open_probe.shown)
        await self._delete(probe_loop)
        if name in self._instances:
            self.take(name)

    async def _end(self, name: str) -> ProbeLoop:
        await self._scheduler.drop(name, self._loops[name].longest_s)
        self._loops[name].give_up()
        return self._loops.pop(name)

    async def _delete(self, probe_loop: ProbeLoop) -> None:
        self._leaving.append(probe_loop)
        try:
            await probe_loop.leave()
        finally:
            self._leaving.remove(probe_loop)

    def start(self) -> None:
        """Start the schedule."""
        self._scheduler.start()

    async def stop(self) -> None:
        """Start no further runs; wait a moment for running ones."""
        await self._scheduler.stop(STOP_GRACE_S)

    async def leave(self) -> None:
        """Delete the resources at the targets, as far as they answer soon."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await asyncio.gather(*(probe_loop.leave() for probe_loop in self._loops.values()))

    def run_now(self, instance: InstanceKey) -> RunOrdered:
        """Start a run beyond the schedule, unless another is running or the target is under maintenance.

        KeyError: this prober does not run the instance.
        """
        name = self._names[instance]
        probe_loop = self._loops[name]
        maintenance = probe_loop.maintenance()
        if maintenance is not None:
            return RunOrdered(None, f"under maintenance: {maintenance}" if maintenance else "under maintenance")
        run_id = new_run_id(probe_loop.open_probe.probe_instance.probe)
        if self._scheduler.run_now(name, partial(probe_loop.go, run_id)):
            return RunOrdered(run_id)
        return RunOrdered(None, UNDER_WAY if self._scheduler.running(name) else NO_MORE)

    # --- status --------------------------------------------------------------------------------------------------------------

    def stuck(self) -> Iterator[str]:
        """Yield the stuck parts of the prober, one line each."""
        if not self._scheduler.alive(SCHEDULER_SILENT_MAX_S):
            yield "the scheduler is stuck"
        yield from (f"the run of {name} is stuck" for name, probe_loop in self._loops.items() if probe_loop.stuck())

    def backlogs(self, target: tuple[str, str, str]) -> Mapping[str, Backlog]:
        """Return the pending messages on a target, by subscription.

        The labels of its series identify the target.
        """
        here = [probe_loop for probe_loop in self._loops.values() if probe_loop.open_probe.probe_instance.target.series == target]
        return {name: backlog for probe_loop in here for name, backlog in probe_loop.backlogs.items()}

    def plan(self) -> None:
        """Report the times of the next runs to the live state."""
        for name, probe_loop in self._loops.items():
            self._live.planned(probe_loop.open_probe.shown, self._scheduler.next_run_at(name))

    def age(self) -> None:
        """Record the ages of the oldest messages, and the targets under maintenance; to be called once a second."""
        now = datetime.fromtimestamp(wall_s(), UTC)
        for probe_loop in self._loops.values():
            probe_loop.age()
        for target in self._config.targets:
            self._surroundings[target.series].metrics.set(
                families.UNDER_MAINTENANCE, self._config.maintenance_of(target, now) is not None
            )

    def count_slice(self) -> None:
        """Count a slice of time for the objectives about time."""
        now = datetime.fromtimestamp(wall_s(), UTC)
        for probe_loop in self._loops.values():
            if self._config.maintenance_of(probe_loop.open_probe.probe_instance.target, now) is None:
                probe_loop.count_slice()

    # --- callbacks of the schedule -------------------------------------------------------------------------------------------

    def expected(self, name: str) -> None:
        """Record that a run is due."""
        self._loops[name].expected()

    def skipped(self, name: str, reason: SkipReason) -> None:
        """Record that a due run does not start."""
        self._loops[name].skipped(reason)
        _log.warning("%s: a run was skipped: %s", name, reason)

    def failed(self, name: str, error: BaseException) -> None:
        """Report an internal error that ended a probe loop."""
        self._health.internal_error(Component.SCHEDULER)
        _log.error("internal error in %s", name, exc_info=error)

    def _maintenance_of(self, target: TargetSettings, at: datetime) -> Maintenance | None:
        return self._config.maintenance_of(target, at)


class Unshared:
    """Runs every probe instance. `renew` ends an outdated one and starts its new version; `failed` receives internal errors."""

    def __init__(
        self, assignments: Assignments, renew: Callable[[str], Coroutine[Any, Any, None]], failed: Callable[[Exception], None]
    ) -> None:
        self._assignments, self._renew_instance, self._failed = assignments, renew, failed
        self._renewing: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    def follow(self) -> None:
        """Start new probe instances at once, and end each outdated one after its run."""
        for name in self._assignments.outdated - self._renewing.keys():
            self._renewing[name] = asyncio.create_task(self._renew(name), name=f"renew {name}")
        for name in self._assignments.probe_instances:
            if name not in self._assignments.taken and name not in self._renewing:
                self._assignments.take(name)

    async def close(self) -> None:
        """Wait a moment for probe instances being given up; to be called when no run is running any more."""
        self._closing = True
        if self._renewing:
            _, late = await asyncio.wait(self._renewing.values(), timeout=CLOSE_TIMEOUT_S)
            for task in late:
                task.cancel()

    async def _renew(self, name: str) -> None:
        try:
            await self._renew_instance(name)
        except Exception as fault:
            self._failed(fault)
        finally:
            del self._renewing[name]
        if not self._closing and name not in self._assignments.taken:
            self.follow()  # it was configured again while it was given up
