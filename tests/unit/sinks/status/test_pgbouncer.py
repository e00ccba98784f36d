"""The store works through PgBouncer with its default settings, which lends a session to one transaction at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import entry
from tests.unit.sinks.status.pgbouncer import pooled, program
from tests.unit.sinks.status.postgresql import PostgreSQL

LIMITS = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    program()
    server: PostgreSQL = request.getfixturevalue("postgresql")
    with pooled(server.new_database(), server.user) as url:
        opened = Database(url)
        yield opened
        opened.close()


def test_a_store_is_set_up_written_and_read(database: Database) -> None:
    store = StatusStore(database)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: store.prepare(), range(8)))
        list(threads.map(lambda number: store.record([entry(f"run-{number}")]), range(40)))
        found = list(threads.map(lambda _: len(StatusQueries(database).runs(limit=100).items), range(40)))
    assert found == [40] * 40


def test_the_limits_hold_in_a_transaction_and_end_with_it(database: Database) -> None:
    with database.reading() as connection:
        assert tuple(connection.exec_driver_sql(LIMITS).one()) == ("10s", "10s")
    raw = database.engine.raw_connection()  # SQLAlchemy begins no transaction on it, and so sets no limits
    cursor = raw.cursor()
    cursor.execute(LIMITS)
    assert cursor.fetchone() == ("0", "0")
    raw.close()
