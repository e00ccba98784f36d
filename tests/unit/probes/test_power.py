"""How rare a fault may be and still be found."""

from __future__ import annotations

from math import pow

import pytest

from prober.cli import main
from prober.config.loading import load
from prober.core.coverage import OPPORTUNITIES
from prober.probes.catalogue import ProbeName
from prober.probes.power import SURE, share_found
from prober.schedule.instances import instances_of
from prober.slo.objectives import HOUR_S
from tests.commands import Output


def found_with(opportunities: float, share: float) -> float:
    """With which probability something is found that goes wrong in this share of all cases."""
    return 1.0 - pow(1.0 - share, opportunities)


def test_a_share_is_found_by_as_many_opportunities_as_it_takes() -> None:
    assert share_found(1, 0.2) == pytest.approx(0.2)
    assert share_found(4, 0.5904) == pytest.approx(0.2)
    assert found_with(10, share_found(10)) == pytest.approx(SURE)
    assert share_found(0) == 1.0


def test_by_default_every_probe_finds_one_in_five_at_once_and_one_in_a_thousand_within_an_hour() -> None:
    for instance in instances_of(load(None, {}).targets[0]):
        hourly = HOUR_S / instance.settings.schedule.longest_gap.total_seconds()
        for counter, opportunities in instance.experiment.opportunities(instance.workload).items():
            assert counter in OPPORTUNITIES
            assert found_with(opportunities, 0.2) >= SURE, instance.probe
            if (
                instance.probe is not ProbeName.HOT_KEY
            ):  # what it publishes is billed by the byte: it runs once an hour, and measures
                assert found_with(opportunities * hourly, 0.001) >= SURE, instance.probe


def test_the_command_says_so(capsys: Output) -> None:
    assert main(["probes"]) == 0
    said = capsys.readouterr().out
    assert (
        "60 opportunities a run, 3,600 an hour: redeliveries that had to bring later messages again (opportunities_redelivery)"
        in said
    )
    assert "95% sure to find a fault in 1 in 21 of them by one run, in 1 in 1,200 within an hour" in said
