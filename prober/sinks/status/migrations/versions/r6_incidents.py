"""Incidents. Findings that are open become one for each kind and site; of those that are over nobody knows which were one.

What only hints at a violation fails no run, so it is never open: what was so far is closed with the run that found it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"
branch_labels = None
depends_on = None

_OPEN = sa.text("closed_at IS NULL")
_SITE = ("target", "probe", "vantage", "part")
_ALIKE = " AND ".join(f"f.{name} = findings.{name}" for name in (*_SITE, "kind"))
_BEGIN = f"""
INSERT INTO incidents (incident_id, {", ".join(_SITE)}, kind, status, first_at, last_at, findings, runs, chances, met_in_a_row, bad,
                       decided, history, exemplar_id)
SELECT min(run_id) || '-' || kind, {", ".join(_SITE)}, kind, max(status), min(found_at), max(found_at), count(*), count(DISTINCT run_id),
       count(DISTINCT run_id), 0, 0, 0, '', ''
FROM findings WHERE closed_at IS NULL AND status IN ('violation', 'liveness') GROUP BY {", ".join(_SITE)}, kind
"""  # names of ours
_JOIN = f"""
UPDATE findings SET incident_id = (SELECT f.incident_id FROM incidents f WHERE {_ALIKE})
WHERE closed_at IS NULL AND status IN ('violation', 'liveness')
"""
_EXEMPLARS = """
UPDATE incidents SET exemplar_id = coalesce((
  SELECT min(f.finding_id) FROM findings f JOIN evidence e ON e.finding_id = f.finding_id
  WHERE f.incident_id = incidents.incident_id AND e.proven), '')
"""
_LENGTHS = """
UPDATE incidents SET exemplar_events = (
  SELECT length(e.trace) - length(replace(e.trace, chr(10), '')) - 1 FROM evidence e WHERE e.finding_id = incidents.exemplar_id)
"""


def upgrade() -> None:
    """Adds the table, and fills it with what is open."""
    op.create_table(
        "incidents",
        _needed("incident_id", sa.Text()),
        *(_needed(name, sa.Text()) for name in _SITE),
        _needed("kind", sa.Text()),
        _needed("status", sa.Text()),
        _needed("first_at", sa.Double()),
        _needed("last_at", sa.Double()),
        *(_needed(name, sa.BigInteger()) for name in ("findings", "runs", "chances", "met_in_a_row", "bad", "decided")),
        _needed("history", sa.Text()),
        _needed("exemplar_id", sa.Text()),
        sa.Column("exemplar_events", sa.BigInteger()),
        sa.Column("closed_at", sa.Double()),
        sa.Column("acknowledged_at", sa.Double()),
        sa.Column("acknowledged_by", sa.Text()),
        sa.Column("acknowledged_note", sa.Text()),
        sa.Column("acknowledged_until", sa.Double()),
        sa.PrimaryKeyConstraint("incident_id", name="pk_incidents"),
    )
    for columns in (
        ("first_at",),
        ("kind", "first_at"),
        ("probe", "first_at"),
        ("target", "first_at"),
        (*_SITE, "first_at"),
        ("last_at",),
    ):
        op.create_index(f"ix_incidents_{'_'.join(columns)}_incident_id", "incidents", [*columns, "incident_id"])
    op.create_index("ix_incidents_open", "incidents", [*_SITE, "kind"], unique=True, postgresql_where=_OPEN, sqlite_where=_OPEN)
    op.add_column("findings", sa.Column("incident_id", sa.Text()))
    op.create_index("ix_findings_incident_id_found_at_finding_id", "findings", ["incident_id", "found_at", "finding_id"])
    newline = "char(10)" if op.get_bind().dialect.name == "sqlite" else "chr(10)"
    for statement in (_BEGIN, _JOIN, _EXEMPLARS, _LENGTHS.replace("chr(10)", newline)):
        op.execute(statement)
    op.execute("UPDATE findings SET closed_at = found_at WHERE closed_at IS NULL AND status NOT IN ('violation', 'liveness')")


def downgrade() -> None:
    """Drops it; findings stay open until a run passes, as before."""
    op.drop_index("ix_findings_incident_id_found_at_finding_id", "findings")
    op.drop_column("findings", "incident_id")
    op.drop_table("incidents")


def _needed(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
