"""Runs, findings and incidents in the status store: each record is a row of a table.

Migrations create the tables; a test compares them with these records. Times are seconds since 1970, except those of the events in a trace,
which are the recorder's. Lists are read newest first and in pages, so every filter of the API has an index that ends with the order of the
list: (time, name).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf, isfinite
from typing import Any, Final

from sqlalchemy import Index, and_, text
from sqlalchemy.orm import Mapped, foreign, mapped_column, relationship

from prober.core.findings import Fact, Finding, Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey, subscriptions_of
from prober.runs.result import Durations, RunResult
from prober.sinks.live.incidents import Acknowledgement, Exemplar, Incident
from prober.sinks.live.snapshot import FindingCount, fields_from
from prober.sinks.status.columns import Json, Named, PackedText, Record
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

_OPEN: Final = text("closed_at IS NULL")


@dataclass(frozen=True, slots=True)
class ProberState:
    """State of the prober at the end of a run: the first thing to look at when a finding is doubted.

    clock_offset_s       seconds to add to the time of an event to get seconds since 1970.
    events               recorded events of the run; `verified`: how many of them were verified, None: all.
    unverified_because   why verification ended early; empty if it did not.
    """

    instance: str
    version: str
    started_at: float
    clock_offset_s: float
    events: int = 0
    verified: int | None = None
    unverified_because: str = ""


class RunRecord(Record):
    """A run without its findings; `findings_omitted` counts those not stored one by one. Informational findings are only counted."""

    __tablename__ = "runs"
    __table_args__ = (
        Index(None, "started_at", "run_id"),
        Index(None, "probe", "started_at", "run_id"),
        Index(None, "verdict", "started_at", "run_id"),
        Index(None, "probe", "verdict", "started_at", "run_id"),
        Index(None, "target", "started_at", "run_id"),
        Index(None, "vantage", "started_at", "run_id"),
        Index(None, "part", "started_at", "run_id"),
        Index(None, "instance", "started_at", "run_id"),
        Index(None, "target", "probe", "verdict", "started_at", "run_id"),
        Index(None, "target", "probe", "vantage", "part", "started_at", "run_id"),
    )

    run_id: Mapped[str] = mapped_column(primary_key=True)
    target: Mapped[str]
    probe: Mapped[str]
    vantage: Mapped[str]
    part: Mapped[str]
    environment: Mapped[str]
    region: Mapped[str]
    verdict: Mapped[Verdict]
    reason: Mapped[str]
    started_at: Mapped[float]
    ended_at: Mapped[float]
    duration_s: Mapped[float]
    seed: Mapped[int]
    topic: Mapped[str]
    subscription: Mapped[str]
    counts: Mapped[tuple[FindingCount, ...]] = mapped_column(Json(tuple[FindingCount, ...]))
    counters: Mapped[Mapping[str, int]] = mapped_column(Json(Mapping[str, int]))
    checks: Mapped[Mapping[Indicator, SliCounts]] = mapped_column(Json(Mapping[Indicator, SliCounts]))
    durations: Mapped[Mapping[Indicator, Durations]] = mapped_column(Json(Mapping[Indicator, Durations]))
    figures: Mapped[Mapping[Figure, float]] = mapped_column(Json(Mapping[Figure, float]))
    unreachable: Mapped[bool]
    internal_error: Mapped[bool]
    findings_omitted: Mapped[int]
    prober: Mapped[ProberState] = mapped_column(Json(ProberState))
    instance: Mapped[str]

    @classmethod
    def of(
        cls, result: RunResult, environment: str, region: str, ended_at: float, prober: ProberState, findings_omitted: int = 0
    ) -> RunRecord:
        """Return the record of a run that ended."""
        counts = tuple(FindingCount(*sort, count) for sort, count in result.counts.items())
        return cls(
            **fields_from(RunResult, result, *_NOT_OF_RESULT),
            counts=counts,
            environment=environment,
            region=region,
            ended_at=ended_at,
            prober=prober,
            instance=prober.instance,
            findings_omitted=findings_omitted,
        )

    @property
    def result(self) -> RunResult:
        """The result of the run, without its findings."""
        counts = {(one.kind, one.status): one.count for one in self.counts}
        return RunResult(**fields_from(RunResult, self, *_NOT_OF_RESULT), counts=counts)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Full names of all subscriptions that the run received from, the first one first."""
        return subscriptions_of(self.probe, self.subscription)


