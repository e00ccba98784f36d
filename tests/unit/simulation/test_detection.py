"""What counts as found, as missed and as a false alarm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from prober.core.verdict import Verdict
from prober.simulation.detection import Detection
from prober.simulation.observation import RunNote
from prober.simulation.plan import Plan, planned
from prober.simulation.world import Simulated, defaults

PROBES = defaults().targets[0].probes


def note(
    injected: str = "",
    found: Mapping[str, float] | None = None,
    *,
    clean: bool = False,
    verified: bool = True,
    probe: str = "ordering",
) -> RunNote:
    return RunNote(
        probe,
        "run",
        0.0,
        verdict=Verdict.FAIL if found else Verdict.PASS,
        events=10,
        verified=verified,
        clean=clean,
        injected=Counter({injected: 1} if injected else {}),
        injected_t=1.0 if injected else None,
        found=dict(found or {}),
        alarms={"arrival order": 2, "Google's prober": 0},
        proofs=["a proof"] if found else [],
    )


def plan(fault: str, seed: int = 0) -> Plan:
    return planned(seed, 0.05, PROBES, [fault])


def total(*notes: RunNote, fault: str = "drop", faults: tuple[str, ...] = ()) -> Detection:
    return Detection.of([Simulated(plan(fault), notes, faults)])


def test_what_was_injected_and_found_counts_with_its_time() -> None:
    detection = total(note("drop", {"ORDER_GAP": 3.5, "PHANTOM": 2.0}), note("drop", {"ORDER_GAP": 2.5}))
    cell = detection.cells["drop"]["ordering"]
    assert (cell.observable, cell.found, cell.median_after_s) == (2, 2, 1.5)
    assert cell.kinds == {"ORDER_GAP": 2}
    assert cell.others == {"arrival order": 2}
    assert detection.is_as_expected


def test_another_finding_does_not_reveal_it() -> None:
    detection = total(note("drop", {"PHANTOM": 2.0}), note("drop", {"PHANTOM": 2.0}))
    assert detection.cells["drop"]["ordering"].found == 0
    assert detection.missing == {"drop": [0]}
    assert detection.below == ["drop"]
    assert not detection.is_as_expected


def test_what_was_not_verified_to_its_end_was_not_observable() -> None:
    detection = total(note("drop", verified=False))
    assert not detection.cells
    assert detection.is_as_expected


def test_the_best_probe_decides() -> None:
    found = [note("drop", {"ORDER_GAP": 2.0}, probe="limits")] * 9
    detection = total(note("drop"), note("drop"), *found)
    assert detection.best("drop")[0] == "limits"
    assert detection.is_as_expected


def test_too_few_are_not_provably_too_rarely() -> None:
    assert total(*[note("drop", {"ORDER_GAP": 2.0})] * 3, note("drop")).is_as_expected
    assert total(note("drop")).is_as_expected
    assert not total(*[note("drop", {"ORDER_GAP": 2.0})] * 6, *[note("drop")] * 3).is_as_expected


@pytest.mark.parametrize(("probe", "must_be_found"), [("exactly_once", True), ("ordering", False)])
def test_some_are_allowed_but_with_exactly_once(probe: str, *, must_be_found: bool) -> None:
    notes = [note("lease_short", probe=probe)] * 2
    detection = total(*notes, fault="lease_short")
    assert bool(detection.cells) == must_be_found
    assert detection.is_as_expected is not must_be_found


def test_what_is_redelivered_is_not_guaranteed_with_dead_letters() -> None:
    assert not total(note("redeliver_single", probe="dead_letter"), fault="redeliver_single").cells
    assert total(note("redeliver_single", probe="redelivery"), fault="redeliver_single").cells


def test_who_is_accused_of_nothing_that_happened_is_accused_in_vain() -> None:
    detection = total(note(found={"STUCK": 9.0}, clean=True))
    (failure,) = detection.failures
    assert failure.what == "a false alarm in run run"
    assert failure.evidence == ("a proof",)
    assert not detection.is_as_expected


def test_what_was_injected_before_explains_what_is_found_later() -> None:
    assert total(note(found={"STUCK": 9.0}, clean=False)).is_as_expected


def test_alarms_of_other_rules_in_clean_runs_are_counted_and_no_failure() -> None:
    detection = total(note(clean=True), note(clean=True), note())
    assert (detection.clean_runs, detection.false_alarms) == (2, {"arrival order": 2})
    assert detection.is_as_expected


def test_a_mistake_of_ours_is_a_failure() -> None:
    assert [failure.what for failure in total(faults=("boom",)).failures] == ["an internal error"]
