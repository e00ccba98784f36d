"""The tables of the status store, and the compatibility statement in the version table."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from alembic import op

from prober.sinks.status.revisions import VERSION_TABLE

revision = "1"
down_revision = None
oldest_program = "1"

_OPEN = sa.text("closed_at IS NULL")


def upgrade() -> None:
    """Create every table in an empty database."""
    op.add_column(VERSION_TABLE, sa.Column("oldest_program", sa.Text()))
    op.add_column(VERSION_TABLE, sa.Column("pinned", sa.Boolean()))
    _checkpoints()
    _evidence()
    _findings()
    _identity()
    _incidents()
    _leases()
    _probers()
    _runs()
    _instances()
    _slices()


def _needed(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _checkpoints() -> None:
    op.create_table(
        "checkpoints",
        *(_needed(name, sa.Text()) for name in ("name", "topic", "subscription", "epoch")),
        _needed("left_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_checkpoints"),
    )
    op.create_table(
        "waiting_publishes",
        _needed("name", sa.Text()),
        _needed("position", sa.BigInteger()),
        *(_needed(name, sa.Text()) for name in ("event", "key")),
        *(_needed(name, sa.BigInteger()) for name in ("seq", "generation")),
        _needed("message_id", sa.Text()),
        _needed("size", sa.BigInteger()),
        _needed("region", sa.Text()),
        sa.PrimaryKeyConstraint("name", "position", name="pk_waiting_publishes"),
    )


def _evidence() -> None:
    op.create_table(
        "evidence",
        _needed("finding_id", sa.Text()),
        _needed("shown", sa.Text()),
        _needed("trace", sa.LargeBinary()),
        _needed("proven", sa.Boolean()),
        _needed("complete", sa.Boolean()),
        _needed("among", sa.BigInteger()),
        _needed("witnesses", sa.JSON()),
        _needed("opened", sa.JSON()),
        sa.PrimaryKeyConstraint("finding_id", "shown", name="pk_evidence"),
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
        sa.Column("incident_id", sa.Text()),
        sa.PrimaryKeyConstraint("finding_id", name="pk_findings"),
    )
    op.create_index("ix_findings_found_at_finding_id", "findings", ["found_at", "finding_id"])
    op.create_index("ix_findings_incident_id_found_at_finding_id", "findings", ["incident_id", "found_at", "finding_id"])
    op.create_index("ix_findings_instance_found_at_finding_id", "findings", ["instance", "found_at", "finding_id"])
    op.create_index("ix_findings_key_found_at_finding_id", "findings", ["key", "found_at", "finding_id"])
    op.create_index("ix_findings_kind_found_at_finding_id", "findings", ["kind", "found_at", "finding_id"])
    op.create_index("ix_findings_kind_status_found_at_finding_id", "findings", ["kind", "status", "found_at", "finding_id"])
    op.create_index("ix_findings_open", "findings", ["found_at", "finding_id"], postgresql_where=_OPEN, sqlite_where=_OPEN)
    op.create_index(
        "ix_findings_open_instance",
        "findings",
        ["target", "probe", "vantage", "part", "found_at"],
        postgresql_where=_OPEN,
        sqlite_where=_OPEN,
    )
    op.create_index("ix_findings_part_found_at_finding_id", "findings", ["part", "found_at", "finding_id"])
    op.create_index("ix_findings_probe_found_at_finding_id", "findings", ["probe", "found_at", "finding_id"])
    op.create_index("ix_findings_run_id_found_at_finding_id", "findings", ["run_id", "found_at", "finding_id"])
    op.create_index("ix_findings_status_found_at_finding_id", "findings", ["status", "found_at", "finding_id"])
    op.create_index("ix_findings_subscription_found_at_finding_id", "findings", ["subscription", "found_at", "finding_id"])
    op.create_index("ix_findings_target_found_at_finding_id", "findings", ["target", "found_at", "finding_id"])
    op.create_index("ix_findings_vantage_found_at_finding_id", "findings", ["vantage", "found_at", "finding_id"])


def _identity() -> None:
    table = op.create_table("identity", _needed("store_id", sa.Text()), sa.PrimaryKeyConstraint("store_id", name="pk_identity"))
    op.bulk_insert(table, [{"store_id": str(uuid4())}])


def _incidents() -> None:
    op.create_table(
        "incidents",
        _needed("incident_id", sa.Text()),
        _needed("target", sa.Text()),
        _needed("symptom", sa.Text()),
        _needed("first_at", sa.Double()),
        _needed("last_at", sa.Double()),
        _needed("closes_at", sa.Double()),
        _needed("affected", sa.JSON()),
        _needed("runs", sa.BigInteger()),
        _needed("runs_total", sa.BigInteger()),
        _needed("unsent", sa.BigInteger()),
        _needed("exemplar_id", sa.Text()),
        sa.Column("exemplar_events", sa.BigInteger()),
        sa.Column("closed_at", sa.Double()),
        sa.Column("acknowledged", sa.JSON()),
        sa.Column("raised_at", sa.Double()),
        sa.Column("first_acknowledged_at", sa.Double()),
        sa.PrimaryKeyConstraint("incident_id", name="pk_incidents"),
    )
    op.create_index("ix_incidents_first_at_incident_id", "incidents", ["first_at", "incident_id"])
    op.create_index("ix_incidents_last_at_incident_id", "incidents", ["last_at", "incident_id"])
    op.create_index("ix_incidents_raised_at", "incidents", ["raised_at"])
    op.create_index(
        "ix_incidents_open", "incidents", ["target", "symptom"], unique=True, postgresql_where=_OPEN, sqlite_where=_OPEN
    )
    op.create_index("ix_incidents_symptom_first_at_incident_id", "incidents", ["symptom", "first_at", "incident_id"])
    op.create_index("ix_incidents_target_first_at_incident_id", "incidents", ["target", "first_at", "incident_id"])
    op.create_index(
        "ix_incidents_target_symptom_first_at_incident_id", "incidents", ["target", "symptom", "first_at", "incident_id"]
    )


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
        _needed("last_heartbeat_at", sa.Double()),
        _needed("troubles", sa.JSON()),
        sa.Column("configuration", sa.JSON()),
        _needed("own", sa.JSON()),
        _needed("streams", sa.JSON()),
        sa.PrimaryKeyConstraint("instance", name="pk_probers"),
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
        _needed("figures", sa.JSON()),
        _needed("unreachable", sa.Boolean()),
        _needed("internal_error", sa.Boolean()),
        _needed("findings_omitted", sa.BigInteger()),
        _needed("prober", sa.JSON()),
        _needed("instance", sa.Text()),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_instance_started_at_run_id", "runs", ["instance", "started_at", "run_id"])
    op.create_index("ix_runs_part_started_at_run_id", "runs", ["part", "started_at", "run_id"])
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
    op.create_index("ix_runs_vantage_started_at_run_id", "runs", ["vantage", "started_at", "run_id"])
    op.create_index("ix_runs_verdict_started_at_run_id", "runs", ["verdict", "started_at", "run_id"])


def _instances() -> None:
    op.create_table(
        "probe_instances",
        _needed("instance", sa.Text()),
        _needed("target", sa.Text()),
        _needed("probe", sa.Text()),
        _needed("vantage", sa.Text()),
        _needed("part", sa.Text()),
        _needed("last_heartbeat_at", sa.Double()),
        _needed("interval_s", sa.Double()),
        _needed("schedule", sa.Text()),
        _needed("environment", sa.Text()),
        _needed("region", sa.Text()),
        _needed("endpoint", sa.Text()),
        _needed("guarantee", sa.Text()),
        _needed("topic", sa.Text()),
        _needed("subscription", sa.Text()),
        _needed("labels", sa.JSON()),
        sa.Column("verdict", sa.Text()),
        _needed("status", sa.Text()),
        sa.Column("since", sa.Double()),
        sa.Column("last_run_id", sa.Text()),
        sa.Column("last_pass_at", sa.Double()),
        sa.Column("next_run_at", sa.Double()),
        sa.Column("running_since", sa.Double()),
        sa.Column("overdue_s", sa.Double()),
        _needed("runs", sa.JSON()),
        _needed("runs_expected", sa.BigInteger()),
        _needed("runs_skipped", sa.BigInteger()),
        sa.Column("last_skip", sa.JSON()),
        sa.Column("maintenance", sa.Text()),
        sa.PrimaryKeyConstraint("instance", "target", "probe", "vantage", "part", name="pk_instances"),
    )


def _slices() -> None:
    op.create_table(
        "slices",
        _needed("objective", sa.Text()),
        _needed("definition", sa.Text()),
        _needed("length_s", sa.BigInteger()),
        _needed("begins_at", sa.Double()),
        _needed("target", sa.Text()),
        _needed("process", sa.Text()),
        _needed("good", sa.BigInteger()),
        _needed("bad", sa.BigInteger()),
        _needed("undecided", sa.BigInteger()),
        sa.PrimaryKeyConstraint("objective", "definition", "length_s", "begins_at", "target", "process", name="pk_slices"),
    )
    op.create_index("ix_slices_length_s_begins_at", "slices", ["length_s", "begins_at"])
