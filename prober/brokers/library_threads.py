"""Between the event loop and the threads of Google's client library: calls go out through a `Worker`, news comes in by a `Mailbox`.

The library may block, and may call back while it holds its own locks. So it is only ever called from a thread of ours, which may hang
without harm to the event loop or to the end of the process, and what it calls back only puts something into a mailbox.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_Job: TypeAlias = Callable[[], None]


class Worker:
    """One thread that makes calls one after the other, in the order in which they were asked for. It does not keep a process alive."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def call(self, function: Callable[[], Result]) -> asyncio.Future[Result]:
        """Has a function called; the future gets its result or its exception. If nobody waits any more, nothing is lost but that."""
        future: asyncio.Future[Result] = self._loop.create_future()

        def job() -> None:
            try:
                result = function()
            except Exception as error:  # everything goes to who asked
                in_loop(self._loop, _fail, future, error)
            else:
                in_loop(self._loop, _succeed, future, result)

        self._jobs.put(job)
        return future

    def stop(self) -> None:
        """Ends the thread after the calls that were asked for; does not wait for it."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Mailbox(Generic[Item]):
    """Takes items from any thread, in order, and hands them over in the event loop, as many at a time as there are.

    It holds at most `items_max`; what comes when it is full is not taken.
    """

    def __init__(self, deliver: Callable[[Item], None], items_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._items: deque[Item] = deque()
        self._items_max = items_max
        self._collection_due = False

    def post(self, item: Item) -> bool:
        """Puts an item in, from any thread; never blocks and never raises. False if the mailbox is full."""
        if len(self._items) >= self._items_max:
            return False
        self._items.append(item)
        # If a collection is due it will see this item: it says that it is no longer due before it looks.
        if not self._collection_due:
            self._collection_due = True
            in_loop(self._loop, self._collect)
        return True

    def _collect(self) -> None:
        self._collection_due = False
        while self._items:
            self._deliver(self._items.popleft())


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    """Has the loop call a function, from any thread. A loop that was closed wants to know nothing more."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)


def _succeed(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Result], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
