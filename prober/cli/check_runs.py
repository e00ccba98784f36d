"""The runs of `ordering-prober check`: every selected probe once a round on each target, concurrent where probes do not disturb each other.

This is the composition root of a single check: the configuration defines the runs, each target and vantage has a broker, and a target that
is `embedded` has a server for the duration of the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from prober.brokers.base import Broker, Vantage
from prober.cli.process import save_trace
from prober.clock import monotonic_s, wall_s
from prober.core.verdict import Verdict
from prober.probes.experiment import Company

if TYPE_CHECKING:
    from prober.brokers.endpoint import Endpoint
    from prober.config.models import Config, TargetSettings
    from prober.runs.result import RunResult
    from prober.runs.runner import Run
    from prober.schedule.instances import PlannedInstance

SERVICE: Final = "service"
"""Name of a target that is embedded in the configuration and whose endpoint was replaced by one of Google."""
OWNER: Final = "check"
"""Prefix of the names of its topics and subscriptions."""
Reached: TypeAlias = Callable[["TargetSettings", "Endpoint", str], None]
Begin: TypeAlias = Callable[["PlannedInstance", int], None]


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The requested checks.

    probes    names of probes; empty: the configured ones.
    targets   names of targets; empty: all.
    endpoint  HOST:PORT instead of the configured one; empty: as configured.
    client    command of the program that is the external vantage.
    for_s     repeat the probes for this many seconds; 0: once.
    seed      seed of the first run; each further run increments it.
    traces    folder for trace files of each run; None: none are written.
    """

    probes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    endpoint: str = ""
    vantage: Vantage = Vantage.WIRE
    client: tuple[str, ...] = ()
    for_s: float = 0.0
    seed: int = 0
    traces: Path | None = None


def wanted(settings: TargetSettings, request: CheckRequest) -> list[PlannedInstance]:
    """Return the selected probes of a target that the vantage supports; none of an unselected target."""
    from prober.probes.catalogue import DECLARED
    from prober.schedule.instances import PlannedInstance

    if request.targets and settings.name not in request.targets:
        return []
    return [
        PlannedInstance(settings, name, probe, request.vantage)
        for name, probe in settings.probes.items()
        if (not request.probes or name in request.probes) and (request.vantage is Vantage.WIRE or not DECLARED[name].wire_only)
    ]


async def run_checks(
    config: Config,
    request: CheckRequest,
    environ: Mapping[str, str],
    tell: Callable[[RunResult], None],
    reached: Reached = lambda _target, _endpoint, _by: None,
    begin: Begin = lambda _instance, _runs: None,
) -> list[RunResult]:
    """Carry out a request and report each result to `tell` when its run ends.

    reached  is called before the first run on each target: with its endpoint, and with the place that overrode the configured one.
    begin    is called before each run, with the number of runs of a round on that target.

    Returns the results, of each round in the order of the configuration. Raises BrokerError or ConfigError before the first run if a
    target cannot be used; later troubles make a run UNKNOWN.
    """
    from prober.brokers.endpoint import named_by
    from prober.schedule.connections import PushReceivers, connected

    results: list[RunResult] = []
    give_up_t = monotonic_s() + request.for_s
    named = named_by(environ, request.endpoint)
    async with PushReceivers(config.push, OWNER) as receivers:
        for settings in config.targets:
            if not (instances := wanted(settings, request)):
                continue
            connection = connected(config, settings, instances, environ, receivers, request.endpoint, request.client)
            async with connection as (endpoint, brokers):
                reached(target := _renamed(settings, endpoint) if named else settings, endpoint, named)
                instances = [replace(instance, target=target) for instance in instances]
                place = _Place(endpoint, brokers[request.vantage], request, tell, begin)
                results += await place.round(instances, request.seed + len(results))
                while monotonic_s() < give_up_t:
                    results += await place.round(instances, request.seed + len(results))
    return results


