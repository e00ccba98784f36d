"""Cost of a probed message: CPU microseconds of the prober to publish, receive, acknowledge, verify and count it.

Both vantages use one embedded server, which runs in a process of its own. Each round is a whole run of the probe `ordering` as in the
service: recorder, checker, backlog, metrics with exemplars, verdict. Each value is that of a second round, after one to warm up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from time import process_time
from typing import Final

from benchmarks.figures import CannotMeasureError, Figure, yardstick_s
from benchmarks.processes import in_process
from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import parse_endpoint
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.cycles import collect_rarely
from prober.probes.catalogue import ProbeName
from prober.runs.probe_instance import ProbeInstance
from prober.runs.resources import Provisioner
from prober.runs.runner import Run
from prober.schedule.instances import PlannedInstance
from prober.sinks.metrics import Metrics
from prober.sinks.metrics.measurements import MetricsSink
from prober.slo.counts import SloCounters
from tests.integration.programs import server

KEYS: Final = 100
BURST: Final = 20
MESSAGES: Final = 20_000
ROUNDS: Final = 3
ATTEMPTS_MAX: Final = 5


async def probed_us(vantage: Vantage, address: str) -> float:
    """Return the CPU microseconds per message of a run. Raises CannotMeasureError if no run is decided on a slow machine."""
    collect_rarely()
    config, endpoint = load(None, {}), parse_endpoint(address)
    settings = config.targets[0]
    planned = PlannedInstance(settings, ProbeName.ORDERING, settings.probes[ProbeName.ORDERING], vantage)
    bursts = MESSAGES // KEYS // BURST
    workload = replace(planned.workload, keys=KEYS, bursts=bursts, burst_messages=BURST, rate=0.0, sizes=(256,), subscribers=2)
    target = replace(planned.at(endpoint), publish_timeout_s=60.0)
    provisioner = Provisioner(target, planned.resource_name("bench"), planned.experiment.subscriptions, lasting=True)
    metrics = Metrics(config.objectives).watch(settings)
    sink = MetricsSink(metrics, ["s"], SloCounters(config.objectives), Metrics().health, "ordering", "wire")
    broker = await connect(endpoint, vantage)
    rounds = []
    try:
        for _ in range(ATTEMPTS_MAX):
            began_s = process_time()
            run = Run(planned.experiment, broker, target, provisioner, workload, 1)
            run.begin(ProbeInstance(target.name, planned.probe, vantage, 0.0), [sink])
            result = await run.carry_out()
            if result.verdict is Verdict.UNKNOWN:
                continue
            assert result.verdict is Verdict.PASS, result.reason
            received = result.counters["deliveries_first"]
            assert received >= MESSAGES  # and a few without a key
            rounds.append((process_time() - began_s) / received * 1e6)
            if len(rounds) == 2:
                return rounds[1]
    finally:
        await broker.close()
    raise CannotMeasureError(f"the machine is too busy: {result.reason}")


def measured_us(vantage: Vantage, address: str) -> float:
    """Run `probed_us` in an event loop of its own."""
    return asyncio.run(probed_us(vantage, address))


def figures() -> Iterator[Figure]:
    """Yield the figures of a probed message. The vantages take turns, so that a change of the machine's speed affects both."""
    wire, library = [], []
    with server() as (_, address):
        for _ in range(ROUNDS):
            line_us = yardstick_s() * 1e6
            wire_us, library_us = (in_process(measured_us, vantage, address) for vantage in (Vantage.WIRE, Vantage.LIBRARY))
            wire.append(wire_us / line_us)
            library.append(library_us / wire_us)
    yield Figure("a probed message, wire", "times orjson.loads of a line", wire)
    yield Figure("a probed message, library", "times as much CPU as at the wire", library)
