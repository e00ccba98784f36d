"""How the writing goes is answered from memory; a thread sees to what the disk has to say."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from prober.sinks.history.spool import bytes_below
from tests.notation import history
from tests.unit.sinks.history.recording import Recorder


def refused(*_: object) -> None:
    raise OSError("the disk does not answer")


def test_who_asks_for_the_state_does_not_look_at_the_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path)
    recorder.record([*history("P1,2 A<1@1 A<2@1.2 end @500")])
    recorder.writer.flush()
    recorder.writer.measure()
    waiting = bytes_below(recorder.location / "_spool")
    monkeypatch.setattr(Path, "rglob", refused)
    assert recorder.writer.state().spool_bytes == waiting > 0
    recorder.writer.measure()  # the disk does not answer: nothing new is known
    assert recorder.writer.state().spool_bytes == waiting
    recorder.kill()


def test_a_thread_looks_at_the_spool_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path)
    looked, known = threading.Event(), recorder.writer.measure

    def look() -> None:
        known()
        looked.set()

    monkeypatch.setattr(recorder.writer, "measure", look)
    recorder.record([*history("P1 A<1@1 end @500")])
    recorder.writer.start()
    assert looked.wait(30.0)
    assert recorder.writer.state().spool_bytes > 0
    recorder.writer.close()
