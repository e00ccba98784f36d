"""Of each prober, which configuration is in force there. Those that do not say have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9"
down_revision = "8"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("probers", sa.Column("configuration", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Drops it."""
    op.drop_column("probers", "configuration")
