"""Processes that are measured: what they have used, as the system counts it, and an embedded server in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
_GONE: Final = (FileNotFoundError, ProcessLookupError)
_SERVER: Final = """
import asyncio
from prober.embedded.server import EmbeddedServer

async def serve():
    async with EmbeddedServer() as server:
        print(server.address, flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""


@contextmanager
def embedded_server() -> Iterator[str]:
    """The address of an embedded server that runs in a process of its own until the end of the block."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


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
