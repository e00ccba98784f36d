"""Which probe finds which fault, how often, and how fast: the detection table.

    python -m benchmarks.detection [--probe P]... [--fault F]... [--seeds N] [--share P]... [--vantage V] [--at-once N]

A pilot run of each probe, in which no fault strikes, tells how often each could have. Each fault that could is then injected with each
share, over so many runs with seeds and dice of their own, each on an embedded server of its own. A run is counted as found if it reports
one of the findings that must catch the fault; one in which the fault never struck is left out. Told for each pair of fault and probe: in
how many cases a run could have gone wrong, in how many runs it was struck, in how many of them found, as what, and how long after the
begin of the run at the median. The exit code is 1 if a benign fault was held against the service.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import parse_endpoint
from prober.brokers.push.nowhere import NOWHERE
from prober.clock import monotonic_s
from prober.config.loading import load
from prober.config.sections import PushSettings
from prober.core.findings import FAILING
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Fault
from prober.embedded.server import EmbeddedServer
from prober.probes.catalogue import PROBES
from prober.runs.classification import Observation
from prober.runs.resources import Provisioner
from prober.runs.runner import Run
from prober.schedule.connections import PushReceivers
from prober.schedule.instances import PlannedSite, sites_of
from prober.simulation.observation import caught_as

SHARES: Final = (0.2, 0.02)
SEEDS: Final = 20
AT_ONCE: Final = 3
"""More would make the machine, not the service, what is measured."""


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


async def trial(site: PlannedSite, faults: Sequence[Fault], seed: int) -> Trial:
    """One run of a probe on a server with these faults."""
    async with AsyncExitStack() as resources:
        server = await resources.enter_async_context(EmbeddedServer(faults=faults))
        endpoint = parse_endpoint(server.address)
        target = site.at(endpoint)
        receivers = await resources.enter_async_context(PushReceivers(PushSettings(), "detection"))
        pushes = await receivers.of(site.target, endpoint, server.signer) if site.is_pushed else NOWHERE
        broker = await connect(endpoint, site.vantage, pushes=pushes)
        seen = Trial(Counter(), Counter())
        began_t = monotonic_s()

        def note(observation: Observation) -> None:
            if seen.first_s is None and any(finding.status in FAILING for finding in observation.findings):
                seen.first_s = monotonic_s() - began_t

        try:
            provisioner = Provisioner(target, site.resource_name("detection"), site.experiment.subscriptions, lasting=False)
            run = Run(site.experiment, broker, target, provisioner, site.workload, seed)
            run.listen(note)
            result = await run.carry_out()
        finally:
            await broker.close()
        seen.could.update({armed.fault.name: armed.asked for armed in server.faults.all()})
        seen.struck.update(server.faults.ledger.counts)
        seen.found.update({str(kind): count for (kind, status), count in result.counts.items() if status in FAILING})
        if seen.found and seen.first_s is None:
            seen.first_s = result.duration_s
        return seen


async def rows(
    sites: Sequence[PlannedSite], faults: Sequence[str], shares: Sequence[float], seeds: int, at_once: int
) -> Iterator[tuple[str, str, int, list[Cell]]]:
    """For each pair of fault and probe that meet: how often the fault could strike in a run, and a cell for each share."""
    free = asyncio.Semaphore(at_once)

    async def one(site: PlannedSite, wanted: Sequence[Fault], seed: int) -> Trial:
        async with free:
            return await trial(site, wanted, seed)

    async def about(site: PlannedSite) -> list[tuple[str, str, int, list[Cell]]]:
        pilot = await one(site, [Fault(name, 0.0) for name in faults], 0)
        print(f"{site.probe}: {sum(map(bool, pilot.could.values()))} faults could strike", file=sys.stderr, flush=True)
        return [(name, str(site.probe), pilot.could[name], await cells(site, name)) for name in faults if pilot.could[name]]

    async def cells(site: PlannedSite, name: str) -> list[Cell]:
        found = []
        for share in shares:
            trials = await asyncio.gather(*(one(site, [Fault(name, share, seed=seed)], seed) for seed in range(seeds)))
            found.append(Cell([each for each in trials if each.struck[name]]))
        return found

    return iter([row for table in await asyncio.gather(*map(about, sites)) for row in table])


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--probe", action="append", choices=sorted(PROBES))
    parser.add_argument("--fault", action="append", choices=sorted(CATALOGUE))
    parser.add_argument("--share", action="append", type=float)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--vantage", type=Vantage, choices=list(Vantage), default=Vantage.WIRE)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    wanted = parser.parse_args(arguments)
    shares = wanted.share or SHARES
    settings = load(None, {}).targets[0]
    sites = [
        PlannedSite(site.target, site.probe, site.settings, wanted.vantage)
        for site in sites_of(settings)
        if not wanted.probe or site.probe in wanted.probe
    ]
    table = list(asyncio.run(rows(sites, wanted.fault or sorted(CATALOGUE), shares, wanted.seeds, wanted.at_once)))
    print(f"| fault | probe | cases a run | {' | '.join(f'p = {share:g}' for share in shares)} |")
    print("|---" * (3 + len(shares)) + "|")
    for fault, probe, could, found in sorted(table):
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
