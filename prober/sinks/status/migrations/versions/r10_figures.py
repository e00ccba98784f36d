"""Of each run what its probe measured once. Runs that are there already measured nothing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "10"
down_revision = "9"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("runs", sa.Column("figures", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drops it."""
    op.drop_column("runs", "figures")
