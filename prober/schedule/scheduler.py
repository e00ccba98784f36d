"""The scheduler: each point in time of a schedule becomes a run, or is counted as skipped.

APScheduler watches the clock and reports due points. All further decisions are made here, because its own behaviour would hide missed runs:

* It silently merges several missed starts, and drops a start that is a second late. Here every point is *expected*. After several missed
  points (the loop was blocked, the machine slept) the last one starts a run, and the others are misfires.
* Its jitter for intervals adds up, since each start counts from the delayed previous one, and has no seed. Here points are fixed, and
  each run waits a random time after its point.
* Its crontab counts weekdays from Monday and requires day and weekday to match. Here `Cron` computes the points.
* It lists all missed points, which may be millions after a step of the system's clock. Here they are counted.
* It stops without waiting. Here a run is a separate task, which `stop` waits for, and which `run_now` can start, too.

Points follow the system's clock, in UTC, where no day has 23 hours. A clock set forward looks like missed starts. A clock set back stops
the schedule until it has caught up, which `alive` reports.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import inf
from random import Random
from typing import Final, Protocol, TypeAlias

import apscheduler.executors.base  # type: ignore[import-untyped]
import apscheduler.schedulers.base  # type: ignore[import-untyped]
from apscheduler.events import (  # type: ignore[import-untyped]
    EVENT_JOB_MISSED,
    EVENT_JOB_SUBMITTED,
    JobExecutionEvent,
    JobSubmissionEvent,
)
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]
from apscheduler.triggers.base import BaseTrigger  # type: ignore[import-untyped]

from prober.clock import monotonic_s, random_bits, wall_s
from prober.config.cron import Cron
from prober.config.models import Schedule
from prober.sinks.metrics.label_values import SkipReason

HEARTBEAT_S: Final = 2.5
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

_log = logging.getLogger(__name__)


class _SystemClock(datetime):
    """The system's clock for APScheduler: it accepts no clock, so this class replaces its `datetime`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(wall_s(), tz)


apscheduler.schedulers.base.datetime = _SystemClock
apscheduler.executors.base.datetime = _SystemClock


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


class _Every(BaseTrigger):  # type: ignore[misc]
    """Points of an interval, from the first call on. All but the first are `shift` later, which is less than the interval."""

    def __init__(self, interval: timedelta, shift: timedelta = timedelta(0)) -> None:
        self._interval, self._shift = interval, shift
        self._first: datetime | None = None
        self._counted: datetime  # set by the first call

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Return the point after `previous`, or the latest of several that have passed."""
        if previous is None:
            self._first, self._counted = now, now - self._interval
            return now
        if previous == self._first:
            previous += self._shift
        return previous + max(1, (now - previous) // self._interval) * self._interval

    def come(self, until: datetime) -> int:
        """Return the number of points since the last call, up to and including the point `until`."""
        count = (until - self._counted) // self._interval
        self._counted = until
        return count


class _Crontab(BaseTrigger):  # type: ignore[misc]
    """Points of a crontab line."""

    def __init__(self, cron: Cron) -> None:
        self._cron = cron
        self._counted: datetime  # known from the first question on

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Return the point after `previous`, or the latest of several that have passed."""
        if previous is None:
            previous = self._counted = now
        return max(self._cron.following(previous), self._cron.latest(now))

    def come(self, until: datetime) -> int:
        """Return the number of points since the last call, up to and including the point `until`; stop beyond the bound."""
        count, point = 0, self._cron.following(self._counted)
        while point <= until and count <= MISSED_COUNTED_MAX:
            count, point = count + 1, self._cron.following(point)
        self._counted = until
        return count


