"""What a run keeps as the evidence for a finding is the smallest history that `verify --explain` shows, if there is time to find it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import count
from pathlib import Path

import pytest

from prober.core.events import Event, Opened
from prober.core.findings import Kind
from prober.core.guarded_verifier import GuardedVerifier, RecordedFinding, Sort
from prober.core.rules import Mode, Rules
from prober.core.verdict import Verdict
from prober.evidence.evidence import LINES_BEFORE, Proof, collect, proof_of
from prober.runs.result import finding_id_of
from prober.runs.sink import KeptHistory
from prober.sinks.status.entries import REDUCING_MAX_S, EndedRun, entry_of
from prober.sinks.status.records import FindingRecord
from prober.traces.header import TraceHeader
from prober.traces.trace import read_trace
from tests.nightly import nightly_but
from tests.notation import history
from tests.simulation.faults import Fault
from tests.simulation.service import simulate_run
from tests.unit.sinks.status.examples import INSTANCE, PROBER, START, result

VECTORS = sorted((Path(__file__).parents[3] / "vectors").glob("*.jsonl"))
BY_DAY = [path for path in VECTORS if not path.stem.startswith("t111-")]  # its six findings take as long as all others
BROKEN = (Fault.SKIP_FIRST, Fault.REORDER_RUN, Fault.STALL_RUN, Fault.SPLIT)
"""One of each sort of proof: a first delivery, a redelivery, a wait, a holder."""
COMPARED_PER_SORT = 2


class Verified:
    """A history with the first findings of each sort."""

    def __init__(self, events: Sequence[Event], rules: Mapping[str, Rules]) -> None:
        self.events, self.rules = events, rules
        self.findings: list[RecordedFinding] = []
        verifier = GuardedVerifier(rules)
        for number, event in enumerate(events, 1):
            verifier.observe(event, number)
        verifier.finish(len(events))
        seen = Counter[Sort]()
        for made in verifier.findings.kept:
            seen[made.sort] += 1
            if seen[made.sort] <= COMPARED_PER_SORT:
                self.findings.append(made)

    def kept(self, passing_s: float = 0.0) -> list[FindingRecord]:
        """What is kept of it if it was a run, when each look at the clock takes a while."""
        outcome = result(verdict=Verdict.FAIL, findings=tuple(self.findings), counts=Counter(one.sort for one in self.findings))
        times = (passing_s * looks for looks in count())
        ended = EndedRun(INSTANCE, outcome, START, 0.0, KeptHistory(self.events, self.rules, len(self.events)))
        return list(entry_of(ended, PROBER, lambda: next(times)).findings)

    def explained(self) -> Iterator[tuple[RecordedFinding, Proof]]:
        """What `verify --explain` shows of it."""
        for excerpt in collect(lambda: self.events, self.findings):
            finding = excerpt.made.finding
            yield excerpt.made, proof_of(excerpt, TraceHeader(finding.subscription, finding.key, self.rules[finding.subscription]))


def check_alike(verified: Verified) -> None:
    """Of those that were reduced here and there."""
    shown = {finding_id_of("run-1", number): proof for number, (_, proof) in enumerate(verified.explained(), 1)}
    for record in verified.kept():
        if record.evidence is None or not shown[record.finding_id].lines:
            continue
        kept = list(read_trace(BytesIO(record.evidence.trace.encode()), "kept"))
        lines = shown[record.finding_id].lines
        assert len(kept) == len(lines)
        for event, line in zip(kept, lines, strict=True):
            passed = line - LINES_BEFORE == record.after  # in the place of what shows that time passed stands that it did
            assert passed or type(event) is type(verified.events[line - LINES_BEFORE - 1])
        assert record.evidence.complete is ("not reduced" not in shown[record.finding_id].heading)


@pytest.mark.parametrize("path", nightly_but(BY_DAY, VECTORS), ids=lambda path: path.stem)
def test_of_a_trace(path: Path) -> None:
    with read_trace(path) as trace:
        events = list(trace)
    subscriptions = {trace.header.subscription, *(event.subscription for event in events if isinstance(event, Opened))}
    check_alike(Verified(events, dict.fromkeys(sorted(subscriptions), trace.header.rules)))


@pytest.mark.parametrize("fault", BROKEN)
def test_of_a_run_with_a_fault(fault: Fault) -> None:
    run = simulate_run(1, Mode.STREAMING, fault)
    check_alike(Verified(run.events, run.rules_by_subscription))


def long(messages: int, then: str) -> Verified:
    """A key with many messages that were delivered and acknowledged, and what came then."""
    publishes = ",".join(map(str, range(1, messages + 5)))
    calm = " ".join(f"A<{seq}@{seq} A ack {seq}@{seq}.5" for seq in range(1, messages + 1))
    return Verified(history(f"P{publishes} {calm} {then}"), {"s": Rules()})


def stalled() -> Verified:
    """Message 201 was nacked and redelivered, and nothing came after it. Of 800 events ten show that."""
    return long(200, "A<201@200.6 A<202@200.61 A<203@200.62 A nack 201@200.7 A<201@200.8 end @1200")


def test_of_a_key_with_a_long_history() -> None:
    verified = stalled()
    check_alike(verified)
    (record,) = (record for record in verified.kept() if record.kind is Kind.REDELIVERY_STALL)
    assert record.evidence is not None
    assert record.evidence.among > 800
    assert record.evidence.trace.count("\n") - 1 == 10


def test_a_history_that_there_was_no_time_to_reduce_proves_the_finding_all_the_same_and_says_so() -> None:
    verified = long(20, "A<22@20.6 A<21@20.7")
    (record,) = (record for record in verified.kept(REDUCING_MAX_S / 4) if record.kind is Kind.ORDER_GAP)
    assert record.evidence is not None
    assert record.evidence.proven
    assert not record.evidence.complete


def test_every_finding_gets_its_share_of_the_time() -> None:
    """What takes too long costs the findings after it nothing but time that is left over."""
    verified = stalled()
    records = verified.kept(REDUCING_MAX_S / 200)
    assert len(records) >= 3
    assert all(record.evidence is not None for record in records)
