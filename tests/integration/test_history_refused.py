"""A disk that is really full and a store that is really not there: probing goes on, the loss is counted, and it ends by itself."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.config.sections import HistorySettings
from prober.core.events import Acked, Interrupted
from prober.sinks.history import run_log
from tests.unit.sinks.history.recording import Recorder, numbered, parquet_files

DISK_BYTES = 256 * 1024


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
    assert (state.dropped, state.waiting, recorder.losses.failures) == (0, 0, 1)
    recorder.kill()

    near = Recorder(tmp_path / "near", settings=HistorySettings(location=str(tmp_path / "near"), spool=str(tmp_path / "spool")))
    (inherited,) = (tmp_path / "spool").iterdir()
    inherited.rename(near.writer._root)  # as if the store had come back under another name
    assert near.writer.ship()
    assert len(parquet_files(tmp_path / "near")) == 2
