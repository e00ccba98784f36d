"""Incidents: one for each target and symptom, until it was not seen for long enough."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.core.findings import Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import GAPS, QUIET_MAX_S, QUIET_MIN_S, Acknowledgement, EndedRun, Exemplar, Incident, after_run
from prober.slo.indicators import Indicator
from prober.slo.objectives import HOUR_S, SliCounts

GAP = Kind.ORDER_GAP


def run(
    at: float,
    *kinds: Kind,
    probe: str = "ordering",
    unreachable: bool = False,
    status: Status = Status.VIOLATION,
    interval_s: float = 10.0,
    exemplar: Exemplar | None = None,
    reached_at: float | None = None,
    verdict: Verdict = Verdict.PASS,
) -> EndedRun:
    """A run of one second that ends then and finds these kinds."""
    counts = Counter((kind, status) for kind in kinds)
    checks = {Indicator.PUBLISH_AVAILABILITY: SliCounts(bad=7)} if unreachable else {}
    result = RunResult(
        f"{probe}-{at:g}",
        probe,
        "europe",
        "wire",
        verdict,
        "",
        at - 1.0,
        1.0,
        counts=counts,
        checks=checks,
        unreachable=unreachable,
    )
    shown = {} if exemplar is None else dict.fromkeys(kinds, exemplar)
    return EndedRun(result, at, interval_s, shown, reached_at)


def reported(*runs: EndedRun) -> dict[Symptom, Incident]:
    """The newest incident of each symptom after these runs."""
    known: dict[Symptom, Incident] = {}
    for one in runs:
        known |= after_run(known, one)
    return known


def order(*runs: EndedRun) -> Incident:
    return reported(*runs)[Symptom.ORDER]


class TestGrouping:
    def test_probes_and_kinds_with_one_symptom_are_one_incident(self) -> None:
        seen = reported(run(10.0, GAP, GAP), run(11.0, Kind.ORDER_INVERSION, Kind.STUCK, probe="redelivery"), run(20.0))
        assert set(seen) == {Symptom.ORDER, Symptom.LOSS}
        one = seen[Symptom.ORDER]
        assert (one.incident_id, one.target, one.first_at, one.last_at) == ("ordering-10-order", "europe", 10.0, 11.0)
        assert {instance.probe: dict(kinds) for instance, kinds in one.affected.items()} == {
            "ordering": {GAP: 2},
            "redelivery": {Kind.ORDER_INVERSION: 1},
        }
        assert (one.findings, one.runs, one.runs_total, list(one.kinds)) == (3, 2, 3, [GAP, Kind.ORDER_INVERSION])

    def test_an_incident_begins_with_its_first_finding_not_with_the_end_of_the_run(self) -> None:
        first = {GAP: 12.0}, {Kind.STUCK: 11.0}, {GAP: 10.0}
        runs = run(40.0, GAP), run(41.0, Kind.STUCK), run(42.0, GAP, probe="pull")
        seen = reported(*(replace(one, found_at=found_at) for one, found_at in zip(runs, first, strict=True)))
        assert (seen[Symptom.ORDER].first_at, seen[Symptom.ORDER].last_at) == (10.0, 42.0)
        assert (seen[Symptom.LOSS].first_at, seen[Symptom.LOSS].last_at) == (11.0, 41.0)

    def test_what_fails_no_run_opens_none(self) -> None:
        assert reported(run(10.0, GAP, status=Status.INDETERMINATE)) == {}

    def test_runs_without_a_verdict_and_of_other_probes_do_not_count(self) -> None:
        assert order(run(10.0, GAP), run(20.0, verdict=Verdict.UNKNOWN), run(30.0, probe="pull")).runs_total == 1

    def test_usual_behaviour_alone_warns(self) -> None:
        split = reported(run(10.0, Kind.AFFINITY_SPLIT))
        assert split[Symptom.AFFINITY].status is Condition.WARN
        both = reported(run(10.0, Kind.AFFINITY_SPLIT, Kind.PULL_OVERLAP))
        assert (both[Symptom.AFFINITY].status, both[Symptom.OVERLAP].status) == (Condition.WARN, Condition.FAIL)


class TestEnd:
    @pytest.mark.parametrize(
        ("interval_s", "quiet_s"), [(10.0, QUIET_MIN_S), (HOUR_S, GAPS * HOUR_S), (12 * HOUR_S, QUIET_MAX_S), (0.0, QUIET_MIN_S)]
    )
    def test_a_single_sighting_closes_after_three_intervals_within_bounds(self, interval_s: float, quiet_s: float) -> None:
        one = order(run(10.0, GAP, interval_s=interval_s))
        assert one.closes_at == 10.0 + quiet_s
        assert (one.is_open(one.closes_at - 1.0), one.is_open(one.closes_at)) == (True, False)

    def test_a_seldom_fault_is_one_incident(self) -> None:
        """Seen every 50 minutes: three such gaps are needed, so one that is missed does not split it."""
        sightings = [3_000.0 * number for number in (1, 2, 4, 5)]
        one = order(*(run(at, GAP) for at in sightings))
        assert (one.first_at, one.runs, one.closes_at) == (3_000.0, 4, 15_000.0 + GAPS * 6_000.0)

    def test_after_its_end_a_new_one_begins(self) -> None:
        assert order(run(10.0, GAP), run(10.0 + QUIET_MIN_S, GAP)).incident_id == "ordering-3610-order"

    @given(st.lists(st.floats(1.0, 3 * QUIET_MAX_S), min_size=1, max_size=30), st.floats(0.0, QUIET_MAX_S))
    def test_the_end_is_bounded(self, gaps: list[float], interval_s: float) -> None:
        at, known = 0.0, dict[Symptom, Incident]()
        for gap in gaps:
            at += gap
            known |= after_run(known, run(at, GAP, interval_s=interval_s))
            assert QUIET_MIN_S - 1e-6 <= known[Symptom.ORDER].closes_at - at <= QUIET_MAX_S + 1e-6
            assert known[Symptom.ORDER].last_at == at

    def test_runs_may_come_in_any_order(self) -> None:
        one = order(run(50.0, GAP), run(30.0, GAP), run(20.0))
        assert (one.first_at, one.last_at, one.runs) == (30.0, 50.0, 2)

    def test_a_late_sighting_belongs_to_the_closed_incident(self) -> None:
        closed = replace(order(run(10.0, GAP)), closed_at=3_610.0)
        late = after_run({Symptom.ORDER: closed}, run(20.0, GAP))[Symptom.ORDER]
        assert (late.runs, late.closed_at, late.incident_id) == (2, 3_610.0, closed.incident_id)


class TestOutage:
    def test_it_begins_with_the_last_success_and_counts_what_was_not_sent(self) -> None:
        seen = reported(run(50.0, unreachable=True, reached_at=33.0), run(60.0, unreachable=True, probe="pull", reached_at=33.0))
        one = seen[Symptom.OUTAGE]
        assert (one.first_at, one.runs, one.unsent, one.status) == (33.0, 2, 14, Condition.OUTAGE)
        assert {instance.probe for instance in one.affected} == {"ordering", "pull"}

    def test_without_any_success_it_begins_with_the_run(self) -> None:
        assert reported(run(50.0, unreachable=True))[Symptom.OUTAGE].first_at == 49.0

    def test_only_a_run_of_an_affected_probe_that_reaches_the_target_closes_it(self) -> None:
        seen = run(50.0, unreachable=True)
        assert reported(seen, run(60.0, probe="pull"))[Symptom.OUTAGE].closed_at is None
        assert reported(seen, run(40.0))[Symptom.OUTAGE].closed_at is None
        assert reported(seen, run(60.0, verdict=Verdict.UNKNOWN))[Symptom.OUTAGE].closed_at == 60.0


class TestExemplar:
    def test_the_first_proof_stays_and_beats_none(self) -> None:
        shown = [Exemplar("a", None), Exemplar("b", 40), Exemplar("c", 24)]
        one = order(*(run(10.0 * number, GAP, exemplar=each) for number, each in enumerate(shown, 1)))
        assert one.exemplar.finding_id == "b"
        assert order(run(10.0, GAP), run(20.0, GAP, exemplar=shown[0])).exemplar.finding_id == "a"


def test_an_acknowledgement_ends() -> None:
    gap = order(run(10.0, GAP))
    assert not gap.is_acknowledged(0.0)
    for until, then in ((None, True), (10.0, False)):
        known = replace(gap, acknowledged=Acknowledgement(1.0, "ada", "a known fault", until))
        assert (known.is_acknowledged(9.0), known.is_acknowledged(10.0)) == (True, then)


class TestRaised:
    def test_with_the_first_run_that_shows_it(self) -> None:
        assert order(run(5.0, GAP), run(15.0, GAP)).raised_at == 5.0

    def test_an_outage_is_raised_when_it_is_seen_not_when_it_began(self) -> None:
        outage = reported(run(50.0, unreachable=True, reached_at=5.0))[Symptom.OUTAGE]
        assert (outage.first_at, outage.raised_at) == (5.0, 50.0)

    def test_not_before_it_is_stored(self) -> None:
        assert order(replace(run(5.0, GAP), recorded_at=900.0)).raised_at == 900.0

    def test_usual_behaviour_is_not(self) -> None:
        assert reported(run(5.0, Kind.AFFINITY_SPLIT))[Symptom.AFFINITY].raised_at is None