_NOT_OF_RESULT: Final = ("counts", "findings", "clock_offset_s")
"""Fields of a result that its record stores in another form, or not."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that was opened before the first event of a trace, and its subscriber."""

    subscription: str
    session: str
    subscriber: str


class Shown(StrEnum):
    """Content of an evidence: the minimal reproduction, or all events of the key up to the finding."""

    SMALLEST = "smallest"
    KEY = "key"


class Evidence(Record):
    """A history that shows a finding.

    trace      text of a trace file: the minimal reproduction if `proven`, else the events around the finding.
    proven     `verify` reports the same finding for this trace.
    complete   no single event can be removed, except those that a sceptic asks for (`evidence.minimise`).
    among      number of events that it was reduced from.
    witnesses  lines of the trace that prove the finding.
    opened     sessions that were opened before the trace starts.

    For all events of a key, `complete` is False, and `among` also counts the omitted events.
    """

    __tablename__ = "evidence"

    trace: Mapped[str] = mapped_column(PackedText)
    proven: Mapped[bool]
    complete: Mapped[bool]
    among: Mapped[int]
    witnesses: Mapped[tuple[int, ...]] = mapped_column(Json(tuple[int, ...]))
    opened: Mapped[tuple[OpenSession, ...]] = mapped_column(Json(tuple[OpenSession, ...]), default=())
    finding_id: Mapped[str] = mapped_column(primary_key=True, default="")
    shown: Mapped[Shown] = mapped_column(Named(Shown), primary_key=True, default=Shown.SMALLEST)


def _evidence(shown: Shown) -> Any:
    """Map the evidence of a finding; only queries that ask for it load it."""
    return relationship(
        primaryjoin=lambda: and_(FindingRecord.finding_id == foreign(Evidence.finding_id), Evidence.shown == shown),
        uselist=False,
        viewonly=True,
        lazy="raise",
        default=None,
        repr=False,
        compare=False,
    )


class FindingRecord(Record):
    """A finding.

    finding_id   unique, and the same whenever the same run is recorded again.
    found_at     when the checker made it, seconds since 1970.
    after        number of the run's event after which the checker made it.
    facts, assumptions   those of `Finding`; a fact that is not finite is omitted, and an infinite bound is None.
    closed_at    end of its incident; None: the incident is open. For a finding without an incident, which failed no run, `found_at`.
    evidence     None if there is none; `unproven_because` then states the reason.
    on_key       the latest events of its key up to the finding; None: not stored.
    """

    __tablename__ = "findings"
    __table_args__ = (
        Index(None, "found_at", "finding_id"),
        Index(None, "incident_id", "found_at", "finding_id"),
        Index(None, "kind", "found_at", "finding_id"),
        Index(None, "status", "found_at", "finding_id"),
        Index(None, "kind", "status", "found_at", "finding_id"),
        Index(None, "key", "found_at", "finding_id"),
        Index(None, "subscription", "found_at", "finding_id"),
        Index(None, "target", "found_at", "finding_id"),
        Index(None, "probe", "found_at", "finding_id"),
        Index(None, "vantage", "found_at", "finding_id"),
        Index(None, "part", "found_at", "finding_id"),
        Index(None, "instance", "found_at", "finding_id"),
        Index(None, "run_id", "found_at", "finding_id"),
        Index("ix_findings_open", "found_at", "finding_id", postgresql_where=_OPEN, sqlite_where=_OPEN),
        Index(
            "ix_findings_open_instance",
            "target", "probe", "vantage", "part", "found_at",
            postgresql_where=_OPEN, sqlite_where=_OPEN,
        ),
    )  # fmt: skip

    finding_id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str]
    target: Mapped[str]
    probe: Mapped[str]
    vantage: Mapped[str]
    part: Mapped[str]
    instance: Mapped[str]
    found_at: Mapped[float]
    kind: Mapped[Kind]
    status: Mapped[Status]
    subscription: Mapped[str]
    key: Mapped[str]
    t: Mapped[float]
    after: Mapped[int]
    witnesses: Mapped[tuple[int, ...]] = mapped_column(Json(tuple[int, ...]))
    facts: Mapped[Mapping[str, Fact]] = mapped_column(Json(Mapping[str, Fact]))
    doubt: Mapped[str]
    assumptions: Mapped[Mapping[str, float | None]] = mapped_column(Json(Mapping[str, float | None]))
    reasons: Mapped[tuple[str, ...]] = mapped_column(Json(tuple[str, ...]))
    explanation: Mapped[str]
    unproven_because: Mapped[str] = mapped_column(default="")
    closed_at: Mapped[float | None] = mapped_column(default=None)
    incident_id: Mapped[str | None] = mapped_column(default=None)
    evidence: Mapped[Evidence | None] = _evidence(Shown.SMALLEST)
    on_key: Mapped[Evidence | None] = _evidence(Shown.KEY)

    @classmethod
    def of(
        cls,
        finding: Finding,
        probe_instance: InstanceKey,
        *,
        run_id: str,
        finding_id: str,
        instance: str,
        found_at: float,
        after: int,
        explanation: str,
    ) -> FindingRecord:
        """Return the record of a finding."""
        given = fields_from(Finding, finding) | {
            "facts": {name: fact for name, fact in finding.facts.items() if not isinstance(fact, float) or isfinite(fact)},
            "assumptions": {name: bound if isfinite(bound) else None for name, bound in finding.assumptions.items()},
        }
        return cls(
            **given,
            **probe_instance._asdict(),
            run_id=run_id,
            finding_id=finding_id,
            instance=instance,
            found_at=found_at,
            after=after,
            explanation=explanation,
        )

    @property
    def probe_instance(self) -> InstanceKey:
        """The probe instance of the finding."""
        return InstanceKey(self.target, self.probe, self.vantage, self.part)

    @property
    def finding(self) -> Finding:
        """The finding as the checker made it."""
        bounds = {name: inf if bound is None else bound for name, bound in self.assumptions.items()}
        return Finding(**fields_from(Finding, self, "assumptions"), assumptions=bounds)


