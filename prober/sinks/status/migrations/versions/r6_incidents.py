"""Incidents. Findings of before belong to none, so they are closed."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"
branch_labels = None
depends_on = None

_OPEN = sa.text("closed_at IS NULL")


def upgrade() -> None:
    """Adds the table, and the incident of a finding."""
    op.create_table(
        "incidents",
        *(_needed(name, sa.Text()) for name in ("incident_id", "target", "symptom")),
        *(_needed(name, sa.Double()) for name in ("first_at", "last_at", "closes_at")),
        _needed("affected", sa.JSON()),
        *(_needed(name, sa.BigInteger()) for name in ("runs", "runs_total", "unsent")),
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
        ("symptom", "first_at"),
        ("target", "first_at"),
        ("target", "symptom", "first_at"),
        ("last_at",),
    ):
        op.create_index(f"ix_incidents_{'_'.join(columns)}_incident_id", "incidents", [*columns, "incident_id"])
    op.create_index(
        "ix_incidents_open", "incidents", ["target", "symptom"], unique=True, postgresql_where=_OPEN, sqlite_where=_OPEN
    )
    op.add_column("findings", sa.Column("incident_id", sa.Text()))
    op.create_index("ix_findings_incident_id_found_at_finding_id", "findings", ["incident_id", "found_at", "finding_id"])
    op.execute("UPDATE findings SET closed_at = found_at WHERE closed_at IS NULL")


def downgrade() -> None:
    """Drops it; findings stay open until a run passes, as before."""
    op.drop_index("ix_findings_incident_id_found_at_finding_id", "findings")
    op.drop_column("findings", "incident_id")
    op.drop_table("incidents")


def _needed(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
