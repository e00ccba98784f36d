"""What is deleted from the store: the old, and of each target what is too much."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from prober.core.findings import Kind
from prober.sinks.status import retention
from prober.sinks.status.database import Database
from prober.sinks.status.listings import FindingFilter, RunFilter
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Evidence, Shown
from prober.sinks.status.slices import LONG_S, SHORT_S
from prober.sinks.status.store import StatusStore
from prober.slo.objectives import DAY_S, HOUR_S, SliCounts
from tests.unit.sinks.status.examples import RETENTION, START, US, entry, snapshot


class TestRetention:
    def test_what_is_old_goes(self, database: Database, store: StatusStore, queries: StatusQueries) -> None:
        both = [entry("old", Kind.STUCK), entry("new", Kind.GHOST, at=START + 100.0)]
        store.record(replace(one, findings=tuple(replace(each, on_key=each.evidence) for each in one.findings)) for one in both)
        store.heartbeat(ProberRecord("gone", "1", START, START), snapshot().probe_instances)
        now = START + 100.0 + RETENTION.retention_s
        tidied = store.tidy(RETENTION, now)
        assert (tidied.expired, tidied.evicted, tidied.done) == (3, 0, True)
        assert [record.run_id for record in queries.runs().items] == ["new"]
        assert [record.finding_id for record in queries.findings().items] == ["new-1"]
        assert [one.incident_id for one in queries.incidents().items] == ["new-integrity"]
        with database.reading() as connection:
            left = connection.execute(select(Evidence.finding_id, Evidence.shown)).all()
            assert sorted(left) == [("new-1", Shown.KEY), ("new-1", Shown.SMALLEST)]
        assert (queries.probe_instances(), queries.probers()) == ((), ())

    def test_a_noisy_target_pushes_out_only_itself(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record(entry(f"noisy-{number:03}", Kind.GHOST, Kind.PHANTOM, at=START + number) for number in range(30))
        store.record(entry(f"quiet-{number}", Kind.GHOST, at=START - 100.0 + number, probe_instance=US) for number in range(4))
        tidied = store.tidy(replace(RETENTION, runs_per_target_max=10, findings_per_target_max=5), START + 100.0)
        assert (tidied.expired, tidied.evicted) == (0, 20 + 54)
        assert [record.run_id for record in queries.runs(RunFilter(target="europe")).items] == [
            f"noisy-{number:03}" for number in reversed(range(20, 30))
        ]
        kept = [record.finding_id for record in queries.findings(FindingFilter(target="europe")).items]
        assert sorted(kept[5:]) == sorted(one.exemplar.finding_id for one in queries.open_incidents() if one.target == "europe")
        assert len(kept) == 5 + 1
        assert len(queries.runs(RunFilter(target="us")).items) == len(queries.findings(FindingFilter(target="us")).items) == 4

    def test_a_pass_is_bounded_and_the_next_one_goes_on(
        self, store: StatusStore, queries: StatusQueries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "DELETED_AT_ONCE_MAX", 3)
        monkeypatch.setattr(retention, "DELETED_PER_PASS_MAX", 8)
        store.record(entry(f"run-{number:02}", at=START + number) for number in range(20))
        retention_policy = replace(RETENTION, runs_per_target_max=5)
        passes = [store.tidy(retention_policy, START) for _ in range(3)]
        assert [(each.evicted, each.done) for each in passes] == [(8, False), (7, True), (0, True)]
        assert [record.run_id for record in queries.runs().items] == [f"run-{number}" for number in reversed(range(15, 20))]

    def test_slices_that_no_window_reaches_go(self, store: StatusStore, database: Database) -> None:
        begins = [START - 100 * DAY_S, START - 3 * DAY_S, START - HOUR_S]
        reported = [
            Slice("p", "europe", "order", "order", length_s, at, SliCounts(1)) for at in begins for length_s in (SHORT_S, LONG_S)
        ]
        store.heartbeat(ProberRecord("p", "1", START, START), slices=reported)
        store.tidy(RETENTION, START)
        with database.reading() as connection:
            left = connection.exec_driver_sql("SELECT length_s, begins_at FROM slices ORDER BY 1, 2").all()
        assert [tuple(row) for row in left] == [(SHORT_S, begins[2]), (LONG_S, begins[1]), (LONG_S, begins[2])]
