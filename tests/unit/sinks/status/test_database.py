"""The database behind the store: which URLs it takes, and errors in one line without a password."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from prober.sinks.status.database import Database, StatusError, StoreReadOnly, StoreUnavailable
from prober.sinks.status.queries import StatusQueries
from tests.unit.sinks.status.examples import entry, sqlite_url, store_at


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://host/name",
        "postgresql+asyncpg://host/name",
        "sqlite+aiosqlite:///a.db",
        "a.db",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(StatusError, match=r"^status\.url") as refused:
        Database(url)
    assert "\n" not in str(refused.value)


def test_the_password_is_never_shown(tmp_path: Path) -> None:
    database = Database(f"postgresql://ada:s3cret@/name?host={tmp_path}")
    with pytest.raises(StoreUnavailable) as refused:
        StatusQueries(database).runs()
    assert "s3cret" not in f"{refused.value} {database}"
    assert "\n" not in str(refused.value)
    database.close()


def test_the_url_may_set_its_own_timeouts(tmp_path: Path) -> None:
    database = Database(f"postgresql://ada@/name?host={tmp_path}&connect_timeout=2")
    _, arguments = database.engine.dialect.create_connect_args(database.engine.url)
    assert arguments["connect_timeout"] == "2"
    database.close()


def test_a_folder_that_is_missing_is_an_unavailable_store(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/missing/status.db")
    with pytest.raises(StoreUnavailable, match="unable to open database file"):
        StatusQueries(database).runs()
    database.close()


def test_a_store_that_is_read_only_is_named_so(tmp_path: Path) -> None:
    store_at(sqlite_url(tmp_path))
    path = sqlite_url(tmp_path).removeprefix("sqlite:///")
    database = Database(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert StatusQueries(database).runs().items == ()
    with pytest.raises(StoreReadOnly, match="is read-only"), database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM runs")
    database.close()


def test_readers_do_not_wait_for_a_writer_and_see_no_half_of_it(tmp_path: Path) -> None:
    store = store_at(sqlite_url(tmp_path))
    store.record([entry("run-1")])
    writing, reading = Database(sqlite_url(tmp_path)), Database(sqlite_url(tmp_path))
    with writing.writing() as connection:
        connection.exec_driver_sql("DELETE FROM runs")
        assert len(StatusQueries(reading).runs().items) == 1
    assert StatusQueries(reading).runs().items == ()
    for each in (writing, reading):
        each.close()


def test_what_is_in_use_when_it_is_closed_is_closed_when_it_is_returned(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    with database.reading(checked=False) as connection:
        used = connection.connection.driver_connection
        assert isinstance(used, sqlite3.Connection)
        database.close()
        used.execute("SELECT 1")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        used.execute("SELECT 1")
