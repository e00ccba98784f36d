"""Which runs are pairs, and what pairs measure: nothing is counted that could not have been bad, and no fault of ours counts.

And by what two targets can be compared: what both run alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.comparison.pairs import CommonExperiments, ComparedExperiment, PairOfRuns, common_to, measured_by, pairs_of, targets_of
from prober.config.loading import load
from prober.probes.catalogue import ProbeName
from prober.runs.result import RunResult
from prober.slo.comparison import Measured
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.unit.comparison.runs import ORDERING, pair, run

TIMES = st.lists(st.floats(0.0, 1000.0), max_size=20)


def begun(target: str, times: Iterable[float]) -> list[RunResult]:
    return [run(at, target=target) for at in times]


def paired_times(first: Iterable[float], second: Iterable[float], apart_max_s: float) -> list[tuple[float, float]]:
    found = pairs_of(begun("production", first), begun("canary", second), {ORDERING: apart_max_s})
    return [(one.baseline.started_at, one.candidate.started_at) for one in found]


def measured(indicator: Indicator, *pairs: PairOfRuns) -> Measured:
    return next(each for each in measured_by(pairs) if each.aspect.indicator is indicator)


def counts_of(indicator: Indicator, result: RunResult) -> SliCounts:
    return measured(indicator, PairOfRuns(result, result)).counts[0][0]


def test_runs_that_began_at_about_the_same_time_are_pairs() -> None:
    assert paired_times([0, 10, 20], [1, 11, 21], 5) == [(0, 1), (10, 11), (20, 21)]


def test_a_run_without_a_counterpart_is_passed_over() -> None:
    assert paired_times([0, 10, 20, 30], [11, 29], 5) == [(10, 11), (30, 29)]
    assert paired_times([], [1], 5) == []


def test_only_experiments_that_are_asked_for_are_paired() -> None:
    assert pairs_of([run(probe="pull")], [run(probe="pull")], {ORDERING: 5.0}) == []
    assert pairs_of([run()], [run(probe="pull")], {ORDERING: 5.0}) == []


@given(TIMES, TIMES, st.floats(0.0, 100.0))
def test_each_run_is_in_one_pair_at_most_and_no_pair_is_too_far_apart(
    first: list[float], second: list[float], apart: float
) -> None:
    found = paired_times(first, second, apart)
    assert all(abs(one - other) <= apart for one, other in found)
    for side, times in ((0, first), (1, second)):
        used = [each[side] for each in found]
        assert all(used.count(at) <= times.count(at) for at in used)
        assert used == sorted(used)


def test_only_opportunities_count() -> None:
    seen = {Indicator.REDELIVERY: SliCounts(90, 10)}
    assert counts_of(Indicator.REDELIVERY, run(checks=seen, counters={"opportunities_redelivery": 40})) == SliCounts(30, 10)
    assert counts_of(Indicator.REDELIVERY, run(checks=seen, counters={"opportunities_redelivery": 4})) == SliCounts(0, 10)
    assert counts_of(Indicator.REDELIVERY, run(checks=seen)) == SliCounts(90, 10)


def test_what_is_undecided_stays_so_to_the_same_share() -> None:
    seen = {Indicator.AFFINITY: SliCounts(900, 0, 100)}
    assert counts_of(Indicator.AFFINITY, run(checks=seen, counters={"opportunities_affinity": 90})) == SliCounts(90, 0, 10)


def test_publishes_count_with_those_that_could_not_be_sent() -> None:
    counters = {"publishes_confirmed": 80, "publishes_rejected": 3, "publishes_unknown": 2}
    unsent = {Indicator.PUBLISH_AVAILABILITY: SliCounts(bad=15)}
    assert counts_of(Indicator.PUBLISH_AVAILABILITY, run(checks=unsent, counters=counters)) == SliCounts(80, 20)


def test_a_probe_that_fails_publishes_itself_says_nothing_of_availability() -> None:
    failed = run(probe="publish", counters={"publishes_confirmed": 1, "publishes_unknown": 9})
    assert [each.aspect.indicator for each in measured_by([PairOfRuns(failed, failed)])] == [Indicator.ORDER]


def test_a_run_under_maintenance_counts_for_nothing() -> None:
    excused = run(checks={}, counters={"publishes_confirmed": 1, "publishes_unknown": 9})
    assert measured_by([PairOfRuns(excused, excused)]) == []


def test_what_a_mistake_of_ours_ended_is_left_out_on_both_sides() -> None:
    assert measured_by([pair(bad=500, ours=True)]) == []


def test_what_only_one_of_two_measured_is_reported() -> None:
    found = measured_by([PairOfRuns(run(latency_s=0.1), run(checks={}))])
    assert {(each.aspect.name, each.pairs, each.one_sided) for each in found} == {
        ("order", 0, 1),
        ("end_to_end_latency_p50", 0, 1),
        ("end_to_end_latency_p99", 0, 1),
    }


def common(folder: Path, baseline: str, candidate: str) -> CommonExperiments:
    file = folder / "prober.yaml"
    targets = f"[{{name: a, endpoint: embedded, probes: {baseline}}}, {{name: b, endpoint: embedded, probes: {candidate}}}]"
    file.write_text(f"targets: {targets}\nslos: {{order: false, affinity: false, redelivery: false}}\n")
    return common_to(*targets_of(load(file, {}), "a", "b"))


def test_what_both_run_is_compared_and_runs_may_begin_an_interval_apart(tmp_path: Path) -> None:
    assert common(tmp_path, "[ordering, pull]", "[push, ordering]") == CommonExperiments({ORDERING: 10.0}, ())


def test_what_is_done_differently_is_not(tmp_path: Path) -> None:
    assert common(tmp_path, "{ordering: {}}", "{ordering: {keys: 11}}") == CommonExperiments({}, (ProbeName.ORDERING,))


def test_how_often_makes_no_difference(tmp_path: Path) -> None:
    found = common(tmp_path, "{ordering: {}}", "{ordering: {schedule: {interval: 20s}}}")
    assert found == CommonExperiments({ORDERING: 20.0}, ())


def test_vantages_and_parts_are_experiments_of_their_own(tmp_path: Path) -> None:
    probes = "{ordering: {parts: 2, vantages: [wire, library]}}", "{ordering: {parts: 2, vantages: [library]}}"
    assert set(common(tmp_path, *probes).apart_max_s) == {ComparedExperiment("ordering", "library", f"{part}/2") for part in (1, 2)}


def test_a_target_that_is_not_configured_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "prober.yaml"
    file.write_text("targets: [{name: a, endpoint: embedded}]\n")
    with pytest.raises(KeyError):
        targets_of(load(file, {}), "z")
