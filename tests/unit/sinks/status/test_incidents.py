"""Incidents in the store: written with the run, once, by whichever prober."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import pytest

from prober.core.findings import Kind, Status
from prober.runs.site import SiteKey
from prober.sinks.live.incidents import Acknowledgement, Exemplar, Incident
from prober.sinks.status.database import Database
from prober.sinks.status.listings import BadCursor
from prober.sinks.status.migration import migrate
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Entry, FindingFilter, IncidentFilter
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import LIBRARY, SITE, START, US, entry, passes, walk


def names(queries: StatusQueries, wanted: IncidentFilter, limit: int = 50) -> list[str]:
    return [one.incident_id for one in walk(lambda cursor: queries.incidents(wanted, limit=limit, cursor=cursor))]


def omitted(run_id: str, kept: int, count: int, at: float = START) -> Entry:
    """A run with so many findings, of which so few are kept one by one."""
    made = entry(run_id, *[Kind.ORDER_GAP] * kept, at=at)
    result = replace(made.run.result, counts={(Kind.ORDER_GAP, Status.VIOLATION): count})
    return replace(made, run=replace(made.run, result=result, findings_omitted=count - kept))


class TestWriting:
    def test_it_comes_back_as_it_was_written(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([omitted("a", 3, 250), omitted("b", 3, 50, START + 10.0), *passes(1, START + 20.0)])
        assert queries.open_incidents() == (
            Incident(
                "a-ORDER_GAP",
                SiteKey(*SITE.key),
                Kind.ORDER_GAP,
                Status.VIOLATION,
                START + 2.0,
                START + 12.0,
                findings=300,
                runs=2,
                chances=3,
                met_in_a_row=1,
                bad=6,
                decided=300,
                history="110",
                exemplar=Exemplar("a-1", 0),
            ),
        )
        assert queries.incident("a-ORDER_GAP") == queries.open_incidents()[0]
        assert queries.incident("b-ORDER_GAP") is None

    def test_a_transaction_that_is_done_again_changes_nothing(self, store: StatusStore, queries: StatusQueries) -> None:
        written = [entry("a", Kind.GHOST), entry("b", Kind.GHOST, at=START + 10.0), *passes(3, START + 20.0)]
        store.record(written)
        once = queries.open_incidents()
        for _ in range(2):
            store.record(written)
            store.record(reversed(written))
        assert queries.open_incidents() == once
        assert once[0].history == "11000"

    def test_one_of_a_kind_and_site_is_open_and_closed_ones_stay(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST, Kind.PHANTOM), entry("b", Kind.GHOST, site=US), *passes(60, START + 3.0)])
        store.record([entry("c", Kind.GHOST, at=START + 500.0)])
        assert {one.incident_id for one in queries.open_incidents()} == {"c-GHOST", "b-GHOST"}
        assert names(queries, IncidentFilter(open=False)) == ["a-PHANTOM", "a-GHOST"]

    def test_a_late_finding_belongs_to_the_incident_that_was_open_then(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry(f"a-{number}", Kind.GHOST, at=START + number) for number in range(5)])
        store.record([*passes(6, START + 20.0), entry("late", Kind.GHOST, at=START + 10.0)])
        assert queries.open_incidents() == ()
        (over,) = queries.incidents().items
        late = queries.finding("late-1")
        assert late is not None
        assert (over.runs, late.incident_id, late.closed_at) == (6, "a-0-GHOST", over.closed_at)

    def test_probers_that_write_one_site_at_the_same_time_count_together(self, url: str, store: StatusStore) -> None:
        """Each with a connection of its own."""

        def write(instance: int) -> None:
            database = Database(url)
            for number in range(8):
                at = START + 10.0 * number + instance
                here, there = (entry(f"{instance}-{number}-{site.target}", Kind.GHOST, at=at, site=site) for site in (SITE, US))
                StatusStore(database).record([here, there] if instance % 2 else [there, here])
            database.close()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        database = Database(url)
        found = StatusQueries(database).open_incidents()
        assert sorted((one.site.target, one.runs, one.findings) for one in found) == [("europe", 32, 32), ("us", 32, 32)]
        database.close()


FILTERS: tuple[tuple[IncidentFilter, list[str]], ...] = (
    (IncidentFilter(), ["d-PHANTOM", "c-GHOST", "b-GHOST", "a-GHOST"]),
    (IncidentFilter(target="europe"), ["d-PHANTOM", "b-GHOST", "a-GHOST"]),
    (IncidentFilter(probe="affinity"), ["c-GHOST"]),
    (IncidentFilter(vantage="library"), ["b-GHOST"]),
    (IncidentFilter(part=""), ["d-PHANTOM", "c-GHOST", "b-GHOST", "a-GHOST"]),
    (IncidentFilter(part="1/2"), []),
    (IncidentFilter(kind=Kind.GHOST), ["c-GHOST", "b-GHOST", "a-GHOST"]),
    (IncidentFilter(open=True), ["d-PHANTOM", "c-GHOST", "b-GHOST"]),
    (IncidentFilter(open=False), ["a-GHOST"]),
    (IncidentFilter(since=START + 4.0, until=START + 6.0), ["c-GHOST"]),
)


class TestReading:
    def test_filters(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST), entry("b", Kind.GHOST, at=START + 1.0, site=LIBRARY), *passes(60, START + 3.0)])
        store.record([entry("c", Kind.GHOST, at=START + 2.0, site=US), entry("d", Kind.PHANTOM, at=START + 900.0)])
        for wanted, found in FILTERS:
            assert names(queries, wanted, limit=1) == names(queries, wanted) == found, wanted

    def test_the_open_ones_are_all_there_however_many_findings_there_are(self, store: StatusStore, queries: StatusQueries) -> None:
        """Also the one whose last finding is older than hundreds of others."""
        store.record([entry("old", Kind.STUCK, status=Status.LIVENESS)])
        store.record([omitted(f"run-{number}", 2, 600, START + 10.0 * number) for number in range(1, 60)])
        assert {one.kind: (one.findings, one.first_at) for one in queries.open_incidents()} == {
            Kind.STUCK: (1, START + 2.0),
            Kind.ORDER_GAP: (59 * 600, START + 12.0),
        }

    def test_a_cursor_belongs_to_its_filter(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST, Kind.PHANTOM)])
        cursor = queries.incidents(limit=1).next_cursor
        with pytest.raises(BadCursor):
            queries.incidents(IncidentFilter(open=True), cursor=cursor)


class TestAcknowledging:
    def test_it_is_kept_whatever_happens_to_the_incident(self, store: StatusStore, queries: StatusQueries) -> None:
        said = Acknowledgement(START + 5.0, "ada\0", "known: b/17", START + 99.0)
        store.record([entry("a", Kind.GHOST)])
        assert store.acknowledge("a-GHOST", said)
        store.record([entry("b", Kind.GHOST, at=START + 10.0)])
        (known,) = queries.open_incidents()
        assert (known.runs, known.acknowledged) == (2, said._replace(by="ada\N{REPLACEMENT CHARACTER}"))

    def test_what_is_not_there_is_not_acknowledged(self, store: StatusStore) -> None:
        assert not store.acknowledge("a-GHOST", Acknowledgement(START, "ada", "", None))


class TestMigration:
    def test_what_is_open_becomes_incidents(self, database: Database) -> None:
        store, queries = StatusStore(database), StatusQueries(database)
        store.prepare()
        hint = entry("hint", Kind.ORDER_GAP, at=START + 30.0, status=Status.INDETERMINATE)
        store.record(
            [entry("b", Kind.GHOST, Kind.GHOST, at=START + 5.0), entry("a", Kind.GHOST), entry("c", Kind.STUCK, site=US), hint]
        )
        migrate(database, "4")
        with database.writing() as connection:
            connection.exec_driver_sql("UPDATE findings SET closed_at = NULL")
        store.prepare()
        found = {one.incident_id: one for one in queries.open_incidents()}
        assert found.keys() == {"a-GHOST", "c-STUCK"}
        ghost = found["a-GHOST"]
        assert (ghost.first_at, ghost.last_at, ghost.findings, ghost.runs) == (START + 2.0, START + 7.0, 3, 2)
        assert ghost.exemplar == Exemplar("a-1", 0)
        assert len(queries.findings(FindingFilter(incident_id="a-GHOST")).items) == 3
        assert [record.finding_id for record in queries.findings(FindingFilter(open=False)).items] == ["hint-1"]
        store.record([entry("d", Kind.GHOST, at=START + 40.0)])
        assert [one.runs for one in queries.open_incidents() if one.kind is Kind.GHOST] == [3]


def test_lists_are_newest_first(store: StatusStore, queries: StatusQueries) -> None:
    store.record(
        [entry(f"run-{number}", kind, at=START + number) for number, kind in enumerate((Kind.GHOST, Kind.STUCK, Kind.PHANTOM))]
    )
    times = [one.first_at for one in queries.incidents().items]
    assert all(newer > older for newer, older in pairwise(times))
