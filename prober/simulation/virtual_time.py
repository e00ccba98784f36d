"""An event loop with virtual time: hours pass instantly, and all callbacks run in the same order each time.

It waits only for timers, so it is simpler than asyncio's own loop, and several times as fast: it has no selector and no self-pipe, and
stores no more of a callback than its call.
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
"""Time that passes when a clock is read, in seconds."""

STARTED_AT: Final = datetime(2025, 12, 19, 23, 59, 30, tzinfo=UTC)
"""Start of every simulation, a Friday. That day is over in real time, for example for the nightly jobs."""

_Args = TypeVarTuple("_Args")

_AT_ONCE_S: Final = 1e-9
"""Timers within this time are due, in seconds."""


class _Turn(asyncio.TimerHandle):
    """A scheduled callback, without data for debugging."""

    __slots__ = ("args", "callback", "context", "over", "t")

    def __init__(self, t: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None) -> None:
        self.t, self.callback, self.args = t, callback, args
        self.context = copy_context() if context is None else context
        self.over = False

    def cancel(self) -> None:
        """Cancel the callback."""
        self.over, self.callback, self.args = True, _nothing, ()

    def cancelled(self) -> bool:
        """Return whether the callback was cancelled."""
        return self.over

    def when(self) -> float:
        """Return the time of the callback."""
        return self.t


def _nothing() -> None:
    """Do nothing, in place of a cancelled callback."""


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while callbacks are ready, and then jumps to the next timer.

    t            seconds since the loop was created.
    set_forward  seconds by which the clock of the machine was set; negative: backwards.
    """

    def __init__(self) -> None:
        self.t = 0.0
        self.set_forward = timedelta()
        self._turns: deque[_Turn] = deque()
        self._timers: list[tuple[float, int, _Turn]] = []
        self._numbers = count()
        super().__init__()

    def time(self) -> float:
        """Return the seconds since the loop was created."""
        return self.t

    def wall(self) -> datetime:
        """Return the time on the clock of the machine."""
        return STARTED_AT + timedelta(seconds=self.t) + self.set_forward

    def stand_still(self, seconds: float) -> None:
        """Let time pass without any callback: a machine that is busy, or was suspended."""
        self.t += seconds

    def machine(self, seed: int) -> Machine:
        """Return a machine with this time, whose random numbers come from a seed."""
        return Machine(self._read, lambda: self.wall().timestamp(), Random(seed), count(1))

    def call_soon(self, callback: Callable[[*_Args], object], *args: *_Args, context: Context | None = None) -> asyncio.Handle:
        """Call a function in the next round."""
        turn = _Turn(self.t, callback, args, context)
        self._turns.append(turn)
        return turn

    call_soon_threadsafe = call_soon  # there are no other threads

    def call_at(
        self, when: float, callback: Callable[[*_Args], object], *args: *_Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call a function at a time; functions of the same time are called in the order of scheduling."""
        turn = _Turn(when, callback, args, context)
        heappush(self._timers, (when, next(self._numbers), turn))
        return turn

    def call_later(
        self, delay: float, callback: Callable[[*_Args], object], *args: *_Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call a function after `delay` seconds."""
        return self.call_at(self.t + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        """Run one round of asyncio's loop: each ready callback once.

        Callbacks that become ready meanwhile wait for the next round.
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
        """Jump to the next timer. Raises RuntimeError without a timer: no callback could ever run again."""
        timers = self._timers
        while timers and timers[0][2].over:
            heappop(timers)
        if not timers:
            raise RuntimeError("virtual time stands still: everybody waits, and for nothing that has a time")
        self.t = max(self.t, timers[0][0])

    def _ring(self) -> None:
        """Move all due timers to the ready callbacks."""
        timers, now = self._timers, self.t + _AT_ONCE_S
        while timers and timers[0][0] < now:
            self._turns.append(heappop(timers)[2])

    def _read(self) -> float:
        """Return the time; each read advances it, so that no two events have the same time."""
        self.t += READING_S
        return self.t
