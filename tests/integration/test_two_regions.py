"""A key that is published in two regions: how far it comes out of order is measured and accepted. In one region the same is a violation."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import local_endpoint
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.embedded.faults import parse_fault
from prober.embedded.server import EmbeddedServer
from prober.probes import region
from prober.probes.catalogue import ProbeName
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.schedule.instances import PlannedInstance
from prober.slo.figures import Figure
from tests.virtual_time import in_virtual_time

SWAP: Final = f"swap_across_batches:key={region.BOTH}"


async def run(peer_region: str, *faults: str) -> RunResult:
    """One run of the probe; publishes at the peer are in this region, the others in "here"."""
    settings = load(None, {}).targets[0]
    async with EmbeddedServer(faults=map(parse_fault, faults)) as server:
        endpoint = local_endpoint(server.address, paired=True)
        instance = PlannedInstance(settings, ProbeName.REGION, settings.probes[ProbeName.REGION], Vantage.WIRE)
        target = replace(instance.at(endpoint), publish_region="here", peer_region=peer_region)
        broker = await connect(endpoint, Vantage.WIRE)
        try:
            provisioner = Provisioner(target, "regions", region.PROBE.subscriptions, lasting=False)
            result = await Run(region.PROBE, broker, target, provisioner, region.PROBE.workload).carry_out()
        finally:
            await broker.close()
        assert bool(server.faults.ledger.counts.total()) is bool(faults)
        return result


@pytest.mark.parametrize("peer_region", ["there", "here"])
def test_a_service_that_keeps_the_order_of_both_regions(peer_region: str) -> None:
    result = in_virtual_time(lambda: run(peer_region))
    assert result.verdict is Verdict.PASS, result.reason
    assert result.figures[Figure.REGIONS_REORDERED] == 0.0


def test_disorder_between_regions_is_measured_and_accepted() -> None:
    result = in_virtual_time(lambda: run("there", SWAP))
    assert (result.verdict, result.findings) == (Verdict.PASS, ()), result.reason
    assert 0.2 < result.figures[Figure.REGIONS_REORDERED] <= 0.5
    assert result.figures[Figure.REGIONS_EXTENT] == 1


def test_disorder_within_a_region_is_a_violation() -> None:
    result = in_virtual_time(lambda: run("here", SWAP))
    assert result.verdict is Verdict.FAIL
    assert result.figures[Figure.REGIONS_REORDERED] > 0.2


def test_order_of_other_keys_is_verified_beside_it() -> None:
    result = in_virtual_time(lambda: run("there", "swap_in_batch:p=0.5"))
    assert result.verdict is Verdict.FAIL
