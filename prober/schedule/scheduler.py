"""The scheduler: each point in time of a schedule becomes a run, or is counted as skipped.

Points are fixed: each run waits a random time after its point, and a late run does not move the next point. Every point is *expected*.
After several missed points (the loop was blocked, the machine slept) the last one starts a run, and the others are misfires.

Points follow the system's clock, in UTC, where no day has 23 hours. A clock set forward looks like missed starts. A clock set back stops
the schedule until it has caught up, which `alive` reports.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from random import Random
from typing import Final, Protocol, TypeAlias

from prober.clock import monotonic_s, random_bits, wall_s
from prober.config.cron import Cron
from prober.config.models import Schedule
from prober.sinks.metrics.label_values import SkipReason

HEARTBEAT_S: Final = 2.5
"""Longest time between two looks at the clock, in seconds."""
FIRST_RUNS_APART_S: Final = 2.0
"""Time between the first runs of actions added together, in seconds: simultaneous runs would affect each other's measurements."""
SPREAD_S: Final = 60.0
"""Time over which the later points of all intervals are spread, in seconds, or the interval if that is shorter.

Runs that start together compete for the processor, and end UNKNOWN on a busy machine.
"""
SPREAD_STEP: Final = 0.618034
"""The golden ratio: any number of points at its multiples lie apart."""
LATE_MAX_S: Final = 3600
"""Longest delay of a crontab point, in seconds: it is a time of day, so a later start does not make up for it."""
MISSED_COUNTED_MAX: Final = 10_000
"""Largest number of points that count as missed at once; with more, the clock was set. Those are logged, not counted."""

Action: TypeAlias = Callable[[], Awaitable[None]]

_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_log = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.fromtimestamp(wall_s(), UTC)


class ScheduleListener(Protocol):
    """Callbacks for due runs and their outcomes.

    Called on the event loop; must not block or raise.
    """

    def expected(self, name: str) -> None:
        """Report a due run. It starts, unless `skipped` follows."""

    def skipped(self, name: str, reason: SkipReason) -> None:
        """Report a due run that does not start: its time was missed, or another run is running."""

    def failed(self, name: str, error: BaseException) -> None:
        """Report an internal error of the action. The schedule continues."""


@dataclass(slots=True)
class _Job:
    """A scheduled action.

    shift     delay of all points of an interval but the first.
    punctual  its next run is its first, without a random wait.
    due_at    its next point; known from `begin` on.
    acting    its current run is past the random wait. `leaving`: no further run starts.
    """

    name: str
    schedule: Schedule
    shift: timedelta
    jitter_s: float
    action: Action
    punctual: bool
    due_at: datetime = _NEVER
    task: asyncio.Task[None] | None = None
    acting: bool = False
    leaving: bool = False

    @property
    def running(self) -> bool:
        return self.task is not None and not self.task.done()

    def begin(self) -> None:
        """Set the first point: for an interval, now."""
        self.due_at = _now() if self.schedule.interval is not None else self._cron.following(_now())

    def pass_by(self, now: datetime) -> tuple[int, datetime]:
        """Return the number of points that have come until `now`, and the last of them. Counts up to `MISSED_COUNTED_MAX` and one."""
        count, point = 0, self.due_at
        while self.due_at <= now and count <= MISSED_COUNTED_MAX:
            count, point, self.due_at = count + 1, self.due_at, self._after(self.due_at)
        if self.due_at <= now:
            point = self._latest(now)
            self.due_at = self._after(point)
        return count, point

    def _after(self, point: datetime) -> datetime:
        if self.schedule.interval is None:
            return self._cron.following(point)
        shift, self.shift = self.shift, timedelta()
        return point + self.schedule.interval + shift

    def _latest(self, now: datetime) -> datetime:
        if self.schedule.interval is None:
            return self._cron.latest(now)
        return now - (now - self.due_at) % self.schedule.interval

    @property
    def _cron(self) -> Cron:
        assert self.schedule.cron is not None  # a Schedule has one of the two
        return self.schedule.cron


