"""How everything stands by all probers: whose word counts, what comes from the store, and what silence means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import event

from prober.core.findings import Kind
from prober.core.verdict import Verdict
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import QUIET_MAX_S, QUIET_MIN_S
from prober.sinks.live.snapshot import InstanceSnapshot, StatusSnapshot
from prober.sinks.live.state import LiveState
from prober.sinks.status.database import Database
from prober.sinks.status.overview import FINDINGS_SHOWN_MAX, Overview
from prober.sinks.status.prober_records import SILENT_AFTER_S, ProberRecord, Slice
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Entry
from prober.sinks.status.slices import KEPT_S, LONG_S, MINUTE_SLICE_S, begin_of
from prober.sinks.status.store import StatusStore
from prober.slo.budgets import SloSnapshot, budget_left
from prober.slo.objectives import AlertState, SliCounts, Urgency
from tests.unit.sinks.status.examples import INSTANCE, LIBRARY, ORDER, ORDER_IN_EUROPE, START, US, entry, passes, result, snapshot

NOW = START + 50.0


def onlooker(at: float = NOW) -> StatusSnapshot:
    """What a process knows that does not probe."""
    return replace(LiveState((), (), version="1.2.3", instance="api-0", started_at=START).snapshot(at), probers=())


@pytest.fixture
def overview(queries: StatusQueries) -> Overview:
    return Overview(queries, [ORDER])


def tell(store: StatusStore, instance: str, at: float, *instances: InstanceSnapshot, troubles: tuple[str, ...] = ()) -> None:
    store.heartbeat(ProberRecord(instance, "1", START, at, troubles), instances)


def seen(verdict: Verdict = Verdict.PASS, run_id: str = "run-1") -> InstanceSnapshot:
    return snapshot(SliCounts(), START + 5.0, result(run_id, verdict)).probe_instances[0]


class TestInstances:
    def test_nothing_is_known_of_an_empty_store(self, overview: Overview) -> None:
        shown = overview.snapshot(onlooker())
        assert (shown.verdict, shown.probe_instances, shown.slos, shown.probers) == (Verdict.UNKNOWN, (), (), ())

    def test_of_several_probers_the_worst_counts_and_silence_is_no_pass(self, store: StatusStore, overview: Overview) -> None:
        tell(store, "prober-0", NOW, seen())
        tell(store, "prober-1", START + 5.0, seen(Verdict.FAIL))
        assert overview.snapshot(onlooker()).verdict is Verdict.FAIL
        later = overview.snapshot(onlooker(START + 6.0 + SILENT_AFTER_S))
        assert later.verdict is Verdict.PASS
        assert [(prober.instance, prober.silent) for prober in later.probers] == [("prober-0", False), ("prober-1", True)]
        assert later.troubles == ("prober-1 has sent no heartbeat since 2026-01-02 03:04:10 UTC",)
        assert overview.snapshot(onlooker(NOW + 1.0 + SILENT_AFTER_S)).verdict is Verdict.UNKNOWN

    def test_under_maintenance_nothing_is_said(self, store: StatusStore, overview: Overview) -> None:
        tell(store, "p", NOW, replace(seen(), status=Condition.MAINTENANCE, maintenance="network works"))
        (instance,) = overview.snapshot(onlooker()).probe_instances
        assert (instance.status, instance.maintenance) == (Condition.MAINTENANCE, "network works")

    def test_maintenance_of_one_of_two_probers_does_not_hide_the_other(self, store: StatusStore, overview: Overview) -> None:
        tell(store, "p", NOW, replace(seen(), status=Condition.MAINTENANCE, maintenance="network works"))
        tell(store, "q", NOW, seen(Verdict.FAIL))
        (instance,) = overview.snapshot(onlooker()).probe_instances
        assert (instance.status, instance.maintenance) == (Condition.FAIL, None)

    def test_what_this_process_alone_knows_does_not_count(self, store: StatusStore, overview: Overview) -> None:
        live = snapshot(SliCounts(50), NOW, result("run-2", Verdict.FAIL, NOW - 3.0))
        store.record([entry("run-1", at=START)])
        tell(store, "prober-0", START + 5.0, seen())
        shown = overview.snapshot(live)
        assert [
            (instance.verdict, instance.status, [run.run_id for run in instance.history]) for instance in shown.probe_instances
        ] == [(Verdict.PASS, Condition.PASS, ["run-1"])]
        assert [(prober.instance, prober.last_heartbeat_at) for prober in shown.probers] == [("prober-0", START + 5.0)]
        assert [slo.total for slo in shown.slos] == [SliCounts()]

    def test_the_history_goes_on_over_a_restart_and_over_probers(self, store: StatusStore, overview: Overview) -> None:
        kinds = (Kind.GHOST,)
        store.record([entry("run-0", *kinds, at=START), entry("run-1", at=START + 10.0), entry("run-2", at=START + 20.0)])
        tell(store, "prober-0", NOW, *snapshot(SliCounts(), NOW, result("run-2", at=START + 20.0)).probe_instances)
        (instance,) = overview.snapshot(onlooker()).probe_instances
        assert [run.run_id for run in instance.history] == ["run-0", "run-1", "run-2"]
        assert instance.last_run is not None
        assert instance.last_run.run_id == "run-2"
        assert (instance.verdict, instance.since) == (Verdict.PASS, START + 12.0)

    def test_an_open_incident_is_no_pass_and_began_when_it_began(self, store: StatusStore, overview: Overview) -> None:
        """A fault that one run in ten shows is neither over nor new with every run."""
        store.record([entry("run-0", Kind.ORDER_GAP, at=START), *passes(2, START + 4.0)])
        tell(store, "p", NOW, seen())
        shown = overview.snapshot(onlooker())
        assert (shown.verdict, shown.since, shown.probe_instances[0].status) == (Verdict.UNKNOWN, START + 2.0, Condition.PASS)
        assert shown.status is Condition.FAIL
        store.record([entry("run-9", Kind.ORDER_GAP, at=START + 30.0)])
        tell(store, "p", NOW, seen(Verdict.FAIL, "run-9"))
        shown = overview.snapshot(onlooker())
        assert (shown.verdict, shown.since) == (Verdict.FAIL, START + 2.0)
        tell(store, "p", START + 32.0 + QUIET_MAX_S, seen())
        assert overview.snapshot(onlooker(START + 32.0 + QUIET_MAX_S)).verdict is Verdict.PASS

    def test_an_outage_began_with_the_last_success(self, store: StatusStore, overview: Overview) -> None:
        out = result("run-2", Verdict.UNKNOWN, START + 20.0, unreachable=True)
        record = replace(entry("run-2", at=START + 20.0).run, verdict=Verdict.UNKNOWN, unreachable=True)
        store.record([entry("run-0", at=START - 100.0), entry("run-1", at=START), Entry(record, ())])
        tell(store, "p", NOW, *snapshot(SliCounts(), NOW, result("run-1"), out).probe_instances)
        shown = overview.snapshot(onlooker())
        assert (shown.status, shown.since) == (Condition.OUTAGE, START + 2.0)

    def test_a_prober_that_restarted_does_not_lose_the_last_pass(self, store: StatusStore, overview: Overview) -> None:
        store.record([entry("run-0", at=START - 50.0), entry("run-1", Kind.GHOST, at=START - 40.0)])
        tell(store, "p", NOW, *snapshot(SliCounts(), NOW).probe_instances)
        (instance,) = overview.snapshot(onlooker()).probe_instances
        assert (instance.status, instance.last_pass_at, instance.last_condition) == (
            Condition.STARTING,
            START - 48.0,
            Condition.FAIL,
        )

    def test_what_begins_again_is_not_known_since_its_runs_before(self, store: StatusStore, overview: Overview) -> None:
        store.record([entry("run-0", at=START - 50.0)])
        tell(store, "p", NOW, *snapshot(SliCounts(), NOW).probe_instances)
        shown = overview.snapshot(onlooker())
        assert (shown.verdict, shown.probe_instances[0].status, shown.since) == (
            Verdict.UNKNOWN,
            Condition.STARTING,
            onlooker().since,
        )

    def test_an_incident_counts_only_where_its_instance_does(self, store: StatusStore, overview: Overview) -> None:
        store.record([entry("run-0", Kind.ORDER_GAP, probe_instance=LIBRARY)])
        tell(store, "p", NOW, seen())
        assert overview.snapshot(onlooker()).verdict is Verdict.PASS
        tell(store, "p", NOW, seen(), replace(seen(), probe_instance=LIBRARY, status=Condition.MAINTENANCE, maintenance="upgrade"))
        shown = overview.snapshot(onlooker())
        assert (shown.verdict, len(shown.incidents)) == (Verdict.PASS, 1)

    def test_a_prober_that_is_ahead_of_its_runs_says_since_when(self, store: StatusStore, overview: Overview) -> None:
        """Its heartbeat is there before the run, whose evidence takes longer."""
        store.record([entry("run-1", at=START)])
        tell(
            store, "prober-0", NOW, *snapshot(SliCounts(), NOW, result(), result("run-2", Verdict.FAIL, NOW - 3.0)).probe_instances
        )
        (instance,) = overview.snapshot(onlooker()).probe_instances
        assert (instance.status, instance.since, instance.verdict) == (Condition.FAIL, NOW - 1.0, Verdict.PASS)

    def test_what_a_silent_prober_was_about_to_do_is_not_awaited(self, store: StatusStore, overview: Overview) -> None:
        tell(store, "prober-0", START, replace(seen(), running_since=START, next_run_at=START + 9.0))
        (instance,) = overview.snapshot(onlooker(START + 600.0)).probe_instances
        assert (instance.status, instance.running_since, instance.next_run_at) == (Condition.UNKNOWN, None, None)
        tell(store, "prober-1", START + 590.0, replace(seen(), next_run_at=START + 620.0))
        (instance,) = overview.snapshot(onlooker(START + 600.0)).probe_instances
        assert (instance.running_since, instance.next_run_at) == (None, START + 620.0)

    def test_an_instance_that_was_given_away_is_gone_also_when_the_clock_was_set_back(
        self, store: StatusStore, overview: Overview
    ) -> None:
        tell(store, "p", NOW + 3600.0, seen(Verdict.FAIL))
        tell(store, "p", NOW, replace(seen(), probe_instance=LIBRARY))
        assert [instance.probe_instance.key for instance in overview.snapshot(onlooker()).probe_instances] == [LIBRARY.key]

    def test_two_runs_that_began_together_have_a_since(self, store: StatusStore, overview: Overview) -> None:
        store.record([entry("run-1", at=START), entry("run-2", Kind.GHOST, at=START)])
        tell(store, "p", NOW, seen(Verdict.FAIL))
        (instance,) = overview.snapshot(onlooker()).probe_instances
        assert (instance.verdict, instance.since) == (Verdict.FAIL, START + 2.0)

    def test_silence_is_reported_of_whoever_has_the_name_of_the_process_that_answers(
        self, store: StatusStore, overview: Overview
    ) -> None:
        tell(store, "api-0", START, seen())
        assert overview.snapshot(onlooker(START + 600.0)).troubles == ("api-0 has sent no heartbeat since 2026-01-02 03:04:05 UTC",)

    def test_a_query_an_instance_at_most(self, store: StatusStore, overview: Overview, database: Database) -> None:
        statements: list[str] = []
        event.listen(database.engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement))

        def asked(count: int) -> int:
            instances = [replace(INSTANCE, part=f"{number}/{count}") for number in range(count)]
            store.record(entry(f"{instance.part}", Kind.GHOST, probe_instance=instance) for instance in instances)
            tell(store, "p", NOW + count, *(replace(seen(), probe_instance=instance) for instance in instances))
            statements.clear()
            assert len(overview.snapshot(onlooker()).probe_instances) == count
            return sum(not statement.startswith(("BEGIN", "SELECT set_config")) for statement in statements)

        few, many = asked(2), asked(12)
        assert many - few == 10

    def test_each_instance_has_its_newest_findings_and_the_count_of_all(self, store: StatusStore, overview: Overview) -> None:
        runs = FINDINGS_SHOWN_MAX + 3
        store.record(entry(f"run-{number}", Kind.GHOST, at=START + number) for number in range(runs))
        store.record([entry("other", Kind.PHANTOM, at=START - 9.0, probe_instance=LIBRARY)])
        tell(store, "p", NOW, seen(), replace(seen(), probe_instance=LIBRARY))
        shown = {instance.probe_instance.key: instance for instance in overview.snapshot(onlooker()).probe_instances}
        assert [one.run_id for one in shown[INSTANCE.key].findings] == [f"run-{number}" for number in range(runs - 1, 2, -1)]
        assert (shown[INSTANCE.key].findings_dropped, shown[LIBRARY.key].findings_dropped) == (3, 0)
        assert [one.finding_id for one in shown[LIBRARY.key].findings] == ["other-1"]

    def test_only_open_findings_are_shown(self, store: StatusStore, overview: Overview) -> None:
        store.record([entry("a", Kind.GHOST), entry("c", Kind.PHANTOM, at=START + 2.0 + QUIET_MIN_S)])
        tell(store, "prober-1", NOW, seen(Verdict.FAIL))
        (instance,) = overview.snapshot(onlooker()).probe_instances
        assert [one.finding_id for one in instance.findings] == ["c-1"]

    def test_all_open_incidents_are_there(self, store: StatusStore, overview: Overview) -> None:
        store.record([entry("a", Kind.GHOST, Kind.STUCK), entry("b", Kind.PHANTOM, probe_instance=US), *passes(9, START + 20.0)])
        tell(store, "prober-1", NOW, seen())
        assert [one.incident_id for one in overview.snapshot(onlooker()).incidents] == ["b-integrity", "a-loss", "a-integrity"]

    def test_troubles_of_other_probers_are_passed_on(self, store: StatusStore, overview: Overview) -> None:
        tell(store, "prober-1", NOW, seen(), troubles=("the disk is full",))
        assert overview.snapshot(onlooker()).troubles == ("prober-1: the disk is full",)


class TestObjectives:
    def count(self, store: StatusStore, at: float, counts: SliCounts, process: str = "p", started_at: float = START) -> None:
        slices = [Slice(process, *ORDER_IN_EUROPE, length_s, begin_of(at, length_s), counts) for length_s in KEPT_S]
        store.heartbeat(ProberRecord("p", "1", started_at, at), [seen()], slices)

    def test_the_whole_period_counts_over_all_processes(self, store: StatusStore, overview: Overview) -> None:
        self.count(store, NOW - 20 * 86_400.0, SliCounts(1_000, 5))
        self.count(store, NOW, SliCounts(1_000, 5), "q")
        (slo,) = overview.snapshot(onlooker()).slos
        assert (slo.total, slo.error_ratio) == (SliCounts(2_000, 10), 10 / 2_010)
        assert slo.counted_since == begin_of(NOW - 20 * 86_400.0, LONG_S)

    def test_counted_since_is_when_counting_began(self, store: StatusStore, overview: Overview) -> None:
        def since(now: float) -> float:
            (slo,) = overview.snapshot(replace(onlooker(), at=now)).slos
            return slo.counted_since

        begin = begin_of(NOW, LONG_S) + 700.0
        store.heartbeat(ProberRecord("p", "1", begin, begin + 10.0), [seen()])
        assert since(begin + 10.0) == begin  # nothing is counted yet
        self.count(store, begin + 190.0, SliCounts(80), started_at=begin)
        first = begin_of(begin + 190.0, MINUTE_SLICE_S)
        assert since(begin + 240.0) == first
        self.count(store, begin + 4000.0, SliCounts(80), started_at=begin + 3990.0)  # after a restart
        assert since(begin + 4000.0) == first
        assert since(begin + 2.5 * 86_400.0) == begin_of(begin, LONG_S)  # shorter slices do not reach so far back
        later = begin + ORDER.window_s + 7200.0
        assert since(later) == begin_of(later - ORDER.window_s, LONG_S)

    def test_a_budget_is_that_of_the_whole_period(self, store: StatusStore, overview: Overview) -> None:
        """A minute after the start a burn rate of 10,000 has spent a fourth; an hour that ended counts as a whole."""

        def snapshot(now: float) -> SloSnapshot:
            (slo,) = overview.snapshot(replace(onlooker(), at=now)).slos
            return slo

        begin = begin_of(NOW, LONG_S)
        self.count(store, begin + 50.0, SliCounts(0, 10), started_at=begin)
        soon, later = snapshot(begin + 60.0), snapshot(begin + 9 * 3_600.0)
        assert soon.measured == 60.0 / ORDER.window_s
        assert later.measured == 3_600.0 / ORDER.window_s
        for slo in (soon, later):
            assert slo.budget_left == budget_left(ORDER, SliCounts(0, 10), slo.measured)

    def test_undecided_things_measure_nothing(self, store: StatusStore, overview: Overview) -> None:
        self.count(store, NOW, SliCounts(undecided=5))
        (slo,) = overview.snapshot(onlooker()).slos
        assert (slo.measured, slo.budget_left) == (0.0, None)

    def test_burn_is_reported_for_every_alert(self, store: StatusStore, overview: Overview) -> None:
        self.count(store, NOW, SliCounts(0, 1_000))
        (slo,) = overview.snapshot(onlooker()).slos
        assert [(burn.severity, burn.window_s) for burn in slo.burn] == [
            (Urgency.PAGE, 3_600.0),
            (Urgency.PAGE, 21_600.0),
            (Urgency.TICKET, 86_400.0),
            (Urgency.TICKET, 259_200.0),
        ]
        assert all(burn.burn_rate is not None and burn.burn_rate >= 99.9 for burn in slo.burn)
        assert slo.burn[0].state is AlertState.FIRING

    def test_an_objective_counts_nothing_yet_where_a_probe_feeds_it(self, store: StatusStore, overview: Overview) -> None:
        tell(store, "p", NOW, seen())
        assert [(slo.target, slo.objective.name, slo.total) for slo in overview.snapshot(onlooker()).slos] == [
            ("europe", "order", SliCounts())
        ]
        tell(store, "p", NOW + 1.0, replace(seen(), probe_instance=replace(INSTANCE, probe="affinity")))
        assert overview.snapshot(onlooker()).slos == ()

    def test_an_objective_that_is_not_configured_any_more_is_left_out(self, store: StatusStore, queries: StatusQueries) -> None:
        self.count(store, NOW, SliCounts(80))
        assert Overview(queries, []).snapshot(onlooker()).slos == ()
