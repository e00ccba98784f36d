"""Queries of the status store. Lists come in pages, newest first; each page costs the same as the first.

An answer depends on the store and the query only, so every replica of the API gives the same. Queries block: call them from a thread.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from sqlalchemy import CTE, ColumnElement, RowMapping, Select, case, func, literal_column, select
from sqlalchemy.orm import Session, joinedload

from prober.core.findings import FAILING, Kind, Status
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.incidents import Incident
from prober.sinks.live.snapshot import RunSummary
from prober.sinks.status.database import Database
from prober.sinks.status.listings import (
    FINDINGS,
    INCIDENTS,
    RUNS,
    FindingFilter,
    IncidentFilter,
    Kept,
    Page,
    RunFilter,
    of_instance,
    page_of,
)
from prober.sinks.status.over_time import OverTime
from prober.sinks.status.prober_records import Identity, InstanceRecord, ProberRecord
from prober.sinks.status.records import FindingRecord, IncidentRecord, RunRecord
from prober.sinks.status.slices import Series
from prober.slo.acknowledgements import PERIOD_S as ACKNOWLEDGED_PERIOD_S
from prober.slo.acknowledgements import Acknowledgements, Raised
from prober.slo.objectives import SliCounts

GROUPS_MAX: Final = 500
RAISED_MAX: Final = 1_000

EVERY_RUN: Final = RunFilter()
EVERY_FINDING: Final = FindingFilter()
EVERY_INCIDENT: Final = IncidentFilter()


class FailingFindings(NamedTuple):
    """The open findings of a probe instance that failed a run: the newest, newest first, and the total number."""

    newest: tuple[FindingRecord, ...]
    total: int


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one kind and status on one key, or on all keys of one subscription."""

    subscription: str
    kind: Kind
    status: Status
    count: int
    open: int
    first_at: float
    last_at: float