class Scheduler:
    """Runs actions at the points of their schedules, on the event loop on which it is started.

    Runs of the same name never overlap. All methods must be called on that loop. Unknown names raise KeyError. `seed` repeats the random
    waits; without a seed each process draws its own, so that probers are not in step.
    """

    def __init__(self, listener: ScheduleListener, seed: int | None = None, clock: Callable[[], float] = monotonic_s) -> None:
        self._listener = listener
        self._random = Random(random_bits(64) if seed is None else seed)
        self._clock = clock
        self._jobs: dict[str, _Job] = {}
        self._tick_t: float | None = None
        self._ticks_at: datetime  # known from `start` on
        self._next_first_t = 0.0
        self._intervals = 0
        self._timer: asyncio.Handle | None = None

    def add(self, name: str, schedule: Schedule, jitter_s: float, action: Action) -> None:
        """Run `action` at each point of the schedule, after a random wait of up to `jitter_s`. Call it on the event loop.

        The first run of an interval starts at once: instead of the random wait it keeps `FIRST_RUNS_APART_S` from the first runs of others.
        The later points are spread over `SPREAD_S`, so the second point may be later by up to that time. Raises ValueError if the name is
        scheduled already.
        """
        if name in self._jobs:
            raise ValueError(f"{name!r} is scheduled already")
        shift, punctual = timedelta(), schedule.interval is not None
        if schedule.interval is not None:
            shift = self._intervals * SPREAD_STEP % 1.0 * min(schedule.interval, timedelta(seconds=SPREAD_S))
            self._intervals += 1
        self._jobs[name] = job = _Job(name, schedule, shift, jitter_s, action, punctual)
        if self._timer is not None:
            job.begin()
            self._look_at_once()

    async def drop(self, name: str, grace_s: float = inf) -> None:
        """Remove a name from the schedule, and wait until its run has ended. The name may be added again afterwards.

        A run that takes longer than `grace_s` from now on is cancelled.
        """
        job = self._jobs[name]
        job.leaving = True
        if job.task is not None:
            await _end((job.task,), grace_s)
        del self._jobs[name]

    def start(self) -> None:
        """Start the schedule. To be called once, on the running event loop."""
        self._ticks_at = _now()
        for job in self._jobs.values():
            job.begin()
        self._look_at_once()

    async def stop(self, grace_s: float) -> None:
        """Start no further runs; wait up to `grace_s` for running ones, then cancel them and wait until they have ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await _end(job.task for job in self._jobs.values() if job.task is not None and not job.acting)
        await _end((job.task for job in self._jobs.values() if job.task is not None), grace_s)

    def next_run_at(self, name: str) -> float | None:
        """Return the next point of a schedule in seconds since 1970, without the random wait; None before `start` and after `stop`."""
        job = self._jobs[name]
        return None if self._timer is None else job.due_at.timestamp()

    def running(self, name: str) -> bool:
        """Return whether a run is running, or waiting its random time."""
        return self._jobs[name].running

    def run_now(self, name: str, action: Action | None = None) -> bool:
        """Start a run beyond the schedule; `action` replaces the usual one in it.

        Return False if another run is running, while the name is dropped, before `start` and after `stop`.
        """
        job = self._jobs[name]
        return self._begin(job, 0.0, action or job.action)

    def alive(self, within_s: float) -> bool:
        """Return whether the heartbeat of the schedule, due every `HEARTBEAT_S`, came within the last `within_s` seconds."""
        return self._timer is not None and self._tick_t is not None and self._clock() - self._tick_t <= within_s

    # --- points --------------------------------------------------------------------------------------------------------------

    def _look_at_once(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Start the runs that are due, and look again at the next point."""
        now = _now()
        if self._ticks_at <= now:  # not after the clock was set back, because then no run is due either
            self._tick_t, self._ticks_at = self._clock(), now + timedelta(seconds=HEARTBEAT_S)
        jobs = [job for job in self._jobs.values() if not job.leaving]
        for job in jobs:
            if job.due_at <= now:
                self._come(job, now)
        next_s = min(((job.due_at - now).total_seconds() for job in jobs), default=HEARTBEAT_S)
        self._timer = asyncio.get_running_loop().call_later(min(next_s, HEARTBEAT_S), self._look)

    def _come(self, job: _Job, now: datetime) -> None:
        """Count the points of a job that have come, and start the run of the last."""
        count, point = job.pass_by(now)
        if count > MISSED_COUNTED_MAX:
            _log.warning("the clock was set forward to %s: what %s missed is not counted", point.isoformat(), job.name)
            count = 1
        for _ in range(count):
            self._listener.expected(job.name)
        for _ in range(count - 1):
            self._listener.skipped(job.name, SkipReason.MISFIRE)
        if job.schedule.cron is not None and now - point > timedelta(seconds=LATE_MAX_S):
            self._listener.skipped(job.name, SkipReason.MISFIRE)
            return
        delay_s = self._turn_s() if job.punctual else self._random.uniform(0.0, job.jitter_s)
        job.punctual = False
        if not self._begin(job, delay_s, job.action):
            self._listener.skipped(job.name, SkipReason.OVERLAP)

    def _turn_s(self) -> float:
        """Return how long a first run waits for earlier first runs, in seconds."""
        now = self._clock()
        begins_t = max(now, self._next_first_t)
        self._next_first_t = begins_t + FIRST_RUNS_APART_S
        return begins_t - now

    # --- runs ----------------------------------------------------------------------------------------------------------------

    def _begin(self, job: _Job, delay_s: float, action: Action) -> bool:
        if job.running or job.leaving or self._timer is None:
            return False
        job.acting = False
        job.task = asyncio.create_task(self._run(job, delay_s, action), name=job.name)
        return True

    async def _run(self, job: _Job, delay_s: float, action: Action) -> None:
        try:
            await asyncio.sleep(delay_s)
            job.acting = True
            await action()
        except asyncio.CancelledError as error:
            if self._timer is not None and not job.leaving:  # it was raised within the action
                self._listener.failed(job.name, error)
            raise
        except Exception as error:
            self._listener.failed(job.name, error)


async def _end(tasks: Iterable[asyncio.Task[None]], grace_s: float = 0.0) -> None:
    """Wait for tasks, cancel unfinished ones, and wait for their end without a limit."""
    rest = {task for task in tasks if not task.done()}
    if rest and grace_s > 0.0:
        _, rest = await asyncio.wait(rest, timeout=None if grace_s == inf else grace_s)
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest)


class Regular:
    """A periodic action, due `every_s` seconds after its previous due time."""

    def __init__(self, every_s: float, action: Callable[[], None]) -> None:
        self._every_s, self._action = every_s, action
        self._due_t = monotonic_s() + every_s

    def at(self, now: float, *, at_once: bool = False) -> None:
        """Run the action if it is due, or `at_once`."""
        if now >= self._due_t:
            self._due_t = max(now, self._due_t + self._every_s)
            at_once = True
        if at_once:
            self._action()


async def repeat(every_s: float, action: Callable[[], Awaitable[None]], failed: Callable[[Exception], None]) -> None:
    """Await an action, and again `every_s` seconds after each end, until cancelled. `failed` receives its internal errors."""
    while True:
        try:
            await action()
        except Exception as fault:  # an internal error must not end the repetition
            failed(fault)
        await asyncio.sleep(every_s)
