"""Which probe finds which fault, how often, and how fast: the detection table.

    python -m benchmarks.detection [--probe P]... [--fault F]... [--seeds N] [--share P]... [--real] [--vantage V] [--jobs N]

A pilot run of each probe, in which no fault strikes, tells how often each could have. Each fault that could is then injected with each
share, over so many runs with seeds and dice of their own, each on a service of its own. A run is counted as found if it reports
one of the findings that must catch the fault; one in which the fault never struck is left out. Told for each pair of fault and probe: in
how many cases a run could have gone wrong, in how many runs it was struck, in how many of them found, as what, and how long after the
begin of the run at the median. The exit code is 1 if a benign fault was held against the service.

The runs are those of `ordering-prober simulate`: the whole prober but for its sockets, in virtual time. With `--real` each is on an
embedded server over gRPC and takes as long as it takes, some of them a minute; `--vantage library` is always so.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import product
from random import Random
from statistics import median
from typing import Final, TypeAlias

from prober.brokers.base import Broker, Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint, local_endpoint, parse_endpoint
from prober.brokers.push.endpoint import PushEndpoint
from prober.brokers.push.nowhere import NOWHERE
from prober.cli.process import collect_between_runs
from prober.clock import monotonic_s, on_machine
from prober.config.loading import load
from prober.config.sections import PushSettings
from prober.core.findings import FAILING
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Fault, Faults
from prober.embedded.server import EmbeddedServer
from prober.probes.catalogue import PROBES
from prober.runs.classification import Observation
from prober.runs.resources import Provisioner
from prober.runs.runner import Run
from prober.schedule.connections import PushReceivers
from prober.schedule.instances import PlannedSite, sites_of
from prober.simulation.observation import caught_as
from prober.simulation.prober import ADDRESS, broker_of
from prober.simulation.service import SimulatedService
from prober.simulation.virtual_time import VirtualTime
from prober.simulation.weather import Weather

SHARES: Final = (0.2, 0.02)
SEEDS: Final = 20
REAL_JOBS: Final = 3
"""Runs on the wall's clock at once. More would make the machine, not the service, what is measured."""
BREEZE: Final = Weather(jitter_s=0.001)


@dataclass(slots=True)
class Trial:
    """What one run showed: how often each fault could have struck and did, and what it found, first after so many seconds."""

    could: Counter[str]
    struck: Counter[str]
    found: Counter[str] = field(default_factory=Counter)
    first_s: float | None = None

    def caught(self, findings: Sequence[str]) -> bool:
        """Whether one of these was reported."""
        return any(self.found[kind] for kind in findings)


@dataclass(slots=True)
class Cell:
    """The runs of one fault with one share."""

    struck: list[Trial] = field(default_factory=list)

    def written(self, findings: Sequence[str]) -> str:
        """The cell in words; empty findings mean that nothing may be found."""
        if not self.struck:
            return "never struck"
        if not findings:
            accused = sum(bool(trial.found) for trial in self.struck)
            return f"{accused} of {len(self.struck)} accused"
        caught = [trial for trial in self.struck if trial.caught(findings)]
        kinds = Counter(kind for trial in caught for kind in trial.found if kind in findings)
        times = [trial.first_s for trial in caught if trial.first_s is not None]
        after = f" after {median(times):.1f} s" if times else ""
        return f"{len(caught)} of {len(self.struck)}{after} {', '.join(kind for kind, _ in kinds.most_common(2))}".rstrip()


Question: TypeAlias = tuple[PlannedSite, tuple[Fault, ...], int]
"""A run: of which probe, on a service with which faults, with which seed."""


def simulated(question: Question) -> Trial:
    """A run in virtual time, in no event loop but its own."""
    logging.disable(logging.CRITICAL)  # what is logged there is of no concern here
    loop = VirtualTime()
    with on_machine(loop.machine(question[2])), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(_simulated(*question))


async def _simulated(site: PlannedSite, faults: Sequence[Fault], seed: int) -> Trial:
    pushes = PushEndpoint("", 0, "detection")
    service = SimulatedService(faults, BREEZE, Random(f"network {seed}"), pushes.app())
    broker = broker_of(site.target, service.network, pushes)
    try:
        endpoint = local_endpoint(ADDRESS, paired=site.target.peer is not None)
        return await carried_out(site, endpoint, broker, service.faults, seed)
    finally:
        await broker.close()
        await service.stop()


def real(question: Question) -> Trial:
    """A run over gRPC, on an embedded server of its own."""
    return asyncio.run(_real(*question))


