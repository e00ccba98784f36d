"""Notes on runs and incidents: a revision of a later program that only adds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"
oldest_program = "1"


def upgrade() -> None:
    """Add a table, an index, a column that is nullable and one with a default."""
    op.create_table("notes", sa.Column("run_id", sa.Text(), primary_key=True), sa.Column("note", sa.Text(), nullable=False))
    op.add_column("runs", sa.Column("note", sa.Text()))
    op.add_column("incidents", sa.Column("notes", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_index("ix_runs_note", "runs", ["note"])


def downgrade() -> None:
    """Delete them."""
    op.drop_index("ix_runs_note", "runs")
    op.drop_column("incidents", "notes")
    op.drop_column("runs", "note")
    op.drop_table("notes")
