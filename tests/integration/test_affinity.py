"""What the probe `affinity` observes beside what is verified: keys that rest, subscribers that join, flow control. Over real gRPC."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import parse_endpoint
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.embedded.key_queues import Stream
from prober.embedded.server import EmbeddedServer
from prober.probes import affinity
from prober.probes.catalogue import ProbeName
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.schedule.instances import PlannedInstance
from prober.slo.figures import Figure

SETTLED_S = 2.0
"""How long acknowledgements may take here, so that nobody waits for long."""


def run(vantage: Vantage = Vantage.WIRE) -> RunResult:
    async def scenario() -> RunResult:
        settings = load(None, {}).targets[0]
        instance = PlannedInstance(settings, ProbeName.AFFINITY, settings.probes[ProbeName.AFFINITY], vantage)
        async with EmbeddedServer() as server:
            endpoint = parse_endpoint(server.address)
            target = instance.at(endpoint)
            if vantage is Vantage.WIRE:
                target = replace(
                    target, rules=replace(target.rules, ack_lag_max_s=SETTLED_S / 2, delivery_delay_max_s=SETTLED_S / 2)
                )
            broker = await connect(endpoint, vantage)
            try:
                provisioner = Provisioner(target, instance.resource_name("here"), instance.experiment.subscriptions, lasting=False)
                return await Run(instance.experiment, broker, target, provisioner, instance.workload).carry_out()
            finally:
                await broker.close()

    return asyncio.run(scenario())


def test_keys_that_rest_are_seen_to_move_and_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affinity, "RESTING_RUNS", 1.0)
    result = run()
    assert result.verdict is Verdict.PASS, result.reason
    moved, stayed = result.counters.get("affinity_moves_outstanding_no", 0), result.counters.get("idle_keys_stayed", 0)
    assert min(moved, stayed) > 0
    assert moved + stayed >= 8  # half of the keys rest


def test_the_service_keeps_to_the_limit_of_a_subscriber_and_serves_those_that_join() -> None:
    result = run()
    counters, figures = result.counters, result.figures
    assert counters["flow_control_reached"]
    assert not counters.get("flow_control_exceeded")
    assert figures[Figure.JOINER_SERVED_AFTER] > 0.0
    assert 0.0 < figures[Figure.JOINERS_SERVED] <= 1.0
    assert 0.0 < figures[Figure.KEYS_AT_JOINERS] < 1.0


def test_more_than_a_subscriber_allows_is_counted_and_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stream, "has_room", property(lambda stream: not stream.breaking))
    result = run()
    assert result.counters["flow_control_exceeded"]
    assert result.verdict is Verdict.PASS, result.reason


def test_through_the_library_nobody_knows_what_is_idle_or_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affinity, "RESTING_RUNS", 1.0)
    result = run(Vantage.LIBRARY)
    assert result.verdict is Verdict.PASS, result.reason
    assert not result.counters.keys() & {"idle_keys_stayed", "flow_control_reached", "flow_control_exceeded"}
    assert not result.counters.get("affinity_moves_outstanding_no")
