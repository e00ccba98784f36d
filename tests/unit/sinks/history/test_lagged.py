"""What the lag of the event loop was in a latency stands beside the event that shows it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.notation import history
from tests.unit.sinks.history.recording import Recorder, numbered

LINE = "P1,2,3 A<1,2,3@2 A ack 1@2.5"


@pytest.mark.parametrize("flushed_each_time", [True, False])
def test_the_lag_is_written_beside_the_event(tmp_path: Path, flushed_each_time: bool) -> None:
    recorder, events = Recorder(tmp_path), history(LINE)
    log = recorder.begin()
    for number, event in enumerate(events, 1):
        log.record(event, (), 0.5 if number in (4, 9) else 0.0)
        assert not flushed_each_time or recorder.writer.flush()
    log.release()
    recorder.save()
    rows = pq.read_table(tmp_path / "events", columns=["number", "lagged_s"]).to_pylist()
    assert {row["number"]: row["lagged_s"] for row in rows} == {
        number: 0.5 if number in (4, 9) else None for number in range(1, len(events) + 1)
    }
    assert [event for *_, event in numbered(tmp_path)] == events
    recorder.kill()
