"""What it costs to start: CPU of the program until it has answered, against an interpreter that does nothing.

    python -m benchmarks.start_up [--repeat R]

`verify` judges a small trace file and ends; `run` is the service on its embedded server, until its API says that it is ready.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from benchmarks.figures import Figure, in_turn
from benchmarks.histories import streaming
from benchmarks.processes import cpu_s
from prober.core.rules import Rules
from prober.traces.header import TraceHeader
from prober.traces.trace import write_trace

PROGRAM = "from prober.cli import main; main()"
PAGE = "status page: "
EVENTS = 200


def spent_s(*code: str) -> float:
    """Seconds of CPU of an interpreter that carries this out to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", *code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def until_ready_s(folder: Path) -> float:
    """Seconds of CPU of the service until it is ready."""
    settings = {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db"}
    command = [sys.executable, "-u", "-c", PROGRAM, "run"]
    environ = os.environ | settings
    with subprocess.Popen(command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as service:
        assert service.stdout is not None
        try:
            page = next(line.partition(PAGE)[2].split()[0] for line in service.stdout if PAGE in line)
            while not is_ready(f"{page}readyz"):
                pass
            return cpu_s(service.pid)
        finally:
            service.kill()


def is_ready(url: str) -> bool:
    """Whether it says so."""
    try:
        with urlopen(url, timeout=10.0) as answer:
            return bool(answer.status == 200)
    except HTTPError:
        return False


def figures(repeat: int = 3) -> Iterator[Figure]:
    """What the report says of starting."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = folder / "trace.jsonl"
        with trace.open("wb") as file:
            write_trace(file, TraceHeader("s", "key-0", Rules()), islice(streaming(1), EVENTS))
        rounds = list(
            in_turn(
                repeat,
                lambda: spent_s("pass"),
                lambda: spent_s(PROGRAM, "--version"),
                lambda: spent_s(PROGRAM, "verify", str(trace)),
                lambda: until_ready_s(folder),
            )
        )
    unit = "times an interpreter that does nothing"
    for place, title in enumerate(("--version", "verify of a small file", "run, until it is ready"), 1):
        yield Figure(title, unit, tuple(one[place] / one[0] for one in rounds))


def main() -> None:
    """Prints them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    for figure in figures(parser.parse_args().repeat):
        print(f"{figure.name:32}{figure.best:8.1f} {figure.unit}")


if __name__ == "__main__":
    main()
