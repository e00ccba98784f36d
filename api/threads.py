"""The threads that ask the store and write answers: as few as do, and each goes on with the next question while there is one.

To hand a question to a thread that sleeps, and its answer to a loop that sleeps, costs more than many an answer: both are woken and then
want the interpreter at once. So whoever is awake takes all that has come meanwhile. A thread takes one question after the other, and the
loop, which is told when nobody waits any more, looks every `LOOK_S` until then for what has been answered.

A store in this process (SQLite) computes in the thread that asks, and gives the interpreter away for each row that it looks up: two such
threads take it from each other all the time. So there a second one joins only while the first is slow. A server is waited for, by all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException

from api.problems import RETRY_AFTER_S
from prober.clock import monotonic_s

THREADS_MAX: Final = 2
"""More would not be faster, since only one of them runs Python at a time, and would keep the event loop waiting longer."""
SLOW_S: Final = 0.2
"""A thread that has been at one question of a store in this process for so long waits more than it computes."""
LOOK_S: Final = 0.005
WAIT_MAX_S: Final = 5.0

_Result = TypeVar("_Result")


class Busy(HTTPException):
    """All threads were taken for too long."""

    def __init__(self) -> None:
        super().__init__(503, "too many questions at once; ask again later", {"Retry-After": str(RETRY_AFTER_S)})


@dataclass(slots=True, eq=False)
class _Question:
    """What a thread is to do, and who waits for it since when."""

    work: Callable[[], object]
    answer: asyncio.Future[Any]
    asked_t: float
    result: object = None
    error: BaseException | None = None

    def work_out(self) -> None:
        """In a thread."""
        try:
            self.result = self.work()
        except StopIteration as error:  # which no future takes
            self.error = RuntimeError(f"a question ended with {error!r}").with_traceback(error.__traceback__)
        except BaseException as error:  # which is for whoever asked
            self.error = error

    def hand_back(self) -> None:
        if self.answer.done():  # nobody waits any more
            return
        if self.error is None:
            self.answer.set_result(self.result)
        else:
            self.answer.set_exception(self.error)


class Threads:
    """Never more than `THREADS_MAX`, however many ask. Belongs to one event loop.

    `slow_s`: how long one thread may be at a question before another one joins.
    """

    def __init__(self, slow_s: float) -> None:
        self._slow_s = slow_s
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="api")
        self._changing = Lock()
        self._waiting: deque[_Question] = deque()
        self._at_work: dict[object, float] = {}
        """Each thread, and since when it has been at its question."""
        self._answered: deque[_Question] = deque()
        self._loop_is_told = False
        self._looked_by: asyncio.AbstractEventLoop | None = None

    async def ask(self, work: Callable[[], _Result]) -> _Result:
        """What `work` returns in a thread, or raises there. Raises `Busy` when it was not begun within `WAIT_MAX_S`.

        Questions are begun in the order in which they were asked.
        """
        loop = asyncio.get_running_loop()
        question = _Question(work, loop.create_future(), monotonic_s())
        self._waiting.append(question)
        self._join()
        if self._looked_by is not loop:
            self._looked_by = loop
            loop.call_later(LOOK_S, self._look, loop)
        result: _Result = await question.answer
        return result

    def _join(self) -> None:
        """One more thread goes to work, if somebody waits and there are too few."""
        me = object()
        with self._changing:
            wanted = bool(self._waiting) and len(self._at_work) < THREADS_MAX and self._are_slow()
            if wanted:
                self._at_work[me] = monotonic_s()
        if wanted:
            try:
                self._threads.submit(self._work_off, me)
            except RuntimeError:  # the process may have no more threads now; it is tried again at the next look
                self._leave(me)

    def _are_slow(self) -> bool:
        """Whether no thread will soon take the next question."""
        now = monotonic_s()
        return all(now - since >= self._slow_s for since in self._at_work.values())

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hands back what was answered meanwhile, sends away who has waited for too long, and helps threads that are slow."""
        self._hand_back()
        self._send_away()
        self._join()
        if self._waiting or self._at_work or self._answered:
            loop.call_later(LOOK_S, self._look, loop)
        else:
            self._looked_by = None

    def _work_off(self, me: object) -> None:
        """In a thread, until nobody waits, or others suffice."""
        try:
            while (question := self._next(me)) is not None:
                if not question.answer.done():  # or nobody waits for it any more
                    question.work_out()
                    self._answered.append(question)
                    if not self._waiting:
                        self._tell(question.answer.get_loop())
        finally:
            self._leave(me)

    def _leave(self, me: object) -> None:
        with self._changing:
            self._at_work.pop(me, None)

    def _next(self, me: object) -> _Question | None:
        with self._changing:
            self._at_work.pop(me, None)  # in the same moment, so that whoever asks now sees that a thread is wanted
            if not self._waiting or not self._are_slow():
                return None
            self._at_work[me] = monotonic_s()
            return self._waiting.popleft()

    def _send_away(self) -> None:
        with self._changing:
            while self._waiting and monotonic_s() - self._waiting[0].asked_t >= WAIT_MAX_S:
                question = self._waiting.popleft()
                if not question.answer.done():
                    question.answer.set_exception(Busy())

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._loop_is_told:
            self._loop_is_told = True
            loop.call_soon_threadsafe(self._hand_back)

    def _hand_back(self) -> None:
        self._loop_is_told = False  # before the first is taken: what comes while they are handed back is told again
        while self._answered:
            self._answered.popleft().hand_back()
