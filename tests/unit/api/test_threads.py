"""A few threads for all who ask: in the order in which they asked, by one while it is quick, and nothing for those who went away."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from api.threads import THREADS_MAX, Threads

NEVER_S = 1e9


class Gate:
    """Keeps all threads busy until it is opened."""

    def __init__(self, threads: Threads) -> None:
        self._open = threading.Event()
        self._kept = [asyncio.ensure_future(threads.ask(self._open.wait)) for _ in range(THREADS_MAX)]

    async def open(self) -> None:
        self._open.set()
        await asyncio.gather(*self._kept)


def test_who_asks_first_is_answered_first() -> None:
    begun: list[int] = []

    def answered(number: int) -> int:
        begun.append(number)
        return number

    async def asking() -> list[int]:
        threads = Threads(0.0)
        gate = Gate(threads)
        await asyncio.sleep(0)
        answers = [asyncio.ensure_future(threads.ask(partial(answered, number))) for number in range(50)]
        await asyncio.sleep(0)
        await gate.open()
        return await asyncio.gather(*answers)

    assert asyncio.run(asking()) == list(range(50))
    assert sorted(begun) == list(range(50))


def test_nothing_is_done_for_who_went_away() -> None:
    done: list[str] = []

    async def asking() -> None:
        threads = Threads(0.0)
        gate = Gate(threads)
        await asyncio.sleep(0)
        gone, stayed = (asyncio.ensure_future(threads.ask(partial(done.append, who))) for who in ("gone", "stayed"))
        await asyncio.sleep(0)
        gone.cancel()
        await gate.open()
        await stayed
        with pytest.raises(asyncio.CancelledError):
            await gone

    asyncio.run(asking())
    assert done == ["stayed"]


def test_what_goes_wrong_is_told_to_who_asked_and_nobody_else() -> None:
    def fail() -> None:
        raise ValueError("once")

    async def asking() -> int:
        threads = Threads(0.0)
        failed, worked = await asyncio.gather(threads.ask(fail), threads.ask(lambda: 3), return_exceptions=True)
        assert isinstance(failed, ValueError)
        assert worked == 3
        return await threads.ask(lambda: 4)

    assert asyncio.run(asking()) == 4


def test_one_after_another_loop_may_use_them() -> None:
    threads = Threads(0.0)

    async def asking(number: int) -> int:
        return await threads.ask(lambda: number)

    assert [asyncio.run(asking(number)) for number in range(200)] == list(range(200))


def test_one_thread_answers_all_while_it_is_quick() -> None:
    async def asking() -> list[int]:
        threads = Threads(NEVER_S)
        return await asyncio.gather(*(threads.ask(threading.get_ident) for _ in range(200)))

    assert len(set(asyncio.run(asking()))) == 1


def test_another_one_joins_while_it_is_slow() -> None:
    async def asking() -> None:
        threads, hanging = Threads(0.02), threading.Event()
        slow = asyncio.ensure_future(threads.ask(hanging.wait))
        assert await threads.ask(lambda: 3) == 3
        assert not slow.done()
        hanging.set()
        await slow

    asyncio.run(asking())


def test_an_answer_does_not_wait_for_the_next_question() -> None:
    async def asking() -> None:
        threads, hanging = Threads(NEVER_S), threading.Event()
        quick = asyncio.ensure_future(threads.ask(lambda: 3))
        slow = asyncio.ensure_future(threads.ask(hanging.wait))
        assert await quick == 3
        assert not slow.done()
        hanging.set()
        await slow

    asyncio.run(asking())
