"""Findings to draw: those of the recorded traces, and made ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path

from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.rules import Mode, Rules
from prober.core.verdict import Verdict
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory
from prober.sinks.status.entries import EndedRun, ProberIdentity, entry_of
from prober.sinks.status.records import Evidence, FindingRecord, OpenSession
from prober.traces.header import TraceHeader
from prober.traces.trace import FIRST_EVENT_LINE, read_trace, write_trace
from prober.traces.verification import verify_trace
from tests.notation import history

VECTORS = Path(__file__).parents[2] / "vectors"
INSTANCE = ProbeInstance("europe", "ordering", "wire", interval_s=10.0)


def recorded() -> Iterator[tuple[str, FindingRecord]]:
    """Every finding of every recorded trace, with the evidence that the service makes for it."""
    return iter(_recorded())


@cache
def _recorded() -> tuple[tuple[str, FindingRecord], ...]:
    found = []
    for path in sorted(VECTORS.glob("*.jsonl")):
        with read_trace(path) as trace:
            found += [(path.stem, record) for record in findings(trace.header, list(trace))]
    return tuple(found)


def found(text: str, mode: Mode = Mode.STREAMING) -> FindingRecord:
    """The first finding of a history in the notation of tests, as the service keeps it."""
    return findings(TraceHeader("s", "k", Rules(mode)), history(text, mode))[0]


def findings(header: TraceHeader, events: Sequence[Event]) -> tuple[FindingRecord, ...]:
    verification = verify_trace("run", header, events)
    result = RunResult(
        "run", "ordering", "europe", "wire", Verdict.FAIL, "", 0.0, 1.0, findings=verification.findings, counts=verification.counts
    )
    kept = KeptHistory(events, {header.subscription: header.rules}, len(events))
    return entry_of(EndedRun(INSTANCE, result, 1.0, 0.0, kept), ProberIdentity("prober-0", "1", 0.0)).findings


def drawn_of(events: Sequence[Event], finding: Finding, *opened: OpenSession) -> FindingRecord:
    """A finding with these events as its evidence; its witnesses are their numbers, from 1."""
    stream = BytesIO()
    write_trace(stream, TraceHeader(finding.subscription, finding.key, Rules()), events)
    witnesses = tuple(number + FIRST_EVENT_LINE - 1 for number in finding.witnesses)
    evidence = Evidence(stream.getvalue().decode(), False, False, len(events), witnesses, opened)
    record = FindingRecord.of(
        finding,
        INSTANCE.key,
        finding_id="run-1",
        run_id="run",
        instance="prober-0",
        found_at=1.0,
        after=len(events),
        explanation="It is explained.",
    )
    record.evidence = evidence
    return record
