"""Of each prober what it read of the user's own subscriptions. Those that do not say read nothing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "12"
down_revision = "10"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("probers", sa.Column("own", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Drops it."""
    op.drop_column("probers", "own")
