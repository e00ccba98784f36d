"""Runs in the store: written twice is written once, and pages are the whole list."""

from __future__ import annotations

from dataclasses import replace
from itertools import product, takewhile
from math import inf

import pytest

from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.sinks.status import retention
from prober.sinks.status.database import Database, NotStorable
from prober.sinks.status.listings import PAGE_MAX, BadCursor
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import (
    Entry,
    RunFilter,
    RunRecord,
)
from prober.sinks.status.store import StatusStore
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.unit.sinks.status.examples import KEEPING, LIBRARY, SITE, START, US, entry, result, walk, watched


def all_runs(queries: StatusQueries, wanted: RunFilter, limit: int) -> list[RunRecord]:
    return walk(lambda cursor: queries.runs(wanted, limit=limit, cursor=cursor))


FILTERS: tuple[tuple[RunFilter, list[str]], ...] = (
    (RunFilter(probe="ordering"), ["c", "b", "a"]),
    (RunFilter(verdict=Verdict.FAIL), ["d", "b"]),
    (RunFilter(probe="ordering", verdict=Verdict.FAIL), ["b"]),
    (RunFilter(target="us"), ["d"]),
    (RunFilter(target="europe", probe="ordering", vantage="wire"), ["b", "a"]),
    (RunFilter(since=START + 1.0, until=START + 3.0), ["c", "b"]),
    (RunFilter(probe="' OR 1=1 --"), []),
    (RunFilter(probe="\0"), []),
    (RunFilter(since=inf), []),
)


class TestRuns:
    def test_a_run_comes_back_as_it_went_in(self, store: StatusStore, queries: StatusQueries) -> None:
        outcome = replace(
            result(verdict=Verdict.UNKNOWN),
            reason="it was \0 late",
            counters={"deliveries_first": 2**40, "rewinds": 3},
            counts={(Kind.AFFINITY_MOVE, Status.INFO): 7},
            checks={Indicator.ORDER: SliCounts(5, 1, 2)},
            figures={Figure.ORDER_LATENCY: -0.001},
            internal_error=True,
        )
        kept = replace(entry().run, result=outcome, findings_omitted=3)
        store.record([Entry(kept)])
        assert queries.run("run-1") == replace(kept, result=replace(outcome, reason="it was \N{REPLACEMENT CHARACTER} late"))
        assert queries.run("run-2") is None
        assert queries.run("\0") is None

    def test_written_again_it_is_there_once(self, store: StatusStore, queries: StatusQueries) -> None:
        for _ in range(3):
            store.record([entry("run-1", Kind.GHOST), entry("run-2")])
        assert [record.result.run_id for record in queries.runs().items] == ["run-2", "run-1"]
        assert [record.finding_id for record in queries.findings().items] == ["run-1-1"]

    def test_a_run_with_its_findings_is_all_or_nothing(self, store: StatusStore, queries: StatusQueries) -> None:
        good = entry("run-1", Kind.GHOST)
        bad = replace(good.findings[0], finding_id="run-1-2", after=2**70)
        with pytest.raises(NotStorable):
            store.record([Entry(good.run, (*good.findings, bad))])
        assert queries.runs().items == ()
        assert queries.findings().items == ()

    @pytest.mark.parametrize("limit", [1, 3, 7, 100])
    def test_pages_are_the_whole_list_in_order(self, store: StatusStore, queries: StatusQueries, limit: int) -> None:
        """Also where many began at the same time."""
        store.record(entry(f"run-{number:02}", at=START + number // 5) for number in range(23))
        names = [record.result.run_id for record in all_runs(queries, RunFilter(), limit)]
        assert names == [f"run-{number:02}" for number in reversed(range(23))]

    def test_a_page_goes_on_where_the_last_one_ended_whatever_came_or_went(
        self, store: StatusStore, queries: StatusQueries, database: Database
    ) -> None:
        store.record(entry(f"run-{number}", at=START + number) for number in range(6))
        first = queries.runs(limit=3)
        assert first.next_cursor is not None
        store.record([entry("run-9", at=START + 9)])
        retention.tidy(database, replace(KEEPING, retention_s=1.0), START + 2.0)
        rest = queries.runs(limit=3, cursor=first.next_cursor)
        assert [record.result.run_id for record in rest.items] == ["run-2", "run-1"]
        assert rest.next_cursor is None

    def test_filters(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record(
            [
                entry("a"),
                entry("b", Kind.GHOST, at=START + 1.0),
                entry("c", at=START + 2.0, site=LIBRARY),
                entry("d", Kind.GHOST, at=START + 3.0, site=US),
            ]
        )
        for wanted, names in FILTERS:
            assert [record.result.run_id for record in queries.runs(wanted).items] == names, wanted

    def test_a_page_is_bounded(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record(entry(f"run-{number}", at=START + number) for number in range(PAGE_MAX + 2))
        assert len(queries.runs(limit=10**9).items) == PAGE_MAX
        assert len(queries.runs(limit=-1).items) == 1

    def test_a_cursor_of_another_filter_is_refused(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a"), entry("b")])
        cursor = queries.runs(limit=1).next_cursor
        with pytest.raises(BadCursor):
            queries.runs(RunFilter(probe="ordering"), cursor=cursor)

    def test_the_history_of_a_site_is_its_newest_runs(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record(entry(f"run-{number}", at=START + number, site=(SITE, LIBRARY)[number % 2]) for number in range(8))
        assert [run.run_id for run in queries.history(SITE.key, limit=3)] == ["run-2", "run-4", "run-6"]

    def test_a_verdict_lasts_since_the_first_run_of_its_last_row(self, store: StatusStore, queries: StatusQueries) -> None:
        kinds = {1: (Kind.GHOST,), 4: (Kind.GHOST,)}
        store.record(entry(f"run-{number}", *kinds.get(number, ()), at=START + number) for number in range(8))
        store.record([entry("other", Kind.GHOST, at=START + 7.5, site=LIBRARY)])
        watched(store, SITE, LIBRARY, US)
        assert queries.verdicts_since() == {
            SITE.key: queries.run("run-5").ended_at,  # type: ignore[union-attr]
            LIBRARY.key: queries.run("other").ended_at,  # type: ignore[union-attr]
        }

    def test_it_lasts_so_long_whatever_came_before(self, store: StatusStore, queries: StatusQueries) -> None:
        watched(store, *(replace(SITE, part=str(number)) for number in range(3**4)))
        for number, verdicts in enumerate(product(Verdict, repeat=4)):
            site = replace(SITE, part=str(number))
            store.record(entry(f"{number}-{at}", at=START + at, site=site, verdict=verdict) for at, verdict in enumerate(verdicts))
            streak = len(tuple(takewhile(lambda verdict, last=verdicts[-1]: verdict is last, reversed(verdicts))))  # type: ignore[misc]
            first = queries.run(f"{number}-{4 - streak}")
            assert first is not None
            assert queries.verdicts_since()[site.key] == first.ended_at

    def test_runs_are_found_by_their_names(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a"), entry("b")])
        assert {name: run.result.run_id for name, run in queries.runs_named(["a", "c"]).items()} == {"a": "a"}
