"""A key judged again from the history says what was said online; an exported trace says it too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from prober.core.events import DeliveryEvent, Event, Interrupted, Opened, PublishEvent
from prober.core.findings import Kind, Status
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.sinks.history.one_key import Exported, Rejudged, export_traces, others_matter, rejudge
from prober.sinks.history.reader import HistoryReader, TimeSpan
from prober.sinks.history.store import HistoryError
from prober.traces.judgement import judge
from prober.traces.trace import read_trace
from tests.commands import VECTORS
from tests.notation import history
from tests.unit.sinks.history.older import make_older
from tests.unit.sinks.history.recording import BEGAN_AT, Recorder, as_recorded, held_up, result

GAP = "P1,2,3 A<1@1 A<3@1.2 A<2@1.4 end @500"
RIGHT = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 end @500"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "history")
    yield recorder
    recorder.kill()


def reader(recorder: Recorder) -> HistoryReader:
    return HistoryReader(str(recorder.location))


def later(events: list[Event], by_s: float) -> list[Event]:
    return [replace(event, t=event.t + by_s) for event in events]


def of_other_key(events: list[Event]) -> list[Event]:
    return [replace(event, key="other") for event in events if isinstance(event, PublishEvent | DeliveryEvent)]


def verdicts(judged: Iterator[Rejudged]) -> dict[str, Verdict]:
    return {one.run_id: one.judgement.verdict for one in judged}


# --- judging again -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", sorted(path.name for path in VECTORS.glob("*.jsonl")))
def test_every_vector_is_judged_as_online(vector: str, recorder: Recorder) -> None:
    with read_trace(VECTORS / vector) as trace:
        events = [as_recorded(event) for event in trace]
        rules = replace(trace.header.rules)
    online = recorder.record(events, rules=rules)
    recorder.save()
    keys = sorted({event.key for event in events if hasattr(event, "key")})
    again = list(chain.from_iterable(rejudge(reader(recorder), key) for key in keys))
    assert {one.run_id for one in again} == {"run-1"}
    made = [made for one in again for made in one.judgement.findings]
    assert sorted(map(repr, made)) == sorted(map(repr, online.findings))


@pytest.mark.parametrize("messages_max", [None, 1], ids=["held", "used up"])
def test_another_key_that_delayed_this_one_counts_as_it_did_online(messages_max: int | None, recorder: Recorder) -> None:
    online = recorder.record(held_up(messages_max=messages_max))
    recorder.save()
    (judged,) = rejudge(reader(recorder), "k")
    assert judged.judgement.findings == tuple(made for made in online.findings if made.finding.key == "k")
    assert judged.judgement.verdict is not Verdict.FAIL
    (run,) = reader(recorder).runs()
    assert others_matter(reader(recorder), run, "k", None)


def test_a_file_without_the_columns_that_were_added_is_judged_as_it_was(recorder: Recorder) -> None:
    online = recorder.record(history(GAP))
    recorder.save()
    make_older(recorder.location)
    (judged,) = rejudge(reader(recorder), "k")
    assert judged.judgement.findings == online.findings


def test_witnesses_are_numbers_in_the_run(recorder: Recorder) -> None:
    between = sorted([*history(GAP), *of_other_key(history(RIGHT))], key=lambda event: event.t)
    online = recorder.record(between)
    recorder.save()
    (judged,) = rejudge(reader(recorder), "k")
    assert judged.judgement.findings == online.findings
    assert judged.judgement.events < len(between)


def test_each_run_is_judged_by_itself_under_its_own_rules(recorder: Recorder) -> None:
    recorder.record(history(GAP), "gap")
    recorder.record(later(history("P1,2 A<2@1.2 A ack 2@1.3 end @500"), 600), "strict")
    recorder.record(
        later(history("P1,2 A<2@1.2 A ack 2@1.3 end @500"), 1200), "adopting", Rules(subscription_predates_first_publish=False)
    )
    recorder.save()
    assert verdicts(rejudge(reader(recorder), "k")) == {"gap": Verdict.FAIL, "strict": Verdict.FAIL, "adopting": Verdict.PASS}
    assert verdicts(rejudge(reader(recorder), "unheard-of")) == {}


def test_a_run_that_the_time_span_touches_is_judged_whole(recorder: Recorder) -> None:
    recorder.record(history(GAP), "first")
    recorder.clock.now = 4000.0
    recorder.record(later(history(GAP), 4000), "second")
    recorder.save()
    judged = list(rejudge(reader(recorder), "k", span=TimeSpan(BEGAN_AT + 1.1, BEGAN_AT + 1.3)))
    assert [(one.run_id, one.judgement.verdict, one.judgement.events) for one in judged] == [
        ("first", Verdict.FAIL, len(history(GAP)))
    ]


def test_a_subscription_that_a_run_does_not_have_is_not_judged_there(recorder: Recorder) -> None:
    recorder.record(history(RIGHT))
    recorder.save()
    assert verdicts(rejudge(reader(recorder), "k", subscription="s")) == {"run-1": Verdict.PASS}
    assert verdicts(rejudge(reader(recorder), "k", subscription="other")) == {}


def test_a_run_that_was_cut_short_is_unknown_while_something_is_owed(recorder: Recorder) -> None:
    log = recorder.begin()
    for event in history("P1,2 A<1@1 stop @2")[:-1]:
        log.record(event)
    recorder.save()
    (judged,) = rejudge(reader(recorder), "k")
    assert judged.judgement.verdict is Verdict.UNKNOWN
    assert judged.run is not None
    assert judged.run.result is None


def test_what_was_on_hold_when_a_run_was_cut_off_stays_so(recorder: Recorder) -> None:
    log = recorder.begin()
    for event in history("open A of client c open B of client c P1,2 B<2@1"):
        log.record(event)
    recorder.save()
    (judged,) = rejudge(reader(recorder), "k")
    assert (judged.judgement.verdict, judged.judgement.findings) == (Verdict.UNKNOWN, ())


def test_what_was_not_judged_online_is_not_judged_later(recorder: Recorder) -> None:
    log = recorder.begin()
    for event in history(GAP):
        log.record(event)
    log.ended(result(), judged_events=7)
    recorder.save()
    (judged,) = rejudge(reader(recorder), "k")
    assert judged.judgement.verdict is Verdict.UNKNOWN
    assert judged.judgement.findings == ()
    assert judged.judgement.events == 7


def test_a_run_without_a_row_is_unknown(recorder: Recorder) -> None:
    recorder.record(history(GAP))
    recorder.save()
    for path in (recorder.location / "runs").rglob("*.parquet"):
        path.unlink()
    (judged,) = rejudge(reader(recorder), "k")
    assert judged.run is None
    assert judged.judgement.verdict is Verdict.UNKNOWN
    assert "its rules are not known" in judged.judgement.malformed


def test_a_fault_of_the_checker_is_unknown(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder.record(history(GAP))
    recorder.save()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("prober.core.verifier.Verifier.observe", fail)
    (judged,) = rejudge(reader(recorder), "k")
    assert judged.judgement.verdict is Verdict.UNKNOWN
    assert "the checker failed at event 1" in judged.judgement.crash


# --- traces ------------------------------------------------------------------------------------------------------------------


def test_an_exported_trace_says_the_same(recorder: Recorder, tmp_path: Path) -> None:
    online = recorder.record(history(GAP), rules=Rules(window=17))
    recorder.save()
    path = tmp_path / "trace.jsonl"
    assert export_traces(reader(recorder), "k", path) == [Exported(str(path), "run-1", len(history(GAP)))]
    with read_trace(path) as trace:
        assert trace.header.rules == Rules(window=17)
        assert (trace.header.subscription, trace.header.key, trace.header.extra["run"]) == ("s", "k", "run-1")
        judged = judge(str(path), trace.header, trace)
    assert judged.findings == online.findings


def test_several_runs_make_several_files(recorder: Recorder, tmp_path: Path) -> None:
    for run_id in ("a", "b/../c"):
        recorder.record(history(GAP), run_id)
    recorder.save()
    written = export_traces(reader(recorder), "k", tmp_path / "trace.jsonl")
    assert sorted(one.path for one in written) == [str(tmp_path / "trace-a.jsonl"), str(tmp_path / "trace-b_.._c.jsonl")]
    (only,) = export_traces(reader(recorder), "k", tmp_path / "trace.jsonl", run_id="a")
    assert only.path == str(tmp_path / "trace.jsonl")


@pytest.mark.parametrize("messages_max", [None, 1], ids=["held", "used up"])
def test_a_trace_has_the_other_keys_where_they_may_have_delayed_this_one(
    messages_max: int | None, recorder: Recorder, tmp_path: Path
) -> None:
    online = recorder.record(held_up(messages_max=messages_max))
    recorder.save()
    (written,) = export_traces(reader(recorder), "k", tmp_path / "trace.jsonl")
    with read_trace(written.path) as trace:
        judged = judge("exported", trace.header, trace)
    assert judged.counts == online.counts
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
            judged = judge("cut", trace.header, events)
        assert isinstance(events[0], Interrupted)
        assert isinstance(events[1], Opened)
        assert min(event.t for event in events) >= since
        assert judged.verdict is Verdict.PASS


def test_a_trace_that_ends_in_a_run_does_not_end(recorder: Recorder, tmp_path: Path) -> None:
    recorder.record(history(GAP))
    recorder.save()
    (written,) = export_traces(reader(recorder), "k", tmp_path / "cut.jsonl", span=TimeSpan(until=BEGAN_AT + 1.1))
    with read_trace(written.path) as trace:
        judged = judge("cut", trace.header, trace)
    assert judged.verdict is Verdict.UNKNOWN
    assert judged.events == 8


def test_what_is_not_there_cannot_be_exported(recorder: Recorder, tmp_path: Path) -> None:
    recorder.record(history(GAP))
    recorder.save()
    with pytest.raises(HistoryError, match="no run with events of key 'x' on t in that time in run r"):
        export_traces(reader(recorder), "x", tmp_path / "t", subscription="t", span=TimeSpan(1.0), run_id="r")
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
    (judged,) = rejudge(reader(recorder), "k", subscription="s")
    assert {made.finding.kind for made in judged.judgement.findings} >= {Kind.ORDER_GAP}
    assert {made.finding.status for made in judged.judgement.findings} >= {Status.VIOLATION}
