"""Evidence: what is collected around a finding is bounded, and shown even if it proves nothing by itself.

Every definite finding that is proven has a trace that `verify` verifies FAIL again, for the same finding: vectors and simulated faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import pytest

from api.swim_lanes import read_evidence, swim_lanes
from prober.core.events import Closed, Ended, Event, Opened
from prober.core.findings import FAILING, Finding, Kind, Status
from prober.core.guarded_verifier import GuardedVerifier, RecordedFinding
from prober.core.rules import Mode, Rules
from prober.core.verdict import Verdict
from prober.evidence.diagram.text import diagram_as_text
from prober.evidence.evidence import EXCERPT_EVENTS_MAX, collect, proof_of
from prober.evidence.minimise import is_proven_by
from prober.evidence.surroundings import identity_of
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory
from prober.sinks.status.entries import EndedRun, ProberIdentity, entry_of
from prober.sinks.status.records import FindingRecord
from prober.traces.header import TraceHeader
from prober.traces.trace import read_trace
from prober.traces.verification import verify_trace
from tests.nightly import nightly_but
from tests.notation import history
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.service import simulate_run
from tests.unit.api.drawing import INSTANCE, VECTORS

FILES = sorted(VECTORS.glob("*.jsonl"))


def made(*witnesses: int, after: int, key: str = "k") -> RecordedFinding:
    return RecordedFinding(Finding(Kind.ORDER_GAP, Status.VIOLATION, "s", key, 1.0, witnesses, {"seq": 3}), after)


def test_an_excerpt_is_bounded_and_keeps_its_witnesses() -> None:
    events = history(" ".join(f"A<{n}@{n}" for n in range(1, 10_001)))
    (excerpt,) = collect(lambda: events, [made(2, 9_000, after=9_500)])
    numbers = [number for number, _ in excerpt.events()]
    assert numbers == [1, 2, *range(9_501 - EXCERPT_EVENTS_MAX, 9_501)]
    assert isinstance(excerpt.events()[0][1], Opened)


def test_an_excerpt_holds_one_key_and_what_concerns_all() -> None:
    events = history("P1,2 A<1@1") + history("P1 A<1@1 seek 60@2", key="k2")
    one, other = collect(lambda: events, [made(1, after=100), made(1, after=100, key="k2")])
    assert {getattr(event, "key", None) for _, event in one.events()} == {"k", None}
    assert {getattr(event, "key", None) for _, event in other.events()} == {"k2", None}


def test_an_excerpt_holds_what_happened_to_the_key_on_other_subscriptions() -> None:
    """What is pending on one subscription can depend on what was delivered before it showed itself."""
    events = history("A<1@1") + history("B<1@1", subscription="s2")
    (excerpt,) = collect(lambda: events, [made(1, after=100)])
    assert [event for _, event in excerpt.events()] == events


def test_a_subscription_that_shows_itself_late_is_verified_as_it_was() -> None:
    """Pending there is what was not delivered elsewhere by then; known from the start, everything would be pending there."""
    events = history("P1,2,3 A<1@1 A<3@2") + history("B<3@3 end @500", subscription="s2")
    header = TraceHeader("s", "k")
    found = [one for one in verify_trace("f", header, events).findings if one.finding.subscription == "s2"]
    assert found
    assert all(proof_of(excerpt, header).lines for excerpt in collect(lambda: events, found))


def test_an_excerpt_that_proves_nothing_is_shown_as_it_is() -> None:
    (excerpt,) = collect(lambda: history("P1,2 A<1@1 A<2@2"), [made(6, after=7)])
    shown = proof_of(excerpt, TraceHeader("s", "k"))
    assert shown.heading == "what happened around it (7 events, which alone do not prove it again)"
    assert shown.lines == ()
    assert "X <-- wrong" in shown.diagram


def test_where_nothing_came_everything_on_the_key_shows_to_whom_it_could_have_come() -> None:
    events = [Opened(0.0, "s", "A", "A"), Opened(0.0, "s", "B", "B"), Closed(0.1, "s", "B"), *history("P1@1 ok1=m1@1.1 end @500")]
    header = TraceHeader("s", "k", Rules())
    (stuck,) = verify_trace("f", header, events).findings
    (excerpt,) = collect(lambda: events, [stuck])
    shown = excerpt.on_key().events
    assert [event for _, event in shown] == [events[0], *events[3:]]
    assert is_proven_by(shown, stuck.finding, header.rules, subscriptions=("s",))


def kept(rules: Mapping[str, Rules], events: Sequence[Event]) -> Iterator[FindingRecord]:
    """The definite findings of a history as the service keeps them, the first of each sort."""
    verifier = GuardedVerifier(rules)
    for number, event in enumerate(events, 1):
        verifier.observe(event, number)
    verifier.finish(len(events))
    first = {made.sort: made for made in reversed(verifier.findings.kept) if made.finding.status in FAILING}
    result = RunResult("run", "ordering", "europe", "wire", Verdict.FAIL, "", 0.0, 1.0, findings=tuple(first.values()))
    ended = EndedRun(INSTANCE, result, 1.0, 0.0, KeptHistory(events, rules, len(events)))
    entry = entry_of(ended, ProberIdentity("prober-0", "1", 0.0), clock=lambda: 0.0)
    return iter(entry.findings)


def check(record: FindingRecord) -> None:
    """The trace alone gives the same finding, and it fails."""
    assert record.evidence is not None
    assert record.evidence.proven, record.finding
    with read_trace(BytesIO(record.evidence.trace.encode())) as trace:
        verified = verify_trace("again", trace.header, trace)
    assert verified.verdict is Verdict.FAIL
    assert identity_of(record.finding) in {identity_of(made.finding) for made in verified.findings}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_of_a_recorded_trace(path: Path) -> None:
    with read_trace(path) as trace:
        events = list(trace)
    for record in kept({trace.header.subscription: trace.header.rules}, events):
        check(record)


ONCE = {fault: mode for mode, faults in reversed(FAULTS.items()) for fault in faults}
"""Each fault, streamed if it can be."""


BY_DAY = [pair for pair in ONCE.items() if pair[0] is not Fault.EOD_WHILE_HELD]  # its evidence takes as long as that of all others


@pytest.mark.parametrize(("fault", "mode"), nightly_but(BY_DAY, ONCE.items()))
def test_of_a_simulated_fault(fault: Fault, mode: Mode) -> None:
    run = simulate_run(1, mode, fault)
    for record in kept(run.rules_by_subscription, run.events):
        check(record)


TWO_KEYS = "P1,2,3 A<1@1 A ack 1@1.3 on k2 P1,2@30 A<1@31 A<2@31.1 A ack 1,2@31.2 P3@200 A<3@201 end @250"


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
    assert "the deadline passed, 136 s after the wait began" in decides
    assert decides.endswith("X <-- not delivered")
    drawn = swim_lanes(record)
    assert "the deadline passed, 136 s after the wait began" in drawn
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
