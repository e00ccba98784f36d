"""A history that tests write: its clocks, its runs, and what stands in it afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow.dataset as ds

from prober.config.sections import HistorySettings
from prober.core.events import EVENT_TYPES, Acked, Delivered, Ended, Event, LeaseModified, Opened, Published, PublishInvoked
from prober.core.findings import Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.recorder import Recording
from prober.runs.result import RunResult
from prober.sinks.history.arrow import schema_of
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.reader import HistoryReader
from prober.sinks.history.run_log import RunLog
from prober.sinks.history.schema import EVENT_FIELDS, FINDINGS, values_of
from prober.sinks.history.writer import HistoryWriter

BEGAN_AT = 1_767_323_045.0  # 2026-01-02T03:04:05Z
SUBSCRIPTION = "s"


@dataclass
class Clock:
    """A clock that stands still until it is set otherwise."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Losses:
    """What a writer reported about itself."""

    dropped: int = 0
    failures: int = 0

    def drop(self, count: int) -> None:
        self.dropped += count

    def fail(self) -> None:
        self.failures += 1


@dataclass
class Recorder:
    """A writer without threads: a test flushes and ships when it wants to. At `clock` 0 it is `BEGAN_AT`."""

    location: Path
    process: str = "p1"
    settings: HistorySettings | None = None
    clock: Clock = field(default_factory=Clock)
    losses: Losses = field(default_factory=Losses)

    def __post_init__(self) -> None:
        self.writer = HistoryWriter(
            self.settings or HistorySettings(location=str(self.location)),
            dropped=self.losses.drop,
            failed=self.losses.fail,
            process=self.process,
            clock=self.clock,
            wall_clock=lambda: BEGAN_AT + self.clock.now,
        )

    def begin(self, run_id: str = "run-1", rules: dict[str, Rules] | None = None) -> RunLog:
        return self.writer.begin(context(run_id, rules, BEGAN_AT + self.clock.now))

    def record(self, events: Iterable[Event], run_id: str = "run-1", rules: Rules | None = None) -> RunResult:
        """A whole run, verified as it is in the service."""
        log = self.begin(run_id, {SUBSCRIPTION: rules or Rules()})
        recording = Recording({SUBSCRIPTION: rules or Rules()}, self.clock, [lambda seen: log.record(seen.event, seen.findings)])
        began_t = self.clock.now
        for event in events:
            self.clock.now = max(self.clock.now, event.t)
            recording.record(event)
        made = tuple(recording.finish())
        outcome = result(
            run_id,
            duration_s=self.clock.now - began_t,
            findings=made,
            counts=dict(recording.verifier.findings.counts),
            counters=dict(recording.counters),
        )
        log.ended(outcome, recording.late)
        return outcome

    def kill(self) -> None:
        """What is left when the process is killed: what is on the disk, and no lock."""
        spool = self.writer._spool
        if spool is not None:
            self.writer._spool = None
            os.close(spool._lock)
            if spool._file is not None:
                spool._file.close()

    def save(self) -> None:
        """Everything that was recorded becomes Parquet."""
        assert self.writer.flush()
        self.writer.end_segment()
        assert self.writer.ship(), self.writer.state().store_error


def context(run_id: str = "run-1", rules: dict[str, Rules] | None = None, started_at: float = BEGAN_AT) -> RunContext:
    return RunContext(
        run_id, "demo", "test", "local", "ordering", "wire", "topic", rules or {SUBSCRIPTION: Rules()}, started_at, seed=7
    )


def result(run_id: str = "run-1", verdict: Verdict = Verdict.PASS, duration_s: float = 60.0, **more: object) -> RunResult:
    return RunResult(
        run_id,
        "ordering",
        "demo",
        "wire",
        verdict,
        "",
        BEGAN_AT,
        duration_s,
        7,
        "topic",
        SUBSCRIPTION,
        **more,  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class StoredFinding:
    """A finding of a history: of which run, and in words."""

    run_id: str
    made: RecordedFinding
    explanation: str


def findings_in(location: Path) -> list[StoredFinding]:
    """What the online checker found, by time; equal to what was recorded, but for facts that are not finite: those are missing."""
    files = [str(path) for path in location.glob(f"{FINDINGS.name}/date=*/*.parquet")]
    rows = ds.dataset(files, schema=schema_of(FINDINGS), format="parquet").to_table().sort_by("time")
    return list(map(_stored_finding, rows.to_pylist()))


def _stored_finding(row: Mapping[str, Any]) -> StoredFinding:
    facts = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in orjson.loads(row["facts"]).items()
        if value is not None
    }
    finding = Finding(
        Kind(row["kind"]),
        Status(row["status"]),
        row["subscription"],
        row["key"],
        row["t"],
        tuple(row["witnesses"]),
        facts,
        row["doubt"],
        dict(row["assumptions"]),
        tuple(row["reasons"]),
    )
    return StoredFinding(row["run_id"], RecordedFinding(finding, row["after"]), row["explanation"])


def parquet_files(location: Path) -> list[str]:
    return sorted(str(path.relative_to(location)) for path in location.rglob("*.parquet"))


def numbered(location: Path, key: str = "k") -> Iterator[tuple[str, int, Event]]:
    """The events of a key with their runs and numbers."""
    for recorded in HistoryReader(str(location)).events(key):
        yield recorded.run_id, recorded.number, recorded.event


def as_recorded(event: Event) -> Event:
    """A trace file may say in words when a message was stored; recorders say it in nanoseconds."""
    if not isinstance(event, Delivered) or not isinstance(event.publish_time, str):
        return event
    since_1970 = datetime.fromisoformat(event.publish_time) - datetime(1970, 1, 1, tzinfo=UTC)
    return replace(event, publish_time=since_1970 // timedelta(microseconds=1) * 1000)


def held_up(subscription: str = SUBSCRIPTION, messages_max: int | None = None) -> list[Event]:
    """Message 1 of key k is delivered 388 s late. All the time a message of another key was outstanding, perhaps as many as may be."""
    return [
        Opened(0.0, subscription, "A", "a", max_outstanding_messages=messages_max),
        PublishInvoked(0.5, "other", "e1", 1),
        Published(0.6, "other", "e1", 1, "o1"),
        Delivered(1.0, subscription, "other", "A", "e1", 1, "o1"),
        PublishInvoked(2.0, "k", "e1", 1),
        Published(2.1, "k", "e1", 1, "m1"),
        *(LeaseModified(50.0 * n, subscription, "other", "A", "o1", 60) for n in range(1, 8)),
        Delivered(390.0, subscription, "k", "A", "e1", 1, "m1"),
        Acked(390.1, subscription, "k", "A", "m1"),
        Acked(390.2, subscription, "other", "A", "o1"),
        Ended(500.0, drained=True),
    ]


def event_of(row: Mapping[str, Any]) -> Event:
    """The event of a row of `EVENTS`, equal to the recorded one."""
    name = row["event"]
    return EVENT_TYPES[name](*[values_of(column, [row[column]])[0] for column in EVENT_FIELDS[name].values()])