def _renamed(settings: TargetSettings, endpoint: Endpoint) -> TargetSettings:
    """Return the target at an endpoint that replaces the configured one: it is not the embedded server."""
    from prober.config.defaults import EMULATOR

    name = SERVICE if endpoint.secure else EMULATOR
    return settings.model_copy(update={"name": name}) if settings.is_embedded or settings.name == EMULATOR else settings


@dataclass(frozen=True, slots=True)
class _Place:
    """A connected target, and the callbacks about its runs."""

    endpoint: Endpoint
    broker: Broker
    request: CheckRequest
    tell: Callable[[RunResult], None]
    begin: Begin

    async def round(self, instances: Sequence[PlannedInstance], seed: int) -> list[RunResult]:
        """Run every instance once, concurrently as far as their experiments allow."""
        results: dict[str, RunResult] = {}

        async def carry_out(instance: PlannedInstance) -> None:
            self.begin(instance, len(instances))
            results[instance.name] = result = await self._result(instance, seed + instances.index(instance))
            self.tell(result)

        def start(group: asyncio.TaskGroup, *companies: Company) -> list[asyncio.Task[None]]:
            return [group.create_task(carry_out(each)) for each in instances if each.experiment.company in companies]

        try:
            async with asyncio.TaskGroup() as group:
                start(group, Company.ANY)
                bursts = start(group, Company.BURSTS)
                await asyncio.gather(*bursts)
                start(group, Company.QUIET)
        except ExceptionGroup as troubles:
            raise troubles.exceptions[0] from None
        for instance in instances:
            if instance.experiment.company is Company.NONE:
                await carry_out(instance)
        return [results[each.name] for each in instances]

    async def _result(self, instance: PlannedInstance, seed: int) -> RunResult:
        run = instance.run_once(self.endpoint, self.broker, OWNER, seed)
        result = await _carried_out(run, self.broker, instance)
        if self.request.traces is not None:
            _write_traces(self.request.traces, run)
        return result


async def _carried_out(run: Run, broker: Broker, instance: PlannedInstance) -> RunResult:
    """Return the result of a run. If the external client fails it is UNKNOWN without findings, because the failure may have caused them."""
    from prober.brokers.external import ExternalBroker
    from prober.runs.result import RunResult

    if not isinstance(broker, ExternalBroker):
        return await run.carry_out()
    started_at, started_t = wall_s(), monotonic_s()
    running, failed = asyncio.ensure_future(run.carry_out()), asyncio.ensure_future(broker.failed.wait())
    try:
        await asyncio.wait((running, failed), return_when=asyncio.FIRST_COMPLETED)
        if not broker.failed.is_set():
            return await running
    finally:
        for task in (running, failed):
            task.cancel()
        await asyncio.gather(running, failed, return_exceptions=True)
    identity = run.run_id, str(instance.probe), instance.target.name, str(instance.vantage)
    return RunResult(*identity, Verdict.UNKNOWN, broker.failure, started_at, monotonic_s() - started_t)


def _write_traces(folder: Path, run: Run) -> None:
    """Write one file for each subscription of a run: `RUN.jsonl`, `RUN-2.jsonl` and so on. Raises ConfigError."""
    from prober.traces.header import TraceHeader

    for number, (name, rules) in enumerate(run.rules.items(), 1):
        path = folder / (f"{run.run_id}-{number}.jsonl" if number > 1 else f"{run.run_id}.jsonl")
        own = (event for event in run.recording.events if getattr(event, "subscription", name) == name)
        save_trace(path, TraceHeader(name, "", rules=rules, name=f"run {run.run_id}"), own)


def trace_files(folder: Path, run_id: str) -> list[Path]:
    """Return the trace files of a run that `check --trace` wrote, that of its first subscription first."""
    return [folder / f"{run_id}.jsonl", *sorted(folder.glob(f"{run_id}-*.jsonl"))]
