"""A name that is taken off the schedule has no runs any more, whatever comes on the same turn of the loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.unit.schedule.test_scheduler import Trial, trial

__all__ = ["trial"]


def test_nothing_begins_any_more_while_a_name_is_dropped(trial: Trial) -> None:
    """What belongs to it is deleted afterwards: a run that began as the last one ended would be left without it."""
    begun: list[bool] = []

    def begin() -> None:
        begun.append(trial.scheduler.run_now("p", trial.reported.lasting(3)))

    async def act() -> None:
        await asyncio.sleep(3)
        trial.loop.call_soon(begin)  # when the run has ended, and before those are notified who wait for that

    async def dropping() -> None:
        await asyncio.sleep(1)
        await trial.scheduler.drop("p")
        assert begun == [False]
        await asyncio.sleep(20)

    trial.add(act)
    assert trial.run(dropping()) == {"p expected": 1}
    assert trial.reported.runs == []


def test_a_point_that_comes_on_the_turn_on_which_a_name_is_dropped_begins_nothing_afterwards(trial: Trial) -> None:
    drops: list[asyncio.Future[None]] = []

    def drop(name: str) -> None:
        trial.reported.counts[f"{name} expected"] += 1
        dropping = trial.scheduler.drop(name)
        with suppress(StopIteration):
            dropping.send(None)  # its first step at once: after the point has come, and before its run begins
            drops.append(asyncio.ensure_future(dropping))

    async def dropped() -> None:
        await asyncio.sleep(30)
        await asyncio.gather(*drops)

    trial.reported.expected = drop  # type: ignore[method-assign]
    trial.add(trial.reported.lasting(3))
    assert trial.run(dropped()) == {"p expected": 1, "p overlap": 1}
    assert trial.reported.runs == []


def test_a_run_that_takes_longer_than_it_may_is_cancelled_and_is_no_mistake(trial: Trial) -> None:
    async def dropping() -> None:
        await asyncio.sleep(1)
        await trial.scheduler.drop("p", grace_s=5)
        trial.add(trial.reported.lasting(2))
        await asyncio.sleep(4)

    trial.add(trial.reported.lasting(1000))
    assert trial.run(dropping()) == {"p expected": 2}
    assert trial.reported.runs == [(0, 6), (6, 8)]
