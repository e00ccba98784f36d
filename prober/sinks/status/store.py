"""Writes to the status store. All writes are idempotent: the same run, finding or slice is stored once.

A run, its findings and its changes of incidents are one transaction. A finding that failed its run is *open* as long as its incident
(`live.incidents`), whichever prober reported it.

`_note_run` updates the incidents, once for each run. Heartbeats and runs close incidents that are due. Several probers may write runs of
one target at the same time: one changes the incidents of the target, the others wait for its commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from sqlalchemy import ColumnElement, Connection, case, delete, func, select, update
from sqlalchemy.orm import aliased

from prober.core.findings import FAILING, Kind
from prober.core.kinds import Symptom, symptom_of
from prober.sinks.live.incidents import Acknowledgement, EndedRun, Exemplar, Incident, after_run, earliest, found_in
from prober.sinks.live.snapshot import InstanceSnapshot
from prober.sinks.status.columns import Record, values_of
from prober.sinks.status.database import Database, records_in
from prober.sinks.status.migration import prepare
from prober.sinks.status.prober_records import InstanceRecord, ProberRecord, Slice
from prober.sinks.status.records import Entry, Evidence, FindingRecord, IncidentRecord, RunRecord, Shown
from prober.sinks.status.retention import RetentionPolicy, Tidied, tidy
from prober.slo.objectives import DAY_S
from prober.traces.trace import FIRST_EVENT_LINE

_AT_ONCE: Final = 500
"""Rows in one statement."""
_LOCKS: Final = 0x6F6B71
"""Namespace of the locks of targets, beside that of migrations."""


class StatusStore:
    """Writer of the store. Every method raises `StoreUnavailable`, `StoreIncompatible` or `NotStorable`; written data is durable.

    Safe for any thread.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def __str__(self) -> str:
        return str(self._database)

    def prepare(self) -> None:
        """Create the tables, or upgrade them (`migration.prepare`)."""
        prepare(self._database)

    def record(self, entries: Iterable[Entry], at: float = 0.0) -> None:
        """Store runs with their findings in the order of their ends, all or none. `at`: now; 0: the ends of the runs."""
        written = tuple(entries)
        with self._database.writing() as connection:
            _lock_targets(self._database, connection, written)
            for entry in written:
                self._record(connection, entry, at)

    def acknowledge(self, incident_id: str, said: Acknowledgement) -> bool:
        """Store an acknowledgement of an incident, in place of an earlier one.

        Returns False if there is no incident of this name.
        """
        values: dict[str, Any] = {"acknowledged": said}
        if said.until is None or said.until > said.at:
            first = func.coalesce(IncidentRecord.first_acknowledged_at, said.at)
            values["first_acknowledged_at"] = case((IncidentRecord.raised_at.is_not(None), first))
        known = update(IncidentRecord).where(IncidentRecord.incident_id == incident_id).values(values)
        with self._database.writing() as connection:
            return connection.execute(known).rowcount > 0

    def heartbeat(self, prober: ProberRecord, instances: Iterable[InstanceSnapshot] = (), slices: Sequence[Slice] = ()) -> None:
        """Store a heartbeat: the probe instances of a prober, in place of those of the heartbeat before, and its counts.

        Closes incidents that are due by then.
        """
        at = prober.last_heartbeat_at
        others = (InstanceRecord.instance == prober.instance, InstanceRecord.last_heartbeat_at != at)
        with self._database.writing() as connection:
            self._replace(connection, [prober])
            self._replace(connection, [InstanceRecord.of(prober.instance, at, instance) for instance in instances])
            connection.execute(delete(InstanceRecord).where(*others))
            self._replace(connection, slices)
            _close_due(connection, at)

    def leave(self, instance: str) -> None:
        """Record that a prober has stopped on purpose.

        Its probe instances no longer count as missing.
        """
        with self._database.writing() as connection:
            for reported in (InstanceRecord, ProberRecord):
                connection.execute(delete(reported).where(reported.instance == instance))

    def tidy(self, retention: RetentionPolicy, now: float) -> Tidied:
        """Delete old records and those beyond the quota, at most one pass."""
        return tidy(self._database, retention, now)

    # --- in a transaction ----------------------------------------------------------------------------------------------------

    def _record(self, connection: Connection, entry: Entry, at: float) -> None:
        """Write a run with its findings. A run that is stored already changes nothing."""
        added = self._database.insert(RunRecord).values(values_of(entry.run)).on_conflict_do_nothing()
        if connection.execute(added.returning(RunRecord.run_id)).first() is None:
            return
        incidents = _note_run(self._database, connection, entry, at)
        findings = [values_of(record) | _incident_of(record, incidents.get(symptom_of(record.kind))) for record in entry.findings]
        evidence = [
            values_of(proof) | {"finding_id": record.finding_id, "shown": shown}
            for record in entry.findings
            for shown, proof in ((Shown.SMALLEST, record.evidence), (Shown.KEY, record.on_key))
            if proof is not None
        ]
        self._add(connection, FindingRecord, findings)
        self._add(connection, Evidence, evidence)

    def _add(self, connection: Connection, kind: type[Record], rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows; existing rows stay unchanged."""
        if rows:
            connection.execute(self._database.insert(kind).on_conflict_do_nothing(), rows)

    def _replace(self, connection: Connection, records: Sequence[Record]) -> None:
        """Insert or replace records.

        They are written in the order of their keys, so that two writers never deadlock.
        """
        if not records:
            return
        kind = type(records[0])
        keys = [column.name for column in kind.__table__.primary_key]
        rows = sorted(map(values_of, records), key=lambda row: [row[name] for name in keys])
        insert = self._database.insert(kind)
        changed = {name: value for name, value in insert.excluded.items() if name not in keys}
        for first in range(0, len(rows), _AT_ONCE):
            connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=changed), rows[first : first + _AT_ONCE])


def _incident_of(record: FindingRecord, incident: Incident | None) -> dict[str, Any]:
    """Return the columns of a finding about its incident. A finding that failed no run has none and is never open."""
    if record.status not in FAILING or incident is None:
        return {"incident_id": None, "closed_at": record.found_at}
    return {"incident_id": incident.incident_id, "closed_at": incident.closed_at}


def _lock_targets(database: Database, connection: Connection, entries: Iterable[Entry]) -> None:
    """Wait until no other writer changes incidents of these targets. The order is fixed, so that writers never deadlock.

    SQLite has one writer at a time anyway.
    """
    if database.is_sqlite:
        return
    for lock in sorted({crc32(entry.run.target.encode("utf-8", "replace")) - 2**31 for entry in entries}):
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%(space)s, %(lock)s)", {"space": _LOCKS, "lock": lock})


def _note_run(database: Database, connection: Connection, entry: Entry, at: float) -> Mapping[Symptom, Incident]:
    """Open, update and close the incidents that a new run affects; return those of the symptoms that it shows."""
    result, ended_at = entry.run.result, entry.run.ended_at
    _close_due(connection, ended_at, IncidentRecord.target == result.target)
    reached_at = _reached_at(connection, entry) if result.unreachable else None
    found_at = earliest((record.kind, record.found_at) for record in entry.findings if record.status in FAILING)
    run = EndedRun(result, ended_at, entry.interval_s, _exemplars(entry.findings), reached_at, at, found_at)
    changed = after_run(_newest(connection, result.target), run)
    for incident in changed.values():
        _write(database, connection, incident)
    return {symptom: changed[symptom] for symptom in found_in(result)}


def _newest(connection: Connection, target: str) -> dict[Symptom, Incident]:
    others = aliased(IncidentRecord)
    newest = select(func.max(others.first_at)).where(
        others.target == IncidentRecord.target, others.symptom == IncidentRecord.symptom
    )
    query = select(IncidentRecord).where(IncidentRecord.target == target, IncidentRecord.first_at == newest.scalar_subquery())
    found = records_in(connection, query.order_by(IncidentRecord.incident_id))
    return {record.symptom: record.incident for record in found}


def _reached_at(connection: Connection, entry: Entry) -> float | None:
    """Return the end of the newest run that reached the target before this one ended, within the last day."""
    runs, ended_at = RunRecord, entry.run.ended_at
    others = (runs.target == entry.run.target, runs.started_at >= ended_at - DAY_S)
    reached = (runs.unreachable.is_(False), runs.internal_error.is_(False), runs.ended_at <= ended_at)
    return connection.execute(select(func.max(runs.ended_at)).where(*others, *reached)).scalar()


def _write(database: Database, connection: Connection, incident: Incident) -> None:
    """Write an incident without its acknowledgements, which people write."""
    values = values_of(IncidentRecord.of(incident))
    unchanged = {"incident_id", "acknowledged", "first_acknowledged_at"}
    changed = {name: value for name, value in values.items() if name not in unchanged}
    insert = database.insert(IncidentRecord).values(values)
    connection.execute(insert.on_conflict_do_update(index_elements=["incident_id"], set_=changed))


def _close_due(connection: Connection, now: float, *which: ColumnElement[bool]) -> None:
    """Close the incidents that were not seen for long enough, with their findings."""
    due = (IncidentRecord.closed_at.is_(None), IncidentRecord.closes_at <= now, *which)
    closed = update(IncidentRecord).where(*due).values(closed_at=IncidentRecord.closes_at)
    for incident_id, closed_at in connection.execute(closed.returning(IncidentRecord.incident_id, IncidentRecord.closed_at)).all():
        mine = (FindingRecord.incident_id == incident_id, FindingRecord.closed_at.is_(None))
        connection.execute(update(FindingRecord).where(*mine).values(closed_at=closed_at))


def _exemplars(findings: Iterable[FindingRecord]) -> dict[Kind, Exemplar]:
    """Return for each kind the finding with the smallest proof, or without any proof the first."""
    best: dict[Kind, Exemplar] = {}
    for record in findings:
        if record.status in FAILING:
            shown = Exemplar(record.finding_id, _proof_length(record))
            if record.kind not in best or _rank(shown) < _rank(best[record.kind]):
                best[record.kind] = shown
    return best


def _proof_length(record: FindingRecord) -> int | None:
    evidence = record.evidence
    return evidence.trace.count("\n") - FIRST_EVENT_LINE + 1 if evidence is not None and evidence.proven else None


def _rank(shown: Exemplar) -> float:
    return float("inf") if shown.events is None else shown.events
