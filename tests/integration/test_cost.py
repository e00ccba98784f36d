"""What the probes say that they send is what they send, counted on the embedded server."""

from __future__ import annotations

import asyncio

import pytest

from prober.cli.check import CheckRequest, run_checks
from prober.config.loading import load
from prober.probes.catalogue import PROBES, TRAFFIC
from prober.probes.cost import message_bytes
from prober.probes.payload import Stamp
from prober.runs.runner import new_run_id
from prober.schedule.instances import sites_of

DELIVERIES_OFF = {"ordering": 0.0, "redelivery": 0.05, "affinity": 0.15}
"""How far deliveries may be off, as a share: which subscriber leaves when it holds what is decided by dice and time."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("probe", PROBES)
def test_a_run_sends_what_its_cost_is_computed_from(probe: str) -> None:
    config = load(None, {})
    (site,) = (site for site in sites_of(config.targets[0]) if site.probe == probe)
    promised = TRAFFIC[probe](site.workload)
    (result,) = asyncio.run(run_checks(config, CheckRequest(probes=(probe,)), {}, lambda _: None))
    delivered = result.counters["deliveries_first"] + result.counters.get("deliveries_redelivery", 0)
    assert result.counters["publishes_invoked"] == promised.published
    assert delivered == pytest.approx(promised.delivered, rel=DELIVERIES_OFF[probe])


def test_a_message_is_as_long_as_it_is_billed_for() -> None:
    for probe in PROBES:
        attributes = Stamp(new_run_id(probe), 12).attributes(f"{probe}-1", b"")
        carried = sum(map(len, attributes)) + sum(map(len, attributes.values()))
        assert carried < message_bytes((0,)) < carried + 80
