"""Brings the status store to the form that this program knows. Called at every start, by every replica.

One of them does it, the others wait: on PostgreSQL an advisory lock, on SQLite the lock of the file. It happens in one transaction, so
a replica that is killed in between leaves nothing half done.

    migrate(database)              # to the newest form
    migrate(database, "base")      # back to the beginning: everything is dropped
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from prober.sinks.status.database import Database, StatusError, StoreUnavailable

VERSION_TABLE: Final = "status_version"
ADVISORY_LOCK: Final = 0x6F6B70  # "okp"; what else locks in this database takes another number
WRITERS_MAX: Final = 20
"""How many other writers in a row are waited for."""


def migrate(database: Database, revision: str = "head") -> None:
    """Makes or changes the tables, upwards or downwards, to a revision.

    Raises `StoreUnavailable` if the store is not there or somebody holds the lock for too long, and `StatusError` if it has a form that
    this program does not know, such as that of a newer one.
    """
    if database.is_sqlite:
        _write_ahead(database)
    with database.writing() as connection:
        if not database.is_sqlite:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": ADVISORY_LOCK})
        database.take_time(connection)
        _move(connection, revision)


def revision_of(connection: Connection) -> str | None:
    """The form that the store has; None: it is empty."""
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def _write_ahead(database: Database) -> None:
    """Lets readers and the writer of an SQLite file go on side by side. The file remembers it.

    While another replica writes, SQLite refuses this at once: each time the next one waits for the end of that write.
    """
    with database.reading() as connection:
        raw: Any = connection.connection.dbapi_connection
        for _ in range(WRITERS_MAX):
            try:
                raw.execute("PRAGMA journal_mode=WAL").close()
                return
            except sqlite3.OperationalError:
                _await_writer(database)
    raise StoreUnavailable(f"{database}: others write to it all the time")


def _await_writer(database: Database) -> None:
    """Returns when nobody writes any more. Raises `StoreUnavailable` if that takes too long."""
    with database.writing():
        pass


def _move(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    current = revision_of(connection)
    if current is not None and current not in known:
        raise StatusError(
            f"the status store has schema {current}, which this program does not know (its own is {known[0]}): use the version that made "
            "the store, or another store"
        )
    target = known[0] if revision == "head" else revision
    if current == target:
        return
    forward = target != "base" and (current is None or known.index(target) < known.index(current))
    (command.upgrade if forward else command.downgrade)(config, target)
