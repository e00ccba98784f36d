"""Every definite finding that is proven has a trace that `verify` judges FAIL again, for the same finding: vectors and simulated faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import pytest

from api.swim_lanes import read_evidence, swim_lanes
from prober.core.events import Ended, Event
from prober.core.findings import FAILING, Kind
from prober.core.judge import Judge
from prober.core.rules import Mode, Rules
from prober.core.verdict import Verdict
from prober.evidence.diagram.text import diagram_as_text
from prober.evidence.minimise import identity_of
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory
from prober.sinks.status.entries import EndedRun, ProberIdentity, entry_of
from prober.sinks.status.records import FindingRecord
from prober.traces.judgement import judge
from prober.traces.trace import read_trace
from tests.notation import history
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.service import simulate_run
from tests.unit.api.drawing import SITE, VECTORS

FILES = sorted(VECTORS.glob("*.jsonl"))


def kept(rules: Mapping[str, Rules], events: Sequence[Event]) -> Iterator[FindingRecord]:
    """The definite findings of a history as the service keeps them, the first of each sort."""
    judging = Judge(rules)
    for number, event in enumerate(events, 1):
        judging.observe(event, number)
    judging.finish(len(events))
    first = {made.sort: made for made in reversed(judging.findings.kept) if made.finding.status in FAILING}
    result = RunResult("run", "ordering", "europe", "wire", Verdict.FAIL, "", 0.0, 1.0, findings=tuple(first.values()))
    ended = EndedRun(SITE, result, 1.0, 0.0, KeptHistory(events, rules, len(events)))
    entry = entry_of(ended, ProberIdentity("prober-0", "1", 0.0), clock=lambda: 0.0)
    return iter(entry.findings)


def check(record: FindingRecord) -> None:
    """The trace alone gives the same finding, and it fails."""
    assert record.evidence is not None
    assert record.evidence.proven, record.finding
    with read_trace(BytesIO(record.evidence.trace.encode())) as trace:
        judged = judge("again", trace.header, trace)
    assert judged.verdict is Verdict.FAIL
    assert identity_of(record.finding) in {identity_of(made.finding) for made in judged.findings}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_of_a_recorded_trace(path: Path) -> None:
    with read_trace(path) as trace:
        events = list(trace)
    for record in kept({trace.header.subscription: trace.header.rules}, events):
        check(record)


@pytest.mark.parametrize(("mode", "fault"), [(mode, fault) for mode, faults in FAULTS.items() for fault in faults])
def test_of_a_simulated_fault(mode: Mode, fault: Fault) -> None:
    run = simulate_run(1, mode, fault)
    for record in kept(run.rules_by_subscription, run.events):
        check(record)


TWO_KEYS = "P1,2,3 A<1@1 A ack 1@1.3 on k2 P1,2@30 A<1@31 A<2@31.1 P3@200 A<3@201 end @250"


def test_a_deadline_that_another_key_showed_to_have_passed_is_an_event_of_the_trace() -> None:
    record = first(Kind.STUCK, TWO_KEYS)
    check(record)
    assert record.evidence is not None
    with read_trace(BytesIO(record.evidence.trace.encode())) as trace:
        *_, last = trace
    assert last == Ended(200.0, drained=True)


def test_the_wait_and_its_deadline_are_drawn() -> None:
    record = first(Kind.STUCK, TWO_KEYS)
    *_, acked, waited, missing, decides = text_of(record)
    assert "<- ack 1 -" in acked
    assert "199 s without it" in waited
    assert "2 and 1 more missing" in missing
    assert "the deadline passed, 120 s after the wait began" in decides
    assert decides.endswith("X <-- in vain")
    drawn = swim_lanes(record)
    assert "the deadline passed, 120 s after the wait began" in drawn
    assert "+ 3 min" in drawn


@pytest.mark.parametrize(
    ("line", "acked", "cause"),
    [
        pytest.param("A ack 3,4,5@2.1 A nack 2@2.5 A<2@3 A<3@3.1 A<5@3.3", (3, 4, 5), "<- nack 2 -", id="refused"),
        pytest.param("A ack 3,4@2.1 A modack 2 10s@2.2 A<2@33 A<3@33.1 A<5@33.3", (3, 4), "lease of 2 may end", id="lease"),
        pytest.param("A ack 3@2.1 close A@2.5 B<2@40 B<3@40.1 B<5@40.3", (3,), "closed", id="its stream ended"),
    ],
)
def test_a_skip_shows_what_was_acknowledged_and_why_the_redelivery_began(line: str, acked: tuple[int, ...], cause: str) -> None:
    record = first(Kind.REDELIVERY_SKIP, f"P1,2,3,4,5,6 A<1,2,3,4,5@1 A ack 1@2 {line} end @400")
    check(record)
    lines = text_of(record)
    for seq in (3, 4, 5):
        assert sum(f"<- ack {seq} " in one for one in lines) == (seq in acked)
    assert sum(cause in one for one in lines) == 1
    assert next(i for i, one in enumerate(lines) if cause in one) < next(i for i, one in enumerate(lines) if "-- 2 again" in one)


def first(kind: Kind, line: str) -> FindingRecord:
    """The first definite finding of a kind in a history."""
    return next(record for record in kept({"s": Rules()}, history(line)) if record.finding.kind is kind)


def text_of(record: FindingRecord) -> list[str]:
    """The drawing as text, line by line."""
    shown = read_evidence(record)
    return diagram_as_text(shown.history, shown.finding, shown.rules, opened=shown.opened).splitlines()
