"""The entry point of Alembic: run the migrations on the connection that `prober.sinks.status.migration` has opened and locked."""

from __future__ import annotations

from alembic import context

from prober.sinks.status.columns import Record
from prober.sinks.status.revisions import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Record.metadata,
    transactional_ddl=True,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
