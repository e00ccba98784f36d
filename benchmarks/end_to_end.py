"""What a probed message costs: microseconds of the prober's CPU for publishing, receiving, acknowledging, judging and counting it.

    python -m benchmarks.end_to_end [--messages N] [--repeat R] [--endpoint HOST:PORT] [--together N]

Both vantages work on one server, which runs in a process of its own: the embedded server, or what `--endpoint` names. Each round is a whole
run of the probe `ordering` as the service does it: recorder, checker, backlog, metrics with exemplars, verdict. The figure is the best
of R rounds after one to warm up; the ratio compares figures of the same call, so it holds on any machine.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter, process_time

from benchmarks import plain_client
from benchmarks.brokers import server
from benchmarks.checkouts import ROOT, said_by
from benchmarks.figures import CannotMeasureError, Figure, in_turn, yardstick_s
from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint, parse_endpoint
from prober.cli.process import collect_rarely
from prober.config import ProbeName
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.runs.resources import Provisioner
from prober.runs.runner import Run
from prober.runs.site import Site
from prober.schedule.instances import PlannedSite
from prober.sinks.metrics import Metrics, exemplar_of
from prober.sinks.metrics.measurements import MetricsSink
from prober.slo.counts import SloCounters

KEYS = 100
ATTEMPTS_MAX = 5


class Undecided(Exception):  # no error: the machine stood still for too long
    """A run that was not judged to its end; says why."""


class Bench:
    """One site, as the service would run it."""

    def __init__(self, vantage: Vantage, endpoint: Endpoint, messages: int, together: int) -> None:
        config = load(None, {})
        target = config.targets[0]
        self.site = PlannedSite(target, ProbeName.ORDERING, target.probes[ProbeName.ORDERING], vantage)
        bursts = messages // KEYS // together
        self.workload = replace(
            self.site.workload, keys=KEYS, bursts=bursts, burst_messages=together, rate=0.0, sizes=(256,), subscribers=2
        )
        self.messages = KEYS * bursts * together
        self.target = replace(self.site.at(endpoint), publish_timeout_s=60.0)
        self.provisioner = Provisioner(
            self.target, self.site.resource_name("bench"), self.site.experiment.subscriptions, lasting=True
        )
        metrics = Metrics(config.objectives).watch(target)
        self.sink = MetricsSink(metrics, ["s"], SloCounters(config.objectives), Metrics().health, exemplar_of, "ordering", "wire")

    async def measure(self, endpoint: Endpoint, repeat: int) -> list[tuple[float, float]]:
        """CPU microseconds per message and messages per second, of each round after one to warm up."""
        broker = await connect(endpoint, self.site.vantage)
        try:
            return [await self.decided_round(broker) for _ in range(repeat + 1)][1:]
        finally:
            await broker.close()

    async def decided_round(self, broker: object) -> tuple[float, float]:
        """A round that the machine was fast enough for: one of the first few. Raises CannotMeasureError if none of them was."""
        for _ in range(ATTEMPTS_MAX):
            try:
                return await self.one_round(broker)
            except Undecided as reason:
                told = str(reason)
        raise CannotMeasureError(f"the machine is too busy: {told}")

    async def one_round(self, broker: object) -> tuple[float, float]:
        """A whole run. Raises Undecided."""
        cpu, wall = process_time(), perf_counter()
        run = Run(self.site.experiment, broker, self.target, self.provisioner, self.workload, 1)  # type: ignore[arg-type]
        run.begin(Site(self.target.name, self.site.probe, self.site.vantage, 0.0), [self.sink])
        result = await run.carry_out()
        if result.verdict is Verdict.UNKNOWN:
            raise Undecided(result.reason)
        assert result.verdict is Verdict.PASS, result.reason
        assert result.counters["deliveries_first"] == self.messages
        return (process_time() - cpu) / self.messages * 1e6, self.messages / (perf_counter() - wall)


def turn(vantage: str, address: str, messages: str) -> None:
    """Prints what a probed message costs, in a process that does nothing else."""
    collect_rarely()
    endpoint = parse_endpoint(address)
    ((microseconds, _),) = asyncio.run(Bench(Vantage(vantage), endpoint, int(messages), 20).measure(endpoint, 1))
    print(microseconds)


def figures(repeat: int = 3, messages: int = 20_000) -> Iterator[Figure]:
    """What the report says of a probed message: all ways in turn, on one server."""
    collect_rarely()
    with server("") as address:

        def probed_us(vantage: Vantage) -> float:
            return float(said_by(ROOT, "end_to_end", vantage, address, str(messages)))

        rounds = list(
            in_turn(
                repeat,
                lambda: yardstick_s() * 1e6,
                lambda: plain_client.measure(address, messages, 1)[0],
                partial(probed_us, Vantage.WIRE),
                partial(probed_us, Vantage.LIBRARY),
            )
        )
    line, plain, wire, library = zip(*rounds, strict=True)
    cheaper = "times as much CPU as at the wire"
    yield Figure("a probed message, wire", "times orjson.loads of a line", _ratios(wire, line))
    yield Figure("a probed message, library", cheaper, _ratios(library, wire), 8.0, more=True)
    yield Figure("google-cloud-pubsub alone", cheaper, _ratios(plain, wire), 6.0, more=True)


def _ratios(each: Sequence[float], to: Sequence[float]) -> tuple[float, ...]:
    return tuple(one / other for one, other in zip(each, to, strict=True))


def main() -> None:
    """Prints one line per vantage and their ratio."""
    collect_rarely()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--together", type=int, default=20, help="messages of a key per publish")
    parser.add_argument("--endpoint", default="")
    options = parser.parse_args()
    with server(options.endpoint) as address:
        endpoint, costs = parse_endpoint(address), {}
        for vantage in Vantage:
            bench = Bench(vantage, endpoint, options.messages, options.together)
            costs[vantage], rate = min(asyncio.run(bench.measure(endpoint, options.repeat)))
            print(f"{vantage:8} {costs[vantage]:8.1f} us of CPU per message   {rate:8.0f} messages/s")
    print(f"library / wire: {costs[Vantage.LIBRARY] / costs[Vantage.WIRE]:.1f}")


if __name__ == "__main__":
    main()
