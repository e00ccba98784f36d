"""The status store goes away while it is written: nothing that was acknowledged is lost, nothing is there twice, nobody waits."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prober.clock import monotonic_s
from prober.core.findings import Kind
from prober.sinks.status import writer as writer_module
from prober.sinks.status.database import Database, StoreUnavailable
from prober.sinks.status.listings import RunFilter
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from prober.sinks.status.writer import StatusWriter
from prober.slo.objectives import HOUR_S, SliCounts
from tests.unit.sinks.status.examples import (
    INSTANCE,
    ORDER_IN_EUROPE,
    PROBER,
    RETENTION,
    START,
    entry,
    failed,
    result,
    snapshot,
    sqlite_url,
)
from tests.unit.sinks.status.postgresql import PostgreSQL, binaries

pytestmark = pytest.mark.nightly

KILLS = 3
PATIENCE_S = 180.0


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    with PostgreSQL(binaries()) as running:
        yield running


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """A database that is closed whatever happens: connections that are left to the garbage fail another test."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


def writer_to(database: Database, dropped: Callable[[int], None] = lambda _count: None) -> StatusWriter:
    """A writer at the time of the runs: at ours it would delete them for their age, as soon as the test lasts ten seconds."""
    return StatusWriter(StatusStore(database), PROBER, RETENTION, dropped=dropped, wall_clock=lambda: START)


def names_in(queries: StatusQueries) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = queries.runs(RunFilter(), limit=500, cursor=cursor)
        found += [record.run_id for record in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def wait_for(writer: StatusWriter, run_id: str) -> None:
    """The writer's thread does its work, in order, until it has written this run, or given it up."""
    give_up_t, pause = monotonic_s() + PATIENCE_S, threading.Event()
    while writer.is_waiting(run_id):
        assert monotonic_s() < give_up_t, writer.state()
        pause.wait(0.02)


def test_what_postgresql_acknowledged_before_it_was_killed_is_there(server: PostgreSQL) -> None:
    with opened(server.new_database()) as database:
        store, queries = StatusStore(database), StatusQueries(database)
        store.prepare()
        acknowledged: list[str] = []
        begun, over = threading.Event(), threading.Event()

        def write_on() -> None:
            for number in range(100_000):
                if over.is_set():
                    return
                name = f"run-{number:06}"
                try:
                    store.record([entry(name, Kind.GHOST, at=START + number)])
                except StoreUnavailable:
                    over.wait(0.01)
                    continue
                acknowledged.append(name)
                begun.set()

        writing = threading.Thread(target=write_on)
        writing.start()
        rng = random.Random(7)
        for _ in range(KILLS):
            begun.clear()
            assert begun.wait(PATIENCE_S)
            over.wait(rng.uniform(0.05, 0.3))
            server.kill()
            server.start()
        over.set()
        writing.join()
        names = names_in(queries)
        assert len(names) == len(set(names))
        assert set(acknowledged) <= set(names)
        found = [queries.finding(f"{name}-1") for name in acknowledged[-20:]]
        assert all(one is not None and one.evidence is not None for one in found)


def test_probing_goes_on_while_postgresql_is_away_and_everything_is_written_once(
    server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_FIRST_S", 0.05)
    dropped: list[int] = []
    with opened(server.new_database()) as database:
        writer = writer_to(database, dropped.append)
        writer.start()
        writer.ended(INSTANCE, result("run-first"), START)
        wait_for(writer, "run-first")
        count, findings = 1, 0
        for turn in range(KILLS):
            for server_state in ("up", "down"):
                if server_state == "down":
                    server.kill()
                for _ in range(150):
                    writer.ended(INSTANCE, result(f"run-{count:04}", at=START + count), START + count + 2.0)
                    count += 1
                outcome, recorded = failed(f"bad-{count:04}")
                writer.ended(INSTANCE, outcome, START + 2.0, recorded)
                writer.heartbeat(snapshot(SliCounts(count), START + turn))
                count, findings = count + 1, findings + 1
            server.start()
        wait_for(writer, f"bad-{count - 1:04}")
        state = writer.close()
        assert (state.dropped, state.error, dropped) == (0, "", [])
        queries = StatusQueries(database)
        names = names_in(queries)
        assert len(names) == len(set(names)) == count
        assert len(queries.findings(limit=500).items) == findings
        assert queries.counts(HOUR_S, START + 10.0) == {ORDER_IN_EUROPE: SliCounts(count - 1)}


def test_so_it_does_while_somebody_holds_the_lock_of_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "RETRY_FIRST_S", 0.05)
    with opened(sqlite_url(tmp_path)) as database, opened(sqlite_url(tmp_path)) as other:
        writer = writer_to(database)
        writer.start()
        writer.ended(INSTANCE, result("run-0"), START)
        wait_for(writer, "run-0")
        with other.writing():
            for number in range(1, 20):
                writer.ended(INSTANCE, result(f"run-{number}"), START)
            threading.Event().wait(0.1)
            assert all(writer.is_waiting(f"run-{number}") for number in range(1, 20))
        wait_for(writer, "run-19")
        writer.close()
        assert len(names_in(StatusQueries(database))) == 20
