"""What is written to the status store. Everything may be written again: the same run, finding or slice is there once.

A run, its findings and what it changes of incidents are one transaction. A finding that failed its run is *open* as long as its incident
is (`live.incidents`), whichever prober made it.

Incidents are kept in step with the runs: `_note_run` is called once for each run. Heartbeats and runs close what is due. Several probers
may write runs of one target at the same time: one changes its incidents, and the others wait until that is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update

from prober.core.findings import FAILING, Kind
from prober.core.kinds import Symptom, symptom_of
from prober.sinks.live.incidents import Acknowledgement, EndedRun, Exemplar, Incident, after_run, found_in
from prober.sinks.live.snapshot import SiteSnapshot
from prober.sinks.status import tables
from prober.sinks.status.database import Database
from prober.sinks.status.migration import migrate
from prober.sinks.status.records import Entry, FindingRecord, ProberRecord, SiteStatus, Slice
from prober.sinks.status.retention import RetentionPolicy, Tidied, tidy
from prober.sinks.status.rows import (
    Values,
    acknowledgement_values,
    evidence_values,
    finding_values,
    incident_from_row,
    incident_values,
    key_evidence_values,
    prober_values,
    run_values,
    site_values,
    slice_values,
    text_of,
)
from prober.slo.objectives import DAY_S
from prober.traces.trace import FIRST_EVENT_LINE

_AT_ONCE: Final = 500
"""Rows in one statement."""
_LOCKS: Final = 0x6F6B71
"""The space of the locks of targets, beside the one of migrations."""


class StatusStore:
    """Writes. Every method raises `StoreUnavailable` or `NotStorable`; when it returns, what was written lasts. For any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __str__(self) -> str:
        return str(self._database)

    def prepare(self) -> None:
        """Makes the tables, or brings them to the form that this program knows."""
        migrate(self._database)

    def record(self, entries: Iterable[Entry]) -> None:
        """Runs with their findings, in the order in which they ended: all of them or none."""
        written = tuple(entries)
        with self._database.writing() as connection:
            _lock_targets(self._database, connection, written)
            for entry in written:
                self._record(connection, entry)

    def acknowledge(self, incident_id: str, said: Acknowledgement) -> bool:
        """Somebody knows of an incident, in place of what was said of it before; False: there is none of this name."""
        mine = tables.incidents.c.incident_id == text_of(incident_id)
        with self._database.writing() as connection:
            return connection.execute(update(tables.incidents).where(mine).values(acknowledgement_values(said))).rowcount > 0

    def heartbeat(self, prober: ProberRecord, sites: Iterable[SiteSnapshot] | None = None, slices: Sequence[Slice] = ()) -> None:
        """How the sites of a prober stand now, in place of all that it told before (None: as before), and what it counted.

        Closes the incidents that are due by then.
        """
        rows = [site_values(SiteStatus.told(prober.instance, prober.last_heartbeat_at, site)) for site in sites or ()]
        outdated = (tables.sites.c.instance == text_of(prober.instance)) & (
            tables.sites.c.last_heartbeat_at != prober.last_heartbeat_at
        )
        with self._database.writing() as connection:
            self._replace(connection, tables.probers, [prober_values(prober)])
            self._replace(connection, tables.sites, rows)
            if sites is not None:
                connection.execute(delete(tables.sites).where(outdated))
            self._replace(connection, tables.slices, [slice_values(one) for one in slices])
            _close_due(connection, prober.last_heartbeat_at)

    def leave(self, instance: str) -> None:
        """A prober has stopped for good, as far as anybody knows: what it said of its sites is not waited for any more."""
        with self._database.writing() as connection:
            for table in (tables.sites, tables.probers):
                connection.execute(delete(table).where(table.c.instance == text_of(instance)))

    def tidy(self, retention: RetentionPolicy, now: float) -> Tidied:
        """Deletes what is too old or too much, as much of it as one pass may."""
        return tidy(self._database, retention, now)

    # --- in a transaction ----------------------------------------------------------------------------------------------------

    def _record(self, connection: Connection, entry: Entry) -> None:
        """A run that is there already was written with all that belongs to it, and changes nothing any more."""
        added = self._database.insert(tables.runs).values(run_values(entry.run)).on_conflict_do_nothing()
        if connection.execute(added.returning(tables.runs.c.run_id)).first() is None:
            return
        incidents = _note_run(self._database, connection, entry)
        rows = [
            finding_values(record) | _incident_of(record, incidents.get(symptom_of(record.finding.kind)))
            for record in entry.findings
        ]
        proofs = [(record.finding_id, record.evidence) for record in entry.findings]
        on_keys = [(record.finding_id, record.on_key) for record in entry.findings]
        self._add(connection, tables.findings, rows)
        self._add(connection, tables.evidence, [evidence_values(name, proof) for name, proof in proofs if proof is not None])
        packed = [key_evidence_values(name, on_key) for name, on_key in on_keys if on_key is not None]
        self._add(connection, tables.key_evidence, packed)

    def _add(self, connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows that are there already stay as they are."""
        if rows:
            connection.execute(self._database.insert(table).on_conflict_do_nothing(), rows)

    def _replace(self, connection: Connection, table: Table, rows: Sequence[Values]) -> None:
        """Rows that are there already are written anew. In the order of their keys, so that two writers never wait for each other."""
        keys = [column.name for column in table.primary_key]
        ordered = sorted(rows, key=lambda row: [row[name] for name in keys])
        insert = self._database.insert(table)
        changed = {column.name: insert.excluded[column.name] for column in table.columns if column.name not in keys}
        for first in range(0, len(ordered), _AT_ONCE):
            connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=changed), ordered[first : first + _AT_ONCE])


def _incident_of(record: FindingRecord, incident: Incident | None) -> Values:
    """What a finding has of its incident. What failed no run has none, and is never open."""
    if record.finding.status not in FAILING or incident is None:
        return {"incident_id": None, "closed_at": record.found_at}
    return {"incident_id": text_of(incident.incident_id), "closed_at": incident.closed_at}


def _lock_targets(database: Database, connection: Connection, entries: Iterable[Entry]) -> None:
    """Waits until no other writer changes incidents of these targets. Always in the same order, so that writers never deadlock.

    SQLite has one writer at a time anyway.
    """
    if database.is_sqlite:
        return
    for lock in sorted({crc32(entry.run.result.target.encode("utf-8", "replace")) - 2**31 for entry in entries}):
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%(space)s, %(lock)s)", {"space": _LOCKS, "lock": lock})


def _note_run(database: Database, connection: Connection, entry: Entry) -> Mapping[Symptom, Incident]:
    """Opens, changes and closes the incidents that a new run is about; returns those of the symptoms that it shows."""
    result, ended_at = entry.run.result, entry.run.ended_at
    _close_due(connection, ended_at, tables.incidents.c.target == text_of(result.target))
    reached_at = _reached_at(connection, entry) if result.unreachable else None
    run = EndedRun(result, ended_at, entry.interval_s, _exemplars(entry.findings), reached_at)
    changed = after_run(_newest(connection, result.target), run)
    for incident in changed.values():
        _write(database, connection, incident)
    return {symptom: changed[symptom] for symptom in found_in(result)}


def _newest(connection: Connection, target: str) -> dict[Symptom, Incident]:
    """The newest incident of each symptom on a target, open or closed."""
    incidents, others = tables.incidents, tables.incidents.alias()
    newest = select(func.max(others.c.first_at)).where(
        others.c.target == incidents.c.target, others.c.symptom == incidents.c.symptom
    )
    query = select(incidents).where(incidents.c.target == text_of(target), incidents.c.first_at == newest.scalar_subquery())
    rows = connection.execute(query.order_by(incidents.c.incident_id)).mappings()
    return {incident.symptom: incident for incident in map(incident_from_row, rows)}


def _reached_at(connection: Connection, entry: Entry) -> float | None:
    """End of the newest run that reached the target before this one ended, among the runs of the last day."""
    runs, result = tables.runs.c, entry.run.result
    others = (runs.target == text_of(result.target), runs.started_at >= entry.run.ended_at - DAY_S)
    reached = (runs.unreachable.is_(False), runs.internal_error.is_(False), runs.ended_at <= entry.run.ended_at)
    return connection.execute(select(func.max(runs.ended_at)).where(*others, *reached)).scalar()


def _write(database: Database, connection: Connection, incident: Incident) -> None:
    values = incident_values(incident)
    changed = {name: value for name, value in values.items() if name != "incident_id"}
    insert = database.insert(tables.incidents).values(values)
    connection.execute(insert.on_conflict_do_update(index_elements=["incident_id"], set_=changed))


def _close_due(connection: Connection, now: float, *which: ColumnElement[bool]) -> None:
    """Closes the incidents that were not seen for long enough, with their findings."""
    incidents, findings = tables.incidents.c, tables.findings.c
    due = (incidents.closed_at.is_(None), incidents.closes_at <= now, *which)
    closed = update(tables.incidents).where(*due).values(closed_at=incidents.closes_at)
    for incident_id, closed_at in connection.execute(closed.returning(incidents.incident_id, incidents.closed_at)).all():
        mine = (findings.incident_id == incident_id, findings.closed_at.is_(None))
        connection.execute(update(tables.findings).where(*mine).values(closed_at=closed_at))


def _exemplars(findings: Iterable[FindingRecord]) -> dict[Kind, Exemplar]:
    """Of each kind the finding with the smallest proof; of those without any the first."""
    best: dict[Kind, Exemplar] = {}
    for record in findings:
        if record.finding.status in FAILING:
            shown = Exemplar(record.finding_id, _proof_length(record))
            if record.finding.kind not in best or _rank(shown) < _rank(best[record.finding.kind]):
                best[record.finding.kind] = shown
    return best


def _proof_length(record: FindingRecord) -> int | None:
    evidence = record.evidence
    return evidence.trace.count("\n") - FIRST_EVENT_LINE + 1 if evidence is not None and evidence.proven else None


def _rank(shown: Exemplar) -> float:
    return float("inf") if shown.events is None else shown.events
