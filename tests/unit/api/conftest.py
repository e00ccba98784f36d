"""What holds for every test of the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from prober.sinks.status.database import Database


@pytest.fixture(autouse=True)
def closed_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes what a test opened, whoever opened it: one process does many of these tests, and has few descriptors.

    What is kept for other tests opens again by itself.
    """
    engines: list[Engine] = []
    new_engine = Database._new_engine

    def noted(self: Database) -> Engine:
        engines.append(new_engine(self))
        return engines[-1]

    monkeypatch.setattr(Database, "_new_engine", noted)
    yield
    for engine in engines:
        engine.dispose()
