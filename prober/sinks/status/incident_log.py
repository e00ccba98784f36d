"""Keeps incidents in step with the runs that are written, in the same transaction.

A run is told once: `StatusStore` calls `note_run` only if the run was not there yet. Several probers may write runs of one site at the same
time; whoever comes first changes its incidents, and the others wait until that is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from zlib import crc32

from sqlalchemy import Connection, or_, select, update

from prober.core.findings import FAILING, Kind
from prober.sinks.live.incidents import Exemplar, Incident, after_run, found_in
from prober.sinks.status import tables
from prober.sinks.status.database import Database
from prober.sinks.status.records import Entry, FindingRecord
from prober.sinks.status.rows import incident_from_row, incident_values, of_site, text_of
from prober.traces.trace import FIRST_EVENT_LINE

_LOCKS: Final = 0x6F6B71
"""The space of the locks of sites, beside the one of migrations."""


def lock_sites(database: Database, connection: Connection, entries: Iterable[Entry]) -> None:
    """Waits until nobody else changes incidents of these sites. Always in the same order, so that two writers never wait for each other.

    SQLite has one writer at a time anyway.
    """
    if database.is_sqlite:
        return
    for lock in sorted({crc32("\n".join(entry.run.result.site).encode("utf-8", "replace")) - 2**31 for entry in entries}):
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%(space)s, %(lock)s)", {"space": _LOCKS, "lock": lock})


def note_run(database: Database, connection: Connection, entry: Entry) -> Mapping[Kind, Incident]:
    """Begins, changes and closes the incidents that a new run is about; returns those of the kinds that failed it."""
    result, ended_at = entry.run.result, entry.run.ended_at
    known = _known(connection, entry)
    changed = after_run(known, result.site, result, ended_at, _exemplars(entry.findings))
    for incident in changed.values():
        _write(database, connection, incident)
        if incident.closed_at is not None:
            _close(connection, incident)
    return {kind: changed[kind] for kind in found_in(result)}


def _known(connection: Connection, entry: Entry) -> dict[Kind, Incident]:
    """The incident of each kind that the run may belong to: the open one, else one that was closed only after the run had ended."""
    incidents = tables.incidents.c
    still = or_(incidents.closed_at.is_(None), incidents.closed_at >= entry.run.ended_at)
    rows = connection.execute(select(tables.incidents).where(*of_site(tables.incidents, entry.run.result.site), still)).mappings()
    found = sorted(map(incident_from_row, rows), key=lambda one: (one.closed_at is None, -one.first_at))
    return {incident.kind: incident for incident in found}


def _write(database: Database, connection: Connection, incident: Incident) -> None:
    values = incident_values(incident)
    changed = {name: value for name, value in values.items() if name != "incident_id"}
    insert = database.insert(tables.incidents).values(values)
    connection.execute(insert.on_conflict_do_update(index_elements=["incident_id"], set_=changed))


def _close(connection: Connection, incident: Incident) -> None:
    findings = tables.findings.c
    mine = (findings.incident_id == text_of(incident.incident_id), findings.closed_at.is_(None))
    connection.execute(update(tables.findings).where(*mine).values(closed_at=incident.closed_at))


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
