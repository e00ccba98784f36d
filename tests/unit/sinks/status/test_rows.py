"""What is written is read as it was, from both stores, and a query leaves nothing open."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text, update

from prober.sinks.status.database import Database, StoreUnavailable
from prober.sinks.status.records import RunRecord
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import entry

RUNS = select(RunRecord)
TIMES = (1_772_366_400.123456, 0.1, 1 / 3, 12345678.9012345, 5e-324, 1e22)
"""Which have more than 15 digits, or are written in another way."""


@pytest.fixture
def kept(store: StatusStore, database: Database) -> Database:
    """Two runs."""
    store.record([entry("run-1", at=100.0), entry("run-2", at=200.0)])
    return database


@pytest.mark.parametrize("at", TIMES)
def test_nothing_of_a_number_is_lost(kept: Database, at: float) -> None:
    with kept.writing() as connection:
        connection.execute(update(RunRecord), {"duration_s": at})
    assert [row["duration_s"] for row in kept.rows(RUNS)] == [at, at]


def test_texts_come_back_whatever_is_in_them(kept: Database) -> None:
    reason = "\x01\"'\\{}[],\n\N{SNOWMAN}\N{CAT FACE}"
    with kept.writing() as connection:
        connection.execute(update(RunRecord), {"reason": reason})
    assert [row["reason"] for row in kept.rows(RUNS)] == [reason, reason]


def test_after_an_error_queries_go_on(kept: Database) -> None:
    with pytest.raises(StoreUnavailable, match="nowhere"):
        kept.rows(select(text("x")).select_from(text("nowhere")))
    assert len(kept.rows(RUNS)) == 2
