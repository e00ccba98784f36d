"""Of each finding everything on its key, beside the smallest history that shows it. Findings that are there already have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "6"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table."""
    op.create_table(
        "key_evidence",
        sa.Column("finding_id", sa.Text(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.Column("proven", sa.Boolean(), nullable=False),
        sa.Column("among", sa.BigInteger(), nullable=False),
        sa.Column("witnesses", sa.JSON(), nullable=False),
        sa.Column("opened", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("finding_id", name="pk_key_evidence"),
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("key_evidence")
