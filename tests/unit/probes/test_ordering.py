"""The probe `ordering` publishes as much as it is asked to, and does not itself keep what it published from being delivered."""

from __future__ import annotations

from prober.brokers.base import FlowControlSettings
from prober.probes.experiment import Workload
from prober.probes.ordering import without_flow_limit


def test_a_subscriber_may_have_all_of_a_run_outstanding() -> None:
    busy = Workload(keys=500, bursts=5, burst_messages=40, rate=6250.0)
    assert without_flow_limit(busy).messages_max == 100_040
    assert without_flow_limit(busy).bytes_max == FlowControlSettings().bytes_max


def test_flow_control_is_the_usual_one_if_that_will_do() -> None:
    assert without_flow_limit(Workload()) == FlowControlSettings()
