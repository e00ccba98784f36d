"""Findings in the store: with their evidence, by every filter, and open until their site passes."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from prober.core.findings import Fact, Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import (
    Evidence,
    FindingFilter,
    FindingRecord,
    OpenSession,
)
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import LIBRARY, START, US, entry, passes, walk


def all_findings(queries: StatusQueries, wanted: FindingFilter, limit: int = 50) -> list[FindingRecord]:
    return walk(lambda cursor: queries.findings(wanted, limit=limit, cursor=cursor))


FILTERS: tuple[tuple[FindingFilter, list[str]], ...] = (
    (FindingFilter(kind=Kind.GHOST), ["b-1", "a-1"]),
    (FindingFilter(status=Status.LIVENESS), ["b-1"]),
    (FindingFilter(kind=Kind.GHOST, status=Status.VIOLATION), ["a-1"]),
    (FindingFilter(key="k2"), ["b-1"]),
    (FindingFilter(key="k2", subscription="s"), []),
    (FindingFilter(subscription="s"), ["c-1", "a-2", "a-1"]),
    (FindingFilter(target="us"), ["c-1"]),
    (FindingFilter(run_id="a"), ["a-2", "a-1"]),
    (FindingFilter(since=START + 3.0, until=START + 4.0), ["b-1"]),
    (FindingFilter(open=False), ["a-2", "a-1"]),
    (FindingFilter(open=True), ["c-1", "b-1"]),
    (FindingFilter(open=True, target="us"), ["c-1"]),
    (FindingFilter(probe="affinity"), ["c-1"]),
    (FindingFilter(vantage="library"), ["b-1"]),
    (FindingFilter(instance="prober-0"), ["c-1", "b-1", "a-2", "a-1"]),
    (FindingFilter(part="1/2"), []),
)


class TestFindings:
    def test_a_finding_comes_back_with_its_evidence(self, store: StatusStore, queries: StatusQueries) -> None:
        kept = entry("run-1", Kind.GHOST).findings[0]
        facts: dict[str, Fact] = {"seq": 3, "skipped": (4, 5), "t": 1.5, "who": "A", "rate": inf}
        finding = Finding(
            Kind.GHOST, Status.INDETERMINATE, "s", "k\0", 1.5, (3, 9), facts, "it is late", {"delivery_delay_max_s": inf, "x": 0.5}
        )
        on_key = Evidence(
            "all of it\n", proven=True, complete=False, among=9, witnesses=(3, 4), opened=(OpenSession("s", "A", "A"),)
        )
        store.record([replace(entry("run-1", Kind.GHOST), findings=(replace(kept, finding=finding, on_key=on_key),))])
        found = queries.finding("run-1-1")
        stored = {name: fact for name, fact in facts.items() if name != "rate"}
        known = replace(finding, facts=stored, key="k\N{REPLACEMENT CHARACTER}")
        assert found == replace(kept, finding=known, closed_at=kept.found_at)  # it fails no run, so it is never open
        assert found is not None
        assert found.finding.facts == stored
        assert found.finding.assumptions == {"delivery_delay_max_s": inf, "x": 0.5}
        assert queries.findings(FindingFilter(key="k\0")).items == (replace(found, evidence=None),)
        assert queries.finding("run-1-1", on_key=True) == replace(found, on_key=on_key)
        assert queries.finding("run-1-2", on_key=True) is None

    def test_filters(self, store: StatusStore, queries: StatusQueries) -> None:
        other = entry("b", Kind.GHOST, at=START + 1.0, site=LIBRARY, status=Status.LIVENESS, key="k2", subscription="s2")
        store.record([entry("a", Kind.GHOST, Kind.PHANTOM), other, entry("c", Kind.PHANTOM, at=START + 2.0, site=US)])
        store.record(passes(60, START + 3.0))
        for wanted, names in FILTERS:
            assert [record.finding_id for record in all_findings(queries, wanted, limit=1)] == names, wanted

    def test_a_finding_is_open_as_long_as_its_incident(self, store: StatusStore, queries: StatusQueries) -> None:
        def opened() -> list[str]:
            return [record.finding_id for record in queries.findings(FindingFilter(open=True)).items]

        store.record([entry(f"bad-{number}", Kind.GHOST, at=START + number) for number in range(5)])
        store.record([entry("unknown", at=START + 30.0, verdict=Verdict.UNKNOWN), *passes(6, START + 30.0, LIBRARY)])
        assert len(opened()) == 5
        store.record(passes(6, START + 60.0)[:5])
        assert len(opened()) == 5
        store.record(passes(6, START + 60.0)[5:])
        assert opened() == []
        assert {record.closed_at for record in queries.findings().items} == {START + 82.0}

    def test_the_findings_of_an_incident_are_those_of_its_kind_and_site(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST, Kind.PHANTOM), entry("b", Kind.GHOST, at=START + 9.0)])
        store.record([entry("c", Kind.GHOST, site=US), entry("d", Kind.GHOST, status=Status.INDETERMINATE)])
        found = queries.findings(FindingFilter(incident_id="a-GHOST")).items
        assert [record.finding_id for record in found] == ["b-1", "a-1"]
        hint = queries.finding("d-1")
        assert hint is not None
        assert (hint.incident_id, hint.closed_at) == (None, hint.found_at)

    def test_groups_say_how_many_and_since_when(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST, Kind.GHOST), *passes(60, START + 3.0)])
        store.record([entry("c", Kind.GHOST, at=START + 500.0)])
        store.record([entry("d", Kind.PHANTOM, key="k2", at=START + 509.0)])
        (group,) = queries.findings_of_key("k")
        assert (group.subscription, group.kind, group.status, group.count, group.open) == ("s", Kind.GHOST, Status.VIOLATION, 3, 1)
        assert (group.first_at, group.last_at) == (START + 2.0, START + 502.0)
        assert [(one.kind, one.count) for one in queries.findings_by_subscription(START + 3.0)] == [
            (Kind.GHOST, 1),
            (Kind.PHANTOM, 1),
        ]
