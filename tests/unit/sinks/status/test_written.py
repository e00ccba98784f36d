"""Single questions, which the driver is asked itself: both stores say the same, as the columns are declared, and nothing is left open."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import pytest
from sqlalchemy import bindparam, select, text

from prober.sinks.status import tables
from prober.sinks.status.database import Database, StoreUnavailable
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import entry

RUNS = select(tables.runs).order_by(tables.runs.c.started_at.desc()).limit(bindparam("rows"))
TIMES = (1_772_366_400.123456, 0.1, 1 / 3, 12345678.9012345, 5e-324, 1e22)
"""Which have more than 15 digits, or are written in another way."""


@pytest.fixture
def kept(store: StatusStore, database: Database) -> Database:
    """Two runs."""
    store.record([entry("run-1", at=100.0), entry("run-2", at=200.0)])
    return database


def test_a_list_is_what_a_transaction_would_read(kept: Database) -> None:
    with kept.reading() as connection:
        expected = [tuple(row) for row in connection.execute(RUNS, {"rows": 2})]
    assert [tuple(row) for row in kept.ask(RUNS, {"rows": 2})] == expected
    assert kept.ask_one(RUNS, {"rows": 1}) == dict(zip(tables.runs.columns.keys(), expected[0], strict=True))
    assert list(kept.ask(RUNS, {"rows": 0})) == []
    assert kept.ask_one(RUNS, {"rows": 0}) is None


@pytest.mark.parametrize("at", TIMES)
def test_nothing_of_a_number_is_lost(kept: Database, at: float) -> None:
    with kept.writing() as connection:
        connection.execute(tables.runs.update(), {"duration_s": at})
    assert [row[tables.runs.columns.keys().index("duration_s")] for row in kept.ask(RUNS, {"rows": 9})] == [at, at]


def test_texts_come_back_whatever_is_in_them(kept: Database) -> None:
    reason = "\x01\"'\\{}[],\n\N{SNOWMAN}\N{CAT FACE}"
    with kept.writing() as connection:
        connection.execute(tables.runs.update(), {"reason": reason})
    assert [row[tables.runs.columns.keys().index("reason")] for row in kept.ask(RUNS, {"rows": 9})] == [reason, reason]


def test_what_is_asked_leaves_no_transaction_open(kept: Database) -> None:
    """So the next one that uses the connection begins its own, and can take it back."""
    kept.ask(RUNS, {"rows": 1})
    with suppress(ZeroDivisionError), kept.writing() as connection:
        connection.execute(tables.runs.delete())
        raise ZeroDivisionError
    assert len(kept.ask(RUNS, {"rows": 9})) == 2
    with kept.engine.connect() as connection:
        lent = connection.connection.driver_connection
        assert not (lent.in_transaction if isinstance(lent, sqlite3.Connection) else lent.autocommit)  # type: ignore[union-attr]


def test_after_an_error_another_connection_is_used(kept: Database) -> None:
    kept.ask(RUNS, {"rows": 1})
    missing = select(text("x")).select_from(text("nowhere"))
    with pytest.raises(StoreUnavailable, match="nowhere"):
        kept.ask_one(missing, {})
    assert len(kept.ask(RUNS, {"rows": 9})) == 2
