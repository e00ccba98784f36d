"""Of each run, which prober made it, in a column of its own; and an index for every filter of the lists that had none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"
branch_labels = None
depends_on = None

_RUNS = sa.table("runs", sa.column("instance", sa.Text()), sa.column("prober", sa.JSON()))
_OF_RUNS = ("vantage", "part", "instance")
_OF_FINDINGS = ("probe", "vantage", "part", "instance")


def upgrade() -> None:
    """Adds the column, fills it, and makes the indexes."""
    op.add_column("runs", sa.Column("instance", sa.Text(), nullable=False, server_default=""))
    op.execute(_RUNS.update().values(instance=sa.func.coalesce(_RUNS.c.prober["instance"].as_string(), "")))
    for name in _OF_RUNS:
        op.create_index(f"ix_runs_{name}_started_at_run_id", "runs", [name, "started_at", "run_id"])
    for name in _OF_FINDINGS:
        op.create_index(f"ix_findings_{name}_found_at_finding_id", "findings", [name, "found_at", "finding_id"])


def downgrade() -> None:
    """Drops them."""
    for name in _OF_FINDINGS:
        op.drop_index(f"ix_findings_{name}_found_at_finding_id", "findings")
    for name in _OF_RUNS:
        op.drop_index(f"ix_runs_{name}_started_at_run_id", "runs")
    op.drop_column("runs", "instance")
