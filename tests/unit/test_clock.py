"""Where time, random numbers and numbers come from: the machine, or another one that was put in its place."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random

from prober import clock
from prober.clock import Machine, on_machine


def reported() -> tuple[float, float, int, str, int]:
    return clock.monotonic_s(), clock.wall_s(), clock.random_bits(32), clock.random_name(6), clock.next_number()


def machine() -> Machine:
    return Machine(lambda: 7.0, lambda: 1_000.0, Random(1), count(1))


def test_another_machine_is_asked_instead() -> None:
    with on_machine(machine()):
        first = reported()
    with on_machine(machine()):
        assert reported() == first
    assert first[:2] == (7.0, 1_000.0)
    assert first[4] == 1
    assert reported() != first


def test_it_is_that_of_tasks_that_begin_there_and_of_no_others() -> None:
    async def scenario() -> None:
        go = asyncio.Event()

        async def ask() -> float:
            await go.wait()
            return clock.monotonic_s()

        outside = asyncio.create_task(ask())
        with on_machine(machine()):
            inside = asyncio.create_task(ask())
        go.set()
        assert await inside == 7.0
        assert await outside != 7.0

    asyncio.run(scenario())


def test_names_have_all_their_digits() -> None:
    with on_machine(Machine(lambda: 0.0, lambda: 0.0, Random(1), count(1))):
        assert {len(clock.random_name(6)) for _ in range(200)} == {6}


def test_no_number_comes_twice() -> None:
    numbers = [clock.next_number() for _ in range(100)]
    assert len(set(numbers)) == 100
