"""The command `check`: runs probes once, or for a while, on the configured targets and tells the verdict of each.

Here the parts are put together for a single occasion: the configuration says what to run where, a broker is made per target and
vantage, and for a target that is `embedded` a server is started for as long as it takes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint, resolve_endpoint
from prober.cli.exit_codes import ExitCode, code_of
from prober.clock import monotonic_s
from prober.config.models import Config, TargetSettings
from prober.core.findings import Status
from prober.core.verdict import Verdict, worst
from prober.embedded.faults import parse_fault
from prober.embedded.server import EmbeddedServer
from prober.evidence.explain import explain
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.schedule.instances import PlannedSite, is_embedded


@dataclass(frozen=True, slots=True)
class Order:
    """What the caller wants checked: which probes (none named: those configured), where, from which vantage, for how long."""

    probes: tuple[str, ...] = ()
    endpoint: str = ""
    vantage: Vantage = Vantage.WIRE
    for_s: float = 0.0
    seed: int = 0


async def check(
    config: Config,
    order: Order,
    environ: Mapping[str, str],
    tell: Callable[[RunResult], None],
    begin: Callable[[PlannedSite, int], None] = lambda _site, _runs: None,
) -> list[RunResult]:
    """Runs what was ordered, one run after the other, and tells each result as it comes.

    `begin` is told before each run where it takes place, and how many runs make one round on that target.

    Raises BrokerError or ConfigError before the first run if a target cannot be used at all; later troubles make a run UNKNOWN.
    """
    results: list[RunResult] = []
    give_up_t = monotonic_s() + order.for_s
    for settings in config.targets:
        async with _endpoint(config, settings, order, environ) as endpoint:
            broker = await connect(endpoint, order.vantage)
            try:
                while True:
                    for site in (sites := _wanted(settings, order)):
                        begin(site, len(sites))
                        target = site.at(endpoint)
                        provisioner = Provisioner(target, site.resource_name("check"), lasting=False)
                        run = Run(site.experiment, broker, target, provisioner, site.workload, order.seed + len(results))
                        result = await run.carry_out()
                        results.append(result)
                        tell(result)
                    if monotonic_s() >= give_up_t:
                        break
            finally:
                await broker.close()
    return results


def exit_code(results: Sequence[RunResult]) -> ExitCode:
    """The worst verdict decides."""
    return code_of(overall(results))


def overall(results: Sequence[RunResult]) -> Verdict:
    """The verdict of all of them; nothing that ran is UNKNOWN."""
    return worst(result.verdict for result in results)


def as_text(result: RunResult) -> str:
    """One line for the verdict, and two for each finding that is not only information."""
    head = f"{result.probe} on {result.target} ({result.vantage}): {result.verdict}"
    lines = [f"{head} after {result.duration_s:.1f} s" + (f"; {result.reason}" if result.reason else "")]
    for made in result.findings:
        finding = made.finding
        if finding.status in (Status.VIOLATION, Status.LIVENESS):
            lines += [f"  {finding.kind} ({finding.status}), key {finding.key}", f"    {explain(finding, result.clock_offset_s)}"]
    return "\n".join(lines)


def as_json(results: Sequence[RunResult]) -> str:
    """One document: the overall verdict and every run."""
    return json.dumps({"verdict": overall(results), "runs": [_row(result) for result in results]}, allow_nan=False)


def _row(result: RunResult) -> dict[str, object]:
    return {
        "probe": result.probe,
        "target": result.target,
        "vantage": result.vantage,
        "verdict": result.verdict,
        "reason": result.reason,
        "duration_s": round(result.duration_s, 3),
        "findings": [
            {
                "kind": made.finding.kind,
                "status": made.finding.status,
                "subscription": made.finding.subscription,
                "key": made.finding.key,
                "t": made.finding.t,
                "explanation": explain(made.finding, result.clock_offset_s),
                "witnesses": list(made.finding.witnesses),
            }
            for made in result.findings
        ],
        "counters": dict(result.counters),
    }


@asynccontextmanager
async def _endpoint(config: Config, settings: TargetSettings, order: Order, environ: Mapping[str, str]) -> AsyncIterator[Endpoint]:
    """Where the target is: what the caller names, or an emulator's variable, or what is configured; `embedded` is started."""
    if is_embedded(settings, environ, order.endpoint):
        async with EmbeddedServer(config.embedded.port, map(parse_fault, config.embedded.faults)) as server:
            yield Endpoint(server.address, secure=False)
    else:
        yield resolve_endpoint(settings.endpoint, environ, order.endpoint)


def _wanted(settings: TargetSettings, order: Order) -> list[PlannedSite]:
    return [
        PlannedSite(settings, name, probe, order.vantage)
        for name, probe in settings.probes.items()
        if not order.probes or name in order.probes
    ]
