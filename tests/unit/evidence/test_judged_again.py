"""Every definite finding that is proven has a trace that `verify` judges FAIL again, for the same finding: vectors and simulated faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import pytest

from prober.core.events import Event
from prober.core.findings import FAILING
from prober.core.judge import Judge
from prober.core.rules import Mode, Rules
from prober.core.verdict import Verdict
from prober.evidence.minimise import identity_of
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory
from prober.sinks.status.entries import EndedRun, ProberIdentity, entry_of
from prober.sinks.status.records import FindingRecord
from prober.traces.judgement import judge
from prober.traces.trace import read_trace
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
