"""Measured processes: their use of CPU and memory as the system counts it, and an embedded server in a separate process."""

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
    """Run an embedded server in a separate process until the end of the block; yield its address."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def processor_s() -> float:
    """Return the CPU seconds of this process and all its descendants, including ended ones."""
    total = 0
    for process in family():
        with suppress(*_GONE):
            total += sum(_times(process))
    return total / TICKS


def peak_mb() -> int:
    """Return the sum of the peak sizes of this process and its living descendants, in MB."""
    total = 0
    for process in family():
        with suppress(*_GONE):
            status = Path(f"/proc/{process}/status").read_text()
            total += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
    return total // 1024


def family() -> Iterator[int]:
    """Yield this process and all its living descendants."""
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        yield process
        with suppress(*_GONE):
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def _times(pid: int) -> list[int]:
    """Return user and system time of a process, and those of its ended children, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]
