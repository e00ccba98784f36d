"""A name of the store that no other has: what is made of it can be told from what another deployment makes."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table with its only row."""
    table = op.create_table(
        "identity", sa.Column("store_id", sa.Text(), nullable=False), sa.PrimaryKeyConstraint("store_id", name="pk_identity")
    )
    op.bulk_insert(table, [{"store_id": str(uuid4())}])


def downgrade() -> None:
    """Drops it."""
    op.drop_table("identity")
