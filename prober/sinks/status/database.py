"""The database of the status store: SQLite or PostgreSQL, transactions, and translation of their errors.

There are three kinds of errors. `StoreUnavailable`: the store does not answer, is locked, full or not yet set up; a retry may succeed.
`StoreIncompatible`: the store has a revision that this program may not use. `NotStorable`: the database does not accept a value; a retry
fails too.

On SQLite a writing transaction takes the lock at its start (BEGIN IMMEDIATE), because a transaction that reads first and gets the lock
later may have to be repeated as a whole. Readers never wait for the lock (write-ahead log). A commit is on disk when it returns.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from sqlalchemy import ColumnElement, Connection, Double, RowMapping, Select, cast, create_engine, event, extract, func
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from prober.clock import monotonic_s
from prober.errors import ProberError
from prober.sinks.status.columns import Record
from prober.sinks.status.revisions import read_revision, refusal
from prober.slo.objectives import DAY_S

WAIT_MAX_S: Final = 5
"""Longest wait for a connection, or for SQLite's lock."""
STATEMENT_MAX_S: Final = 10
_TRANSACTION_LIMITS_S: Final = {
    "statement_timeout": STATEMENT_MAX_S,
    "lock_timeout": STATEMENT_MAX_S,
    "idle_in_transaction_session_timeout": 60,
}
"""Timeouts that PostgreSQL enforces; `options` in the URL override them."""
UNIX_EPOCH_JD: Final = 2_440_587.5
"""1970 as a Julian day, the unit of SQLite's clock."""
CONNECTIONS_MAX: Final = 20
CHECKED_EVERY_S: Final = 2.0
"""Interval between checks of the store's revision: a program notices an incompatible store after at most this time."""

_WRITES: Final = "prober_writes"
_SQLITE: Final = "sqlite"
_DRIVERS: Final = {_SQLITE: "sqlite", "postgresql": "postgresql+psycopg"}
_AnyRecord = TypeVar("_AnyRecord", bound=Record)
_READ_ONLY_TRANSACTION: Final = "25006"
"""SQLSTATE of a write in a read-only transaction."""
_UNACCEPTABLE: Final = ("22", "23", "54")
"""Classes of SQLSTATE about the written values: data exception, integrity violation, limit exceeded."""


class StatusError(ProberError):
    """A failed operation of the status store; the text states the reason in one line, without the password."""


class StoreUnavailable(StatusError):
    """The store does not answer now; a retry may succeed."""


class StoreReadOnly(StoreUnavailable):
    """The store answers, but is read-only until an operator makes it writable."""


class StoreIncompatible(StatusError):
    """The store has a revision that this program may not use; the text names the command that changes that, and no host."""


class NotStorable(StatusError):
    """The database does not accept a value; a retry fails too."""