@dataclass(frozen=True, slots=True)
class Affected:
    """A probe instance that showed an incident, with its number of findings by kind."""

    probe: str
    vantage: str
    part: str
    kinds: Mapping[Kind, int]


class IncidentRecord(Record):
    """An incident (`live.incidents.Incident`)."""

    __tablename__ = "incidents"
    __table_args__ = (
        Index(None, "first_at", "incident_id"),
        Index(None, "symptom", "first_at", "incident_id"),
        Index(None, "target", "first_at", "incident_id"),
        Index(None, "target", "symptom", "first_at", "incident_id"),
        Index(None, "last_at", "incident_id"),
        Index(None, "raised_at"),
        Index("ix_incidents_open", "target", "symptom", unique=True, postgresql_where=_OPEN, sqlite_where=_OPEN),
    )

    incident_id: Mapped[str] = mapped_column(primary_key=True)
    target: Mapped[str]
    symptom: Mapped[Symptom]
    first_at: Mapped[float]
    last_at: Mapped[float]
    closes_at: Mapped[float]
    affected: Mapped[tuple[Affected, ...]] = mapped_column(Json(tuple[Affected, ...]))
    runs: Mapped[int]
    runs_total: Mapped[int]
    unsent: Mapped[int]
    exemplar_id: Mapped[str]
    exemplar_events: Mapped[int | None]
    closed_at: Mapped[float | None]
    acknowledged: Mapped[Acknowledgement | None] = mapped_column(Json(Acknowledgement))
    raised_at: Mapped[float | None]
    first_acknowledged_at: Mapped[float | None]

    @classmethod
    def of(cls, incident: Incident) -> IncidentRecord:
        """Return the record of an incident."""
        given = fields_from(Incident, incident, *_IN_PARTS)
        affected = tuple(Affected(at.probe, at.vantage, at.part, kinds) for at, kinds in incident.affected.items())
        shown = incident.exemplar
        return cls(**given, affected=affected, exemplar_id=shown.finding_id, exemplar_events=shown.events)

    @property
    def incident(self) -> Incident:
        """The incident."""
        given = fields_from(Incident, self, *_IN_PARTS)
        affected = {InstanceKey(self.target, one.probe, one.vantage, one.part): Counter(one.kinds) for one in self.affected}
        return Incident(**given, affected=affected, exemplar=Exemplar(self.exemplar_id, self.exemplar_events))


_IN_PARTS: Final = ("affected", "exemplar")


@dataclass(frozen=True, slots=True)
class Entry:
    """A run with its findings, written in one transaction.

    interval_s  longest time between the starts of two runs there; 0: unknown.
    """

    run: RunRecord
    findings: tuple[FindingRecord, ...] = ()
    interval_s: float = 0.0

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        stored = (proof for record in self.findings for proof in (record.evidence, record.on_key))
        traces = sum(len(proof.trace) for proof in stored if proof is not None)
        return 2_000 * (1 + len(self.findings)) + traces
