"""What is kept of a run: bounded, the most serious first, and proven only if the checker proves it again."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO

import pytest

from prober.core.events import Delivered, Opened
from prober.core.findings import Finding, Kind, Status
from prober.core.guarded_verifier import GuardedVerifier, RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.evidence.diagram.text import diagram_as_text
from prober.evidence.evidence import ON_KEY_MAX
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory
from prober.sinks.status.entries import (
    HARMLESS_KEPT_MAX,
    KEPT_PER_RUN_MAX,
    PROVING_MAX_S,
    REDUCING_MAX_S,
    TRACE_EVENTS_MAX,
    EndedRun,
    _candidates,
    entry_of,
)
from prober.sinks.status.records import Entry, OpenSession
from prober.traces.header import TraceHeader
from prober.traces.trace import read_trace
from prober.traces.verification import verify_trace
from tests.notation import history
from tests.unit.sinks.status.examples import INSTANCE, PROBER, SKIPPED, START, failed, result


def kept(outcome: RunResult, recorded: KeptHistory | None, passing_s: float = 0.0, waiting: int = 0) -> Entry:
    """What is kept of a run when each look at the clock takes a while."""
    times = iter(range(10**6))
    ended = EndedRun(INSTANCE, outcome, START + 2.0, 5.0, recorded)
    return entry_of(ended, PROBER, lambda: next(times) * passing_s, waiting=waiting)


def made(kind: Kind, status: Status, seq: int = 1, witnesses: tuple[int, ...] = (1,)) -> RecordedFinding:
    return RecordedFinding(Finding(kind, status, "s", "k", 1.0, witnesses, {"seq": seq, "after": 9}), 3)


def test_nothing_is_proven_any_more_when_the_prober_stops() -> None:
    outcome, recorded = failed()
    entry = entry_of(EndedRun(INSTANCE, outcome, START + 2.0, 5.0, recorded), PROBER, stopping=lambda: True)
    assert {record.unproven_because for record in entry.findings} == {"the prober stopped before it was proven"}


def test_the_evidence_is_a_trace_that_is_verified_the_same() -> None:
    outcome, recorded = failed()
    (record,) = (one for one in kept(outcome, recorded).findings if one.finding.kind is Kind.REDELIVERY_SKIP)
    evidence = record.evidence
    assert evidence is not None
    assert (evidence.proven, evidence.complete) == (True, True)
    assert evidence.trace.count("\n") - 1 < evidence.among <= len(recorded.events)
    trace = read_trace(BytesIO(evidence.trace.encode()), "trace")
    assert trace.header.extra == {"run_id": "run-1"}
    verification = verify_trace("trace", trace.header, trace)
    assert [again.finding.kind for again in verification.findings] == [Kind.REDELIVERY_SKIP]
    assert verification.verdict is Verdict.FAIL
    assert evidence.witnesses == tuple(number + 1 for number in verification.findings[0].finding.witnesses)


def test_the_evidence_can_be_drawn() -> None:
    outcome, recorded = failed(text="open A1 of client A " + re.sub(r"\bA(?=<| ack)", "A1", SKIPPED))
    evidence = kept(outcome, recorded).findings[0].evidence
    assert evidence is not None
    trace = read_trace(BytesIO(evidence.trace.encode()), "trace")
    opened = [Opened(0.0, begun.subscription, begun.session, begun.subscriber) for begun in evidence.opened]
    drawn = diagram_as_text(list(enumerate(trace, 2)), outcome.findings[0].finding, trace.header.rules, opened=opened)
    assert drawn.splitlines()[0].split() == ["line", "time", "publisher", "Pub/Sub", "A"]


def test_what_is_known_of_the_prober_is_kept() -> None:
    outcome, recorded = failed()
    run = kept(outcome, KeptHistory(recorded.events, recorded.rules, 900, 12, "the prober's process paused for 3.0 s")).run
    assert (run.prober.instance, run.prober.version, run.prober.clock_offset_s) == ("prober-0", "1.2.3", 5.0)
    assert (run.prober.events, run.prober.verified) == (900, 12)
    assert run.prober.unverified_because == "the prober's process paused for 3.0 s"
    assert (run.environment, run.region, run.ended_at) == ("test", "local", START + 2.0)


def test_information_is_only_counted() -> None:
    info = made(Kind.AFFINITY_MOVE, Status.INFO)
    entry = kept(result(findings=(info,), counts={info.sort: 40}), None)
    assert (entry.findings, entry.run.findings_omitted) == ((), 0)


def test_what_publishers_sent_out_of_order_is_kept_with_its_proof_and_fails_no_run() -> None:
    """Message 2 was stored after 3, again and again."""
    swaps = [f"A<{at}~{at}@{at} A<{at + 2}~{at + 1}@{at + 1} A<{at + 1}~{at + 2}@{at + 2}" for at in range(1, 60, 3)]
    events, rules = history(" ".join([*swaps, "A<61~61@61"])), Rules(publishes_recorded=False)
    verification = verify_trace("run", TraceHeader("s", "k", rules), events)
    entry = kept(result(findings=verification.findings, counts=verification.counts), KeptHistory(events, {"s": rules}, len(events)))
    assert [record.kind for record in entry.findings] == [Kind.PUBLISHED_OUT_OF_ORDER] * HARMLESS_KEPT_MAX
    assert entry.run.findings_omitted == len(swaps) - HARMLESS_KEPT_MAX
    for record in entry.findings:
        assert record.evidence is not None
        assert record.evidence.proven


def test_what_is_kept_has_its_proof_and_what_there_was_no_time_for_is_counted() -> None:
    each, keys = SKIPPED.removesuffix(" stop @5"), 8
    outcome, recorded = failed(text=" ".join(f"on k{number} {each}" for number in range(keys)) + " stop @5")
    assert outcome.counts[Kind.REDELIVERY_SKIP, Status.VIOLATION] == keys
    entry = kept(outcome, recorded, PROVING_MAX_S / 6)
    assert 0 < [record.kind for record in entry.findings].count(Kind.REDELIVERY_SKIP) < keys
    assert entry.run.findings_omitted == sum(outcome.counts.values()) - len(entry.findings)
    for record in entry.findings:
        assert record.evidence is not None
        trace = read_trace(BytesIO(record.evidence.trace.encode()), "trace")
        assert verify_trace("trace", trace.header, trace).counts[record.kind, record.status]


@pytest.mark.parametrize("recorded", [None, KeptHistory(history("P1 A<1@1"), {"s": Rules()}, 4)])
def test_of_a_sort_without_any_proof_the_first_is_kept_and_the_most_serious_stand_first(recorded: KeptHistory | None) -> None:
    doubtful = [made(Kind.ORDER_INVERSION, Status.INDETERMINATE, seq) for seq in range(9)]
    certain = [made(Kind.GHOST, Status.VIOLATION, seq) for seq in range(KEPT_PER_RUN_MAX - 1)]
    counts = {doubtful[0].sort: 500, certain[0].sort: 99}
    entry = kept(result(verdict=Verdict.FAIL, findings=(*doubtful, *certain), counts=counts), recorded)
    assert [record.finding for record in entry.findings] == [certain[0].finding, doubtful[0].finding]
    assert [record.finding_id for record in entry.findings] == ["run-1-10", "run-1-1"]
    assert entry.run.findings_omitted == 599 - 2


def test_what_decides_nothing_is_kept_a_few_times_and_takes_no_place_of_what_does() -> None:
    doubtful = [made(Kind.PUSH_OVERLAP, Status.INDETERMINATE, seq) for seq in range(3 * HARMLESS_KEPT_MAX)]
    certain = [made(Kind.PUSH_OVERLAP, Status.VIOLATION, seq) for seq in range(2 * HARMLESS_KEPT_MAX)]
    outcome = result(verdict=Verdict.FAIL, findings=(*doubtful, *certain), counts={doubtful[0].sort: 15, certain[0].sort: 10})
    assert _candidates(outcome.findings) == [
        *enumerate(certain, 3 * HARMLESS_KEPT_MAX + 1),
        *enumerate(doubtful[:HARMLESS_KEPT_MAX], 1),
    ]


def test_the_same_run_gives_the_same_names() -> None:
    outcome, recorded = failed()
    assert kept(outcome, recorded) == kept(outcome, recorded)


@pytest.mark.parametrize(
    ("events", "passing_s", "reason"),
    [
        (False, 0.0, "the events of its run were not kept"),
        (True, PROVING_MAX_S, f"proving the findings of its run took longer than {PROVING_MAX_S:g} s"),
    ],
)
def test_a_finding_without_evidence_says_why(*, events: bool, passing_s: float, reason: str) -> None:
    outcome, recorded = failed()
    record = kept(outcome, recorded if events else None, passing_s).findings[0]
    assert (record.evidence, record.unproven_because) == (None, reason)
    assert "skipped message 3, which should have been redelivered" in record.explanation


def test_every_finding_that_is_kept_has_its_proof() -> None:
    """Also when there was no time to reduce any of them, because it takes long or because many other runs wait."""
    one_key = [history("P1@0 P2@0 ok1=m1@0.1 ok2=m2@0.1 A<2,1@1", key=f"k{number}") for number in range(KEPT_PER_RUN_MAX)]
    every = sorted((event for events in one_key for event in events), key=lambda event: event.t)
    events = [event for number, event in enumerate(every) if not isinstance(event, Opened) or event not in every[:number]]
    verification = verify_trace("run", TraceHeader("s", "k", Rules()), events)
    outcome = result(verdict=Verdict.FAIL, findings=verification.findings, counts=verification.counts)
    for passing_s, waiting, reduced in ((0.0, 0, True), (REDUCING_MAX_S / 100, 0, False), (1e-5, 0, True), (1e-5, 10**6, False)):
        records = kept(outcome, KeptHistory(events, {"s": Rules()}, len(events)), passing_s, waiting).findings
        assert len(records) == KEPT_PER_RUN_MAX
        proofs = [record.evidence for record in records]
        assert all(proof is not None and proof.proven for proof in proofs)
        assert {proof.complete for proof in proofs if proof is not None} == {reduced}


def test_everything_on_the_key_is_kept_too_and_bounded() -> None:
    calm = " ".join(f"P{n}@{n} A<{n}@{n}.1 A ack {n}@{n}.2" for n in range(1, ON_KEY_MAX))
    events = history(
        f"{calm} P{ON_KEY_MAX},{ON_KEY_MAX + 1}@999 A<{ON_KEY_MAX + 1}@999.5 A<{ON_KEY_MAX}@999.6 A ack {ON_KEY_MAX}@999.7"
    )
    verification = verify_trace("run", TraceHeader("s", "k", Rules()), events)
    outcome = result(verdict=Verdict.FAIL, findings=verification.findings, counts=verification.counts)
    for record in kept(outcome, KeptHistory(events, {"s": Rules()}, len(events))).findings:
        on_key = record.on_key
        assert on_key is not None
        assert on_key.proven
        shown = list(read_trace(BytesIO(on_key.trace.encode()), "trace"))
        of_key = [event for event in shown if not isinstance(event, Opened)]
        assert of_key == [event for event in events[: record.after] if not isinstance(event, Opened)][-len(of_key) :]
        assert len(of_key) >= ON_KEY_MAX
        opened = [event for event in shown if isinstance(event, Opened)]
        assert (len(opened), on_key.among) == (1, record.after)
        assert [shown[line - 2] for line in on_key.witnesses] == [events[number - 1] for number in record.witnesses]


def test_everything_on_the_key_is_that_of_both_subscriptions_if_they_differ() -> None:
    both = history("P1,2 A<1,2@1") + history("B<2,1@2", subscription="t")
    rules = {"s": Rules(), "t": Rules()}
    checker = GuardedVerifier(rules)
    for number, event in enumerate(events := sorted(both, key=lambda event: event.t), 1):
        checker.observe(event, number)
    checker.finish(len(events))
    found = tuple(made for made in checker.findings.kept if made.finding.kind is Kind.ORDER_DIVERGENCE)
    outcome = result(verdict=Verdict.FAIL, findings=found, counts={found[0].sort: 1})
    (record,) = kept(outcome, KeptHistory(events, rules, len(events))).findings
    assert record.on_key is not None
    assert record.on_key.proven
    shown = read_trace(BytesIO(record.on_key.trace.encode()), "trace")
    assert {event.subscription for event in shown if isinstance(event, Delivered)} == {"s", "t"}


def test_what_cannot_be_proven_again_is_shown_and_bounded() -> None:
    events = history(" ".join(f"A<{n}@{n}" for n in range(1, 1_001)))
    made_up = RecordedFinding(Finding(Kind.GHOST, Status.VIOLATION, "s", "k", 1.0, (500, 502), {"seq": 3}), 900)
    outcome = result(verdict=Verdict.FAIL, findings=(made_up,), counts={made_up.sort: 1})
    evidence = kept(outcome, KeptHistory(events, {"s": Rules()}, len(events))).findings[0].evidence
    assert evidence is not None
    assert (evidence.proven, evidence.complete) == (False, False)
    shown = list(read_trace(BytesIO(evidence.trace.encode()), "trace"))
    assert len(shown) == TRACE_EVENTS_MAX
    assert [shown[line - 2] for line in evidence.witnesses] == [events[499], events[501]]
    assert evidence.opened == (OpenSession("s", "A", "A"),), "what is drawn has to know whose the session is"


def test_a_key_that_no_file_can_hold_costs_the_evidence_only() -> None:
    outcome, recorded = failed()
    key = "\ud800"
    events = history(SKIPPED, key=key)
    findings = tuple(replace(one, finding=replace(one.finding, key=key)) for one in outcome.findings)
    record = kept(replace(outcome, findings=findings), KeptHistory(events, recorded.rules, 9)).findings[0]
    assert record.evidence is None
    assert record.unproven_because.startswith("no trace could be made of it: ")
