"""What processes have used, as the system counts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
_GONE: Final = (FileNotFoundError, ProcessLookupError)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has had so far, without its children."""
    return sum(_times(pid)[:2]) / TICKS


def processor_s() -> float:
    """Seconds of CPU that this process and everything below it has had, those that have ended included."""
    total = 0
    for process in family():
        with suppress(*_GONE):
            total += sum(_times(process))
    return total / TICKS


def peak_mb() -> int:
    """The sum of the largest sizes that this process and those below it that live have had."""
    total = 0
    for process in family():
        with suppress(*_GONE):
            status = Path(f"/proc/{process}/status").read_text()
            total += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
    return total // 1024


def family() -> Iterator[int]:
    """This process and everything below it that lives."""
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        yield process
        with suppress(*_GONE):
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def _times(pid: int) -> list[int]:
    """Of the process in itself and in the system, and of its children that have ended the same."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]