class Database:
    """Connections to one database, opened on demand; safe for any thread."""

    def __init__(self, url: str) -> None:
        """Open no connection yet. Raises `StatusError` for an unusable URL."""
        self._url = _checked(url)
        self.is_sqlite = self._url.get_backend_name() == _SQLITE
        self.engine = self._new_engine()
        self._checked_until_t = -inf

    def __str__(self) -> str:
        return self._url.render_as_string(hide_password=True)

    @property
    def is_missing(self) -> bool:
        """Whether it is an SQLite file that does not exist: a question would make it."""
        return self.is_sqlite and not Path(self._url.database or "").exists()

    @contextmanager
    def reading(self, *, checked: bool = True) -> Iterator[Connection]:
        """Start a transaction that reads one state of the database.

        Raises `StoreUnavailable`, and if `checked` `StoreIncompatible` for a store that this program may not use.
        """
        with self._translated(), self.engine.connect() as connection:
            if checked:
                self._check(connection)
            yield connection

    def rows(self, query: Select[*tuple[Any, ...]]) -> Sequence[RowMapping]:
        """Return the rows of a query, in a transaction of its own. Raises `StoreUnavailable`."""
        with self.reading() as connection:
            return connection.execute(query).mappings().all()

    def records(self, query: Select[_AnyRecord]) -> Sequence[_AnyRecord]:
        """Return the records of a query, in a transaction of its own. Raises `StoreUnavailable`."""
        with self.reading() as connection:
            return records_in(connection, query)

    @contextmanager
    def writing(self, *, checked: bool = True) -> Iterator[Connection]:
        """Start a transaction that is committed at the end; committed data is durable.

        Raises `StoreUnavailable`, after which it is unknown whether the commit succeeded, or `NotStorable`, and if `checked`
        `StoreIncompatible` for a store that this program may not use.
        """
        with self._translated(), self.engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
            if checked:
                self._check(connection)
            yield connection

    def _check(self, connection: Connection) -> None:
        """Compare the revision of the store with this program every few seconds.

        Another program may upgrade or downgrade the store at any time.
        """
        now = monotonic_s()
        if now < self._checked_until_t:
            return
        store = read_revision(connection)
        if store is None:
            raise StoreUnavailable(f"{self} has no tables yet")
        if reason := refusal(store):
            raise StoreIncompatible(reason)
        self._checked_until_t = now + CHECKED_EVERY_S

    def take_time(self, connection: Connection) -> None:
        """Lift the statement timeout for this transaction, for work in the background."""
        if not self.is_sqlite:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")

    def now(self) -> ColumnElement[float]:
        """Return the clock of the database, in seconds since 1970."""
        if self.is_sqlite:
            return (func.julianday("now") - UNIX_EPOCH_JD) * DAY_S
        return cast(extract("epoch", func.clock_timestamp()), Double)

    def insert(self, kind: type[Record]) -> sqlite.Insert | postgresql.Insert:
        """Return an INSERT statement with support for ON CONFLICT."""
        return sqlite.insert(kind) if self.is_sqlite else postgresql.insert(kind)

    def close(self) -> None:
        """Close idle connections now, and each busy connection when its thread returns it."""
        event.listen(self.engine.pool, "checkin", _close_returned)
        self.engine.dispose()

    def _new_engine(self) -> Engine:
        arguments: dict[str, object] = {"timeout": WAIT_MAX_S} if self.is_sqlite else _postgresql_arguments(self._url.query)
        engine = create_engine(
            self._url,
            connect_args=arguments,
            json_serializer=partial(json.dumps, allow_nan=False),
            json_deserializer=orjson.loads,
            pool_size=CONNECTIONS_MAX // 2,
            max_overflow=CONNECTIONS_MAX // 2,
            pool_timeout=WAIT_MAX_S,
            pool_pre_ping=not self.is_sqlite,
            hide_parameters=True,
        )
        if self.is_sqlite:
            event.listen(engine, "connect", _configure_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        elif "options" not in self._url.query:
            event.listen(engine, "begin", _limit_postgresql)
        return engine

    @contextmanager
    def _translated(self) -> Iterator[None]:
        driver: Any = self.engine.dialect.loaded_dbapi
        try:
            yield
        except (SQLAlchemyError, driver.Error) as error:
            if _is_read_only(error):
                raise StoreReadOnly(f"{self} is read-only: give the prober permission to write it") from error
            what = f"{self}: {_first_line(error)}"
            raise NotStorable(what) if _is_unacceptable(error, driver) else StoreUnavailable(what) from error
        except (OverflowError, UnicodeEncodeError) as error:  # a driver that cannot even send it
            raise NotStorable(f"{self}: {error}") from error


def records_in(connection: Connection, query: Select[_AnyRecord]) -> Sequence[_AnyRecord]:
    """Return the records of a query, in the transaction of a connection."""
    with Session(connection) as session:
        return session.scalars(query).all()


def _checked(url: str) -> URL:
    try:
        given = make_url(url)
    except ArgumentError:
        raise StatusError("status.url is no database URL: write sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME") from None
    driver = _DRIVERS.get(given.get_backend_name())
    if driver is None or given.drivername not in (given.get_backend_name(), driver):
        raise StatusError(f"status.url: {given.drivername} cannot be used; write sqlite:///FILE or postgresql://...")
    if driver == _SQLITE and given.database in (None, "", ":memory:"):
        raise StatusError("status.url: SQLite needs a file: write sqlite:///FILE")
    return given.set(drivername=driver)


def _postgresql_arguments(query: Mapping[str, object]) -> dict[str, object]:
    """Return the default settings of a connection; the URL may override them.

    They work with PgBouncer in transaction mode: no `options` at the start and no prepared statements, which belong to a session.
    """
    arguments = {
        "connect_timeout": WAIT_MAX_S,
        "tcp_user_timeout": STATEMENT_MAX_S * 1000,
        "application_name": "ordering-prober",
    }
    return {"prepare_threshold": None, **{name: value for name, value in arguments.items() if name not in query}}


def _limit_postgresql(connection: Connection) -> None:
    """Set the timeouts of a transaction. They end with it, because PgBouncer gives its session to other clients."""
    settings = ", ".join(f"set_config('{name}', '{seconds}s', true)" for name, seconds in _TRANSACTION_LIMITS_S.items())
    connection.exec_driver_sql(f"SELECT {settings}")


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions by itself: SQLAlchemy does
    connection.execute("PRAGMA synchronous=FULL")


def _close_returned(_connection: object, record: ConnectionPoolEntry) -> None:
    record.invalidate()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITES) else "BEGIN")


def _is_unacceptable(error: Exception, driver: Any) -> bool:
    cause = _cause(error)
    if isinstance(cause, driver.Error):
        state = getattr(cause, "sqlstate", None)
        return isinstance(cause, driver.DataError | driver.IntegrityError) or str(state or "")[:2] in _UNACCEPTABLE
    return type(error).__name__ == "StatementError"  # a value that cannot be turned into what the database knows


def _is_read_only(error: Exception) -> bool:
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)  # sqlite3 raises some errors itself
        return bool(code & 0xFF == sqlite3.SQLITE_READONLY)  # the low byte of an extended code
    return getattr(cause, "sqlstate", None) == _READ_ONLY_TRANSACTION


def _first_line(error: Exception) -> str:
    cause = _cause(error)
    return str(cause).partition("\n")[0] or repr(cause)


def _cause(error: Exception) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else error
