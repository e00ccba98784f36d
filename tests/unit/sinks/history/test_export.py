"""An exported trace is verified as the run was, as far as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prober.core.events import Interrupted, Opened
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.sinks.history.export import Exported, export_traces
from prober.sinks.history.reader import HistoryReader, TimeSpan
from prober.sinks.history.store import HistoryError
from prober.traces.trace import read_trace
from prober.traces.verification import verify_trace
from tests.notation import history
from tests.unit.sinks.history.recording import BEGAN_AT, Recorder, held_up

GAP = "P1,2,3 A<1@1 A<3@1.2 A<2@1.4 end @500"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "history")
    yield recorder
    recorder.kill()


def reader(recorder: Recorder) -> HistoryReader:
    return HistoryReader(str(recorder.location))


def test_an_exported_trace_says_the_same(recorder: Recorder, tmp_path: Path) -> None:
    online = recorder.record(history(GAP), rules=Rules(window=17))
    recorder.save()
    path = tmp_path / "trace.jsonl"
    assert export_traces(reader(recorder), "k", path) == [Exported(str(path), "run-1", len(history(GAP)))]
    with read_trace(path) as trace:
        assert trace.header.rules == Rules(window=17)
        assert (trace.header.subscription, trace.header.key, trace.header.extra["run"]) == ("s", "k", "run-1")
        verified = verify_trace(str(path), trace.header, trace)
    assert verified.findings == online.findings


def test_several_runs_make_several_files(recorder: Recorder, tmp_path: Path) -> None:
    for run_id in ("a", "b/../c"):
        recorder.record(history(GAP), run_id)
    recorder.save()
    written = export_traces(reader(recorder), "k", tmp_path / "trace.jsonl")
    assert sorted(one.path for one in written) == [str(tmp_path / "trace-a.jsonl"), str(tmp_path / "trace-b_.._c.jsonl")]


@pytest.mark.parametrize("messages_max", [None, 1], ids=["held", "used up"])
def test_a_trace_has_the_other_keys_where_they_may_have_delayed_this_one(
    messages_max: int | None, recorder: Recorder, tmp_path: Path
) -> None:
    online = recorder.record(held_up(messages_max=messages_max))
    recorder.save()
    (written,) = export_traces(reader(recorder), "k", tmp_path / "trace.jsonl")
    with read_trace(written.path) as trace:
        verified = verify_trace("exported", trace.header, trace)
    assert verified.counts == online.counts
    assert written.events == len(held_up())


def test_a_trace_that_begins_in_a_run_keeps_what_streams_may_have_outstanding(recorder: Recorder, tmp_path: Path) -> None:
    opened = Opened(0.0, "s", "A", "a", max_outstanding_messages=5, max_outstanding_bytes=600)
    recorder.record([opened, *(event for event in history("P1 A<1@1 A ack 1@2") if not isinstance(event, Opened))])
    recorder.save()
    (written,) = export_traces(reader(recorder), "k", tmp_path / "cut.jsonl", span=TimeSpan(BEGAN_AT + 1.5))
    with read_trace(written.path) as trace:
        events = list(trace)
    assert isinstance(events[0], Interrupted)
    assert events[1] == replace(opened, t=events[0].t)


CUT = "P1,2,3,4,5,6 A<1@1 A ack 1@1.1 A<2@2 A ack 2@2.1 A<3@3 A ack 3@3.1 A<4@4 A ack 4@4.1 A<5,6@5 A ack 5,6@5.5 end @500"


def test_a_trace_that_begins_in_a_run_says_so_and_accuses_nobody(recorder: Recorder, tmp_path: Path) -> None:
    recorder.record(history(CUT))
    recorder.save()
    for since in (0.25, 1.05, 2.05, 3.0, 4.5):
        (written,) = export_traces(reader(recorder), "k", tmp_path / "cut.jsonl", span=TimeSpan(BEGAN_AT + since))
        with read_trace(written.path) as trace:
            events = list(trace)
            verified = verify_trace("cut", trace.header, events)
        assert isinstance(events[0], Interrupted)
        assert isinstance(events[1], Opened)
        assert min(event.t for event in events) >= since
        assert verified.verdict is Verdict.PASS


def test_a_trace_that_ends_in_a_run_does_not_end(recorder: Recorder, tmp_path: Path) -> None:
    recorder.record(history(GAP))
    recorder.save()
    (written,) = export_traces(reader(recorder), "k", tmp_path / "cut.jsonl", span=TimeSpan(until=BEGAN_AT + 1.1))
    with read_trace(written.path) as trace:
        verified = verify_trace("cut", trace.header, trace)
    assert verified.verdict is Verdict.UNKNOWN
    assert verified.events == 8


def test_what_is_not_there_cannot_be_exported(recorder: Recorder, tmp_path: Path) -> None:
    recorder.record(history(GAP))
    recorder.save()
    with pytest.raises(HistoryError, match="no run with events of key 'x' on t in that time"):
        export_traces(reader(recorder), "x", tmp_path / "t", subscription="t", span=TimeSpan(1.0))
    with pytest.raises(HistoryError, match="cannot be written"):
        export_traces(reader(recorder), "k", tmp_path / "no" / "folder")


def test_of_several_subscriptions_one_must_be_named(recorder: Recorder, tmp_path: Path) -> None:
    log = recorder.begin(rules={"s": Rules(), "t": Rules(window=3)})
    for event in history(GAP):
        log.record(event)
    recorder.save()
    with pytest.raises(HistoryError, match=r"name one of s, t \(--subscription\)"):
        export_traces(reader(recorder), "k", tmp_path / "t")
    (written,) = export_traces(reader(recorder), "k", tmp_path / "t", subscription="t")
    with read_trace(written.path) as trace:
        assert trace.header.rules == Rules(window=3)
