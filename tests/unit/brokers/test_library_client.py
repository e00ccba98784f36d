from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from prober.brokers.library_client import Mailbox, Worker, in_loop


def test_a_worker_calls_in_order_and_answers() -> None:
    async def scenario() -> None:
        worker = Worker("test")
        called: list[int] = []

        def call(number: int) -> int:
            called.append(number)
            return number

        futures = [worker.call(partial(call, number)) for number in range(100)]
        assert [await future for future in futures] == called == list(range(100))
        with pytest.raises(ZeroDivisionError):
            await worker.call(lambda: 1 // 0)
        worker.stop()
        worker.thread.join(5)
        assert not worker.thread.is_alive()

    asyncio.run(scenario())


def test_a_worker_that_hangs_hinders_nobody() -> None:
    async def scenario() -> None:
        worker = Worker("test")
        release = threading.Event()
        hanging = worker.call(release.wait)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hanging, 0.05)
        release.set()
        assert await worker.call(lambda: "next") == "next"
        worker.stop()
        assert worker.thread.daemon

    asyncio.run(scenario())


def test_a_mailbox_keeps_the_order_of_each_thread() -> None:
    async def scenario() -> None:
        got: list[tuple[int, int]] = []
        mailbox = Mailbox(got.append, 100_000)

        def post(thread: int) -> None:
            for number in range(2000):
                mailbox.post((thread, number))

        threads = [threading.Thread(target=post, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        while len(got) < 8000:
            await asyncio.sleep(0.001)
        for number in range(4):
            assert [n for t, n in got if t == number] == list(range(2000))

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_a_full_mailbox_takes_no_more() -> None:
    async def scenario() -> None:
        got: list[int] = []
        mailbox = Mailbox(got.append, 2)
        assert [mailbox.post(n) for n in range(3)] == [True, True, False]
        await asyncio.sleep(0)
        assert got == [0, 1]
        assert mailbox.post(3)

    asyncio.run(scenario())


def test_news_for_a_closed_loop_is_nobodys() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    in_loop(loop, pytest.fail, "called")
