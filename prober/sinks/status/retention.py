"""Retention of the status store: old records are deleted, and the oldest records beyond the quota of a target.

An incident is as old as the last run that showed it, and its exemplary finding stays as long as the incident.

Each target has a quota of its own, so a target with findings in every run cannot displace the others. Deletes are small, and a pass ends
after some of them; the next pass continues. Several probers may run a pass at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, select, tuple_

from prober.sinks.status.database import Database
from prober.sinks.status.listings import FINDINGS, RUNS, Listing
from prober.sinks.status.prober_records import InstanceRecord, ProberRecord, Slice
from prober.sinks.status.records import Evidence, FindingRecord, IncidentRecord
from prober.sinks.status.slices import KEPT_S, UPTIME_DEFINITION, kept_s
from prober.slo.objectives import DAY_S

DELETED_AT_ONCE_MAX: Final = 1_000
DELETED_PER_PASS_MAX: Final = 20_000
SILENT_KEPT_S: Final = DAY_S
"""Records of a prober without a heartbeat for this time are deleted.

Its probe instances no longer count as missing.
"""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Limits of the store: no record older than `retention_s`, and for each target the newest runs and findings."""

    retention_s: float
    runs_per_target_max: int = 1_000_000
    findings_per_target_max: int = 50_000
    incidents_per_target_max: int = 10_000


@dataclass(frozen=True, slots=True)
class Tidied:
    """Deletions of a pass: by age, and by the quota of a target. `done`: nothing is left for the next pass."""

    expired: int
    evicted: int
    done: bool


def tidy(database: Database, retention: RetentionPolicy, now: float) -> Tidied:
    """Run one pass. Raises `StoreUnavailable`; deletions until then are committed."""
    incidents = Listing(IncidentRecord, IncidentRecord.last_at, IncidentRecord.incident_id)
    quotas: tuple[tuple[Listing[Any], int], ...] = (
        (incidents, retention.incidents_per_target_max),
        (RUNS, retention.runs_per_target_max),
        (FINDINGS, retention.findings_per_target_max),
    )
    oldest, left = now - retention.retention_s, DELETED_PER_PASS_MAX
    expired = evicted = 0
    for each, per_target_max in quotas:
        expired += _delete(database, each, [each.at < oldest], left - expired - evicted)
        for target in _targets(database, each):
            first_kept = _first_kept(database, each, target, per_target_max)
            if first_kept is not None:
                excess = [each.record.target == target, tuple_(each.at, each.name) < tuple_(*first_kept)]
                evicted += _delete(database, each, excess, left - expired - evicted)
    _forget(database, now)
    return Tidied(expired, evicted, expired + evicted < left)


def _targets(database: Database, each: Listing[Any]) -> Sequence[str]:
    with database.reading() as connection:
        database.take_time(connection)
        return connection.execute(select(each.record.target).distinct()).scalars().all()


def _first_kept(database: Database, each: Listing[Any], target: str, per_target_max: int) -> tuple[float, str] | None:
    newest = select(each.at, each.name).where(each.record.target == target).order_by(each.at.desc(), each.name.desc())
    with database.reading() as connection:
        database.take_time(connection)
        row = connection.execute(newest.offset(per_target_max - 1).limit(1)).first()
    return None if row is None else (row[0], row[1])


def _delete(database: Database, each: Listing[Any], conditions: Sequence[ColumnElement[bool]], at_most: int) -> int:
    """Delete the oldest records first, in small transactions; return how many."""
    deleted, piece = 0, DELETED_AT_ONCE_MAX
    while piece == DELETED_AT_ONCE_MAX and deleted < at_most:
        with database.writing() as connection:
            piece = _delete_piece(connection, each, conditions, min(DELETED_AT_ONCE_MAX, at_most - deleted))
        deleted += piece
    return deleted


def _delete_piece(connection: Connection, each: Listing[Any], conditions: Sequence[ColumnElement[bool]], at_most: int) -> int:
    if each.record is FindingRecord:
        conditions = [*conditions, each.name.not_in(select(IncidentRecord.exemplar_id))]
    oldest = select(each.name).where(*conditions).order_by(each.at, each.name).limit(at_most)
    names = connection.execute(oldest.with_for_update(skip_locked=True)).scalars().all()
    if each.record is FindingRecord:
        connection.execute(delete(Evidence).where(Evidence.finding_id.in_(names)))
    connection.execute(delete(each.record).where(each.name.in_(names)))
    return len(names)


def _forget(database: Database, now: float) -> None:
    with database.writing() as connection:
        for reported in (InstanceRecord, ProberRecord):
            connection.execute(delete(reported).where(reported.last_heartbeat_at < now - SILENT_KEPT_S))
        for length_s in KEPT_S:
            old, older = (Slice.begins_at < now - kept_s(length_s, definition) for definition in ("", UPTIME_DEFINITION))
            of_uptime = Slice.definition == UPTIME_DEFINITION
            connection.execute(delete(Slice).where(Slice.length_s == length_s, old, older | ~of_uptime))
