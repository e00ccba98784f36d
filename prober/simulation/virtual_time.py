"""An event loop whose time is virtual: hours pass in no time, and everything happens in the same order each time.

It waits for nothing but time, so it is simpler than asyncio's own, and several times as fast: no selector, no self-pipe to look at, and of
each turn no more is kept than what is to be called.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Final, TypeVarTuple

from prober.clock import Machine

READING_S: Final = 1e-6
"""What passes when a clock is read."""

STARTED_AT: Final = datetime(2025, 12, 19, 23, 59, 30, tzinfo=UTC)
"""A Friday. Its day is over for programs of the real time, such as the nightly jobs."""

_Args = TypeVarTuple("_Args")

_AT_ONCE_S: Final = 1e-9
"""What is due so soon is due."""


class _Turn(asyncio.TimerHandle):
    """Something to be called when its time has come. Nothing is kept of it for anybody who debugs."""

    __slots__ = ("args", "callback", "context", "over", "t")

    def __init__(self, t: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None) -> None:
        self.t, self.callback, self.args = t, callback, args
        self.context = copy_context() if context is None else context
        self.over = False

    def cancel(self) -> None:
        """It will not be called."""
        self.over, self.callback, self.args = True, _nothing, ()

    def cancelled(self) -> bool:
        """Whether it will not be called."""
        return self.over

    def when(self) -> float:
        """Its time."""
        return self.t


def _nothing() -> None:
    """What is left of a turn that was cancelled."""


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while there is something to do, and then jumps to the next timer.

    t            seconds since it was made.
    set_forward  by how many seconds the clock of the machine was set; also backwards.
    """

    def __init__(self) -> None:
        self.t = 0.0
        self.set_forward = timedelta()
        self._turns: deque[_Turn] = deque()
        self._timers: list[tuple[float, int, _Turn]] = []
        self._numbers = count()
        super().__init__()

    def time(self) -> float:
        """Seconds since it was made."""
        return self.t

    def wall(self) -> datetime:
        """What the clock of the machine says."""
        return STARTED_AT + timedelta(seconds=self.t) + self.set_forward

    def stand_still(self, seconds: float) -> None:
        """So much time passes at once, in which nothing that runs here gets its turn: a machine that is busy, or was suspended."""
        self.t += seconds

    def machine(self, seed: int) -> Machine:
        """A machine with this time, whose random numbers come from a seed."""
        return Machine(self._read, lambda: self.wall().timestamp(), Random(seed), count(1))

    def call_soon(self, callback: Callable[[*_Args], object], *args: *_Args, context: Context | None = None) -> asyncio.Handle:
        """Calls it in its turn."""
        turn = _Turn(self.t, callback, args, context)
        self._turns.append(turn)
        return turn

    call_soon_threadsafe = call_soon  # there are no other threads

    def call_at(
        self, when: float, callback: Callable[[*_Args], object], *args: *_Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Calls it at a time; of what is to be called at the same time, what was asked for first comes first."""
        turn = _Turn(when, callback, args, context)
        heappush(self._timers, (when, next(self._numbers), turn))
        return turn

    def call_later(
        self, delay: float, callback: Callable[[*_Args], object], *args: *_Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Calls it when so many seconds have passed."""
        return self.call_at(self.t + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        """One round of asyncio's loop: each due callback has a turn.

        Callbacks that become due meanwhile wait for the next round.
        """
        turns = self._turns
        if not turns:
            self._leap()
        self._ring()
        for _ in range(len(turns)):
            turn = turns.popleft()
            try:
                turn.context.run(turn.callback, *turn.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as fault:
                self.call_exception_handler({"message": f"a mistake in {turn.callback}", "exception": fault})

    def _leap(self) -> None:
        """Goes to the next timer. RuntimeError if there is none: then nothing will ever happen again."""
        timers = self._timers
        while timers and timers[0][2].over:
            heappop(timers)
        if not timers:
            raise RuntimeError("virtual time stands still: everybody waits, and for nothing that has a time")
        self.t = max(self.t, timers[0][0])

    def _ring(self) -> None:
        """Whose time has come has the next turn."""
        timers, now = self._timers, self.t + _AT_ONCE_S
        while timers and timers[0][0] < now:
            self._turns.append(heappop(timers)[2])

    def _read(self) -> float:
        """Reading the clock takes time: no two things happen at one time."""
        self.t += READING_S
        return self.t
