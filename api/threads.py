"""The threads that ask the store and write answers: a few, and each goes on with the next question while there is one.

To hand a question to a thread that sleeps, and its answer to a loop that sleeps, costs more than many an answer: both are woken and then
want the interpreter at once. So whoever is awake takes all that has come meanwhile: a thread questions, the loop answers.
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

THREADS_MAX: Final = 2
"""More would not be faster, since only one of them runs Python at a time, and would keep the event loop waiting longer."""
WAIT_MAX_S: Final = 5.0

_Result = TypeVar("_Result")


class Busy(HTTPException):
    """All threads were taken for too long."""

    def __init__(self) -> None:
        super().__init__(503, "too many questions at once; ask again later", {"Retry-After": str(RETRY_AFTER_S)})


@dataclass(slots=True, eq=False)
class _Question:
    """What a thread is to do, and who waits for it."""

    work: Callable[[], object]
    answer: asyncio.Future[Any]
    is_begun: bool = False
    result: object = None
    error: BaseException | None = None

    def work_out(self) -> None:
        """In a thread."""
        self.is_begun = True
        try:
            self.result = self.work()
        except BaseException as error:  # which is for whoever asked
            self.error = error

    def hand_back(self) -> None:
        if self.answer.done():  # nobody waits any more
            return
        if self.error is None:
            self.answer.set_result(self.result)
        else:
            self.answer.set_exception(self.error)

    def send_away(self) -> None:
        if not self.is_begun and not self.answer.done():
            self.answer.set_exception(Busy())


class Threads:
    """Never more than `THREADS_MAX`, however many ask. Belongs to one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="api")
        self._changing = Lock()
        self._waiting: deque[_Question] = deque()
        self._at_work = 0
        self._answered: deque[_Question] = deque()
        self._loop_is_told = False

    async def ask(self, work: Callable[[], _Result]) -> _Result:
        """What `work` returns in a thread, or raises there. Raises `Busy` when it was not begun within `WAIT_MAX_S`.

        Questions are begun in the order in which they were asked.
        """
        loop = asyncio.get_running_loop()
        question = _Question(work, loop.create_future())
        patience = loop.call_later(WAIT_MAX_S, question.send_away) if self._at_work == THREADS_MAX else None
        with self._changing:
            self._waiting.append(question)
            wanted = self._at_work < THREADS_MAX
            self._at_work += wanted
        if wanted:
            self._threads.submit(self._work_off)
        try:
            result: _Result = await question.answer
        finally:
            if patience is not None:
                patience.cancel()
        return result

    def _work_off(self) -> None:
        """In a thread, until nobody waits."""
        while (question := self._next()) is not None:
            if not question.answer.done():  # or nobody waits for it any more
                question.work_out()
                self._answered.append(question)
                self._tell(question.answer.get_loop())

    def _next(self) -> _Question | None:
        with self._changing:
            if self._waiting:
                return self._waiting.popleft()
            self._at_work -= 1  # in the same moment, so that whoever asks now sees that a thread is wanted
            return None

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._loop_is_told:
            self._loop_is_told = True
            loop.call_soon_threadsafe(self._hand_back)

    def _hand_back(self) -> None:
        self._loop_is_told = False  # before the first is taken: what comes while they are handed back is told again
        while self._answered:
            self._answered.popleft().hand_back()