class StatusQueries:
    """Read queries. Every method raises `StoreUnavailable`, and `BadCursor` where it takes a cursor. Safe for any thread."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def store_id(self) -> str:
        """Return the identity of this store."""
        (identity,) = self.database.records(select(Identity))
        return identity.store_id

    # --- runs and findings ---------------------------------------------------------------------------------------------------

    def runs(self, wanted: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[RunRecord]:
        """Return runs by their start, at most `limit` (and `PAGE_MAX`)."""
        return page_of(self.database, RUNS, wanted, limit, cursor)

    def run(self, run_id: str) -> RunRecord | None:
        """Return a run; None: it is not stored (any more)."""
        return self._one(select(RunRecord).where(RunRecord.run_id == run_id))

    def announced(self, since: float) -> frozenset[str]:
        """Return the runs that a prober has reported since then as its newest, and that are not stored yet."""
        kept = select(RunRecord.run_id).where(RunRecord.run_id == InstanceRecord.last_run_id)
        said = (InstanceRecord.last_heartbeat_at >= since, InstanceRecord.last_run_id.is_not(None), ~kept.exists())
        return frozenset(row["last_run_id"] for row in self.database.rows(select(InstanceRecord.last_run_id).where(*said)))

    def findings(self, wanted: FindingFilter = EVERY_FINDING, *, limit: int = 50, cursor: str | None = None) -> Page[FindingRecord]:
        """Return findings by their time, without their evidence, at most `limit` (and `PAGE_MAX`)."""
        return page_of(self.database, FINDINGS, wanted, limit, cursor)

    def finding(self, finding_id: str) -> FindingRecord | None:
        """Return a finding with its evidence, read in one transaction; None: it is not stored (any more)."""
        proofs = (joinedload(FindingRecord.evidence), joinedload(FindingRecord.on_key))
        return self._one(select(FindingRecord).where(FindingRecord.finding_id == finding_id).options(*proofs))

    # --- incidents -----------------------------------------------------------------------------------------------------------

    def incidents(self, wanted: IncidentFilter = EVERY_INCIDENT, *, limit: int = 50, cursor: str | None = None) -> Page[Incident]:
        """Return incidents by their start, at most `limit` (and `PAGE_MAX`)."""
        page = page_of(self.database, INCIDENTS, wanted, limit, cursor)
        return Page(tuple(record.incident for record in page.items), page.next_cursor)

    def incident(self, incident_id: str) -> Incident | None:
        """Return an incident; None: it is not stored (any more)."""
        record = self._one(select(IncidentRecord).where(IncidentRecord.incident_id == incident_id))
        return None if record is None else record.incident

    def open_incidents(self) -> tuple[Incident, ...]:
        """Return all open incidents, the newest first. There is at most one for each symptom on a target."""
        query = select(IncidentRecord).where(IncidentRecord.closed_at.is_(None))
        newest = query.order_by(IncidentRecord.first_at.desc(), IncidentRecord.incident_id.desc())
        return tuple(record.incident for record in self.database.records(newest))

    def acknowledgements(self, now: float) -> Acknowledgements:
        """Return how many incidents of the period before `now` were acknowledged in time; of more than `RAISED_MAX` the newest."""
        raised_at, since = IncidentRecord.raised_at, now - ACKNOWLEDGED_PERIOD_S
        since_then = raised_at >= since
        newest = select(raised_at, IncidentRecord.first_acknowledged_at, IncidentRecord.closed_at).where(since_then)
        rows = self.database.rows(newest.order_by(raised_at.desc()).limit(RAISED_MAX))
        left_out = 0
        if len(rows) == RAISED_MAX:
            (total,) = self.database.rows(select(func.count().label("total")).select_from(IncidentRecord).where(since_then))
            left_out = max(0, int(total["total"]) - len(rows))
        raised = (Raised(row["raised_at"], row["first_acknowledged_at"], row["closed_at"]) for row in rows)
        return Acknowledgements.of(raised, now, left_out)

    # --- summaries -----------------------------------------------------------------------------------------------------------

    def history(self, instance: InstanceKey, *, limit: int = 50) -> tuple[RunSummary, ...]:
        """Return summaries of the newest runs of a probe instance, the oldest first."""
        columns = [getattr(RunRecord, field.name) for field in fields(RunSummary)]
        newest = (
            select(*columns).where(*of_instance(RunRecord, instance)).order_by(RunRecord.started_at.desc(), RunRecord.run_id.desc())
        )
        return tuple(RunSummary(**row) for row in reversed(self.database.rows(newest.limit(limit))))

    def runs_named(self, run_ids: Collection[str]) -> dict[str, RunRecord]:
        """Return the runs of these names, at most some hundreds; unknown names are missing."""
        return {run.run_id: run for run in self.database.records(select(RunRecord).where(RunRecord.run_id.in_(run_ids)))}

    def verdicts_since(self) -> dict[InstanceKey, float]:
        """Return, for each reported probe instance, when its current verdict began: the end of the first run of the latest streak.

        Probe instances without a run are missing.
        """
        rows = self.database.rows(_verdicts_since())
        return {_instance_of(row): row["since"] for row in rows if row["since"] is not None}

    def failing(self, *, limit: int = 20) -> dict[InstanceKey, FailingFindings]:
        """Return the newest open findings of each probe instance that failed a run, at most `limit` of each; others are missing."""
        found: dict[InstanceKey, FailingFindings] = {}
        with self.database.reading() as connection, Session(connection) as session:
            for record, total in session.execute(_failing(limit)):
                before = found.get(record.probe_instance, FailingFindings((), total))
                found[record.probe_instance] = before._replace(newest=(*before.newest, record))
        return found

    def findings_of_key(self, key: str) -> tuple[FindingGroup, ...]:
        """Return the findings on an ordering key by subscription, kind and status, at most `GROUPS_MAX` groups."""
        return self._groups(FindingRecord.key == key)

    def findings_by_subscription(self, since: float) -> tuple[FindingGroup, ...]:
        """Return the findings since then by subscription, kind and status, at most `GROUPS_MAX` groups."""
        return self._groups(FindingRecord.found_at >= since)

    # --- how things stand ----------------------------------------------------------------------------------------------------

    def probers(self) -> tuple[ProberRecord, ...]:
        """Return all probers that write to the store, or did."""
        return tuple(self.database.records(select(ProberRecord).order_by(ProberRecord.instance)))

    def probe_instances(self) -> tuple[InstanceRecord, ...]:
        """Return the newest report of each prober about each of its probe instances."""
        instance = [getattr(InstanceRecord, name) for name in InstanceKey._fields]
        return tuple(self.database.records(select(InstanceRecord).order_by(*instance, InstanceRecord.instance)))

    def counts(self, window_s: float, now: float) -> dict[Series, SliCounts]:
        """Count every objective over the last `window_s` seconds (`OverTime.counted`); series without a count are missing."""
        return {series: found.total for series, found in OverTime(self.database).counted(window_s, now).items()}

    # --- in common -----------------------------------------------------------------------------------------------------------

    def _groups(self, condition: ColumnElement[bool]) -> tuple[FindingGroup, ...]:
        findings = FindingRecord
        # An expression: SQLite would read all of the index that begins with the column, however few findings fulfil the condition.
        subscription = (findings.subscription + literal_column("''")).label("subscription")
        by = (subscription, findings.kind, findings.status)
        grouped = select(
            *by,
            func.count().label("count"),
            func.sum(case((findings.closed_at.is_(None), 1), else_=0)).label("open"),
            func.min(findings.found_at).label("first_at"),
            func.max(findings.found_at).label("last_at"),
        )
        rows = self.database.rows(grouped.where(condition).group_by(*by).order_by(*by).limit(GROUPS_MAX))
        return tuple(FindingGroup(**{**row, "open": int(row["open"])}) for row in rows)

    def _one(self, query: Select[Kept]) -> Kept | None:
        return next(iter(self.database.records(query)), None)


def _instance_of(row: RowMapping) -> InstanceKey:
    return InstanceKey(*(row[name] for name in InstanceKey._fields))


def _failing(limit: int) -> Select[FindingRecord, int]:
    """Return the open findings that failed a run, newest first by probe instance, each with the total number of its probe instance."""
    findings = FindingRecord
    instance = [getattr(findings, name) for name in InstanceKey._fields]
    newest = (findings.found_at.desc(), findings.finding_id.desc())
    chosen = (
        select(
            findings.finding_id,
            func.row_number().over(partition_by=instance, order_by=newest).label("place"),
            func.count().over(partition_by=instance).label("total"),
        )
        .where(findings.closed_at.is_(None), findings.status.in_(FAILING))
        .subquery()
    )
    rows = select(findings, chosen.c.total).join(chosen, chosen.c.finding_id == findings.finding_id)
    return rows.where(chosen.c.place <= limit).order_by(*newest)


def _verdicts_since() -> Select[*tuple[Any, ...]]:
    """Return one row for each probe instance. An index serves each part, so the cost does not grow with the number of runs."""
    instance = select(*(getattr(InstanceRecord, name) for name in InstanceKey._fields)).distinct().cte("probe_instance")
    newest = select(instance, *(_newest_run(instance, verdict).label(verdict.value) for verdict in Verdict)).cte("newest")
    first = (
        select(RunRecord.ended_at)
        .where(*_same_instance(newest), RunRecord.started_at > _newest_of_others(newest))
        .order_by(RunRecord.started_at, RunRecord.run_id)
        .limit(1)
    )
    return select(*(newest.c[name] for name in InstanceKey._fields), first.scalar_subquery().label("since"))


def _newest_run(instance: CTE, verdict: Verdict) -> ColumnElement[float]:
    """Return the start of the newest run of the probe instance with this verdict; 0: there is none."""
    newest = select(func.max(RunRecord.started_at)).where(*_same_instance(instance), RunRecord.verdict == verdict)
    return func.coalesce(newest.scalar_subquery(), 0.0)


def _newest_of_others(newest: CTE) -> ColumnElement[float]:
    """Return the start of the newest run with another verdict than the newest run: the second largest of three."""
    one, two, three = (newest.c[verdict.value] for verdict in Verdict)
    larger, smaller = _larger(one, two), _smaller(one, two)
    return _larger(_smaller(larger, three), smaller)


def _larger(one: ColumnElement[float], two: ColumnElement[float]) -> ColumnElement[float]:
    return case((one > two, one), else_=two)


def _smaller(one: ColumnElement[float], two: ColumnElement[float]) -> ColumnElement[float]:
    return case((one > two, two), else_=one)


def _same_instance(other: CTE) -> list[ColumnElement[bool]]:
    return [getattr(RunRecord, name) == other.c[name] for name in InstanceKey._fields]
