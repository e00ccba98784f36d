"""The live: verdicts newest first, unknown when runs stay away, bounded memory, and objectives that never call nothing good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.verdict import Verdict
from prober.evidence.explain import explain
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import QUIET_MIN_S
from prober.sinks.live.snapshot import FindingCount, InstanceSnapshot, SkippedRun
from prober.sinks.live.state import FINDINGS_KEPT_MAX, FIRST_RUN_MAX_S, RUNS_KEPT_MAX, LiveState
from prober.slo.budgets import SloSnapshot, budget_left
from prober.slo.confidence import ProportionBounds, interval
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
START = 1000.0
WIRE = ProbeInstance("europe", "ordering", "wire", interval_s=10.0)
LIBRARY = ProbeInstance("europe", "ordering", "library", interval_s=10.0)
OTHER = ProbeInstance("us", "redelivery", "wire", interval_s=10.0)
ORDER = Objective("order", Indicator.ORDER, 0.99, 30 * DAY_S)
REDELIVERY = Objective("redelivery", Indicator.REDELIVERY, 0.99, 30 * DAY_S)
FAST = Objective("fast", Indicator.PUBLISH_LATENCY, 0.99, 30 * DAY_S, threshold_s=0.5)


def live(*instances: ProbeInstance, objectives: tuple[Objective, ...] = ()) -> LiveState:
    return LiveState(instances or (WIRE,), objectives, version="1.2.3", instance="prober-0", started_at=START)


def end(
    reported: LiveState,
    verdict: Verdict,
    at: float,
    instance: ProbeInstance = WIRE,
    *,
    made: tuple[RecordedFinding, ...] = (),
    name: str = "",
    **more: object,
) -> RunResult:
    """A run of two seconds ends."""
    counts = {item.sort: sum(other.sort == item.sort for other in made) for item in made}
    values = {"reason": "", "started_at": at - 2.0, "duration_s": 2.0, "findings": made, "counts": counts} | more
    place = instance.probe, instance.target, instance.vantage
    result = RunResult(name or f"run-{at:g}", *place, verdict, **values)  # type: ignore[arg-type]
    reported.ended(instance, result, at)
    return result


def finding(seq: int, status: Status = Status.LIVENESS) -> RecordedFinding:
    facts: Facts = {"seqs": (seq,), "count": 1, "since_t": 1.0}
    return RecordedFinding(Finding(Kind.STUCK, status, "s", "k", float(seq), (seq,), facts, doubt="it may still come"), seq)


def only(reported: LiveState, now: float) -> InstanceSnapshot:
    (instance,) = reported.snapshot(now).probe_instances
    return instance


def slo(reported: LiveState) -> SloSnapshot:
    (found,) = reported.snapshot(START).slos
    return found


class TestVerdict:
    def test_nothing_is_known_before_the_first_run_ends(self) -> None:
        reported = live()
        reported.started(WIRE, START + 1)
        instance = only(reported, START + 2)
        assert (instance.verdict, instance.status, instance.since, instance.last_run, instance.last_pass_at) == (
            None,
            Condition.STARTING,
            None,
            None,
            None,
        )
        assert instance.running_since == START + 1
        assert reported.snapshot(START + 2).verdict is UNKNOWN

    @pytest.mark.parametrize(
        ("verdicts", "overall"),
        [
            ((PASS, PASS, PASS), PASS),
            ((PASS, UNKNOWN, PASS), UNKNOWN),
            ((UNKNOWN, FAIL, PASS), FAIL),
            ((PASS, PASS, None), UNKNOWN),
            ((FAIL, None, None), FAIL),
        ],
    )
    def test_the_worst_instance_decides(self, verdicts: tuple[Verdict | None, ...], overall: Verdict) -> None:
        instances = (WIRE, LIBRARY, OTHER)
        reported = live(*instances)
        for instance, verdict in zip(instances, verdicts, strict=True):
            if verdict is not None:
                end(reported, verdict, START + 5, instance)
        assert reported.snapshot(START + 6).verdict is overall

    def test_of_nothing_nothing_is_known(self) -> None:
        reported = LiveState((), version="1", instance="i", started_at=START)
        assert reported.snapshot(START).verdict is UNKNOWN

    def test_the_newest_run_counts_and_since_is_when_the_verdict_changed(self) -> None:
        reported = live()
        end(reported, FAIL, START + 10, reason="STUCK")
        end(reported, PASS, START + 20)
        reported.started(WIRE, START + 28)
        end(reported, PASS, START + 30)
        instance = only(reported, START + 31)
        assert (instance.verdict, instance.status, instance.since, instance.last_pass_at) == (
            PASS,
            Condition.PASS,
            START + 20,
            START + 30,
        )
        assert instance.runs == {PASS: 2, FAIL: 1, UNKNOWN: 0}
        assert instance.running_since is None

    def test_overall_since_is_when_it_was_first_seen(self) -> None:
        reported = live(WIRE, LIBRARY)
        assert reported.snapshot(START + 1).since == START
        end(reported, PASS, START + 5)
        end(reported, PASS, START + 6, LIBRARY)
        assert reported.snapshot(START + 7).since == START + 6
        end(reported, FAIL, START + 15)
        end(reported, FAIL, START + 16, LIBRARY)
        end(reported, PASS, START + 25)
        assert reported.snapshot(START + 26).since == START + 15

    def test_the_last_run_is_reported_in_full(self) -> None:
        reported = live()
        made = (finding(1), finding(2), finding(3, Status.INDETERMINATE))
        result = end(
            reported, FAIL, START + 10, made=made, seed=7, topic="t", subscription="s", counters={"rewinds": 3}, reason="STUCK"
        )
        last = only(reported, START + 11).last_run
        assert last is not None
        assert (last.run_id, last.reason, last.started_at, last.duration_s) == (result.run_id, "STUCK", START + 8, 2.0)
        assert (last.seed, last.topic, last.subscription, last.counters) == (7, "t", "s", {"rewinds": 3})
        assert last.findings == (FindingCount(Kind.STUCK, Status.LIVENESS, 2), FindingCount(Kind.STUCK, Status.INDETERMINATE, 1))


class TestOverdue:
    """No run ended for three intervals and the time of the longest run: 3 x 10 s + 2 s."""

    def test_a_pass_that_is_not_renewed_becomes_unknown(self) -> None:
        reported = live()
        end(reported, PASS, START + 10)
        assert (only(reported, START + 42).status, only(reported, START + 42).overdue_s) == (Condition.PASS, None)
        late = only(reported, START + 43)
        assert (late.verdict, late.status, late.overdue_s) == (PASS, Condition.UNKNOWN, 1.0)
        assert reported.snapshot(START + 43).verdict is UNKNOWN

    def test_a_fail_stays_one(self) -> None:
        reported = live()
        end(reported, FAIL, START + 10)
        assert (only(reported, START + 100).status, only(reported, START + 100).overdue_s) == (Condition.FAIL, 58.0)

    def test_a_run_that_hangs_renews_nothing(self) -> None:
        reported = live()
        end(reported, PASS, START + 10)
        reported.started(WIRE, START + 20)
        assert only(reported, START + 43).status is Condition.UNKNOWN

    def test_the_longest_run_so_far_is_allowed_for(self) -> None:
        reported = live()
        end(reported, PASS, START + 10, duration_s=9.0)
        end(reported, PASS, START + 20)
        assert only(reported, START + 59).overdue_s is None
        assert only(reported, START + 60).overdue_s == 1.0

    def test_an_instance_that_never_ran_is_waited_for_from_the_start(self) -> None:
        assert only(live(), START + 30).overdue_s is None
        assert only(live(), START + 31).overdue_s == 1.0

    def test_after_maintenance_the_wait_begins_anew(self) -> None:
        reported = live()
        end(reported, PASS, START + 10)
        reported.under_maintenance(WIRE, "works", START + 20)
        assert only(reported, START + 500).overdue_s is None
        reported.under_maintenance(WIRE, None, START + 500)
        reported.under_maintenance(WIRE, None, START + 510)
        assert only(reported, START + 532).status is Condition.PASS
        assert only(reported, START + 533).status is Condition.UNKNOWN


class TestCondition:
    def test_before_the_first_run_had_time_to_end_an_instance_is_starting(self) -> None:
        late = START + WIRE.interval_s + FIRST_RUN_MAX_S + 1.0
        assert only(live(), late - 1.0).status is Condition.STARTING
        assert only(live(), late).status is Condition.UNKNOWN
        assert live().snapshot(START).status is Condition.STARTING

    def test_a_violation_of_usual_behaviour_warns_and_stays_a_fail(self) -> None:
        reported = live(WIRE, LIBRARY)
        facts: Facts = {"seq": 3, "subscriber": "B", "holder": "A", "held": (1, 2)}
        split = RecordedFinding(Finding(Kind.AFFINITY_SPLIT, Status.VIOLATION, "s", "k", 1.0, (1, 2), facts), 1)
        end(reported, FAIL, START + 5, made=(split,), reason="AFFINITY_SPLIT")
        end(reported, PASS, START + 5, LIBRARY)
        shown = reported.snapshot(START + 6)
        assert (shown.verdict, shown.status, shown.probe_instances[0].status) == (FAIL, Condition.WARN, Condition.WARN)
        end(reported, FAIL, START + 9, made=(split, finding(1)), reason="AFFINITY_SPLIT, STUCK")
        assert reported.snapshot(START + 10).status is Condition.FAIL


class TestMaintenance:
    def test_an_instance_under_maintenance_does_not_count(self) -> None:
        reported = live(WIRE, LIBRARY)
        end(reported, FAIL, START + 5)
        end(reported, PASS, START + 5, LIBRARY)
        reported.under_maintenance(WIRE, "", START + 6)
        first, _ = reported.snapshot(START + 7).probe_instances
        assert (first.verdict, first.status, first.maintenance) == (FAIL, Condition.MAINTENANCE, "")
        assert (reported.snapshot(START + 7).verdict, reported.snapshot(START + 7).since) == (PASS, START + 6)
        reported.under_maintenance(WIRE, None, START + 8)
        assert reported.snapshot(START + 9).verdict is FAIL

    def test_when_everything_is_under_maintenance_nothing_is_known(self) -> None:
        reported = live()
        end(reported, PASS, START + 5)
        reported.under_maintenance(WIRE, "works", START + 6)
        assert reported.snapshot(START + 7).verdict is UNKNOWN


class TestMemory:
    def test_the_last_runs_are_kept_oldest_first_and_all_are_counted(self) -> None:
        reported = live()
        for number in range(RUNS_KEPT_MAX + 5):
            end(reported, PASS, START + number, name=f"run-{number}")
        instance = only(reported, START + 100)
        assert [run.run_id for run in instance.history] == [f"run-{number}" for number in range(5, RUNS_KEPT_MAX + 5)]
        assert instance.runs[PASS] == RUNS_KEPT_MAX + 5

    def test_only_findings_that_fail_are_kept_in_words(self) -> None:
        reported = live()
        made = tuple(finding(seq, status) for seq, status in enumerate(Status, 1))
        end(reported, FAIL, START + 5, made=made, name="run-x")
        kept = only(reported, START + 6).findings
        assert [(found.status, found.t) for found in kept] == [(Status.VIOLATION, 1.0), (Status.LIVENESS, 2.0)]
        assert kept[0].explanation == explain(made[0].finding)
        assert (kept[0].run_id, kept[0].found_at, kept[0].key, kept[0].subscription) == ("run-x", START + 5, "k", "s")

    def test_the_newest_run_comes_first_and_what_is_dropped_is_counted(self) -> None:
        reported = live()
        end(reported, FAIL, START + 5, made=tuple(finding(seq) for seq in range(1, 16)), name="old")
        end(reported, FAIL, START + 9, made=tuple(finding(seq) for seq in range(1, 9)), name="new")
        instance = only(reported, START + 10)
        assert [(found.run_id, found.t) for found in instance.findings] == [
            *(("new", seq) for seq in range(1, 9)),
            *(("old", seq) for seq in range(1, 13)),
        ]
        assert len(instance.findings) == FINDINGS_KEPT_MAX
        assert instance.findings_dropped == 3

    def test_what_a_run_did_not_keep_counts_as_dropped(self) -> None:
        reported = live()
        end(reported, FAIL, START + 5, made=(finding(1),), counts={finding(1).sort: 1000, (Kind.AFFINITY_MOVE, Status.INFO): 5})
        assert only(reported, START + 6).findings_dropped == 999

    def test_findings_are_shown_as_long_as_their_incident_is_open(self) -> None:
        reported = live()
        end(reported, FAIL, START + 5, made=(finding(1),), name="first")
        end(reported, UNKNOWN, START + 6)
        end(reported, PASS, START + 8)
        assert [found.run_id for found in only(reported, START + 9).findings] == ["first"]
        assert [one.incident_id for one in reported.snapshot(START + 9).incidents] == ["first-loss"]
        over = START + 5 + QUIET_MIN_S
        assert (reported.snapshot(over).incidents, only(reported, over).findings) == ((), ())
        end(reported, FAIL, over + 1.0, made=(finding(2),))
        assert [found.t for found in only(reported, over + 1.0).findings] == [2.0]

    def test_the_schedule_is_followed(self) -> None:
        reported = live()
        for _ in range(3):
            reported.expected(WIRE)
        reported.skipped(WIRE, "overlap", START + 5)
        reported.planned(WIRE, START + 20)
        instance = only(reported, START + 6)
        assert (instance.runs_expected, instance.runs_skipped, instance.last_skip) == (3, 1, SkippedRun("overlap", START + 5))
        assert instance.next_run_at == START + 20
        reported.planned(WIRE, None)
        assert only(reported, START + 6).next_run_at is None

    def test_what_was_not_there_from_the_start_is_refused(self) -> None:
        reported = live(WIRE, objectives=(FAST,))
        with pytest.raises(KeyError):
            reported.started(OTHER, START)
        with pytest.raises(KeyError):
            reported.counted("mars", "fast", SliCounts())
        with pytest.raises(KeyError):
            reported.counted("europe", "slow", SliCounts())

    def test_the_snapshot_says_whose_it_is(self) -> None:
        snapshot = live().snapshot(START + 9)
        assert (snapshot.at, snapshot.version, snapshot.instance, snapshot.started_at) == (START + 9, "1.2.3", "prober-0", START)


class TestObjectives:
    def test_no_data_is_unknown(self) -> None:
        found = slo(live(objectives=(ORDER,)))
        assert (found.target, found.objective, found.total) == ("europe", ORDER, SliCounts())
        assert (found.error_ratio, found.budget_left, found.verdict) == (None, None, UNKNOWN)
        assert found.bounds == ProportionBounds(0.0, 1.0)

    def test_checks_of_all_runs_on_a_target_are_added(self) -> None:
        reported = live(WIRE, LIBRARY, objectives=(ORDER,))
        end(reported, PASS, START + 5, checks={Indicator.ORDER: SliCounts(90, 0, 3), Indicator.AFFINITY: SliCounts(0, 7, 0)})
        end(reported, PASS, START + 6, LIBRARY, checks={Indicator.ORDER: SliCounts(9, 1, 0)})
        found = slo(reported)
        assert found.total == SliCounts(99, 1, 3)
        assert found.error_ratio == 0.01

    def test_time_in_which_nothing_was_decided_spends_no_budget(self) -> None:
        reported = live(objectives=(ORDER,))
        end(reported, FAIL, START + 5, checks={Indicator.ORDER: SliCounts(0, 10)})
        for at, measured_s in ((START + 600.0, 600.0), (START + 36_000.0, 2_600.0)):  # an hour ended 2,600 s after the start
            (found,) = reported.snapshot(at).slos
            assert found.measured == measured_s / ORDER.window_s
            assert found.budget_left == budget_left(ORDER, SliCounts(0, 10), found.measured) == 1.0 - 100.0 * found.measured

    def test_the_bounds_hold_whatever_becomes_of_the_undecided(self) -> None:
        reported = live(objectives=(ORDER,))
        end(reported, PASS, START + 5, checks={Indicator.ORDER: SliCounts(900, 2, 5)})
        assert slo(reported).bounds == ProportionBounds(interval(2, 907).low, interval(7, 907).high)

    @pytest.mark.parametrize(
        ("counts", "verdict"),
        [
            (SliCounts(100, 0, 0), UNKNOWN),  # up to 3.6 % may be bad
            (SliCounts(1000, 0, 0), PASS),
            (SliCounts(1000, 0, 100), UNKNOWN),  # the undecided may all be bad
            (SliCounts(900, 100, 0), FAIL),
            (SliCounts(985, 15, 0), UNKNOWN),  # 1.5 %, but it may be 0.8 % in truth
            (SliCounts(9, 1, 0), UNKNOWN),  # 10 %, but one bad one of ten proves 0.25 % only
        ],
    )
    def test_an_objective_is_kept_or_missed_only_when_that_is_proven(self, counts: SliCounts, verdict: Verdict) -> None:
        reported = live(objectives=(ORDER,))
        end(reported, PASS, START + 5, checks={Indicator.ORDER: counts})
        assert slo(reported).verdict is verdict

    def test_what_is_counted_elsewhere_is_a_total(self) -> None:
        reported = live(objectives=(FAST,))
        reported.counted("europe", "fast", SliCounts(10, 1))
        reported.counted("europe", "fast", SliCounts(30, 2))
        assert slo(reported).total == SliCounts(30, 2)

    def test_targets_are_verified_apart_and_only_for_what_they_feed(self) -> None:
        reported = live(WIRE, OTHER, objectives=(ORDER, REDELIVERY))
        assert [(found.target, found.objective.name) for found in reported.snapshot(START).slos] == [
            ("europe", "order"),
            ("us", "redelivery"),
        ]

    def test_what_was_counted_is_shown_whoever_feeds_it(self) -> None:
        reported = live(OTHER, objectives=(ORDER,))
        assert reported.snapshot(START).slos == ()
        end(reported, PASS, START + 5, OTHER, checks={Indicator.ORDER: SliCounts(5)})
        assert slo(reported).total == SliCounts(5)


class TestAnotherConfiguration:
    def test_an_instance_that_becomes_another_keeps_what_is_known_of_it(self) -> None:
        reported = live()
        end(reported, FAIL, 1010.0, made=(finding(1),))
        reported.expected(WIRE)
        reported.watched(replace(WIRE, interval_s=100.0, topic="other"), 1020.0)
        shown = only(reported, 1030.0)
        assert (shown.probe_instance.topic, shown.runs[FAIL], shown.runs_expected, len(shown.findings)) == ("other", 1, 1, 1)
        assert shown.verdict is FAIL
        assert only(reported, 1200.0).overdue_s is None  # it runs more rarely now

    def test_objectives_come_and_go_and_count_what_comes_while_they_are_there(self) -> None:
        reported = live(objectives=(ORDER,))
        end(reported, PASS, 1010.0, checks={Indicator.ORDER: SliCounts(10)})
        other = replace(ORDER, name="other")
        reported.follow((WIRE,), (replace(ORDER, target=0.5), other))
        end(reported, PASS, 1020.0, checks={Indicator.ORDER: SliCounts(1)})
        assert {slo.objective.name: slo.total.good for slo in reported.snapshot(1030.0).slos} == {"order": 11, "other": 1}
        reported.follow((WIRE,), (other,))
        end(reported, PASS, 1030.0, checks={Indicator.ORDER: SliCounts(1)})
        reported.follow((WIRE,), (ORDER,))
        assert [slo.total.good for slo in reported.snapshot(1040.0).slos] == [11]

    def test_a_target_that_is_gone_has_no_objectives(self) -> None:
        reported = live(WIRE, OTHER, objectives=(ORDER, REDELIVERY))
        reported.left(OTHER)
        reported.follow((WIRE,), (ORDER, REDELIVERY))
        assert [(slo.target, slo.objective.name) for slo in reported.snapshot(1010.0).slos] == [("europe", "order")]
