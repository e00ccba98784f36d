"""The same tests on both stores: each gets one of its own on SQLite, and one on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile

import pytest
from sqlalchemy.engine import make_url

from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import sqlite_url
from tests.unit.sinks.status.postgresql import PostgreSQL, binaries


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    with PostgreSQL(binaries()) as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store without runs, to be copied: to make its tables takes longer than most tests."""
    return _with_tables(sqlite_url(tmp_path_factory.mktemp("tables")))


@pytest.fixture(scope="session")
def postgresql_tables(postgresql: PostgreSQL) -> str:
    """The same on PostgreSQL."""
    return _with_tables(postgresql.new_database())


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database: with its tables for a test that asks for a store, else empty."""
    tables: str | None = request.getfixturevalue(f"{request.param}_tables") if "store" in request.fixturenames else None
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        return server.new_database(tables)
    if tables is not None:
        copyfile(str(make_url(tables).database), str(make_url(sqlite_url(tmp_path)).database))
    return sqlite_url(tmp_path)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> StatusStore:
    return StatusStore(database)


@pytest.fixture
def queries(database: Database, store: StatusStore) -> StatusQueries:
    return StatusQueries(database)


def _with_tables(url: str) -> str:
    database = Database(url)
    StatusStore(database).prepare()
    database.close()
    return url
