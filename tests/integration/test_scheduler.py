"""The schedule on an ordinary event loop, in real time: short intervals, a loop that is held up, and a stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

from prober.clock import monotonic_s
from prober.config.models import Schedule
from prober.schedule.scheduler import Scheduler
from prober.sinks.metrics.label_values import SkipReason


class Reported:
    """What the scheduler says."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def expected(self, name: str) -> None:
        self.counts["expected"] += 1

    def skipped(self, name: str, reason: SkipReason) -> None:
        self.counts[reason] += 1

    def failed(self, name: str, error: BaseException) -> None:
        raise AssertionError from error


def test_runs_start_in_real_time_and_every_point_is_accounted_for() -> None:
    reported = Reported()
    started, cancelled = 0, 0

    async def act() -> None:
        nonlocal started, cancelled
        started += 1
        try:
            await asyncio.sleep(0.05 if started < 3 else 60.0)
        except asyncio.CancelledError:
            cancelled += 1
            raise

    async def trial() -> None:
        scheduler = Scheduler(reported)
        scheduler.add("p", Schedule(interval=timedelta(seconds=0.02)), 0.0, act)
        scheduler.start()
        while started < 2:
            await asyncio.sleep(0.005)
        assert scheduler.alive(60.0)
        held_up_until = monotonic_s() + 0.1
        while monotonic_s() < held_up_until:
            pass
        while started < 3:
            await asyncio.sleep(0.005)
        await scheduler.stop(0.01)
        assert not scheduler.running("p")

    asyncio.run(trial())
    assert (started, cancelled) == (3, 1)
    assert reported.counts[SkipReason.OVERLAP] >= 1
    assert reported.counts[SkipReason.MISFIRE] >= 3
    assert reported.counts["expected"] == started + reported.counts[SkipReason.OVERLAP] + reported.counts[SkipReason.MISFIRE]
