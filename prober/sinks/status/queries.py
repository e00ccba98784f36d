"""What is asked of the status store. Lists come page by page, newest first, each page as fast as the first one.

Answers depend on what is in the store and on what is asked alone, so every replica of the API gives the same ones. They block: ask from
a thread.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import CTE, ColumnElement, RowMapping, Select, case, func, literal_column, select

from prober.core.findings import FAILING, Kind, Status
from prober.core.verdict import Verdict
from prober.runs.site import SiteKey
from prober.sinks.live.incidents import Incident
from prober.sinks.live.snapshot import RunSummary
from prober.sinks.status import tables
from prober.sinks.status.database import Database
from prober.sinks.status.listings import FINDINGS, INCIDENTS, RUNS, page_of
from prober.sinks.status.over_time import OverTime
from prober.sinks.status.records import (
    FailingFindings,
    FindingFilter,
    FindingGroup,
    FindingRecord,
    IncidentFilter,
    Page,
    ProberRecord,
    RunFilter,
    RunRecord,
    SiteStatus,
)
from prober.sinks.status.rows import (
    evidence_from_row,
    finding_from_row,
    incident_from_row,
    key_evidence_from_row,
    of_site,
    prober_from_row,
    run_from_row,
    site_from_row,
    site_key_from_row,
    summary_from_row,
    text_of,
)
from prober.sinks.status.slices import Series
from prober.slo.objectives import SliCounts

GROUPS_MAX: Final = 500

_PROOF: Final = tuple(tables.evidence.columns.keys())
_FINDING: Final = select(tables.findings, *(column.label(f"proof_{column.name}") for column in tables.evidence.columns)).outerjoin(
    tables.evidence, tables.evidence.c.finding_id == tables.findings.c.finding_id
)
"""With its evidence, so that both are of one moment."""

EVERY_RUN: Final = RunFilter()
EVERY_FINDING: Final = FindingFilter()
EVERY_INCIDENT: Final = IncidentFilter()


class StatusQueries:
    """Reads. Every method raises `StoreUnavailable`, and `BadCursor` where a cursor is given. For any thread."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def store_id(self) -> str:
        """What tells this store from all others."""
        return str(self.database.rows(select(tables.identity))[0]["store_id"])

    # --- runs and findings ---------------------------------------------------------------------------------------------------

    def runs(self, wanted: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[RunRecord]:
        """Runs by when they began, at most `limit` (and `PAGE_MAX`) of them."""
        rows, following = page_of(self.database, RUNS, wanted, limit, cursor)
        return Page(tuple(map(run_from_row, rows)), following)

    def run(self, run_id: str) -> RunRecord | None:
        """One run; None: it is not there (any more)."""
        row = self._row(select(tables.runs).where(tables.runs.c.run_id == text_of(run_id)))
        return None if row is None else run_from_row(row)

    def announced(self, since: float) -> frozenset[str]:
        """The runs that a prober has named since then as the newest that ended at a site, and that are not here: they are to come."""
        kept = select(tables.runs.c.run_id).where(tables.runs.c.run_id == tables.sites.c.last_run_id)
        said = (tables.sites.c.last_heartbeat_at >= since, tables.sites.c.last_run_id.is_not(None), ~kept.exists())
        return frozenset(row["last_run_id"] for row in self.database.rows(select(tables.sites.c.last_run_id).where(*said)))

    def findings(self, wanted: FindingFilter = EVERY_FINDING, *, limit: int = 50, cursor: str | None = None) -> Page[FindingRecord]:
        """Findings by when they were found, without their evidence, at most `limit` (and `PAGE_MAX`) of them."""
        rows, following = page_of(self.database, FINDINGS, wanted, limit, cursor)
        return Page(tuple(map(finding_from_row, rows)), following)

    def finding(self, finding_id: str, *, on_key: bool = False) -> FindingRecord | None:
        """One finding with its evidence, and if asked with everything on its key; None: it is not there (any more)."""
        name = text_of(finding_id)
        row = self._row(_FINDING.where(tables.findings.c.finding_id == name))
        if row is None:
            return None
        proof = {column: row[f"proof_{column}"] for column in _PROOF}
        beside = self._row(select(tables.key_evidence).where(tables.key_evidence.c.finding_id == name)) if on_key else None
        return finding_from_row(
            row,
            None if proof["finding_id"] is None else evidence_from_row(proof),
            None if beside is None else key_evidence_from_row(beside),
        )

    # --- incidents -----------------------------------------------------------------------------------------------------------

    def incidents(self, wanted: IncidentFilter = EVERY_INCIDENT, *, limit: int = 50, cursor: str | None = None) -> Page[Incident]:
        """Incidents by when they began, at most `limit` (and `PAGE_MAX`) of them."""
        rows, following = page_of(self.database, INCIDENTS, wanted, limit, cursor)
        return Page(tuple(map(incident_from_row, rows)), following)

    def incident(self, incident_id: str) -> Incident | None:
        """One incident; None: it is not there (any more)."""
        row = self._row(select(tables.incidents).where(tables.incidents.c.incident_id == text_of(incident_id)))
        return None if row is None else incident_from_row(row)

    def open_incidents(self) -> tuple[Incident, ...]:
        """All of them, by when they began, the newest first. There is at most one of a symptom on a target."""
        incidents = tables.incidents.c
        query = select(tables.incidents).where(incidents.closed_at.is_(None))
        return tuple(map(incident_from_row, self.database.rows(_ordered(query, incidents.first_at, incidents.incident_id))))

    # --- summaries -----------------------------------------------------------------------------------------------------------

    def history(self, site: SiteKey, *, limit: int = 50) -> tuple[RunSummary, ...]:
        """The newest runs of a site in short, oldest first."""
        runs = tables.runs.c
        columns = (runs.run_id, runs.verdict, runs.reason, runs.started_at, runs.duration_s, runs.internal_error)
        newest = _ordered(select(*columns), runs.started_at, runs.run_id).limit(limit)
        return tuple(map(summary_from_row, reversed(self.database.rows(newest.where(*of_site(tables.runs, site))))))

    def runs_named(self, run_ids: Collection[str]) -> dict[str, RunRecord]:
        """The runs of these names, at most some hundreds; those that are not there are missing."""
        rows = self.database.rows(select(tables.runs).where(tables.runs.c.run_id.in_(map(text_of, run_ids))))
        return {row["run_id"]: run_from_row(row) for row in rows}

    def verdicts_since(self) -> dict[SiteKey, float]:
        """For each site that a prober speaks of: when its runs began to end as the newest one did, which is the end of the first of them.

        Sites without a run are missing.
        """
        rows = self.database.rows(_verdicts_since())
        return {site_key_from_row(row): row["since"] for row in rows if row["since"] is not None}

    def failing(self, *, limit: int = 20) -> dict[SiteKey, FailingFindings]:
        """The newest open findings of each site that failed a run, at most `limit` a site; sites without are missing."""
        found: dict[SiteKey, FailingFindings] = {}
        for row in self.database.rows(_failing(limit)):
            before = found.get(site_key_from_row(row), FailingFindings((), row["total"]))
            found[site_key_from_row(row)] = before._replace(newest=(*before.newest, finding_from_row(row)))
        return found

    def findings_of_key(self, key: str) -> tuple[FindingGroup, ...]:
        """What was found on an ordering key, by subscription, kind and status, at most `GROUPS_MAX` of these."""
        return self._groups(tables.findings.c.key == text_of(key))

    def findings_by_subscription(self, since: float) -> tuple[FindingGroup, ...]:
        """What was found since then, by subscription, kind and status, at most `GROUPS_MAX` of these."""
        return self._groups(tables.findings.c.found_at >= since)

    # --- how things stand ----------------------------------------------------------------------------------------------------

    def probers(self) -> tuple[ProberRecord, ...]:
        """Who writes to the store, or did."""
        rows = self.database.rows(select(tables.probers).order_by(tables.probers.c.instance))
        return tuple(map(prober_from_row, rows))

    def sites(self) -> tuple[SiteStatus, ...]:
        """What each prober last said of each of its sites."""
        site = (tables.sites.c.target, tables.sites.c.probe, tables.sites.c.vantage, tables.sites.c.part)
        return tuple(map(site_from_row, self.database.rows(select(tables.sites).order_by(*site, tables.sites.c.instance))))

    def counts(self, window_s: float, now: float) -> dict[Series, SliCounts]:
        """Count every objective over the last `window_s` seconds (`OverTime.counted`); series without a count are missing."""
        return {series: found.total for series, found in OverTime(self.database).counted(window_s, now).items()}

    # --- in common -----------------------------------------------------------------------------------------------------------

    def _groups(self, condition: ColumnElement[bool]) -> tuple[FindingGroup, ...]:
        findings = tables.findings.c
        # An expression: SQLite would read all of the index that begins with the column, however few findings fulfil the condition.
        subscription = (findings.subscription + literal_column("''")).label("in_subscription")
        by = (subscription, findings.kind, findings.status)
        grouped = select(
            *by,
            func.count().label("n"),
            func.sum(case((findings.closed_at.is_(None), 1), else_=0)).label("n_open"),
            func.min(findings.found_at).label("first_at"),
            func.max(findings.found_at).label("last_at"),
        )
        rows = self.database.rows(grouped.where(condition).group_by(*by).order_by(*by).limit(GROUPS_MAX))
        return tuple(
            FindingGroup(
                row["in_subscription"],
                Kind(row["kind"]),
                Status(row["status"]),
                row["n"],
                int(row["n_open"]),
                row["first_at"],
                row["last_at"],
            )
            for row in rows
        )

    def _row(self, query: Select[Any]) -> RowMapping | None:
        return next(iter(self.database.rows(query)), None)


def _ordered(query: Select[Any], at: ColumnElement[float], name: ColumnElement[str]) -> Select[Any]:
    return query.order_by(at.desc(), name.desc())


def _open_and_failing() -> tuple[ColumnElement[bool], ...]:
    findings = tables.findings.c
    return findings.closed_at.is_(None), findings.status.in_([status.value for status in FAILING])


def _failing(limit: int) -> Select[Any]:
    """Open findings that failed a run, newest first within each site; `total`: how many there are of the site."""
    findings = tables.findings.c
    site = [findings[name] for name in SiteKey._fields]
    newest = (findings.found_at.desc(), findings.finding_id.desc())
    ranked = select(
        findings.finding_id,
        func.row_number().over(partition_by=site, order_by=newest).label("place"),
        func.count().over(partition_by=site).label("total"),
    ).where(*_open_and_failing())
    chosen = ranked.subquery()
    rows = select(tables.findings, chosen.c.total).join(chosen, chosen.c.finding_id == findings.finding_id)
    return rows.where(chosen.c.place <= limit).order_by(*newest)


def _verdicts_since() -> Select[Any]:
    """One row a site. Each part of it is found by an index, so that it costs the same after a month as after an hour."""
    key = [tables.sites.c[name] for name in SiteKey._fields]
    site = select(*key).distinct().cte("site")
    newest = select(site, *(_newest_run(site, verdict).label(verdict.value) for verdict in Verdict)).cte("newest")
    runs = tables.runs.c
    first = (
        select(runs.ended_at)
        .where(*_same_site(newest), runs.started_at > _newest_of_others(newest))
        .order_by(runs.started_at, runs.run_id)
        .limit(1)
    )
    return select(*(newest.c[name] for name in SiteKey._fields), first.scalar_subquery().label("since"))


def _newest_run(site: CTE, verdict: Verdict) -> ColumnElement[float]:
    """When the newest run of the site began that ended with the verdict; 0: there is none."""
    runs = tables.runs.c
    newest = select(func.max(runs.started_at)).where(*_same_site(site), runs.verdict == verdict.value)
    return func.coalesce(newest.scalar_subquery(), 0.0)


def _newest_of_others(newest: CTE) -> ColumnElement[float]:
    """When the newest run began whose verdict is not that of the newest of all: the second largest of three."""
    one, two, three = (newest.c[verdict.value] for verdict in Verdict)
    larger, smaller = _larger(one, two), _smaller(one, two)
    return _larger(_smaller(larger, three), smaller)


def _larger(one: ColumnElement[float], two: ColumnElement[float]) -> ColumnElement[float]:
    return case((one > two, one), else_=two)


def _smaller(one: ColumnElement[float], two: ColumnElement[float]) -> ColumnElement[float]:
    return case((one > two, two), else_=one)


def _same_site(other: CTE) -> list[ColumnElement[bool]]:
    return [tables.runs.c[name] == other.c[name] for name in SiteKey._fields]
