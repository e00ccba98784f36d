"""The only place where the project takes from its machine what no two processes share: the time, random numbers, and numbers of its own.

A simulation puts a machine of its own in the place of the real one (`on_machine`), for everything that begins within it.
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
    """Where a process takes them from; each field is described at the function of this module that asks for it."""

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
    """Within this, and in tasks that begin within it, everything comes from that machine. Threads keep the real one."""
    token = _MACHINE.set(machine)
    try:
        yield
    finally:
        _MACHINE.reset(token)


def monotonic_s() -> float:
    """Seconds of a clock that never goes back, for durations and for the time of events."""
    return _MACHINE.get().monotonic_s()


def wall_s() -> float:
    """Seconds since 1970, for people and for files; never for durations."""
    return _MACHINE.get().wall_s()


def starved_s() -> float:
    """For how many seconds the calling thread was ready to run and waited for a processor, since it started (Linux, proc(5), `schedstat`).

    0 where the system does not report it.
    """
    return _MACHINE.get().starved_s()


def random_bits(bits: int) -> int:
    """This many unpredictable bits, for seeds."""
    return _MACHINE.get().rng.getrandbits(bits)


def random_name(digits: int) -> str:
    """This many unpredictable hexadecimal digits, for unique names."""
    return f"{random_bits(4 * digits):0{digits}x}"


def next_number() -> int:
    """1, 2, 3, ...: each once in this process."""
    return next(_MACHINE.get().numbers)
