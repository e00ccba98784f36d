"""The command `ordering-prober check`: runs probes once, or for a while, on the configured targets and tells the verdict of each.

Here the parts are put together for a single occasion: the configuration says what to run where, a broker is made per target and
vantage, and for a target that is `embedded` a server is started for as long as it takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.brokers.base import Vantage
from prober.cli.bars import while_running
from prober.cli.findings import finding_lines, finding_row
from prober.cli.process import Format, code_of, must_know, overall_verdict, save_trace, warn
from prober.clock import monotonic_s
from prober.core.findings import Status
from prober.core.kinds import OF_PUBLISHERS
from prober.core.verdict import Verdict
from prober.durations import duration_s
from prober.errors import ConfigError
from prober.slo.figures import figures_as_text
from prober.slo.indicators import UNRECORDED

if TYPE_CHECKING:
    from prober.config.models import Config, TargetSettings
    from prober.core.rules import Rules
    from prober.runs.result import RunResult
    from prober.runs.runner import Run
    from prober.schedule.instances import PlannedInstance

EMBEDDED_NOTICE: Final = "no configuration given: checking the embedded server, not your service; use --config FILE"


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What the caller wants checked.

    probes    by name; empty: those that are configured.
    targets   by name; empty: all.
    endpoint  HOST:PORT instead of what is configured; empty: as configured.
    client    the command of the program that is the external vantage.
    for_s     repeat the probes for so many seconds; 0: once.
    seed      of the first run; each further run counts it up.
    traces    the folder for trace files of each run; None: none are written.
    """

    probes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    endpoint: str = ""
    vantage: Vantage = Vantage.WIRE
    client: tuple[str, ...] = ()
    for_s: float = 0.0
    seed: int = 0
    traces: Path | None = None


def check(  # noqa: PLR0913, PLR0917  # every option is a parameter
    target: Annotated[
        list[str] | None, typer.Option("--target", metavar="NAME", help="Only this target of the file; may be given several times.")
    ] = None,
    probe: Annotated[
        list[str] | None, typer.Option("--probe", metavar="NAME", help="Only this probe; may be given several times.")
    ] = None,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Repeat the probes for this long, such as 30s or 5m.")
    ] = "",
    endpoint: Annotated[str, typer.Option(metavar="HOST:PORT", help="The service to probe; wins over the configuration.")] = "",
    vantage: Annotated[
        Vantage | None,
        typer.Option(help="Speak gRPC itself (wire, the default), use Google's client library (library), or a program (external)."),
    ] = None,
    client: Annotated[str, typer.Option(metavar="COMMAND", help="The program of the external vantage, with its arguments.")] = "",
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON document.")] = Format.TEXT,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The configuration.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random in the experiments.")] = 0,
    trace: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write trace files of each run into this folder, for verify.")
    ] = None,
) -> None:
    """Run the probes once and print the verdict of each.

    Exit code 0: all pass. 1: a promise was broken. 2: wrong usage or configuration. 3: undecided, or the service cannot be reached.
    """
    from prober.config.loading import load_with_warnings
    from prober.probes.catalogue import PROBES
    from prober.schedule.instances import is_embedded

    settings, warnings = load_with_warnings(config, os.environ, opens_store=False)
    warn(warnings)
    must_know("probe", probe or (), PROBES)
    must_know("target", target or (), [each.name for each in settings.targets])
    if config is None and any(is_embedded(target, os.environ, endpoint) for target in settings.targets):
        print(EMBEDDED_NOTICE, file=sys.stderr)
    for_s = duration_s(duration) if duration else 0.0
    vantage, command = _vantage_of(vantage, client)
    request = CheckRequest(tuple(probe or ()), tuple(target or ()), endpoint, vantage, command, for_s, seed, trace)
    if vantage is not Vantage.WIRE and probe and all(PROBES[name].wire_only for name in probe):
        raise ConfigError(f"a client library has no part in the {', '.join(probe)} probe: use --vantage wire")
    if not any(_wanted(each, request) for each in settings.targets):
        raise ConfigError(
            f"the probe {', '.join(probe or ())} does not run on {', '.join(target or ()) or 'any target'} from the vantage {vantage}: "
            "nothing to check"
        )
    if trace is not None:
        _make(trace)
    tell = partial(_print_result, trace) if output is Format.TEXT else _ignored
    with while_running() as show:
        results = asyncio.run(
            run_checks(settings, request, os.environ, tell, lambda instance, runs: show(_words_for(instance), runs))
        )
    if output is Format.JSON:
        print(results_as_json(results))
    raise typer.Exit(int(code_of(overall_verdict(results))))


def _vantage_of(vantage: Vantage | None, client: str) -> tuple[Vantage, tuple[str, ...]]:
    """A program is the external vantage, and that vantage is a program. Raises ConfigError."""
    try:
        command = tuple(shlex.split(client))
    except ValueError as error:
        raise ConfigError(f"--client {client}: not a command: {error}") from None
    if command and vantage not in (None, Vantage.EXTERNAL):
        raise ConfigError(f"--client is for the external vantage: leave --vantage {vantage} out")
    if vantage is Vantage.EXTERNAL and not command:
        raise ConfigError("--vantage external needs a program: --client COMMAND (docs/external-clients.md)")
    return Vantage.EXTERNAL if command else vantage or Vantage.WIRE, command


def _words_for(instance: PlannedInstance) -> str:
    return f"{instance.probe} on {instance.target.name} ({instance.vantage})"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--trace {folder}: cannot be made: {error.strerror or error}") from error


def _print_result(traces: Path | None, result: RunResult) -> None:
    print(result_as_text(result), flush=True)
    if traces is not None and result.verdict is Verdict.FAIL:
        for path in trace_files(traces, result.run_id):
            print(f"  replay: ordering-prober verify --explain {path}", flush=True)


