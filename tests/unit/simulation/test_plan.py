"""Plans: the same for the same seed, and between them everything happens."""

from __future__ import annotations

import pytest

from prober.core.findings import Kind
from prober.embedded.catalogue import CATALOGUE
from prober.errors import ConfigError
from prober.simulation.plan import ALLOWED, MET_ONLY_BY, TO_BE_FOUND, Plan, Temper, Trouble, planned
from prober.simulation.seeds import read_seeds
from prober.simulation.world import defaults

PROBES = defaults().targets[0].probes
PLANS = [planned(seed, 0.05, PROBES) for seed in range(400)]


def test_a_seed_gives_the_same_plan_again() -> None:
    assert [planned(seed, 0.05, PROBES) for seed in range(20)] == PLANS[:20]
    assert len({repr(plan) for plan in PLANS}) == len(PLANS)


def test_between_them_everything_happens() -> None:
    assert {plan.temper for plan in PLANS} == set(Temper)
    assert {name for plan in PLANS for name in plan.probes} == set(PROBES)
    assert {fault.name for plan in PLANS for fault in plan.faults} == set(CATALOGUE)
    assert {one.trouble for plan in PLANS for one in plan.disturbances} == set(Trouble)


def test_a_calm_day_has_one_fault_and_nothing_else() -> None:
    for plan in PLANS:
        if plan.temper is Temper.CALM:
            assert [fault.name for fault in plan.faults] == [plan.fault]
            assert not plan.disturbances


def test_a_rough_day_has_nothing_that_violates_a_guarantee() -> None:
    for plan in PLANS:
        if plan.temper is Temper.ROUGH:
            assert not plan.fault
            assert {fault.name for fault in plan.faults} <= set(ALLOWED)


def test_a_fault_meets_a_probe_that_it_can_strike() -> None:
    def fits(plan: Plan) -> bool:
        return not set(plan.probes).isdisjoint(MET_ONLY_BY.get(plan.fault, plan.probes))

    assert all(map(fits, PLANS))
    assert set(MET_ONLY_BY) <= set(CATALOGUE)
    assert {finding for fault in TO_BE_FOUND for finding in CATALOGUE[fault].findings} <= set(Kind)


def test_only_the_faults_that_are_asked_for() -> None:
    plans = [planned(seed, 1.0, PROBES, ["drop", "hole"]) for seed in range(40)]
    assert {fault.name for plan in plans for fault in plan.faults} == {"drop", "hole"}
    assert {plan.temper for plan in plans} == {Temper.CALM}


@pytest.mark.parametrize(("text", "seeds"), [("1..200", range(1, 201)), ("7", range(7, 8)), ("0..0", range(1))])
def test_seeds_are_read(text: str, seeds: range) -> None:
    assert read_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "x", "5..4", "-3..4", "1..", "..2", "1.5"])
def test_what_are_no_seeds_is_said(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write them like 1\.\.200"):
        read_seeds(text)
