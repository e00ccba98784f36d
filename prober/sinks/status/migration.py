"""Changes of the revision of a status store: at the start of a program, and by the commands `ordering-prober store`.

    prepare(database)              # at the start of every program, by every replica
    upgrade(database)              # a command: also of a pinned store
    downgrade(database, "1")       # a command: pins the store, so that running programs do not upgrade it again

One program changes the store, the others wait: on PostgreSQL for an advisory lock, on SQLite for the lock of the file. Each change is one
transaction, so a program that is killed leaves nothing half done.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from alembic import command
from sqlalchemy import Connection, text

from prober.sinks.status.database import Database, StatusError, StoreIncompatible, StoreUnavailable
from prober.sinks.status.revisions import (
    DOWNGRADE,
    UPGRADE,
    VERSION_TABLE,
    StoreRevision,
    configuration,
    known,
    read_revision,
    refusal,
    scripts,
)

ADVISORY_LOCK: Final = 0x6F6B70  # "okp"; what else locks in this database takes another number
WRITERS_MAX: Final = 20
"""Maximum number of other writers to wait for, one after the other."""


@dataclass(frozen=True, slots=True)
class RevisionChange:
    """The revision of a store before and after a command; `before` is None for a store that was empty."""

    before: str | None
    after: str


def prepare(database: Database) -> None:
    """Create the tables of an empty store, or upgrade a store that is not pinned.

    A store that fits is only read. Raises `StoreIncompatible` for a store that this program may not use or upgrade, and `StoreUnavailable`.
    """
    if _fits(stored_revision(database)):
        return
    with _locked(database) as connection:
        store = read_revision(connection)
        if _fits(store):
            return
        if store is not None and (store.pinned or store.revision not in known()):
            raise StoreIncompatible(refusal(store))
        _move(connection, store, known()[-1])


def upgrade(database: Database, to: str | None = None) -> RevisionChange:
    """Upgrade a store to a revision of this program and end its pin.

    `to` is by default the newest revision. A newer store that fits stays as it is.

    Raises `StoreIncompatible` for a newer store that does not fit, `StatusError` for a `to` that is older than the store, and
    `StoreUnavailable`.
    """
    revisions = known()
    target = to or revisions[-1]
    with _locked(database) as connection:
        store = read_revision(connection)
        if store is not None and store.revision not in revisions:
            if reason := refusal(store):
                raise StoreIncompatible(reason)
            return RevisionChange(store.revision, store.revision)
        if store is not None and revisions.index(store.revision) > revisions.index(target):
            raise StatusError(f"the status store has revision {store.revision}, which is newer: run `{DOWNGRADE} --to {target}`")
        return _move(connection, store, target)


def downgrade(database: Database, to: str) -> RevisionChange:
    """Downgrade a store to a revision of this program and pin it.

    Raises `StoreIncompatible` for a store whose revision this program does not contain, `StatusError` for a `to` that is newer than the
    store, and `StoreUnavailable`.
    """
    revisions = known()
    with _locked(database) as connection:
        store = read_revision(connection)
        if store is None:
            raise StatusError("the status store is empty: there is nothing to downgrade")
        if store.revision not in revisions:
            raise StoreIncompatible(
                f"the status store has revision {store.revision}, which this program (revision {revisions[-1]}) does not contain: run "
                f"`{DOWNGRADE} --to {to}` with the program that upgraded the store"
            )
        if revisions.index(store.revision) < revisions.index(to):
            raise StatusError(f"the status store has revision {store.revision}, which is older: run `{UPGRADE} --to {to}`")
        return _move(connection, store, to, pinned=True)


def stored_revision(database: Database) -> StoreRevision | None:
    """Read the revision of a store, whether it fits or not; None: the store is empty.

    Raises `StoreUnavailable`.
    """
    with database.reading(checked=False) as connection:
        return read_revision(connection)


def _fits(store: StoreRevision | None) -> bool:
    return store is not None and not refusal(store)


@contextmanager
def _locked(database: Database) -> Iterator[Connection]:
    """Start a transaction that excludes every other change of the revision."""
    if database.is_sqlite:
        _write_ahead(database)
    with database.writing(checked=False) as connection:
        if not database.is_sqlite:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": ADVISORY_LOCK})
        database.take_time(connection)
        yield connection


def _write_ahead(database: Database) -> None:
    """Let readers and the writer of an SQLite file work at the same time; the file keeps the setting.

    SQLite refuses the change while another replica writes; each retry waits for the end of that write.
    """
    with database.reading(checked=False) as connection:
        raw: Any = connection.connection.dbapi_connection
        for _ in range(WRITERS_MAX):
            try:
                raw.execute("PRAGMA journal_mode=WAL").close()
                return
            except sqlite3.OperationalError:
                with database.writing(checked=False):  # returns when no writer is active
                    pass
    raise StoreUnavailable(f"{database}: others write to it all the time")


def _move(connection: Connection, store: StoreRevision | None, to: str, *, pinned: bool = False) -> RevisionChange:
    """Apply the steps to a revision and write the compatibility statement of that revision."""
    revisions = known()
    config = configuration()
    config.attributes["connection"] = connection
    is_older = store is None or revisions.index(store.revision) < revisions.index(to)
    (command.upgrade if is_older else command.downgrade)(config, to)
    (oldest_program,) = (script.module.oldest_program for script in scripts() if script.revision == to)
    statement = text(f"UPDATE {VERSION_TABLE} SET oldest_program = :oldest_program, pinned = :pinned")
    connection.execute(statement, {"oldest_program": oldest_program, "pinned": pinned})
    return RevisionChange(None if store is None else store.revision, to)
