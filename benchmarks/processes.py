"""Measured processes: separate ones for measurements and servers, and their use of CPU as the system counts it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

TICKS: Final = os.sysconf("SC_CLK_TCK")
_GONE: Final = (FileNotFoundError, ProcessLookupError)
_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


def in_process(work: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
    """Return the result of a function in a separate process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(work, *args, **kwargs).result()


def processor_s() -> float:
    """Return the CPU seconds of this process and all its descendants, including ended ones."""
    total = 0
    for process in _family():
        with suppress(*_GONE):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))  # user and system time, its own and that of its ended children
    return total / TICKS


def _family() -> Iterator[int]:
    """Yield this process and all its living descendants."""
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        yield process
        with suppress(*_GONE):
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
