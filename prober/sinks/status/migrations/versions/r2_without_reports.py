"""Without the table of job reports: nothing ever wrote it. What the nightly jobs said stands in their own files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drops the table."""
    op.drop_table("reports")


def downgrade() -> None:
    """Makes it again, empty."""
    op.create_table(
        "reports",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("finished_at", sa.Double(), nullable=False),
        sa.Column("duration_s", sa.Double(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("day", "job", name="pk_reports"),
    )
