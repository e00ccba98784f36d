"""The command `ordering-prober check`: run probes once, or for a while, on the configured targets and print the verdict of each."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.brokers.base import Vantage
from prober.cli.bars import Show, while_running
from prober.cli.check_runs import CheckRequest, run_checks, trace_files, wanted
from prober.cli.options import Configuration, EndpointOption, Output, Probes, Seed, Targets
from prober.cli.process import Format, code_of, must_know, overall_verdict, warn
from prober.cli.terminal import show
from prober.clock import monotonic_s
from prober.core.verdict import Verdict
from prober.durations import duration_s
from prober.errors import ConfigError
from prober.probes.experiment import Company

if TYPE_CHECKING:
    from prober.brokers.endpoint import Endpoint
    from prober.config.models import TargetSettings
    from prober.runs.result import RunResult
    from prober.schedule.instances import PlannedInstance

EMBEDDED_NOTICE: Final = "no configuration given: checking the embedded server, not your service; use --config FILE"
NAMED_MAX: Final = 3  # probes beside the progress bar


def check(  # noqa: PLR0913, PLR0917  # every option is a parameter
    target: Targets = None,
    probe: Probes = None,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Repeat the probes for this long, such as 30s or 5m.")
    ] = "",
    endpoint: EndpointOption = "",
    vantage: Annotated[
        Vantage | None,
        typer.Option(help="Speak gRPC itself (wire, the default), use Google's client library (library), or a program (external)."),
    ] = None,
    client: Annotated[str, typer.Option(metavar="COMMAND", help="The program of the external vantage, with its arguments.")] = "",
    output: Output = Format.TEXT,
    config: Configuration = None,
    seed: Seed = 0,
    trace: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write trace files of each run into this folder, for verify.")
    ] = None,
) -> None:
    """Run the probes once and print the verdict of each.

    Probes that do not disturb each other run at the same time. Exit code 0: all pass. 1: a guarantee was violated. 2: wrong usage or
    configuration. 3: undecided, or the service cannot be reached.
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
    if not any(wanted(each, request) for each in settings.targets):
        raise ConfigError(
            f"the probe {', '.join(probe or ())} does not run on {', '.join(target or ()) or 'any target'} from the vantage {vantage}: "
            "nothing to check"
        )
    if trace is not None:
        _make(trace)
    with while_running() as bar:
        screen = Screen(bar, trace, output)
        results = asyncio.run(run_checks(settings, request, os.environ, screen.ended, screen.reached, screen.begun))
    screen.conclude(results)
    raise typer.Exit(int(code_of(overall_verdict(results))))


def _vantage_of(vantage: Vantage | None, client: str) -> tuple[Vantage, tuple[str, ...]]:
    """Return the vantage and the command: `--client` implies the external vantage, which requires it. Raises ConfigError."""
    try:
        command = tuple(shlex.split(client))
    except ValueError as error:
        raise ConfigError(f"--client {client}: not a command: {error}") from None
    if command and vantage not in (None, Vantage.EXTERNAL):
        raise ConfigError(f"--client is for the external vantage: leave --vantage {vantage} out")
    if vantage is Vantage.EXTERNAL and not command:
        raise ConfigError("--vantage external needs a program: --client COMMAND (docs/external-clients.md)")
    return Vantage.EXTERNAL if command else vantage or Vantage.WIRE, command


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--trace {folder}: cannot be made: {error.strerror or error}") from error


class Screen:
    """The output of a check: the progress bar, in text each result when its run ends, and the conclusion."""

    def __init__(self, bar: Show, traces: Path | None, output: Format) -> None:
        self._bar, self._traces, self._output = bar, traces, output
        self._began_t = monotonic_s()
        self._endpoints: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._running: list[str] = []
        self._begun = self._ended = self._total = 0

    def reached(self, target: TargetSettings, endpoint: Endpoint, named_by: str) -> None:
        """Note the address of a connected target. If it was overridden, results name the address in place of the target."""
        self._endpoints[target.name] = str(endpoint)
        self._places[target.name] = str(endpoint) if named_by else target.name
        if self._output is Format.TEXT:
            show(f"checking {target.name} at {endpoint}" if not named_by else f"checking {endpoint}, named by {named_by}")

    def begun(self, instance: PlannedInstance, total: int) -> None:
        """Show the start of a run."""
        self._running.append(instance.probe)
        self._begun, self._total = self._begun + 1, total
        self._update()

    def ended(self, result: RunResult) -> None:
        """Print the result of a run."""
        from prober.cli.check_report import result_as_text
        from prober.probes.catalogue import DECLARED

        self._running.remove(result.probe)
        self._ended += 1
        self._update()
        if self._output is Format.JSON:
            return
        undisturbed = self._total == 1 or DECLARED[result.probe].company in (Company.QUIET, Company.NONE)
        show(result_as_text(result, self._places[result.target], undisturbed=undisturbed))
        if self._traces is not None and result.verdict is Verdict.FAIL:
            for path in trace_files(self._traces, result.run_id):
                show(f"  replay: ordering-prober verify --explain {path}")

    def conclude(self, results: Sequence[RunResult]) -> None:
        """Print the conclusion of all runs."""
        from prober.cli.check_report import results_as_json, summary

        if self._output is Format.JSON:
            print(results_as_json(results, self._endpoints))
        else:
            show(summary(results, list(self._places.values()), monotonic_s() - self._began_t))

    def _update(self) -> None:
        named, more = self._running[:NAMED_MAX], len(self._running) - NAMED_MAX
        earlier = (self._begun - 1) // self._total * self._total  # runs of the rounds before
        self._bar(", ".join(named) + (f" and {more} more" if more > 0 else ""), self._total, self._ended - earlier)
