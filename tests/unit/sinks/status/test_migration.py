"""The form of the store: made once, by whoever comes first, and undone."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect

from prober.core.findings import Kind
from prober.sinks.status.columns import Record
from prober.sinks.status.database import Database, StatusError, StoreUnavailable
from prober.sinks.status.migration import VERSION_TABLE, migrate
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import START, entry


class TestForm:
    def test_the_migrations_make_the_tables_that_the_program_knows(self, database: Database, store: StatusStore) -> None:
        with database.reading() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
            assert compare_metadata(context, Record.metadata) == []
            assert set(inspect(connection).get_table_names()) == {*Record.metadata.tables, VERSION_TABLE}

    def test_what_went_up_comes_down_and_up_again(self, database: Database, store: StatusStore) -> None:
        store.record([entry()])
        migrate(database, "base")
        with database.reading() as connection:
            assert inspect(connection).get_table_names() == [VERSION_TABLE]
        store.prepare()
        assert StatusQueries(database).runs().items == ()

    def test_incidents_from_before_they_were_raised_stay_and_do_not_count(self, database: Database, store: StatusStore) -> None:
        store.record([entry("a", Kind.GHOST)])
        migrate(database, "records")
        store.prepare()
        store.record([entry("b", Kind.GHOST, at=START + 10.0)])
        queries = StatusQueries(database)
        assert [(one.runs, one.raised_at) for one in queries.open_incidents()] == [(2, None)]
        assert sum(queries.acknowledgements(START + 900.0).counts.values()) == 0

    def test_replicas_that_start_together_do_it_once(self, url: str) -> None:
        replicas = [Database(url) for _ in range(4)]
        with ThreadPoolExecutor(len(replicas)) as pool:
            list(pool.map(migrate, replicas))
        StatusStore(replicas[0]).record([entry()])
        assert [len(StatusQueries(each).runs().items) for each in replicas] == [1] * 4
        for each in replicas:
            each.close()

    def test_a_replica_that_starts_while_another_writes_waits_for_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        other = sqlite3.connect(tmp_path / "status.db", isolation_level=None)
        other.execute("CREATE TABLE other (x)")
        other.execute("BEGIN IMMEDIATE")  # SQLite does not wait for its end before it refuses another form of journal
        database = Database(f"sqlite:///{tmp_path}/status.db")
        writing, waits = database.writing, []

        def ended() -> AbstractContextManager[Connection]:
            if other.in_transaction:
                waits.append(other.execute("COMMIT"))
            return writing()

        monkeypatch.setattr(database, "writing", ended)
        migrate(database)
        assert len(waits) == 1
        with database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"

    def test_a_replica_does_not_wait_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        other = sqlite3.connect(tmp_path / "status.db", isolation_level=None)
        other.execute("CREATE TABLE other (x)")
        other.execute("BEGIN IMMEDIATE")
        database = Database(f"sqlite:///{tmp_path}/status.db")
        monkeypatch.setattr(database, "writing", lambda: nullcontext())  # others came in between each time
        with pytest.raises(StoreUnavailable, match="all the time"):
            migrate(database)

    def test_a_store_of_a_newer_program_is_left_alone(self, database: Database, store: StatusStore) -> None:
        with database.writing() as connection:
            connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '99'")
        with pytest.raises(StatusError, match="has schema 99"):
            store.prepare()

    def test_before_it_is_made_the_store_is_not_there(self, database: Database) -> None:
        with pytest.raises(StoreUnavailable):
            StatusQueries(database).runs()
