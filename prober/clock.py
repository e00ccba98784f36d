"""The only access of the project to the parts of its machine that no two processes share: the time, random numbers, process numbers.

A simulation replaces the real machine by its own (`on_machine`), for everything that starts within it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from random import Random, SystemRandom
from typing import Final

NANOS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Machine:
    """The sources of these values; the functions of this module describe the fields."""

    monotonic_s: Callable[[], float]
    wall_s: Callable[[], float]
    rng: Random
    numbers: Iterator[int]
    starved_s: Callable[[], float] = lambda: 0.0


def _starved_s() -> float:
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / NANOS
    except (OSError, ValueError, IndexError):
        return 0.0


_HERE: Final = Machine(time.monotonic, time.time, SystemRandom(), count(1), _starved_s)
_MACHINE: Final[ContextVar[Machine]] = ContextVar("machine", default=_HERE)


@contextmanager
def on_machine(machine: Machine) -> Iterator[None]:
    """Use a machine for everything within this context, and in tasks started within it. Threads keep the real one."""
    token = _MACHINE.set(machine)
    try:
        yield
    finally:
        _MACHINE.reset(token)


def monotonic_s() -> float:
    """Return the seconds of a clock that never goes back, for durations and for the time of events."""
    return _MACHINE.get().monotonic_s()


def wall_s() -> float:
    """Return the seconds since 1970, for people and for files; never for durations."""
    return _MACHINE.get().wall_s()


def starved_s() -> float:
    """Return the seconds since its start for which the calling thread was ready to run and waited for a processor.

    From Linux (proc(5), `schedstat`); 0 if the system does not report it.
    """
    return _MACHINE.get().starved_s()


def random_bits(bits: int) -> int:
    """Return this many unpredictable bits, for seeds."""
    return _MACHINE.get().rng.getrandbits(bits)


def random_name(digits: int) -> str:
    """Return this many unpredictable hexadecimal digits, for unique names."""
    return f"{random_bits(4 * digits):0{digits}x}"


def next_number() -> int:
    """Return 1, 2, 3, ...: each once in this process."""
    return next(_MACHINE.get().numbers)
