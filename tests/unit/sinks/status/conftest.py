"""The same tests on both stores: each gets an empty one on SQLite, and one on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import sqlite_url
from tests.unit.sinks.status.postgresql import PostgreSQL, binaries


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    with PostgreSQL(binaries()) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> StatusStore:
    prepared = StatusStore(database)
    prepared.prepare()
    return prepared


@pytest.fixture
def queries(database: Database, store: StatusStore) -> StatusQueries:
    return StatusQueries(database)
