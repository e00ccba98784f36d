"""Incidents in the store: written with the run, once, by whichever prober."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from prober.core.findings import Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.sinks.live.incidents import QUIET_MIN_S, Acknowledgement, Exemplar, Incident
from prober.sinks.live.snapshot import FindingCount
from prober.sinks.status.database import Database
from prober.sinks.status.listings import IncidentFilter
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Entry
from prober.sinks.status.store import StatusStore
from prober.slo.acknowledgements import Timeliness
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, SliCounts
from tests.unit.sinks.status.examples import INSTANCE, LIBRARY, START, US, close_due, entry, passes, walk


def names(queries: StatusQueries, wanted: IncidentFilter, limit: int = 50) -> list[str]:
    return [one.incident_id for one in walk(lambda cursor: queries.incidents(wanted, limit=limit, cursor=cursor))]


def omitted(run_id: str, kept: int, count: int, at: float = START) -> Entry:
    """A run with so many findings, of which so few are kept one by one."""
    made = entry(run_id, *[Kind.ORDER_GAP] * kept, at=at)
    counts = (FindingCount(Kind.ORDER_GAP, Status.VIOLATION, count),)
    return replace(made, run=replace(made.run, counts=counts, findings_omitted=count - kept))


def unreached(run_id: str, at: float) -> Entry:
    made = entry(run_id, at=at, verdict=Verdict.UNKNOWN)
    checks = {Indicator.PUBLISH_AVAILABILITY: SliCounts(bad=100)}
    return replace(made, run=replace(made.run, unreachable=True, checks=checks))


class TestWriting:
    def test_it_comes_back_as_it_was_written(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([omitted("a", 3, 250), entry("b", Kind.ORDER_INVERSION, at=START + 10.0, probe_instance=LIBRARY)])
        store.record(passes(1, START + 20.0))
        assert queries.open_incidents() == (
            Incident(
                "a-order",
                "europe",
                Symptom.ORDER,
                START + 2.0,
                START + 12.0,
                START + 12.0 + QUIET_MIN_S,
                {INSTANCE.key: Counter({Kind.ORDER_GAP: 250}), LIBRARY.key: Counter({Kind.ORDER_INVERSION: 1})},
                runs=2,
                runs_total=3,
                exemplar=Exemplar("a-1", 0),
                raised_at=START + 2.0,
            ),
        )
        assert queries.incident("a-order") == queries.open_incidents()[0]
        assert queries.incident("b-order") is None

    def test_a_transaction_that_is_done_again_changes_nothing(self, store: StatusStore, queries: StatusQueries) -> None:
        written = [entry("a", Kind.GHOST), entry("b", Kind.GHOST, at=START + 10.0), *passes(3, START + 20.0)]
        store.record(written)
        once = queries.open_incidents()
        for _ in range(2):
            store.record(written)
            store.record(reversed(written))
        assert queries.open_incidents() == once
        assert (once[0].runs, once[0].runs_total) == (2, 5)

    def test_one_of_a_symptom_and_target_is_open_and_closed_ones_stay(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST, Kind.PHANTOM), entry("b", Kind.GHOST, probe_instance=US)])
        store.record([entry("c", Kind.GHOST, at=START + QUIET_MIN_S)])
        assert {one.incident_id for one in queries.open_incidents()} == {"c-integrity", "b-integrity"}
        assert names(queries, IncidentFilter(open=False)) == ["a-integrity"]

    def test_an_hourly_probe_needs_three_hours(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([replace(entry("a", Kind.GHOST), interval_s=HOUR_S)])
        assert queries.open_incidents()[0].closes_at == START + 2.0 + 3 * HOUR_S

    def test_a_late_finding_belongs_to_the_incident_that_was_open_then(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST)])
        close_due(store, START + 9_000.0)
        store.record([entry("late", Kind.GHOST, at=START + 10.0)])
        assert queries.open_incidents() == ()
        (over,) = queries.incidents().items
        late = queries.finding("late-1")
        assert late is not None
        assert (over.runs, late.incident_id, late.closed_at) == (2, "a-integrity", over.closed_at)

    def test_an_outage_begins_with_the_last_success_of_any_probe_and_ends_with_the_next(
        self, store: StatusStore, queries: StatusQueries
    ) -> None:
        store.record(
            [
                entry("good", at=START),
                entry("other", at=START + 4.0, probe_instance=LIBRARY),
                entry("us", at=START + 9.0, probe_instance=US),
            ]
        )
        store.record([unreached("a", START + 10.0), unreached("b", START + 20.0)])
        (outage,) = queries.open_incidents()
        assert (outage.incident_id, outage.first_at, outage.unsent) == ("a-outage", START + 6.0, 200)
        store.record([entry("again", at=START + 30.0)])
        assert queries.open_incidents() == ()
        assert queries.incidents().items[0].closed_at == START + 32.0

    def test_probers_that_write_one_instance_at_the_same_time_count_together(self, url: str, store: StatusStore) -> None:
        """Each with a connection of its own."""

        def write(instance: int) -> None:
            database = Database(url)
            for number in range(8):
                at = START + 10.0 * number + instance
                here, there = (
                    entry(f"{instance}-{number}-{probe_instance.target}", Kind.GHOST, at=at, probe_instance=probe_instance)
                    for probe_instance in (INSTANCE, US)
                )
                StatusStore(database).record([here, there] if instance % 2 else [there, here])
            database.close()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        database = Database(url)
        found = StatusQueries(database).open_incidents()
        assert sorted((one.target, one.runs, one.findings) for one in found) == [("europe", 32, 32), ("us", 32, 32)]
        database.close()


FILTERS: tuple[tuple[IncidentFilter, list[str]], ...] = (
    (IncidentFilter(), ["d-integrity", "c-loss", "b-integrity", "a-integrity"]),
    (IncidentFilter(target="europe"), ["d-integrity", "c-loss", "a-integrity"]),
    (IncidentFilter(symptom=Symptom.INTEGRITY), ["d-integrity", "b-integrity", "a-integrity"]),
    (IncidentFilter(target="us", symptom=Symptom.INTEGRITY), ["b-integrity"]),
    (IncidentFilter(open=True), ["d-integrity", "c-loss"]),
    (IncidentFilter(open=False), ["b-integrity", "a-integrity"]),
    (IncidentFilter(since=START + 3.0, until=START + 4.0), ["b-integrity"]),
)


class TestReading:
    def test_filters(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST), entry("b", Kind.GHOST, at=START + 1.0, probe_instance=US)])
        close_due(store, START + 9_000.0)
        store.record([entry("c", Kind.STUCK, at=START + 9_000.0), entry("d", Kind.PHANTOM, at=START + 9_001.0)])
        for wanted, found in FILTERS:
            assert names(queries, wanted, limit=1) == names(queries, wanted) == found, wanted

    def test_the_open_ones_are_all_there_however_many_findings_there_are(self, store: StatusStore, queries: StatusQueries) -> None:
        """Also the one whose last finding is older than hundreds of others."""
        store.record([entry("old", Kind.STUCK, status=Status.LIVENESS)])
        store.record([omitted(f"run-{number}", 2, 600, START + 10.0 * number) for number in range(1, 60)])
        assert {one.symptom: (one.findings, one.first_at) for one in queries.open_incidents()} == {
            Symptom.LOSS: (1, START + 2.0),
            Symptom.ORDER: (59 * 600, START + 12.0),
        }


class TestAcknowledging:
    def test_it_is_kept_whatever_happens_to_the_incident(self, store: StatusStore, queries: StatusQueries) -> None:
        said = Acknowledgement(START + 5.0, "ada\0", "known: b/17", START + 99.0)
        store.record([entry("a", Kind.GHOST)])
        assert store.acknowledge("a-integrity", said)
        store.record([entry("b", Kind.GHOST, at=START + 10.0)])
        (known,) = queries.open_incidents()
        assert (known.runs, known.acknowledged) == (2, said._replace(by="ada\N{REPLACEMENT CHARACTER}"))

    def test_what_is_not_there_is_not_acknowledged(self, store: StatusStore) -> None:
        assert not store.acknowledge("a-integrity", Acknowledgement(START, "ada", "", None))


class TestAcknowledgedInTime:
    def found(self, queries: StatusQueries, now: float) -> dict[Timeliness, int]:
        return {one: count for one, count in queries.acknowledgements(now).counts.items() if count}

    def test_the_first_acknowledgement_counts_also_if_another_takes_its_place(
        self, store: StatusStore, queries: StatusQueries
    ) -> None:
        store.record([entry("a", Kind.GHOST)], START + 4.0)
        assert self.found(queries, START + 5.0) == {Timeliness.PENDING: 1}
        for at in (START + 60.0, START + 9_000.0):
            store.acknowledge("a-integrity", Acknowledgement(at, "ada", "", at + 1.0))
        store.record([entry("b", Kind.GHOST, at=START + 900.0)], START + 902.0)
        assert self.found(queries, START + 9_000.0) == {Timeliness.IN_TIME: 1}
        assert queries.acknowledgements(START + 9_000.0).median_s == 56.0

    def test_one_that_takes_back_does_not_count(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.GHOST)])
        store.acknowledge("a-integrity", Acknowledgement(START + 60.0, "ada", "", START))
        assert self.found(queries, START + 303.0) == {Timeliness.LATE: 1}

    def test_usual_behaviour_asks_for_nobody(self, store: StatusStore, queries: StatusQueries) -> None:
        store.record([entry("a", Kind.AFFINITY_SPLIT)])
        store.acknowledge("a-affinity", Acknowledgement(START + 60.0, "ada", "", None))
        assert self.found(queries, START + 900.0) == {}
        incident = queries.incident("a-affinity")
        assert incident is not None
        assert (incident.raised_at, incident.first_acknowledged_at) == (None, None)

    def test_of_the_period_the_newest_are_read_and_the_others_counted(
        self, store: StatusStore, queries: StatusQueries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("prober.sinks.status.queries.RAISED_MAX", 2)
        store.record([entry(f"run-{n}", kind, at=START + n) for n, kind in enumerate((Kind.GHOST, Kind.STUCK, Kind.ORDER_GAP))])
        found = queries.acknowledgements(START + 900.0)
        assert (found.counts[Timeliness.LATE], found.left_out) == (2, 1)
        assert queries.acknowledgements(START + 40 * DAY_S).counts[Timeliness.LATE] == 0
