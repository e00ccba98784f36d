"""When probes run: the points in time of a schedule become runs, and each run that does not happen is counted.

Every point is *expected*. Of several that were missed (the loop was blocked, the machine slept) the last is made up for and the others
are misfires; after a step of the system's clock they may be millions, so they are counted and not listed. Points stay where they are, and
each run waits a random time after its point. A run is a task of its own, which is waited for at the end, and which `run_now` can begin as
well.

Points follow the system's clock, in UTC, where no day has 23 hours: a clock that is set forward looks like missed starts, and one that
is set back holds everything up until it has caught up, which `alive` tells.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from random import Random
from typing import Final, Protocol, TypeAlias

from prober.clock import chance_bits, monotonic_s, wall_s
from prober.config.cron import Cron
from prober.config.models import Schedule
from prober.sinks.metrics.families import SkipReason

HEARTBEAT_S: Final = 1.0
LATE_MAX_S: Final = 3600
"""A point of a crontab line is a time of the day: who comes later than this does not make up for it."""
MISSED_COUNTED_MAX: Final = 10_000
"""More points than this at once were not missed: the clock was set. They are logged, not counted."""

Action: TypeAlias = Callable[[], Awaitable[None]]

_log = logging.getLogger(__name__)


class ScheduleListener(Protocol):
    """Who is told what the schedule asked for and what became of it. Called on the event loop; must not block or raise."""

    def expected(self, name: str) -> None:
        """The schedule asked for a run. It starts, unless `skipped` follows."""

    def skipped(self, name: str, reason: SkipReason) -> None:
        """An expected run does not start: its time was missed, or one is under way."""

    def failed(self, name: str, error: BaseException) -> None:
        """The action raised, which is a mistake of ours. The schedule goes on."""


class _Every:
    """The points of an interval, from the first time that it is asked."""

    def __init__(self, interval: timedelta, *, first_at_once: bool = True) -> None:
        self._interval = interval
        self._first_at_once = first_at_once
        self._counted: datetime  # known from the first question on

    def following(self, previous: datetime | None, now: datetime) -> datetime:
        """The point after `previous`; of several that have passed by now, the last."""
        if previous is None:
            previous = self._counted = now - self._interval if self._first_at_once else now
        return previous + max(1, (now - previous) // self._interval) * self._interval

    def come(self, until: datetime) -> int:
        """How many points have come since this was last asked, up to and including the point `until`."""
        count = (until - self._counted) // self._interval
        self._counted = until
        return count


class _Crontab:
    """The points of a crontab line."""

    def __init__(self, cron: Cron) -> None:
        self._cron = cron
        self._counted: datetime  # known from the first question on

    def following(self, previous: datetime | None, now: datetime) -> datetime:
        """The point after `previous`; of several that have passed by now, the last."""
        if previous is None:
            previous = self._counted = now
        return max(self._cron.following(previous), self._cron.latest(now))

    def come(self, until: datetime) -> int:
        """How many points have come since this was last asked, up to and including the point `until`; stops beyond the bound."""
        count, point = 0, self._cron.following(self._counted)
        while point <= until and count <= MISSED_COUNTED_MAX:
            count, point = count + 1, self._cron.following(point)
        self._counted = until
        return count


@dataclass(slots=True)
class _Job:
    """What is run under a name.

    late_max  by how much it may be late for its last point and still make up for it.
    next      its next point; None while the schedule has not begun.
    acting    its current run is past the random wait.
    leaving   none begins any more.
    """

    name: str
    points: _Every | _Crontab
    late_max: timedelta
    jitter_s: float
    action: Action
    punctual: bool
    next: datetime | None = None
    task: asyncio.Task[None] | None = None
    acting: bool = False
    leaving: bool = False

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self.task is not None and not self.task.done()


class Scheduler:
    """Runs actions at the points of their schedules, on the event loop it is started on. Runs of one name never overlap.

    Everything is to be called on that loop. Names that were not added are a KeyError. `seed` repeats the random waits; without one
    each process draws its own, so that probers do not march in step.
    """

    def __init__(self, listener: ScheduleListener, seed: int | None = None, clock: Callable[[], float] = monotonic_s) -> None:
        self._listener = listener
        self._random = Random(chance_bits(64) if seed is None else seed)
        self._clock = clock
        self._jobs: dict[str, _Job] = {}
        self._beat_t: float | None = None
        self._stopping = False
        self._beats = _Every(timedelta(seconds=HEARTBEAT_S))
        self._timer: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def add(self, name: str, schedule: Schedule, jitter_s: float, action: Action, *, first_at_once: bool = True) -> None:
        """Runs `action` at each point of the schedule, after a random wait of up to `jitter_s`. A name is added once.

        The first run of an interval starts at once and without a wait, unless `first_at_once` is false: then one interval later.
        """
        if name in self._jobs:
            raise ValueError(f"{name!r} is scheduled already")
        points: _Every | _Crontab
        if schedule.interval is not None:
            points, late_max = _Every(schedule.interval, first_at_once=first_at_once), timedelta.max
        else:
            assert schedule.cron is not None  # a Schedule has one of the two
            points, late_max = _Crontab(schedule.cron), timedelta(seconds=LATE_MAX_S)
        punctual = first_at_once and schedule.interval is not None
        self._jobs[name] = job = _Job(name, points, late_max, jitter_s, action, punctual)
        if self._going:
            job.next = points.following(None, _now())
            self._changed.set()

    async def drop(self, name: str, grace_s: float = inf) -> None:
        """Takes a name off the schedule, and waits until its run has ended: none begins from now on. It may be added again after that.

        A run that takes longer than `grace_s` from now on is cancelled.
        """
        job = self._jobs[name]
        job.leaving = True
        if job.task is not None:
            await _end((job.task,), grace_s)
        del self._jobs[name]

    def start(self) -> None:
        """Begins. To be called once, on the running event loop."""
        now = _now()
        for job in self._jobs.values():
            job.next = job.points.following(None, now)
        self._timer = asyncio.create_task(self._keep_time(self._beats.following(None, now)), name="schedule")

    async def stop(self, grace_s: float) -> None:
        """No new runs; waits for those under way up to `grace_s`, then cancels them and waits until they have ended."""
        self._stopping = True
        if self._timer is not None:
            await _end((self._timer,))
        await _end(job.task for job in self._jobs.values() if job.task is not None and not job.acting)
        await _end((job.task for job in self._jobs.values() if job.task is not None), grace_s)

    def next_run_at(self, name: str) -> float | None:
        """The next point of a schedule, in seconds since 1970, without the random wait. None if there is none, or not yet."""
        point = self._jobs[name].next
        return point.timestamp() if point is not None and self._going else None

    def running(self, name: str) -> bool:
        """Whether a run is under way, its random wait included."""
        return self._jobs[name].running

    def run_now(self, name: str, action: Action | None = None) -> bool:
        """Begins a run that the schedule did not ask for; `action` takes the place of the usual one in it.

        False if one is under way, while the name is dropped, before `start` and after `stop`.
        """
        job = self._jobs[name]
        return self._begin(job, 0.0, action or job.action)

    def alive(self, within_s: float) -> bool:
        """Whether points in time were noticed within these seconds. Looks at a heartbeat, which comes every `HEARTBEAT_S`."""
        return self._going and self._beat_t is not None and self._clock() - self._beat_t <= within_s

    # --- points in time --------------------------------------------------------------------------------------------------------

    @property
    def _going(self) -> bool:
        """Whether runs begin."""
        return self._timer is not None and not self._stopping

    async def _keep_time(self, beat: datetime) -> None:
        """Waits for points, and notices each when it has come. `beat` is the first one of the heart."""
        while True:
            now = _now()
            if beat <= now:
                self._beat_t = self._clock()
                beat = self._beats.following(beat, now)
            for job in list(self._jobs.values()):
                if job.next is not None and job.next <= now and not job.leaving:
                    self._come(job, job.next, now)
            following = min((job.next for job in self._jobs.values() if job.next is not None and not job.leaving), default=beat)
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), max(0.0, (min(following, beat) - _now()).total_seconds()))

    def _come(self, job: _Job, point: datetime, now: datetime) -> None:
        """Points have come, `point` the first of them: the last of them begins a run."""
        while (following := job.points.following(point, now)) <= now:
            point = following
        job.next = following
        count = job.points.come(point)
        if count > MISSED_COUNTED_MAX:
            _log.warning("the clock was set forward to %s: what %s missed is not counted", point.isoformat(), job.name)
            count = 1
        for _ in range(count):
            self._listener.expected(job.name)
        for _ in range(count - 1):
            self._listener.skipped(job.name, SkipReason.MISFIRE)
        if now - point > job.late_max:
            self._listener.skipped(job.name, SkipReason.MISFIRE)
            return
        delay_s = 0.0 if job.punctual else self._random.uniform(0.0, job.jitter_s)
        job.punctual = False
        if not self._begin(job, delay_s, job.action):
            self._listener.skipped(job.name, SkipReason.OVERLAP)

    # --- runs ----------------------------------------------------------------------------------------------------------------

    def _begin(self, job: _Job, delay_s: float, action: Action) -> bool:
        if job.running or job.leaving or not self._going:
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
            if not (self._stopping or job.leaving):  # it came from within the action
                self._listener.failed(job.name, error)
            raise
        except Exception as error:
            self._listener.failed(job.name, error)


def _now() -> datetime:
    return datetime.fromtimestamp(wall_s(), UTC)


async def _end(tasks: Iterable[asyncio.Task[None]], grace_s: float = 0.0) -> None:
    """Waits for tasks, cancels what is not done by then, and waits for that, however long it takes."""
    rest = {task for task in tasks if not task.done()}
    if rest and grace_s > 0.0:
        _, rest = await asyncio.wait(rest, timeout=None if grace_s == inf else grace_s)
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest)
