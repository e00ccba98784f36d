"""The first form of the status store."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None

_OPEN = sa.text("closed_at IS NULL")
_TABLES = ("evidence", "findings", "leases", "probers", "reports", "runs", "sites", "slices")


def upgrade() -> None:
    """From nothing."""
    _evidence()
    _findings()
    _leases()
    _probers()
    _reports()
    _runs()
    _sites()
    _slices()


def downgrade() -> None:
    """Drops everything."""
    for table in _TABLES:
        op.drop_table(table)


def _needed(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _evidence() -> None:
    op.create_table(
        "evidence",
        _needed("finding_id", sa.Text()),
        _needed("trace", sa.Text()),
        _needed("proven", sa.Boolean()),
        _needed("complete", sa.Boolean()),
        _needed("among", sa.BigInteger()),
        _needed("witnesses", sa.JSON()),
        _needed("opened", sa.JSON()),
        sa.PrimaryKeyConstraint("finding_id", name="pk_evidence"),
    )


def _findings() -> None:
    op.create_table(
        "findings",
        _needed("finding_id", sa.Text()),
        _needed("run_id", sa.Text()),
        _needed("target", sa.Text()),
        _needed("probe", sa.Text()),
        _needed("vantage", sa.Text()),
        _needed("part", sa.Text()),
        _needed("instance", sa.Text()),
        _needed("found_at", sa.Double()),
        _needed("kind", sa.Text()),
        _needed("status", sa.Text()),
        _needed("subscription", sa.Text()),
        _needed("key", sa.Text()),
        _needed("t", sa.Double()),
        _needed("after", sa.BigInteger()),
        _needed("witnesses", sa.JSON()),
        _needed("facts", sa.JSON()),
        _needed("doubt", sa.Text()),
        _needed("assumptions", sa.JSON()),
        _needed("reasons", sa.JSON()),
        _needed("explanation", sa.Text()),
        _needed("unproven_because", sa.Text()),
        sa.Column("closed_at", sa.Double()),
        sa.PrimaryKeyConstraint("finding_id", name="pk_findings"),
    )
    op.create_index("ix_findings_found_at_finding_id", "findings", ["found_at", "finding_id"])
    op.create_index("ix_findings_key_found_at_finding_id", "findings", ["key", "found_at", "finding_id"])
    op.create_index("ix_findings_kind_found_at_finding_id", "findings", ["kind", "found_at", "finding_id"])
    op.create_index("ix_findings_kind_status_found_at_finding_id", "findings", ["kind", "status", "found_at", "finding_id"])
    op.create_index("ix_findings_open", "findings", ["found_at", "finding_id"], postgresql_where=_OPEN, sqlite_where=_OPEN)
    op.create_index(
        "ix_findings_open_site",
        "findings",
        ["target", "probe", "vantage", "part", "found_at"],
        postgresql_where=_OPEN,
        sqlite_where=_OPEN,
    )
    op.create_index("ix_findings_run_id_found_at_finding_id", "findings", ["run_id", "found_at", "finding_id"])
    op.create_index("ix_findings_status_found_at_finding_id", "findings", ["status", "found_at", "finding_id"])
    op.create_index("ix_findings_subscription_found_at_finding_id", "findings", ["subscription", "found_at", "finding_id"])
    op.create_index("ix_findings_target_found_at_finding_id", "findings", ["target", "found_at", "finding_id"])


def _leases() -> None:
    op.create_table(
        "leases",
        _needed("name", sa.Text()),
        _needed("holder", sa.Text()),
        _needed("until", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )


def _probers() -> None:
    op.create_table(
        "probers",
        _needed("instance", sa.Text()),
        _needed("version", sa.Text()),
        _needed("started_at", sa.Double()),
        _needed("told_at", sa.Double()),
        _needed("troubles", sa.JSON()),
        sa.PrimaryKeyConstraint("instance", name="pk_probers"),
    )


def _reports() -> None:
    op.create_table(
        "reports",
        _needed("day", sa.Date()),
        _needed("job", sa.Text()),
        _needed("verdict", sa.Text()),
        _needed("finished_at", sa.Double()),
        _needed("duration_s", sa.Double()),
        _needed("location", sa.Text()),
        _needed("summary", sa.JSON()),
        sa.PrimaryKeyConstraint("day", "job", name="pk_reports"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        _needed("run_id", sa.Text()),
        _needed("target", sa.Text()),
        _needed("probe", sa.Text()),
        _needed("vantage", sa.Text()),
        _needed("part", sa.Text()),
        _needed("environment", sa.Text()),
        _needed("region", sa.Text()),
        _needed("verdict", sa.Text()),
        _needed("reason", sa.Text()),
        _needed("started_at", sa.Double()),
        _needed("ended_at", sa.Double()),
        _needed("duration_s", sa.Double()),
        _needed("seed", sa.BigInteger()),
        _needed("topic", sa.Text()),
        _needed("subscription", sa.Text()),
        _needed("counts", sa.JSON()),
        _needed("counters", sa.JSON()),
        _needed("checks", sa.JSON()),
        _needed("durations", sa.JSON()),
        _needed("internal_error", sa.Boolean()),
        _needed("findings_omitted", sa.BigInteger()),
        _needed("prober", sa.JSON()),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_probe_started_at_run_id", "runs", ["probe", "started_at", "run_id"])
    op.create_index("ix_runs_probe_verdict_started_at_run_id", "runs", ["probe", "verdict", "started_at", "run_id"])
    op.create_index("ix_runs_started_at_run_id", "runs", ["started_at", "run_id"])
    op.create_index(
        "ix_runs_target_probe_vantage_part_started_at_run_id",
        "runs",
        ["target", "probe", "vantage", "part", "started_at", "run_id"],
    )
    op.create_index(
        "ix_runs_target_probe_verdict_started_at_run_id", "runs", ["target", "probe", "verdict", "started_at", "run_id"]
    )
    op.create_index("ix_runs_target_started_at_run_id", "runs", ["target", "started_at", "run_id"])
    op.create_index("ix_runs_verdict_started_at_run_id", "runs", ["verdict", "started_at", "run_id"])


def _sites() -> None:
    op.create_table(
        "sites",
        _needed("instance", sa.Text()),
        _needed("target", sa.Text()),
        _needed("probe", sa.Text()),
        _needed("vantage", sa.Text()),
        _needed("part", sa.Text()),
        _needed("told_at", sa.Double()),
        _needed("interval_s", sa.Double()),
        _needed("schedule", sa.Text()),
        _needed("environment", sa.Text()),
        _needed("region", sa.Text()),
        _needed("endpoint", sa.Text()),
        _needed("promise", sa.Text()),
        _needed("topic", sa.Text()),
        _needed("subscription", sa.Text()),
        _needed("labels", sa.JSON()),
        sa.Column("verdict", sa.Text()),
        sa.Column("standing", sa.Text()),
        sa.Column("since", sa.Double()),
        sa.Column("last_run_id", sa.Text()),
        sa.Column("last_pass_at", sa.Double()),
        sa.Column("next_run_at", sa.Double()),
        sa.Column("running_since", sa.Double()),
        sa.Column("overdue_s", sa.Double()),
        _needed("runs", sa.JSON()),
        _needed("runs_expected", sa.BigInteger()),
        _needed("runs_skipped", sa.BigInteger()),
        sa.Column("last_skip_reason", sa.Text()),
        sa.Column("last_skip_at", sa.Double()),
        sa.Column("maintenance", sa.Text()),
        sa.PrimaryKeyConstraint("instance", "target", "probe", "vantage", "part", name="pk_sites"),
    )


def _slices() -> None:
    op.create_table(
        "slices",
        _needed("objective", sa.Text()),
        _needed("definition", sa.Text()),
        _needed("length_s", sa.Integer()),
        _needed("begins_at", sa.Double()),
        _needed("target", sa.Text()),
        _needed("process", sa.Text()),
        _needed("good", sa.BigInteger()),
        _needed("bad", sa.BigInteger()),
        _needed("undecided", sa.BigInteger()),
        sa.PrimaryKeyConstraint("objective", "definition", "length_s", "begins_at", "target", "process", name="pk_slices"),
    )
    op.create_index("ix_slices_length_s_begins_at", "slices", ["length_s", "begins_at"])
