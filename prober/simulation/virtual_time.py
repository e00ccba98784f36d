"""An event loop whose time is virtual: hours pass in no time, and everything happens in the same order each time."""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Final

from prober.clock import Machine

READING_S: Final = 1e-6
"""What passes when a clock is read."""

STARTED_AT: Final = datetime(2026, 12, 19, 23, 59, 30, tzinfo=UTC)  # a Saturday


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while there is something to do, and then jumps to the next timer.

    t            seconds since it was made.
    set_forward  by how much somebody has set the clock of the machine; also backwards.
    """

    def __init__(self) -> None:
        self.t = 0.0
        self.set_forward = timedelta()
        super().__init__(_Leaping(self))

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
        """A machine with this time, whose chance comes from a seed."""
        return Machine(self._read, lambda: self.wall().timestamp(), Random(seed), count(1))

    def _read(self) -> float:
        """Whoever reads the clock has worked: no two things happen at one time."""
        self.t += READING_S
        return self.t


class _Leaping(selectors.DefaultSelector):  # not `select`, which takes no more than 1,024 descriptors of a process
    """Instead of waiting, jumps. RuntimeError if there is no timer: then nothing will ever happen again."""

    def __init__(self, loop: VirtualTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("virtual time stands still: everybody waits, and for nothing that has a time")
        self._loop.t += timeout
        return []  # nobody outside has anything to say, and asking would be a system call each time
