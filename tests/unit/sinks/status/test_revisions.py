"""Programs of two versions on one store: additive and breaking revisions, upgrades, downgrades, and the compatibility statement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, MetaData

from prober.core.findings import Kind
from prober.errors import CheckpointUnavailable
from prober.sinks.status import database as database_module
from prober.sinks.status.checkpoints import StoredCheckpoints
from prober.sinks.status.database import Database, StatusError, StoreIncompatible
from prober.sinks.status.leases import Leases
from prober.sinks.status.migration import RevisionChange, downgrade, prepare, stored_revision, upgrade
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.revisions import VERSION_TABLE, StoreRevision, known, scripts
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import RETENTION, START, entry, watched
from tests.unit.sinks.status.later import ADDITIVE, BREAKING, program_with

TOO_OLD = (
    "the status store has revision 3, for which this program (revision 1) is too old: run `ordering-prober store downgrade --to 1` with "
    "the program that upgraded the store, or use that program"
)


@pytest.fixture(autouse=True)
def _check_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "CHECKED_EVERY_S", 0.0)


def leases(database: Database, holder: str = "a") -> Leases:
    return Leases(database, "group", holder, length_s=60.0)


def run_ids(database: Database) -> set[str]:
    return {run.run_id for run in StatusQueries(database).runs().items}


class TestAdditiveRevision:
    def test_the_earlier_program_reads_writes_and_shares_work(self, database: Database, store: StatusStore) -> None:
        store.record([entry("before", Kind.GHOST)])
        with program_with(ADDITIVE):
            prepare(database)
        assert stored_revision(database) == StoreRevision("2", "1", pinned=False)
        store.prepare()
        store.record([entry("after", Kind.GHOST, at=START + 10.0)])
        watched(store)
        store.tidy(RETENTION, START)
        assert leases(database).take({"x"}) == {"x"}
        assert leases(database, "b").take({"x", "y"}) == {"y"}
        assert run_ids(database) == {"before", "after"}
        assert [incident.runs for incident in StatusQueries(database).open_incidents()] == [2]
        assert stored_revision(database) == StoreRevision("2", "1", pinned=False)

    def test_a_downgrade_keeps_the_data_of_both_programs(self, database: Database, store: StatusStore) -> None:
        store.record([entry("one", Kind.GHOST)])
        with program_with(ADDITIVE):
            prepare(database)
            store.record([entry("two", Kind.GHOST, at=START + 10.0)])
            assert downgrade(database, "1") == RevisionChange("2", "1")
        store.record([entry("three", at=START + 20.0)])
        assert run_ids(database) == {"one", "two", "three"}
        assert [incident.runs for incident in StatusQueries(database).open_incidents()] == [2]

    def test_the_later_program_refuses_a_downgraded_store_until_the_command_upgrades_it(
        self, database: Database, store: StatusStore
    ) -> None:
        with program_with(ADDITIVE):
            prepare(database)
            downgrade(database, "1")
            for use in (lambda: prepare(database), lambda: run_ids(database), lambda: store.record([entry()])):
                with pytest.raises(StoreIncompatible) as refused:
                    use()
                assert str(refused.value) == (
                    "the status store has revision 1 after a downgrade, and this program needs 2: run `ordering-prober store upgrade`"
                )
            assert upgrade(database) == RevisionChange("1", "2")
            assert downgrade(database, "1") == RevisionChange("2", "1")
        assert upgrade(database) == RevisionChange("1", "1")  # the earlier program ends the pin too
        with program_with(ADDITIVE):
            prepare(database)
            store.record([entry()])


USES: dict[str, Callable[[Database], object]] = {
    "prepare": prepare,
    "upgrade": upgrade,
    "read": run_ids,
    "take leases": lambda database: leases(database).take({"x"}),
    "list holders": lambda database: leases(database).holders("x"),
    "record": lambda database: StatusStore(database).record([entry()]),
    "heartbeat": lambda database: watched(StatusStore(database)),
}


class TestBreakingRevision:
    @pytest.mark.parametrize("use", USES.values(), ids=USES)
    def test_the_earlier_program_is_refused(
        self, use: Callable[[Database], object], database: Database, store: StatusStore
    ) -> None:
        run_ids(database)  # which worked before
        with program_with(ADDITIVE, BREAKING):
            prepare(database)
        with pytest.raises(StoreIncompatible) as refused:
            use(database)
        assert str(refused.value) == TOO_OLD

    def test_checkpoints_are_unavailable(self, database: Database, store: StatusStore) -> None:
        with program_with(ADDITIVE, BREAKING):
            prepare(database)
        with pytest.raises(CheckpointUnavailable, match=r"run `ordering-prober store downgrade --to 1`"):
            asyncio.run(StoredCheckpoints(database, "a").read("x"))

    def test_only_the_program_that_contains_the_revision_downgrades_it(self, database: Database, store: StatusStore) -> None:
        store.record([entry("one")])
        leases(database).take({"x"})
        with program_with(ADDITIVE, BREAKING):
            prepare(database)
        with pytest.raises(StoreIncompatible, match=r"has revision 3, which this program \(revision 1\) does not contain"):
            downgrade(database, "1")
        with program_with(ADDITIVE, BREAKING):
            downgrade(database, "1")
        assert leases(database, "b").take({"x", "y"}) == {"y"}
        assert run_ids(database) == {"one"}


class TestCommands:
    def test_steps_are_taken_one_by_one(self, database: Database) -> None:
        with program_with(ADDITIVE, BREAKING):
            assert upgrade(database, "1") == RevisionChange(None, "1")
            assert upgrade(database, "2") == RevisionChange("1", "2")
            assert stored_revision(database) == StoreRevision("2", "1", pinned=False)
            assert upgrade(database) == RevisionChange("2", "3")
            assert downgrade(database, "2") == RevisionChange("3", "2")
            assert stored_revision(database) == StoreRevision("2", "1", pinned=True)
        assert upgrade(database) == RevisionChange("2", "2")  # newer, and compatible

    def test_the_wrong_direction_is_refused_with_the_right_command(self, database: Database) -> None:
        with pytest.raises(StatusError, match="empty"):
            downgrade(database, "1")
        with program_with(ADDITIVE):
            prepare(database)
            with pytest.raises(StatusError, match=r"run `ordering-prober store downgrade --to 1`"):
                upgrade(database, "1")
            downgrade(database, "1")
            with pytest.raises(StatusError, match=r"run `ordering-prober store upgrade --to 2`"):
                downgrade(database, "2")

    def test_replicas_that_start_together_upgrade_an_older_store_once(self, url: str) -> None:
        replicas = [Database(url) for _ in range(4)]
        prepare(replicas[0])
        StatusStore(replicas[0]).record([entry("one")])
        with program_with(ADDITIVE, BREAKING):
            with ThreadPoolExecutor(len(replicas)) as pool:
                list(pool.map(prepare, replicas))
            assert [stored_revision(each) for each in replicas] == [StoreRevision("3", "3", pinned=False)] * 4
            assert [run_ids(each) for each in replicas] == [{"one"}] * 4
        for each in replicas:
            each.close()

    def test_a_store_of_a_development_version_is_refused(self, database: Database) -> None:
        with database.writing(checked=False) as connection:
            connection.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)")
            connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('checkpoints')")
        with pytest.raises(StoreIncompatible, match=r"development version \(schema checkpoints\): use another store"):
            prepare(database)


class TestCompatibilityStatement:
    @pytest.mark.parametrize("later", [(), (ADDITIVE,), (ADDITIVE, BREAKING)], ids=["1", "2", "3"])
    def test_the_oldest_program_finds_its_tables_in_a_store_of_each_revision(self, later: tuple[Path, ...], url: str) -> None:
        with program_with(*later):
            tables = tables_by_revision(url)
            for script in scripts():
                assert differences(tables[script.module.oldest_program], tables[script.revision]) == []

    def test_a_wrong_statement_is_noticed(self, url: str) -> None:
        with program_with(ADDITIVE, BREAKING):
            tables = tables_by_revision(url)
        assert differences(tables["2"], tables["3"]) == [
            "leases.holder is gone",
            "leases.owner needs a default",
        ]


def tables_by_revision(url: str) -> dict[str, MetaData]:
    database, found = Database(url), {}
    for revision in known():
        upgrade(database, revision)
        with database.reading(checked=False) as connection:
            found[revision] = MetaData()
            found[revision].reflect(connection)
    database.close()
    return found


def differences(oldest: MetaData, newer: MetaData) -> list[str]:
    """The differences between two revisions that keep a program of the older one from using the newer one."""
    found = [f"{name} is gone" for name in oldest.tables if name not in newer.tables]
    for before, after in ((table, newer.tables[name]) for name, table in oldest.tables.items() if name in newer.tables):
        for column in before.columns:
            if column.name not in after.columns:
                found.append(f"{column} is gone")
            elif form(column) != form(after.columns[column.name]):
                found.append(f"{column} has another type")
        added = [column for column in after.columns if column.name not in before.columns]
        found += [f"{column} needs a default" for column in added if not column.nullable and column.server_default is None]
        known_indexes = {index.name for index in before.indexes}
        found += [f"{index.name} is unique" for index in after.indexes if index.unique and index.name not in known_indexes]
    return found


def form(column: Column[Any]) -> tuple[str, bool | None]:
    return str(column.type), column.nullable
