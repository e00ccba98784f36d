"""How rare a fault may be that a whole schedule finds."""

from __future__ import annotations

import pytest

from prober.brokers.base import Vantage
from prober.cli import main
from prober.config.loading import load
from prober.config.models import ProbeName
from prober.probes.power import found_with, one_in
from prober.schedule.power import CHANCES_OF, PERIODS_S, detectable, detectable_on, hourly_chances
from prober.slo.indicators import Indicator
from tests.commands import Output

CONFIG = load(None, {})
(TARGET,) = CONFIG.targets


def test_more_time_finds_what_is_rarer() -> None:
    hour, day, month = detectable(1000.0)
    assert found_with(1000.0, hour.share) == pytest.approx(0.95)
    assert found_with(24_000.0, day.share) == pytest.approx(0.95)
    assert found_with(720_000.0, month.share) == pytest.approx(0.95)
    assert [found.within_s for found in (hour, day, month)] == list(PERIODS_S)
    assert detectable(0.0) == ()


def test_a_share_is_said_to_two_digits() -> None:
    assert (one_in(3.0 / 450_000), one_in(1.0), one_in(0.049)) == ("1 in 150,000", "1 in 1", "1 in 20")


def test_all_probes_of_a_target_add_up() -> None:
    alone = TARGET.model_copy(update={"probes": {name: TARGET.probes[name] for name in list(TARGET.probes)[:1]}})
    assert 0 < hourly_chances(alone)["chances_order"] < hourly_chances(TARGET)["chances_order"]
    assert {target for target, _ in detectable_on(CONFIG)} == {TARGET.name}
    assert {about for _, about in detectable_on(CONFIG)} == set(CHANCES_OF)


def test_without_a_probe_for_it_nothing_is_said() -> None:
    alone = TARGET.model_copy(update={"probes": {name: one for name, one in TARGET.probes.items() if name == "limits"}})
    assert (TARGET.name, Indicator.AFFINITY) not in detectable_on(CONFIG.model_copy(update={"targets": (alone,)}))


def test_what_comes_through_a_client_library_gives_no_certain_chances() -> None:
    ordering = TARGET.probes[ProbeName.ORDERING]
    library = {ProbeName.ORDERING: ordering.model_copy(update={"vantages": (Vantage.LIBRARY,)})}
    assert hourly_chances(TARGET.model_copy(update={"probes": library})) == {}


def test_the_command_says_it_of_each_objective(capsys: Output) -> None:
    assert main(["probes"]) == 0
    said = capsys.readouterr().out
    assert (
        "redelivery on embedded: the schedule finds with 95% what goes wrong in 1 in 1,200 within an hour, 1 in 29,000 within a day"
        in said
    )