def _ignored(_result: RunResult) -> None:
    """Nothing is printed before the end."""


async def run_checks(
    config: Config,
    request: CheckRequest,
    environ: Mapping[str, str],
    tell: Callable[[RunResult], None],
    begin: Callable[[PlannedInstance, int], None] = lambda _instance, _runs: None,
) -> list[RunResult]:
    """Carries out a request, one run after the other, and tells each result as it comes.

    `begin` is told before each run where it takes place, and how many runs make one round on that target.

    Raises BrokerError or ConfigError before the first run if a target cannot be used at all; later troubles make a run UNKNOWN.
    """
    from prober.brokers.connect import connect
    from prober.brokers.push.nowhere import NOWHERE
    from prober.cli.external_run import carried_out
    from prober.runs.resources import Provisioner
    from prober.runs.runner import Run
    from prober.schedule.connections import PushReceivers, endpoint_of

    results: list[RunResult] = []
    give_up_t = monotonic_s() + request.for_s
    for settings in (each for each in config.targets if _wanted(each, request)):
        async with (
            endpoint_of(config, settings, environ, request.endpoint) as (endpoint, signer),
            PushReceivers(config.push, "check") as receivers,
        ):
            pushed = any(instance.is_pushed for instance in _wanted(settings, request))
            pushes = await receivers.of(settings, endpoint, signer) if pushed else NOWHERE
            broker = await connect(endpoint, request.vantage, pushes=pushes, client=request.client)
            try:
                while True:
                    for instance in (instances := _wanted(settings, request)):
                        begin(instance, len(instances))
                        target = instance.at(endpoint)
                        provisioner = Provisioner(
                            target,
                            instance.resource_name("check"),
                            instance.experiment.subscriptions,
                            lasting=False,
                            topic=instance.foreign_topic,
                        )
                        rules = provisioner.rules  # the next run has subscriptions of other names
                        run = Run(instance.experiment, broker, target, provisioner, instance.workload, request.seed + len(results))
                        result = await carried_out(run, broker, str(instance.probe), target)
                        results.append(result)
                        if request.traces is not None:
                            _write_traces(request.traces, run, rules)
                        tell(result)
                    if monotonic_s() >= give_up_t:
                        break
            finally:
                await broker.close()
    return results


def _write_traces(folder: Path, run: Run, rules: Mapping[str, Rules]) -> None:
    """One file for each subscription of a run: `RUN.jsonl`, `RUN-2.jsonl` and so on. Raises ConfigError if one cannot be written."""
    from prober.traces.header import TraceHeader

    events = list(run.recording.events)
    for number, (name, known) in enumerate(rules.items(), 1):
        path = folder / (f"{run.run_id}-{number}.jsonl" if number > 1 else f"{run.run_id}.jsonl")
        own = (event for event in events if getattr(event, "subscription", name) == name)
        save_trace(path, TraceHeader(name, "", rules=known, name=f"run {run.run_id}"), own)


def trace_files(folder: Path, run_id: str) -> list[Path]:
    """The trace files of a run that `check --trace` wrote, that of its first subscription first."""
    return [folder / f"{run_id}.jsonl", *sorted(folder.glob(f"{run_id}-*.jsonl"))]


def result_as_text(result: RunResult) -> str:
    """One line for the verdict, each latency that its probe measured itself, and each figure; two for each finding to look at.

    Of information that is what publishers did.
    """
    head = f"{result.probe} on {result.target} ({result.vantage}): {result.verdict}"
    lines = [f"{head} after {result.duration_s:.1f} s" + (f"; {result.reason}" if result.reason else "")]
    lines += [
        f"  {indicator.replace('_', ' ')}: p50 {took.p50_s:.4g} s, p99 {took.p99_s:.4g} s of {took.count:,}"
        for indicator, took in result.durations.items()
        if indicator in UNRECORDED
    ]
    lines += [f"  {name}: {value}" for name, value in figures_as_text(result.figures).items()]
    for made in result.findings:
        finding = made.finding
        if finding.status in (Status.VIOLATION, Status.LIVENESS) or finding.kind in OF_PUBLISHERS:
            lines += finding_lines(finding, result.clock_offset_s)
    return "\n".join(lines)


def results_as_json(results: Sequence[RunResult]) -> str:
    """One document: the overall verdict and every run."""
    return json.dumps({"verdict": overall_verdict(results), "runs": [_row(result) for result in results]}, allow_nan=False)


def _row(result: RunResult) -> dict[str, object]:
    return {
        "run_id": result.run_id,
        "probe": result.probe,
        "target": result.target,
        "vantage": result.vantage,
        "verdict": result.verdict,
        "reason": result.reason,
        "duration_s": round(result.duration_s, 3),
        "findings": [finding_row(made.finding, result.clock_offset_s) for made in result.findings],
        "counters": dict(result.counters),
        "durations": {indicator: asdict(took) for indicator, took in result.durations.items()},
        "figures": dict(result.figures),
    }


def _wanted(settings: TargetSettings, request: CheckRequest) -> list[PlannedInstance]:
    """The probes of a target that are asked for, as far as the vantage makes sense for them; none of a target that is not."""
    from prober.probes.catalogue import DECLARED
    from prober.schedule.instances import PlannedInstance

    if request.targets and settings.name not in request.targets:
        return []
    return [
        PlannedInstance(settings, name, probe, request.vantage)
        for name, probe in settings.probes.items()
        if (not request.probes or name in request.probes) and (request.vantage is Vantage.WIRE or not DECLARED[name].wire_only)
    ]
