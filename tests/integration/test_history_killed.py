"""The writer of a history is killed again and again: nothing is corrupt, nothing older than a second is lost, nothing is there twice."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prober.clock import monotonic_s
from prober.core.rules import Rules
from prober.sinks.history.reader import HistoryReader
from tests.commands import ROOT
from tests.unit.sinks.history.recording import Recorder

KILLS = 20
LOST_AFTER_S = 3.0
"""A second, and what a busy machine adds to it."""
IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def location() -> Iterator[Path]:
    """In memory if possible: a killed process loses nothing that the system has, and a busy disk would delay the flushes."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def killed(location: Path, run_id: str, lives_s: float) -> tuple[dict[int, float], float]:
    """Lets a process record and kills it; returns what it said that it had recorded, and when it was killed."""
    program = [sys.executable, "-m", "tests.integration.history_writer", str(location), run_id]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        recorded: dict[int, float] = {}
        until: float | None = None
        for line in process.stdout:
            number, t = line.split()
            recorded[int(number)] = float(t)
            until = until or float(t) + lives_s
            if float(t) >= until:
                break
        process.kill()
        killed_t = monotonic_s()
        for line in process.stdout:
            if line.endswith("\n"):
                number, t = line.split()
                recorded[int(number)] = float(t)
    return recorded, killed_t


def test_a_killed_writer_loses_a_second_at_most_and_doubles_nothing(location: Path) -> None:
    chance = random.Random(20)
    said = {f"run-{turn}": killed(location, f"run-{turn}", chance.uniform(0.0, 1.6)) for turn in range(KILLS)}
    heir = Recorder(location, "heir")
    assert heir.writer.ship()

    found: Counter[tuple[str, int]] = Counter()
    for path in location.rglob("*.parquet"):
        rows = pq.ParquetFile(path).read()  # every file can be read
        if path.name.startswith("events"):
            found.update(zip(rows["run_id"].to_pylist(), rows["number"].to_pylist(), strict=True))
    assert not {name: count for name, count in found.items() if count > 1}
    assert not list((location / "_spool").iterdir())
    assert not list(location.rglob(".*"))

    for run_id, (recorded, killed_t) in said.items():
        numbers = {number for run, number in found if run == run_id}
        assert numbers == set(range(1, len(numbers) + 1))
        lost = [t for number, t in recorded.items() if number not in numbers]
        assert all(killed_t - t <= LOST_AFTER_S for t in lost)
    assert len({run for run, _ in found}) > 2  # on a busy machine many are killed before they have shipped anything
    runs = {run.run_id: run for run in HistoryReader(str(location)).runs()}
    assert all(run.result is None and run.rules == {"s": Rules()} for run in runs.values())
