"""Of each prober the streams that it observes, with their top keys. Those that do not say observe none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "13"
down_revision = "12"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("probers", sa.Column("streams", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Drops it."""
    op.drop_column("probers", "streams")
