"""A process dies at any byte of what it writes: what is recovered is a prefix, and everything up to the last flush is in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.core.events import Event
from tests.unit.sinks.history.recording import Recorder, numbered
from tests.unit.traces.test_trace import HISTORIES

FLUSHES = st.lists(HISTORIES, min_size=1, max_size=4)
GARBAGE = st.binary(max_size=40) | st.integers(0, 40).map(bytes)  # also blocks of zeros that the disk had reserved


@given(flushes=FLUSHES, cut=st.floats(0, 1), garbage=GARBAGE)
def test_a_crash_at_any_byte_leaves_a_prefix_with_all_that_was_flushed_before(
    flushes: list[list[Event]], cut: float, garbage: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    location = tmp_path_factory.mktemp("history")
    dead = Recorder(location, "dead")
    log = dead.begin()
    events: list[Event] = []
    flushed = [(0, 0)]  # after so many bytes, so many events are safe
    for part in flushes:
        for event in part:
            events.append(replace(event, t=float(len(events))))
            log.record(events[-1])
        assert dead.writer.flush()
        assert dead.writer._spool is not None
        flushed.append((dead.writer._spool.length, len(events)))
    dead.kill()
    (path,) = location.rglob("*.spool")
    content = path.read_bytes()
    end = round(cut * len(content))
    path.write_bytes(content[:end] + garbage)

    heir = Recorder(location, "heir")
    assert heir.writer.ship()
    keys = {event.key for event in events if hasattr(event, "key")} or {"k"}
    found = {number: event for key in keys for _, number, event in numbered(location, key)}
    safe = max(count for length, count in flushed if length <= end)
    last = min((count for length, count in flushed if length >= end), default=len(events))
    assert set(range(1, safe + 1)) <= set(found) <= set(range(1, last + 1))
    assert all(found[number] == events[number - 1] for number in found)
    assert not list(location.rglob("*.spool"))
