"""Owners of leases: a revision of a later program that earlier programs cannot use."""

from __future__ import annotations

from alembic import op

revision = "3"
down_revision = "2"
oldest_program = "3"


def upgrade() -> None:
    """Rename a column."""
    op.execute("ALTER TABLE leases RENAME COLUMN holder TO owner")


def downgrade() -> None:
    """Rename it back."""
    op.execute("ALTER TABLE leases RENAME COLUMN owner TO holder")
