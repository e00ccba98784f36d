"""Runs and findings in the store: written twice is written once, pages are the whole list, a finding is open until its instance passes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product, takewhile
from math import inf

import pytest

from prober.core.findings import Fact, Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.sinks.live.incidents import QUIET_MIN_S
from prober.sinks.status import listings, retention
from prober.sinks.status.database import Database, NotStorable
from prober.sinks.status.listings import FindingFilter, RunFilter
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Entry, Evidence, FindingRecord, OpenSession, RunRecord, Shown
from prober.sinks.status.store import StatusStore
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.unit.sinks.status.examples import (
    INSTANCE,
    LIBRARY,
    RETENTION,
    START,
    US,
    close_due,
    entry,
    passes,
    result,
    walk,
    watched,
)

FINDING_FILTERS: tuple[tuple[FindingFilter, list[str]], ...] = (
    (FindingFilter(kind=Kind.GHOST), ["b-1", "a-1"]),
    (FindingFilter(status=Status.LIVENESS), ["b-1"]),
    (FindingFilter(kind=Kind.GHOST, status=Status.VIOLATION), ["a-1"]),
    (FindingFilter(key="k2"), ["b-1"]),
    (FindingFilter(key="k2", subscription="s"), []),
    (FindingFilter(subscription="s"), ["c-1", "a-2", "a-1"]),
    (FindingFilter(target="us"), ["c-1"]),
    (FindingFilter(run_id="a"), ["a-2", "a-1"]),
    (FindingFilter(since=START + QUIET_MIN_S, until=START + QUIET_MIN_S + 9.0), ["b-1"]),
    (FindingFilter(open=False), ["a-2", "a-1"]),
    (FindingFilter(open=True), ["b-1", "c-1"]),
    (FindingFilter(open=True, target="us"), ["c-1"]),
    (FindingFilter(probe="affinity"), ["c-1"]),
    (FindingFilter(vantage="library"), ["b-1"]),
    (FindingFilter(instance="prober-0"), ["b-1", "c-1", "a-2", "a-1"]),
    (FindingFilter(part="1/2"), []),
)


def all_runs(queries: StatusQueries, wanted: RunFilter, limit: int) -> list[RunRecord]:
    return walk(lambda cursor: queries.runs(wanted, limit=limit, cursor=cursor))


RUN_FILTERS: tuple[tuple[RunFilter, list[str]], ...] = (
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
        kept = RunRecord.of(outcome, "test", "local", START + 2.0, entry().run.prober, findings_omitted=3)
        store.record([Entry(kept)])
        found = queries.run("run-1")
        assert found == replace(kept, reason="it was \N{REPLACEMENT CHARACTER} late")
        assert found.result == replace(outcome, reason=found.reason)
        assert queries.run("run-2") is None
        assert queries.run("\0") is None

    def test_written_again_it_is_there_once(self, store: StatusStore, queries: StatusQueries) -> None:
        for _ in range(3):
            store.record([entry("run-1", Kind.GHOST), entry("run-2")])
        assert [record.run_id for record in queries.runs().items] == ["run-2", "run-1"]
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
        names = [record.run_id for record in all_runs(queries, RunFilter(), limit)]
        assert names == [f"run-{number:02}" for number in reversed(range(23))]

    def test_a_page_goes_on_where_the_last_one_ended_whatever_came_or_went(
        self, store: StatusStore, queries: StatusQueries, database: Database
    ) -> None:
        store.record(entry(f"run-{number}", at=START + number) for number in range(6))
        first = queries.runs(limit=3)
        assert first.next_cursor is not None
        store.record([entry("run-9", at=START + 9)])
        retention.tidy(database, replace(RETENTION, retention_s=1.0), START + 2.0)
        rest = queries.runs(limit=3, cursor=first.next_cursor)
        assert [record.run_id for record in rest.items] == ["run-2", "run-1"]
        assert rest.next_cursor is None

    def test_filters(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record(
            [
                entry("a"),
                entry("b", Kind.GHOST, at=START + 1.0),
                entry("c", at=START + 2.0, probe_instance=LIBRARY),
                entry("d", Kind.GHOST, at=START + 3.0, probe_instance=US),
            ]
        )
        for wanted, names in RUN_FILTERS:
            assert [record.run_id for record in queries.runs(wanted).items] == names, wanted

    def test_a_page_is_bounded(self, store: StatusStore, queries: StatusQueries, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(listings, "PAGE_MAX", 5)
        store.record(entry(f"run-{number}", at=START + number) for number in range(7))
        assert len(queries.runs(limit=10**9).items) == 5
        assert len(queries.runs(limit=-1).items) == 1

    def test_the_history_of_an_instance_is_its_newest_runs(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record(
            entry(f"run-{number}", at=START + number, probe_instance=(INSTANCE, LIBRARY)[number % 2]) for number in range(8)
        )
        assert [run.run_id for run in queries.history(INSTANCE.key, limit=3)] == ["run-2", "run-4", "run-6"]

    def test_it_lasts_so_long_whatever_came_before(self, store: StatusStore, queries: StatusQueries) -> None:
        """And is not known before the first run."""
        watched(store, US, *(replace(INSTANCE, part=str(number)) for number in range(3**3)))
        since = {}
        for number, verdicts in enumerate(product(Verdict, repeat=3)):
            instance = replace(INSTANCE, part=str(number))
            store.record(
                entry(f"{number}-{at}", at=START + at, probe_instance=instance, verdict=verdict)
                for at, verdict in enumerate(verdicts)
            )
            streak = len(tuple(takewhile(lambda verdict, last=verdicts[-1]: verdict is last, reversed(verdicts))))  # type: ignore[misc]
            since[instance.key] = f"{number}-{3 - streak}"
        runs = queries.runs_named(list(since.values()))
        assert queries.verdicts_since() == {key: runs[name].ended_at for key, name in since.items()}

    def test_runs_are_found_by_their_names(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a"), entry("b")])
        assert {name: run.run_id for name, run in queries.runs_named(["a", "c"]).items()} == {"a": "a"}


def all_findings(queries: StatusQueries, wanted: FindingFilter, limit: int = 50) -> list[FindingRecord]:
    return walk(lambda cursor: queries.findings(wanted, limit=limit, cursor=cursor))


def found_again(record: FindingRecord, finding: Finding) -> FindingRecord:
    """The same record of another finding, without evidence."""
    return FindingRecord.of(
        finding,
        record.probe_instance,
        finding_id=record.finding_id,
        run_id=record.run_id,
        instance=record.instance,
        found_at=record.found_at,
        after=record.after,
        explanation=record.explanation,
    )


class TestFindings:
    def test_a_finding_comes_back_with_its_evidence(self, store: StatusStore, queries: StatusQueries) -> None:
        kept = entry("run-1", Kind.GHOST).findings[0]
        facts: dict[str, Fact] = {"seq": 3, "skipped": (4, 5), "t": 1.5, "who": "A", "rate": inf}
        finding = Finding(
            Kind.GHOST,
            Status.INDETERMINATE,
            "s",
            "k\0",
            1.5,
            (3, 9),
            facts,
            "it is late",
            {"delivery_delay_max_s": inf, "x": 0.5},
            ("it is late", "not lost: no stream of A\0 ended"),
        )
        on_key = Evidence(
            "all of it\n", proven=True, complete=False, among=9, witnesses=(3, 4), opened=(OpenSession("s", "A", "A"),)
        )
        record = found_again(kept, finding)
        record.evidence, record.on_key = kept.evidence, on_key
        store.record([replace(entry("run-1", Kind.GHOST), findings=(record,))])
        found = queries.finding("run-1-1")
        stored = {name: fact for name, fact in facts.items() if name != "rate"}
        reasons = ("it is late", "not lost: no stream of A\N{REPLACEMENT CHARACTER} ended")
        known = replace(finding, facts=stored, key="k\N{REPLACEMENT CHARACTER}", reasons=reasons)
        assert found is not None
        assert found == replace(found_again(kept, known), closed_at=kept.found_at)  # it fails no run, so it is never open
        assert found.finding == known
        assert kept.evidence is not None
        assert found.evidence == replace(kept.evidence, finding_id="run-1-1")
        assert found.on_key == replace(on_key, finding_id="run-1-1", shown=Shown.KEY)
        assert queries.findings(FindingFilter(key="k\0")).items == (found,)
        assert queries.finding("run-1-2") is None

    def test_filters(self, store: StatusStore, queries: StatusQueries) -> None:
        other = entry(
            "b",
            Kind.GHOST,
            at=START + 2.0 + QUIET_MIN_S,
            probe_instance=LIBRARY,
            status=Status.LIVENESS,
            key="k2",
            subscription="s2",
        )
        store.record([entry("a", Kind.GHOST, Kind.PHANTOM)])
        close_due(store, START + 2.0 + QUIET_MIN_S)
        store.record([other, entry("c", Kind.PHANTOM, at=START + 2.0, probe_instance=US)])
        for wanted, names in FINDING_FILTERS:
            assert [record.finding_id for record in all_findings(queries, wanted, limit=1)] == names, wanted

    def test_a_finding_is_open_as_long_as_its_incident(self, store: StatusStore, queries: StatusQueries) -> None:
        def opened() -> list[str]:
            return [record.finding_id for record in queries.findings(FindingFilter(open=True)).items]

        store.record([entry(f"bad-{number}", Kind.GHOST, at=START + number) for number in range(5)])
        store.record(passes(6, START + 30.0))
        end = START + 6.0 + QUIET_MIN_S
        close_due(store, end - 1.0)
        assert len(opened()) == 5
        close_due(store, end + 9.0)
        assert opened() == []
        assert {record.closed_at for record in queries.findings().items} == {end}

    def test_the_findings_of_an_incident_are_those_of_its_symptom_and_target(
        self, store: StatusStore, queries: StatusQueries
    ) -> None:
        store.record([entry("a", Kind.GHOST, Kind.PHANTOM), entry("b", Kind.GHOST, at=START + 9.0)])
        store.record([entry("c", Kind.GHOST, probe_instance=US), entry("d", Kind.GHOST, status=Status.INDETERMINATE)])
        found = queries.findings(FindingFilter(incident_id="a-integrity")).items
        assert [record.finding_id for record in found] == ["b-1", "a-2", "a-1"]
        hint = queries.finding("d-1")
        assert hint is not None
        assert (hint.incident_id, hint.closed_at) == (None, hint.found_at)

    def test_groups_say_how_many_and_since_when(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST, Kind.GHOST)])
        later = START + 2.0 + QUIET_MIN_S
        store.record([entry("c", Kind.GHOST, at=later), entry("d", Kind.PHANTOM, key="k2", at=later + 9.0)])
        (group,) = queries.findings_of_key("k")
        assert (group.subscription, group.kind, group.status, group.count, group.open) == ("s", Kind.GHOST, Status.VIOLATION, 3, 1)
        assert (group.first_at, group.last_at) == (START + 2.0, later + 2.0)
        assert [(one.kind, one.count) for one in queries.findings_by_subscription(START + 3.0)] == [
            (Kind.GHOST, 1),
            (Kind.PHANTOM, 1),
        ]
