"""Probes two targets side by side: each experiment at both at the same time, with the same random decisions, round after round."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from prober.brokers.base import Broker, Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint
from prober.brokers.push.nowhere import NOWHERE
from prober.cli.endpoints import endpoint_of
from prober.clock import monotonic_s
from prober.comparison.comparison import Comparison, compare_pairs
from prober.comparison.experiments import Common
from prober.comparison.pairs import Experiment, PairOfRuns
from prober.config.comparisons import ComparisonSettings
from prober.config.models import Config, TargetSettings
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.schedule.instances import PlannedSite, sites_of
from prober.schedule.pushing import PushReceivers

INSTANCE = "compare"
"""What the names of its topics and subscriptions begin with."""

Begin = Callable[[str, int], None]
"""Told what runs, and how many make a round."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be compared: the settings, both targets, and the experiments that both run alike."""

    settings: ComparisonSettings
    baseline: TargetSettings
    candidate: TargetSettings
    common: Common


async def compare_side_by_side(config: Config, planned: Planned, environ: Mapping[str, str], seed: int, begin: Begin) -> Comparison:
    """Probes both for `settings.window` and compares them. No pair begins when that is over; the one under way is waited for.

    Raises BrokerError or ConfigError if a target cannot be used at all; one that does not answer makes runs that say so.
    """
    pairs: list[PairOfRuns] = []
    experiments = tuple(planned.common.apart_max_s)
    began_t = monotonic_s()
    async with AsyncExitStack() as open_until_here:
        receivers = await open_until_here.enter_async_context(PushReceivers(config.push, INSTANCE))
        baseline, candidate = [
            await open_until_here.enter_async_context(_reached(config, target, experiments, environ, receivers))
            for target in (planned.baseline, planned.candidate)
        ]
        while monotonic_s() - began_t < planned.settings.window.total_seconds():
            experiment = experiments[len(pairs) % len(experiments)]
            begin(str(experiment), len(experiments))
            seed += 1
            runs = await asyncio.gather(baseline.run(experiment, seed), candidate.run(experiment, seed))
            pairs.append(PairOfRuns(*runs))
    return compare_pairs(planned.settings, pairs, experiments, monotonic_s() - began_t)


class _Reached(NamedTuple):
    """A target with a broker for each vantage."""

    endpoint: Endpoint
    sites: Mapping[Experiment, PlannedSite]
    brokers: Mapping[Vantage, Broker]

    async def run(self, experiment: Experiment, seed: int) -> RunResult:
        """Carries out one run, which never raises: whatever is wrong makes it UNKNOWN."""
        site = self.sites[experiment]
        target = site.at(self.endpoint)
        provisioner = Provisioner(target, site.resource_name(INSTANCE), site.experiment.subscriptions, lasting=False)
        return await Run(site.experiment, self.brokers[site.vantage], target, provisioner, site.workload, seed).carry_out()


@asynccontextmanager
async def _reached(
    config: Config,
    target: TargetSettings,
    experiments: tuple[Experiment, ...],
    environ: Mapping[str, str],
    receivers: PushReceivers,
) -> AsyncIterator[_Reached]:
    every = {Experiment(str(site.probe), str(site.vantage), site.part_shown): site for site in sites_of(target)}
    sites = {experiment: every[experiment] for experiment in experiments}
    brokers: dict[Vantage, Broker] = {}
    async with endpoint_of(config, target, environ) as (endpoint, signer):
        pushed = any(site.is_pushed for site in sites.values())
        pushes = await receivers.of(target, endpoint, signer) if pushed else NOWHERE
        try:
            for vantage in sorted({site.vantage for site in sites.values()}):
                brokers[vantage] = await connect(endpoint, vantage, pushes=pushes)
            yield _Reached(endpoint, sites, brokers)
        finally:
            for broker in brokers.values():
                await broker.close()