@dataclass(slots=True)
class _Job:
    """A scheduled action. `acting`: its current run is past the random wait; `leaving`: no further run starts."""

    name: str
    points: _Every | _Crontab
    jitter_s: float
    action: Action
    punctual: bool
    task: asyncio.Task[None] | None = None
    acting: bool = False
    leaving: bool = False

    @property
    def running(self) -> bool:
        """Whether a run is running, or waiting its random time."""
        return self.task is not None and not self.task.done()


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
        self._next_first_t = 0.0
        self._added = 0
        self._stopping = False
        self._timer = AsyncIOScheduler(timezone=UTC)
        self._timer.add_listener(self._came, EVENT_JOB_SUBMITTED)
        self._timer.add_listener(self._missed, EVENT_JOB_MISSED)
        self._timer.add_job(self._tick, _Every(timedelta(seconds=HEARTBEAT_S)), misfire_grace_time=None, coalesce=True)

    def add(self, name: str, schedule: Schedule, jitter_s: float, action: Action) -> None:
        """Run `action` at each point of the schedule, after a random wait of up to `jitter_s`. Call it on the event loop.

        The first run of an interval starts at once: instead of the random wait it keeps `FIRST_RUNS_APART_S` from the first runs of others.
        The later points are spread over `SPREAD_S`, so the second point may be later by up to that time. Raises ValueError if the name is
        scheduled already.
        """
        if name in self._jobs:
            raise ValueError(f"{name!r} is scheduled already")
        points: _Every | _Crontab
        if schedule.interval is not None:
            spread = min(schedule.interval, timedelta(seconds=SPREAD_S))
            points, late_max_s = _Every(schedule.interval, self._added * SPREAD_STEP % 1.0 * spread), None
            self._added += 1
        else:
            assert schedule.cron is not None  # a Schedule has one of the two
            points, late_max_s = _Crontab(schedule.cron), LATE_MAX_S
        self._jobs[name] = job = _Job(name, points, jitter_s, action, punctual=schedule.interval is not None)
        self._timer.add_job(
            self._due, points, args=(job,), id=name, name=name, misfire_grace_time=late_max_s, coalesce=True, max_instances=1
        )

    async def drop(self, name: str, grace_s: float = inf) -> None:
        """Remove a name from the schedule, and wait until its run has ended. The name may be added again afterwards.

        A run that takes longer than `grace_s` from now on is cancelled.
        """
        job = self._jobs[name]
        job.leaving = True
        self._timer.remove_job(name)
        await asyncio.sleep(0)  # a point due on this turn of the loop has been refused by now
        if job.task is not None:
            await _end((job.task,), grace_s)
        del self._jobs[name]

    def start(self) -> None:
        """Start the schedule. To be called once, on the running event loop."""
        self._timer.start()

    async def stop(self, grace_s: float) -> None:
        """Start no further runs; wait up to `grace_s` for running ones, then cancel them and wait until they have ended."""
        if self._timer.running:
            self._timer.pause()
            await asyncio.sleep(0)  # every run due before has started by now
            self._stopping = True
            self._timer.shutdown(wait=False)
            await asyncio.sleep(0)  # that happens on the loop's next turn
        await _end(job.task for job in self._jobs.values() if job.task is not None and not job.acting)
        await _end((job.task for job in self._jobs.values() if job.task is not None), grace_s)

    def next_run_at(self, name: str) -> float | None:
        """Return the next point of a schedule in seconds since 1970, without the random wait; None if there is none, or before `start`."""
        known = self._jobs[name]
        job = self._timer.get_job(known.name) if self._timer.running else None
        return None if job is None else job.next_run_time.timestamp()

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
        """Return whether the heartbeat of the schedule, due every `HEARTBEAT_S`, ran within the last `within_s` seconds."""
        return self._timer.running and self._tick_t is not None and self._clock() - self._tick_t <= within_s

    # --- callbacks of APScheduler ---------------------------------------------------------------------------------------------

    def _came(self, event: JobSubmissionEvent) -> None:
        """Count the points of a job that have passed; `_due` follows for the last of them."""
        job = self._jobs.get(event.job_id)
        if job is None:
            return  # the heartbeat
        until = event.scheduled_run_times[-1]
        count = job.points.come(until)
        if count > MISSED_COUNTED_MAX:
            _log.warning("the clock was set forward to %s: what %s missed is not counted", until.isoformat(), job.name)
            count = 1
        for _ in range(count):
            self._listener.expected(job.name)
        for _ in range(count - 1):
            self._listener.skipped(job.name, SkipReason.MISFIRE)

    def _missed(self, event: JobExecutionEvent) -> None:
        """Skip a point that is too late to make up for; `_due` does not follow."""
        if event.job_id in self._jobs:
            self._listener.skipped(event.job_id, SkipReason.MISFIRE)

    async def _due(self, job: _Job) -> None:
        """Start the run of a point. A coroutine, because APScheduler calls functions in threads."""
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

    async def _tick(self) -> None:
        self._tick_t = self._clock()

    # --- runs ----------------------------------------------------------------------------------------------------------------

    def _begin(self, job: _Job, delay_s: float, action: Action) -> bool:
        if job.running or job.leaving or self._stopping or not self._timer.running:
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
            if not (self._stopping or job.leaving):  # it was raised within the action
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
