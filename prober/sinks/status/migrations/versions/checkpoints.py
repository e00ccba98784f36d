"""What the runs of a long-lived probe hand over to each other."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "checkpoints"
down_revision = "raised"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes both tables."""
    op.create_table(
        "checkpoints",
        *(_needed(name, sa.Text()) for name in ("name", "topic", "subscription", "epoch")),
        _needed("left_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_checkpoints"),
    )
    op.create_table(
        "waiting_publishes",
        _needed("name", sa.Text()),
        _needed("position", sa.BigInteger()),
        *(_needed(name, sa.Text()) for name in ("event", "key")),
        *(_needed(name, sa.BigInteger()) for name in ("seq", "generation")),
        _needed("message_id", sa.Text()),
        _needed("size", sa.BigInteger()),
        _needed("region", sa.Text()),
        sa.PrimaryKeyConstraint("name", "position", name="pk_waiting_publishes"),
    )


def downgrade() -> None:
    """Drops both."""
    op.drop_table("waiting_publishes")
    op.drop_table("checkpoints")


def _needed(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
