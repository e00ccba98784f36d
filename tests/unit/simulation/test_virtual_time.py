"""Virtual time: it jumps, it passes while somebody works, and it never waits in vain."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from prober.clock import monotonic_s, on_machine, wall_s
from prober.simulation.virtual_time import READING_S, STARTED_AT, VirtualTime


@pytest.fixture
def loop() -> VirtualTime:
    return VirtualTime()


def test_hours_pass_and_everything_comes_in_its_order(loop: VirtualTime) -> None:
    came = []

    async def after(seconds: float) -> None:
        await asyncio.sleep(seconds)
        came.append((seconds, loop.time()))

    async def scenario() -> None:
        await asyncio.gather(after(7200), after(1), after(3600))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(scenario())
    assert [seconds for seconds, _ in came] == [1, 3600, 7200]
    assert [t for _, t in came] == pytest.approx([1, 3600, 7200])


def test_who_waits_for_nothing_is_reported(loop: VirtualTime) -> None:
    async def scenario() -> None:
        await asyncio.Event().wait()

    runner = asyncio.Runner(loop_factory=lambda: loop)
    with pytest.raises(RuntimeError, match="everybody waits"):
        runner.run(scenario())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    runner.close()


def test_nobody_has_a_turn_while_the_machine_stands_still(loop: VirtualTime) -> None:
    woken = []

    async def scenario() -> None:
        loop.call_later(1.0, lambda: woken.append(loop.time()))
        loop.stand_still(60.0)
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(scenario())
    assert woken == pytest.approx([60.0])


def test_two_readings_differ_and_a_clock_can_be_set(loop: VirtualTime) -> None:
    with on_machine(loop.machine(seed=1)):
        first = monotonic_s()
        assert monotonic_s() == pytest.approx(first + READING_S)
        assert wall_s() == pytest.approx(STARTED_AT.timestamp())
        loop.set_forward = timedelta(hours=-1)
        assert wall_s() == pytest.approx(STARTED_AT.timestamp() - 3600)
        assert monotonic_s() > first
    loop.close()
