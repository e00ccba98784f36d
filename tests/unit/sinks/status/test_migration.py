"""The tables of the store: created once by the first program of several."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect

from prober.sinks.status.columns import Record
from prober.sinks.status.database import Database, StoreUnavailable
from prober.sinks.status.migration import prepare
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.revisions import VERSION_TABLE
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import entry


class TestForm:
    def test_the_migrations_make_the_tables_that_the_program_knows(self, database: Database, store: StatusStore) -> None:
        with database.reading() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
            assert compare_metadata(context, Record.metadata) == []
            assert set(inspect(connection).get_table_names()) == {*Record.metadata.tables, VERSION_TABLE}

    def test_replicas_that_start_together_do_it_once(self, url: str) -> None:
        replicas = [Database(url) for _ in range(4)]
        with ThreadPoolExecutor(len(replicas)) as pool:
            list(pool.map(prepare, replicas))
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

        def ended(*, checked: bool = True) -> AbstractContextManager[Connection]:
            if other.in_transaction:
                waits.append(other.execute("COMMIT"))
            return writing(checked=checked)

        monkeypatch.setattr(database, "writing", ended)
        prepare(database)
        assert len(waits) == 1
        with database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"

    def test_a_replica_does_not_wait_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        other = sqlite3.connect(tmp_path / "status.db", isolation_level=None)
        other.execute("CREATE TABLE other (x)")
        other.execute("BEGIN IMMEDIATE")
        database = Database(f"sqlite:///{tmp_path}/status.db")
        monkeypatch.setattr(database, "writing", lambda **_: nullcontext())  # others came in between each time
        with pytest.raises(StoreUnavailable, match="all the time"):
            prepare(database)

    def test_before_it_is_made_the_store_is_not_there(self, database: Database) -> None:
        with pytest.raises(StoreUnavailable):
            StatusQueries(database).runs()
