"""Of each run, whether it could reach its target. Those before say it in their reason, if at all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("runs", sa.Column("unreachable", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Drops it."""
    op.drop_column("runs", "unreachable")
