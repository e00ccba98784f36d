"""When incidents were raised, and first acknowledged. Of incidents that are there already neither is known: they do not count."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "raised"
down_revision = "records"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds both."""
    op.add_column("incidents", sa.Column("raised_at", sa.Double()))
    op.add_column("incidents", sa.Column("first_acknowledged_at", sa.Double()))
    op.create_index("ix_incidents_raised_at", "incidents", ["raised_at"])


def downgrade() -> None:
    """Drops both."""
    op.drop_index("ix_incidents_raised_at", "incidents")
    op.drop_column("incidents", "first_acknowledged_at")
    op.drop_column("incidents", "raised_at")
