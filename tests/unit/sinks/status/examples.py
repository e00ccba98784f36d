"""Runs to keep: what tests of the status store write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from prober.core.findings import Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.live.state import LiveState
from prober.sinks.status.database import Database
from prober.sinks.status.entries import ProberIdentity
from prober.sinks.status.listings import Item, Page
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.records import Entry, Evidence, FindingRecord, ProberState, RunRecord
from prober.sinks.status.retention import RetentionPolicy
from prober.sinks.status.slices import Series, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.counts import BREACHES
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts
from prober.traces.header import TraceHeader
from prober.traces.verification import verify_trace
from tests.notation import history

START = 1_767_323_045.0  # 2026-01-02T03:04:05Z
INSTANCE = ProbeInstance("europe", "ordering", "wire", interval_s=10.0, environment="test", region="local", labels={"team": "a"})
LIBRARY = ProbeInstance("europe", "ordering", "library", interval_s=10.0)
US = ProbeInstance("us", "affinity", "wire", interval_s=10.0)
PROBER = ProberIdentity("prober-0", "1.2.3", START)
RETENTION = RetentionPolicy(retention_s=30 * DAY_S)
ORDER = Objective("order", Indicator.ORDER, 0.99, 30 * DAY_S)
ORDER_IN_EUROPE = Series("europe", "order", definition_of(ORDER))
NOTHING = SliCounts()
SKIPPED = "P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A ack 3@1.3 A<2@2 A<4@2.1 stop @5"
"""Message 3 is passed over when 2 and 4 are redelivered."""


def store_at(url: str) -> StatusStore:
    store = StatusStore(Database(url))
    store.prepare()
    return store


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'status.db'}"


def watched(store: StatusStore, *instances: ProbeInstance) -> None:
    """A prober says that it probes there."""
    (shown,) = snapshot().probe_instances
    store.heartbeat(
        ProberRecord("prober-0", "1.2.3", START, START), [replace(shown, probe_instance=instance) for instance in instances]
    )


def walk(page: Callable[[str | None], Page[Item]]) -> list[Item]:
    """Every item of a list, page after page."""
    items: list[Item] = []
    cursor = None
    while True:
        got = page(cursor)
        items += got.items
        assert got.next_cursor is None or got.next_cursor != cursor
        cursor = got.next_cursor
        if cursor is None:
            return items


def result(
    run_id: str = "run-1", verdict: Verdict = Verdict.PASS, at: float = START, instance: ProbeInstance = INSTANCE, **more: object
) -> RunResult:
    return RunResult(
        run_id,
        instance.probe,
        instance.target,
        instance.vantage,
        verdict,
        "",
        at,
        2.0,
        7,
        "topic",
        "s",
        part=instance.part,
        **more,  # type: ignore[arg-type]
    )


def failed(
    run_id: str = "run-1", text: str = SKIPPED, at: float = START, instance: ProbeInstance = INSTANCE
) -> tuple[RunResult, KeptHistory]:
    """A run verified as it is in the service, and what its recorder kept."""
    events, rules = history(text), Rules()
    verification = verify_trace(run_id, TraceHeader("s", "k", rules), events)
    outcome = result(
        run_id,
        verification.verdict,
        at,
        instance,
        findings=verification.findings,
        counts=verification.counts,
        counters=verification.counters,
    )
    return outcome, KeptHistory(events, {"s": rules}, len(events))


def entry(
    run_id: str = "run-1",
    *kinds: Kind,
    at: float = START,
    verdict: Verdict | None = None,
    probe_instance: ProbeInstance = INSTANCE,
    status: Status = Status.VIOLATION,
    key: str = "k",
    subscription: str = "s",
    instance: str = "prober-0",
) -> Entry:
    """A run that began then, took two seconds and found these things."""
    made = tuple(
        RecordedFinding(Finding(kind, status, subscription, key, 1.5, (1, 2), {"seq": 3}, assumptions={"clock_error_s": 0.0}), 4)
        for kind in kinds
    )
    counts: Mapping[tuple[Kind, Status], int] = Counter(one.sort for one in made)
    said = verdict or (Verdict.FAIL if kinds else Verdict.PASS)
    checks = {} if said is Verdict.UNKNOWN else {indicator: SliCounts(100 - len(kinds), len(kinds)) for indicator in BREACHES}
    outcome = result(run_id, said, at, probe_instance, counts=dict(counts), checks=checks)
    run = RunRecord.of(
        outcome, probe_instance.environment, probe_instance.region, at + 2.0, ProberState(instance, "1.2.3", START, 0.0)
    )
    return Entry(run, tuple(_finding(run, number, one, probe_instance) for number, one in enumerate(made, 1)))


def close_due(store: StatusStore, at: float) -> None:
    """A heartbeat at that time, which closes what is due."""
    store.heartbeat(ProberRecord("prober-0", "1.2.3", START, at))


def passes(count: int, at: float, instance: ProbeInstance = INSTANCE) -> list[Entry]:
    """So many runs in a row that pass, one every four seconds."""
    return [entry(f"pass-{at:.0f}-{number}", at=at + 4.0 * number, probe_instance=instance) for number in range(count)]


def _finding(run: RunRecord, number: int, made: RecordedFinding, instance: ProbeInstance) -> FindingRecord:
    record = FindingRecord.of(
        made.finding,
        instance.key,
        finding_id=f"{run.run_id}-{number}",
        run_id=run.run_id,
        instance=run.instance,
        found_at=run.ended_at,
        after=made.after,
        explanation="Something was wrong.",
    )
    record.evidence = Evidence("trace\n", True, True, 9, (2, 3))
    return record


def snapshot(total: SliCounts = NOTHING, at: float = START, *runs: RunResult) -> StatusSnapshot:
    """How everything stands on one probe instance, where so much was counted."""
    live = LiveState([INSTANCE], [ORDER], version="1.2.3", instance="prober-0", started_at=START)
    for run in runs:
        live.ended(INSTANCE, run, run.started_at + run.duration_s)
    shown = live.snapshot(at)
    return replace(shown, slos=tuple(replace(slo, total=total) for slo in shown.slos))
