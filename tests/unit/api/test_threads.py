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


def test_a_thread_that_cannot_be_begun_is_begun_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def asking() -> int:
        threads = Threads(0.0)
        with monkeypatch.context() as limited:
            limited.setattr(threading.Thread, "start", full)
            waiting = asyncio.ensure_future(threads.ask(lambda: 3))
            await asyncio.sleep(0.05)
            assert not waiting.done()
        return await asyncio.wait_for(waiting, 2.0)

    assert asyncio.run(asking()) == 3


def test_what_no_future_takes_harms_nobody_else() -> None:
    """An iterator that ends, where nobody expects it."""

    async def asking() -> int:
        threads, hanging = Threads(0.05), threading.Event()
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(threads.ask(lambda: next(iter(()))), 2.0)
        slow = asyncio.ensure_future(threads.ask(hanging.wait))
        try:
            return await asyncio.wait_for(threads.ask(lambda: 4), 2.0)
        finally:
            hanging.set()
            await slow

    assert asyncio.run(asking()) == 4


def test_a_loop_that_ended_keeps_no_thread() -> None:
    """Its questions are told to nobody, and the threads go on for the next one."""
    threads = Threads(0.0)

    async def leaving(hanging: threading.Event) -> None:
        asked = asyncio.ensure_future(threads.ask(hanging.wait))
        await asyncio.sleep(0.02)
        asked.cancel()

    async def asking(number: int) -> int:
        return await asyncio.wait_for(threads.ask(lambda: number), 2.0)

    for number in range(THREADS_MAX + 1):
        hanging = threading.Event()
        asyncio.run(leaving(hanging))
        hanging.set()
        threading.Event().wait(0.02)  # until the thread has found nobody to tell
        assert asyncio.run(asking(number)) == number
