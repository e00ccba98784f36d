"""What is written to the status store. Everything may be written again: the same run, finding or slice is there once.

A run and its findings are one transaction. A finding is *open* until a run of its site that began later passes; that is written down
when the passing run is, or when the finding comes after it, whichever prober it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, func, select, update

from prober.core.verdict import Verdict
from prober.sinks.live.snapshot import SiteSnapshot
from prober.sinks.status import tables
from prober.sinks.status.database import Database
from prober.sinks.status.migration import migrate
from prober.sinks.status.records import Entry, FindingRecord, ProberRecord, RunRecord, SiteStatus, Slice
from prober.sinks.status.retention import RetentionPolicy, Tidied, tidy
from prober.sinks.status.rows import (
    Values,
    evidence_values,
    finding_values,
    prober_values,
    run_values,
    site_values,
    slice_values,
    text_of,
)

_AT_ONCE: Final = 500
"""Rows in one statement."""


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
        with self._database.writing() as connection:
            for entry in entries:
                self._record(connection, entry)

    def heartbeat(self, prober: ProberRecord, sites: Iterable[SiteSnapshot] | None = None, slices: Sequence[Slice] = ()) -> None:
        """How the sites of a prober stand now, in place of all that it told before (None: as before), and what it counted."""
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

    def leave(self, instance: str) -> None:
        """A prober has stopped for good, as far as anybody knows: what it said of its sites is not waited for any more."""
        with self._database.writing() as connection:
            for table in (tables.sites, tables.probers):
                connection.execute(delete(table).where(table.c.instance == text_of(instance)))

    def tidy(self, keeping: RetentionPolicy, now: float) -> Tidied:
        """Deletes what is too old or too much, as much of it as one pass may."""
        return tidy(self._database, keeping, now)

    # --- in a transaction ----------------------------------------------------------------------------------------------------

    def _record(self, connection: Connection, entry: Entry) -> None:
        self._add(connection, tables.runs, [run_values(entry.run)])
        if entry.findings:
            closed_at = self._closed_at(connection, entry.findings[0])
            rows = [finding_values(record) | {"closed_at": closed_at} for record in entry.findings]
            proofs = [(record.finding_id, record.evidence) for record in entry.findings]
            self._add(connection, tables.findings, rows)
            self._add(connection, tables.evidence, [evidence_values(name, proof) for name, proof in proofs if proof is not None])
        if entry.run.result.verdict is Verdict.PASS:
            self._close(connection, entry.run)

    def _close(self, connection: Connection, run: RunRecord) -> None:
        """A run passed: what was found at its site before it began is over."""
        findings, result = tables.findings.c, run.result
        connection.execute(
            update(tables.findings)
            .where(
                findings.target == text_of(result.target),
                findings.probe == text_of(result.probe),
                findings.vantage == text_of(result.vantage),
                findings.part == text_of(result.part),
                findings.found_at <= result.started_at,
                findings.closed_at.is_(None),
            )
            .values(closed_at=run.ended_at)
        )

    def _closed_at(self, connection: Connection, finding: FindingRecord) -> float | None:
        """When a run passed that began after the finding and was recorded before it."""
        runs, site = tables.runs.c, finding.site
        passed = select(func.min(runs.ended_at)).where(
            runs.target == text_of(site.target),
            runs.probe == text_of(site.probe),
            runs.vantage == text_of(site.vantage),
            runs.part == text_of(site.part),
            runs.started_at >= finding.found_at,
            runs.verdict == Verdict.PASS.value,
        )
        return connection.execute(passed).scalar()

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
