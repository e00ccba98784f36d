"""What a probe costs, against the rules of the price list."""

from __future__ import annotations

import pytest

from prober.brokers.base import Vantage
from prober.config.loading import load
from prober.config.workloads import workload_of
from prober.probes.catalogue import PROBES, ProbeName
from prober.probes.cost import Bounds, Traffic, billed_bytes, message_bytes, price_usd
from prober.probes.experiment import Workload
from prober.schedule.instances import PlannedInstance


def test_a_tebibyte_costs_what_the_list_says() -> None:
    assert price_usd(Bounds(2**40, 2**41)) == Bounds(40.0, 80.0)


def test_a_message_is_its_data_and_what_goes_with_it() -> None:
    around = message_bytes((0,))
    assert 100 < around < 200
    assert message_bytes((256,)) == around + 256
    assert message_bytes((0, 100)) == around + 50


def test_full_requests_are_billed_by_volume_and_empty_ones_by_the_minimum() -> None:
    each = message_bytes((500,))
    assert billed_bytes(Traffic(1, 20, 0), (500,)) == Bounds(20 * each, 20 * each)
    assert billed_bytes(Traffic(1, 1, 0), (0,)) == Bounds(1000, 1000)
    assert billed_bytes(Traffic(0, 0, 3), (500,)) == Bounds(3 * each, 3000)
    assert billed_bytes(Traffic(0, 0, 3), (2000,)).most == 3 * message_bytes((2000,))


def test_a_client_library_may_send_each_message_alone() -> None:
    assert billed_bytes(Traffic(1, 20, 0), (500,), batched=False) == Bounds(20 * message_bytes((500,)), 20_000)


@pytest.mark.parametrize(
    ("probe", "workload", "expected"),
    [
        ("ordering", Workload(keys=10, bursts=5, burst_messages=20), Traffic(55, 1020, 1020)),
        ("redelivery", Workload(keys=12, bursts=2, burst_messages=6), Traffic(24, 144, 627)),
        ("redelivery", Workload(keys=1, bursts=2, burst_messages=1), Traffic(2, 6, 23)),  # it publishes three at least
        ("affinity", Workload(keys=16, bursts=8, burst_messages=10), Traffic(128, 1280, 1382)),
    ],
)
def test_what_a_run_sends(probe: str, workload: Workload, expected: Traffic) -> None:
    assert PROBES[probe].traffic(workload) == expected


@pytest.mark.parametrize("probe", [ProbeName(name) for name in PROBES])
def test_the_configuration_is_checked_by_what_a_run_sends(probe: ProbeName) -> None:
    target = load(None, {}).targets[0]
    settings = target.probes[probe]
    workload = PlannedInstance(target, probe, settings, Vantage.WIRE).workload
    beside = 0.02 if probe is ProbeName.ORDERING else 0.0  # messages without a key
    assert PROBES[probe].messages(workload) == pytest.approx(workload_of(probe, settings).messages, rel=beside)
