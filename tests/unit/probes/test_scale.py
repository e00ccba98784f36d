"""The steps of `scale`: equally many messages on more and more keys, and what a consumer handles at once."""

from __future__ import annotations

import pytest

from prober.probes import scale
from prober.probes.experiment import Workload


@pytest.mark.parametrize(
    ("keys", "expected"), [(1000, [1, 10, 100, 1000]), (10_000, [1, 22, 464, 10_000]), (8, [1, 2, 4, 8]), (27, [1, 3, 9, 27])]
)
def test_keys_of_the_steps(keys: int, expected: list[int]) -> None:
    assert [scale.keys_of(step, Workload(keys=keys)) for step in range(scale.STEPS)] == expected


@pytest.mark.parametrize(
    "workload", [Workload(keys=1000, bursts=4, burst_messages=1), Workload(keys=50, bursts=4, burst_messages=3)]
)
def test_traffic_is_what_the_workload_says(workload: Workload) -> None:
    traffic = scale.traffic(workload)
    assert traffic.published == traffic.delivered == workload.messages
    opportunities = scale.opportunities(workload)
    assert opportunities["opportunities_order"] == workload.messages - sum(
        scale.keys_of(step, workload) for step in range(scale.STEPS)
    )