async def _real(site: PlannedSite, faults: Sequence[Fault], seed: int) -> Trial:
    async with AsyncExitStack() as resources:
        server = await resources.enter_async_context(EmbeddedServer(faults=faults))
        endpoint = parse_endpoint(server.address)
        receivers = await resources.enter_async_context(PushReceivers(PushSettings(), "detection"))
        pushes = await receivers.of(site.target, endpoint, server.signer) if site.is_pushed else NOWHERE
        broker = await connect(endpoint, site.vantage, pushes=pushes)
        try:
            return await carried_out(site, endpoint, broker, server.faults, seed)
        finally:
            await broker.close()


async def carried_out(site: PlannedSite, endpoint: Endpoint, broker: Broker, faults: Faults, seed: int) -> Trial:
    """One run of a probe on a service with these faults."""
    target = site.at(endpoint)
    seen = Trial(Counter(), Counter())
    began_t = monotonic_s()

    def note(observation: Observation) -> None:
        if seen.first_s is None and any(finding.status in FAILING for finding in observation.findings):
            seen.first_s = monotonic_s() - began_t

    provisioner = Provisioner(target, site.resource_name("detection"), site.experiment.subscriptions, lasting=False)
    run = Run(site.experiment, broker, target, provisioner, site.workload, seed)
    run.listen(note)
    result = await run.carry_out()
    seen.could.update({armed.fault.name: armed.asked for armed in faults.all()})
    seen.struck.update(faults.ledger.counts)
    seen.found.update({str(kind): count for (kind, status), count in result.counts.items() if status in FAILING})
    if seen.found and seen.first_s is None:
        seen.first_s = result.duration_s
    return seen


def rows(
    pool: ProcessPoolExecutor, wanted: argparse.Namespace, sites: Sequence[PlannedSite]
) -> Iterator[tuple[str, str, int, list[Cell]]]:
    """For each pair of fault and probe that meet: how often the fault could strike in a run, and a cell for each share."""
    one = real if wanted.real else simulated
    unarmed = tuple(Fault(name, 0.0) for name in wanted.fault)
    pilots = pool.map(one, [(site, unarmed, 0) for site in sites])
    meetings = [
        (name, site, pilot.could[name])
        for site, pilot in zip(sites, pilots, strict=True)
        for name in wanted.fault
        if pilot.could[name]
    ]
    print(f"{len(meetings)} pairs of fault and probe that meet", file=sys.stderr, flush=True)
    questions = [
        (site, (Fault(name, share, seed=seed),), seed)
        for (name, site, _), share, seed in product(meetings, wanted.share, range(wanted.seeds))
    ]
    trials = pool.map(one, questions, chunksize=wanted.seeds)
    for name, site, could in meetings:
        cells = []
        for _ in wanted.share:
            taken = [next(trials) for _ in range(wanted.seeds)]
            cells.append(Cell([each for each in taken if each.struck[name]]))
        yield name, str(site.probe), could, cells


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--probe", action="append", choices=sorted(PROBES))
    parser.add_argument("--fault", action="append", choices=sorted(CATALOGUE))
    parser.add_argument("--share", action="append", type=float)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--real", action="store_true", help="over gRPC and on the wall's clock")
    parser.add_argument("--vantage", type=Vantage, choices=list(Vantage), default=Vantage.WIRE)
    parser.add_argument("--jobs", type=int, help="processes at once")
    wanted = parser.parse_args(arguments)
    wanted.fault, wanted.share = wanted.fault or sorted(CATALOGUE), wanted.share or SHARES
    wanted.real = wanted.real or wanted.vantage is Vantage.LIBRARY
    wanted.jobs = wanted.jobs or (REAL_JOBS if wanted.real else os.cpu_count())
    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table as Markdown."""
    wanted = _asked(arguments)
    sites = [
        PlannedSite(site.target, site.probe, site.settings, wanted.vantage)
        for site in sites_of(load(None, {}).targets[0])
        if not wanted.probe or site.probe in wanted.probe
    ]
    # Libraries in here have threads of their own, which a forked process would miss.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(wanted.jobs, spawned, initializer=collect_between_runs) as pool:
        table = sorted(rows(pool, wanted, sites), key=lambda row: row[:2])
    print(f"| fault | probe | cases a run | {' | '.join(f'p = {share:g}' for share in wanted.share)} |")
    print("|---" * (3 + len(wanted.share)) + "|")
    for fault, probe, could, found in table:
        print(f"| `{fault}` | `{probe}` | {could:,} | {' | '.join(cell.written(caught_as(fault, probe)) for cell in found)} |")
    accused = any(
        CATALOGUE[fault].benign and not caught_as(fault, probe) and trial.found
        for fault, probe, _, found in table
        for cell in found
        for trial in cell.struck
    )
    return int(accused)


if __name__ == "__main__":
    sys.exit(main())
