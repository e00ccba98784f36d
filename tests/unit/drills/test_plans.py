"""Which drills there are, what each must find, and what the section `drills` of the configuration says of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from prober.config.loading import load
from prober.config.sections import CONTROL, Drills
from prober.drills.plans import PLANS, DrillPlan, DrillSort, chosen, representatives
from prober.drills.schedule import drills_of
from prober.embedded.catalogue import CATALOGUE
from tests.unit.config.writing import loaded


def test_there_is_a_drill_for_every_fault_and_one_without() -> None:
    assert set(PLANS) == {*CATALOGUE, CONTROL}
    assert all(plan.name == (CONTROL if plan.fault is None else plan.fault.name) for plan in PLANS.values())


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: plan.name)
def test_what_must_be_found_is_what_the_catalogue_announces(plan: DrillPlan) -> None:
    quiet = plan.sort in (DrillSort.AVAILABILITY, DrillSort.BENIGN, DrillSort.CONTROL)
    assert bool(plan.announced) is not quiet
    if plan.fault is not None:
        assert plan.announced == CATALOGUE[plan.name].findings
        assert (plan.sort is DrillSort.BENIGN) == CATALOGUE[plan.name].benign
    assert plan.sentence.endswith(".")


def test_one_of_each_sort_by_default_and_always_a_control() -> None:
    assert [plan.sort for plan in representatives()] == [
        DrillSort.ORDER,
        DrillSort.REDELIVERY,
        DrillSort.AFFINITY,
        DrillSort.INTEGRITY,
        DrillSort.LIVENESS,
        DrillSort.BENIGN,
        DrillSort.CONTROL,
    ]
    assert chosen(()) == representatives()


def test_drills_are_chosen_by_name_each_once() -> None:
    assert [plan.name for plan in chosen(["drop", "control", "drop"])] == ["drop", "control"]
    with pytest.raises(KeyError):
        chosen(["dorp"])


def test_without_a_schedule_nothing_is_drilled() -> None:
    settings = load(None, {}).drills
    assert settings == Drills()
    assert drills_of(settings) == ()


def test_with_a_schedule_one_of_each_sort_is_drilled_or_what_is_named(tmp_path: Path) -> None:
    settings = loaded(tmp_path, 'drills: {cron: "0 3 * * mon", prometheus: "http://prometheus:9090", port: 9096}').drills
    assert drills_of(settings)[-2:] == ("reply_lost", "control")
    assert drills_of(settings.model_copy(update={"faults": ("drop", "jitter")})) == ("drop", "jitter")
    assert (settings.deadline, settings.silence) == (timedelta(minutes=2), timedelta(minutes=1))
