"""What the probes say that they send is what they send, counted in virtual time (`tests.virtual_time`)."""

from __future__ import annotations

import pytest

from prober.cli.check import CheckRequest, run_checks
from prober.config.loading import load
from prober.probes.catalogue import PROBES
from prober.probes.cost import message_bytes
from prober.probes.payload import Stamp
from prober.runs.runner import new_run_id
from prober.schedule.instances import sites_of
from tests.virtual_time import in_virtual_time

DELIVERIES_OFF = {
    "ordering": 0.0,
    "redelivery": 0.05,
    "affinity": 0.15,
    "pull": 0.15,
    "push": 0.05,
    "publish": 0.15,
    "isolation": 0.0,
    "hot_key": 0.0,
    "control_group": 0.0,
    "dead_letter": 0.0,
    "exactly_once": 0.0,
    "seek": 0.0,
    "control_plane": 0.0,
    "limits": 0.0,
    "region": 0.0,
}
"""How far deliveries may be off, as a share: which subscriber leaves when it holds what is decided by dice and time; so is
what was stored of a publish whose answer nobody waited for."""


@pytest.mark.parametrize("probe", PROBES)
def test_a_run_sends_what_its_cost_is_computed_from(probe: str) -> None:
    config = load(None, {})
    (site,) = (site for site in sites_of(config.targets[0]) if site.probe == probe)
    promised = site.experiment.traffic(site.workload)
    (result,) = in_virtual_time(lambda: run_checks(config, CheckRequest(probes=(probe,)), {}, lambda _: None))
    unjudged = result.counters.get("unordered_deliveries", 0)
    delivered = result.counters["deliveries_first"] + result.counters.get("deliveries_redelivery", 0) + unjudged
    delivered += 2 * result.counters.get("dead_lettered", 0)  # published once more, and received from there
    assert result.counters["publishes_invoked"] == promised.published
    assert delivered == pytest.approx(promised.delivered, rel=DELIVERIES_OFF[probe])


def test_a_message_is_as_long_as_it_is_billed_for() -> None:
    for probe in PROBES:
        attributes = Stamp(new_run_id(probe), 12).attributes(f"{probe}-1", b"")
        carried = sum(map(len, attributes)) + sum(map(len, attributes.values()))
        assert carried < message_bytes((0,)) < carried + 80
