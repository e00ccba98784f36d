"""A history as the service writes it, what the commands make of it, and what is lost and what is not when something breaks.

A writer that is killed again and again leaves nothing corrupt, loses nothing older than a second and writes nothing twice. A disk that is
really full and a store that is really not there stop no probing: the loss is counted, and it ends by itself.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prober.clock import monotonic_s
from prober.config.sections import HistorySettings
from prober.core.events import Acked, Interrupted
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.sinks.history import run_log
from prober.sinks.history.reader import HistoryReader
from tests.commands import ROOT
from tests.forking import called
from tests.integration.programs import eventually, series, service
from tests.nightly import nightly_but
from tests.unit.sinks.history.recording import Recorder, findings_in, numbered, parquet_files

FAULTS = '["swap_in_batch:p=0.02", "redeliver_unacked_only:p=0.5"]'
LOST_AFTER_S = 3.0
"""A second, and what a busy machine adds to it."""
IN_MEMORY = Path("/dev/shm")

DISK_BYTES = 256 * 1024


def described(finding: Finding) -> tuple[str, str, str]:
    return finding.key, finding.kind, finding.status


def test_a_history_says_again_what_the_service_said(tmp_path: Path) -> None:
    history = tmp_path / "history"
    environ = {"ORDERING_PROBER_HISTORY__LOCATION": str(history), "ORDERING_PROBER_EMBEDDED__FAULTS": FAULTS}
    with service(**environ) as (running, url):
        eventually(lambda: sum(series(url, "probe_runs_total")) >= 4)
        eventually(lambda: sum(series(url, 'findings_total status="violation"')) > 0)
        assert sum(series(url, "history_failures_total")) == 0
        assert running.stop() == 0

    reader = HistoryReader(str(history))
    ended = {stored.run_id for stored in reader.runs() if stored.result is not None}
    online = Counter((one.run_id, *described(one.made.finding)) for one in findings_in(history) if one.run_id in ended)
    verified = called("verify", str(history), "--format", "json")
    assert verified.returncode in (1, 3), verified.stderr
    again: Counter[tuple[str, str, str, str]] = Counter()
    for row in map(json.loads, verified.stdout.splitlines()):
        if (run_id := row["run"]) in ended:
            again.update((run_id, found["key"], found["kind"], found["status"]) for found in row["findings"])
    assert sum(online.values()) > 0
    assert again == online

    broken = next(key for _, key, _, status in online if status == "violation")
    assert called("verify", str(history), "--key", broken).returncode == 1
    exported = called("history", "export", str(history), "--key", broken, "-o", str(tmp_path / "trace.jsonl"))
    assert exported.returncode == 0, exported.stderr
    assert called("verify", *map(str, tmp_path.glob("trace*.jsonl"))).returncode == 1


def test_a_simulated_history_is_verified_like_any_other(tmp_path: Path) -> None:
    """Ids of messages are wrong there."""
    history = str(tmp_path / "simulated")
    simulated = called("simulate", "--fault", "duplicate_id", "--seeds", "4", "--hours", "0.03", "--history", history)
    assert simulated.returncode == 0, simulated.stderr
    verified = called("verify", history)
    assert verified.returncode == 1, verified.stderr
    assert "ID_CONFLICT" in verified.stdout
    before = called("verify", history, "--until", "2025-12-19T23:00:00Z")
    assert "no recorded event matches" in before.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["history", "export", "nowhere", "--key", "k"], "no such folder"),
        (["verify", ".", "--since", "yesterday"], "'yesterday' is not a time"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], problem: str) -> None:
    refused = called(*arguments)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert problem in refused.stderr


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


@pytest.mark.parametrize("kills", nightly_but([4], [4, 20]))
def test_a_killed_writer_loses_a_second_at_most_and_doubles_nothing(location: Path, kills: int) -> None:
    """Each kill takes a process that starts; `tests/property/test_history_crash.py` ends the records at any byte."""
    rng = random.Random(20)
    said = {f"run-{turn}": killed(location, f"run-{turn}", rng.uniform(0.0, 1.6)) for turn in range(kills)}
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
    assert len({run for run, _ in found}) > kills // 10  # on a busy machine many are killed before they have shipped anything
    runs = {run.run_id: run for run in HistoryReader(str(location)).runs()}
    assert all(run.result is None and run.rules == {"s": Rules()} for run in runs.values())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is soon full."""
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_a_full_disk_is_survived(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "WAITING_MAX", 1000)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (DISK_BYTES // 2))
    recorder = Recorder(small_disk / "history")
    log = recorder.begin()
    recorded = 0

    def record(count: int) -> None:
        nonlocal recorded
        for _ in range(count):
            recorded += 1
            log.record(Acked(float(recorded), "s", "k", "A", f"message-{recorded}"))

    while recorder.writer.flush():
        record(200)
    assert "No space left" in recorder.writer.state().spool_error
    record(5000)
    state = recorder.writer.state()
    assert state.dropped == recorder.losses.dropped > 0
    assert recorder.losses.failures >= 1

    ballast.unlink()
    assert recorder.writer.flush()
    record(10)
    recorder.save()
    found = [(number, event) for _, number, event in numbered(small_disk / "history")]
    (hole,) = [number for number, event in found if isinstance(event, Interrupted)]
    assert hole == recorded - 10
    assert [number for number, _ in found] == [*range(1, hole - state.dropped + 1), *range(hole, recorded + 1)]
    recorder.kill()


def test_an_object_store_that_nobody_serves_is_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # closed again before it is asked
    location = f"gs://anonymous@bucket/history?endpoint_override=127.0.0.1:{port}&scheme=http&retry_limit_seconds=0.2"
    recorder = Recorder(Path(), settings=HistorySettings.model_construct(location=location, spool=str(tmp_path / "spool")))
    recorder.record([Acked(1.0, "s", "k", "A", "m")])
    assert recorder.writer.flush()
    recorder.writer.end_segment()
    assert not recorder.writer.ship()
    state = recorder.writer.state()
    assert "connect" in state.store_error.lower()
    assert (state.dropped, recorder.losses.failures) == (0, 1)
    recorder.kill()

    near = Recorder(tmp_path / "near", settings=HistorySettings(location=str(tmp_path / "near"), spool=str(tmp_path / "spool")))
    (inherited,) = (tmp_path / "spool").iterdir()
    inherited.rename(near.writer._root)  # as if the store had come back under another name
    assert near.writer.ship()
    assert len(parquet_files(tmp_path / "near")) == 2
