"""The words of the field: a prober sends heartbeats, a site has a status."""

from __future__ import annotations

from alembic import op

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None

_RENAMED = (("probers", "told_at", "last_heartbeat_at"), ("sites", "told_at", "last_heartbeat_at"), ("sites", "standing", "status"))


def upgrade() -> None:
    """Renames the columns; what is in them stays."""
    for table, before, after in _RENAMED:
        op.alter_column(table, before, new_column_name=after)


def downgrade() -> None:
    """Gives them their old names."""
    for table, before, after in _RENAMED:
        op.alter_column(table, after, new_column_name=before)
