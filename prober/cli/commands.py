"""The commands that have no file of their own: what they take. What they do stands elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated, Final

import typer

from prober.brokers.base import Vantage
from prober.cli.bars import while_probing, while_reading
from prober.cli.check import Order, as_json, exit_code
from prober.cli.check import check as run_check
from prober.cli.history import Since, Until, span_of
from prober.cli.reorder import Timeouts
from prober.cli.run import run as run_service
from prober.cli.verify import Extras, Format
from prober.cli.verify import verify as verify_files
from prober.cli.verify_history import Question, is_history, verify_history
from prober.cli.version import own_version
from prober.config.loading import load, show
from prober.config.values import duration_s
from prober.embedded.faults import FaultError, describe_faults, parse_fault
from prober.embedded.server import serve_embedded
from prober.errors import ConfigError, ProberError
from prober.logs import set_up as set_up_logs
from prober.probes.catalogue import PROBES
from prober.slo.objectives import objectives_as_json, objectives_as_text

PIPE_CLOSED: Final = 141  # as a shell reports SIGPIPE


def run(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The configuration; without it one embedded target.")] = None,
) -> None:
    """Run the service: scheduled probes, metrics, REST API and status page, until Ctrl-C."""
    settings = load(config, os.environ)
    set_up_logs(settings.telemetry, sys.stderr)
    asyncio.run(run_service(settings, os.environ, own_version(), lambda url: print(f"status page: {url}", flush=True)))


def verify(  # noqa: PLR0913, PLR0917  # every option is a parameter
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Trace files (.jsonl, .jsonl.gz, - for standard input), or one history.")
    ],
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON object per file and line.")] = Format.TEXT,
    explain: Annotated[bool, typer.Option("--explain", help="Show the smallest history behind each finding as a diagram.")] = False,
    key: Annotated[str | None, typer.Option(help="Of a history: only this ordering key.")] = None,
    subscription: Annotated[str | None, typer.Option(help="Of a history: only this subscription, by its full name.")] = None,
    since: Since = None,
    until: Until = None,
    reorder: Annotated[
        bool, typer.Option("--reorder", help="Of trace files: also show how far each key's messages came out of order.")
    ] = False,
    wait_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="With --reorder: how long to wait for a missing message.")
    ] = "10m",
    idle_timeout: Annotated[str, typer.Option(metavar="DURATION", help="With --reorder: when to forget an idle key.")] = "30m",
) -> None:
    """Judge recorded histories: trace files, or a history that the service has written.

    Exit code 0: all pass. 1: a promise was broken. 2: wrong usage, or a file that cannot be read. 3: otherwise undecided.
    """
    extras = Extras(explain, _timeouts(wait_timeout, idle_timeout) if reorder else None, while_reading)
    try:
        if len(files) == 1 and is_history(files[0]):
            if reorder:
                raise ProberError("--reorder reads trace files; make some of the history with: ordering-prober history export")
            code = int(verify_history(files[0], Question(key, subscription, span_of(since, until)), output))
        else:
            code = int(verify_files(files, output, extras))
    except BrokenPipeError:
        # Python would complain once more while it shuts down and flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = PIPE_CLOSED
    raise typer.Exit(code)


def _timeouts(wait: str, idle: str) -> Timeouts:
    timeouts = Timeouts(duration_s(wait), duration_s(idle))
    if min(timeouts) <= 0:
        raise ConfigError("--wait-timeout and --idle-timeout must be longer than 0s")
    return timeouts


def check(
    probe: Annotated[list[str] | None, typer.Option("--probe", help="Only this probe; may be given several times.")] = None,
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="Go on for this long: 30s, 5m.")] = "",
    endpoint: Annotated[str, typer.Option(metavar="HOST:PORT", help="The service to probe; wins over the configuration.")] = "",
    vantage: Annotated[Vantage, typer.Option(help="Look at the wire, or through Google's client library.")] = Vantage.WIRE,
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON document.")] = Format.TEXT,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The configuration.")] = None,
    seed: Annotated[int, typer.Option(help="Repeats what is random in the experiments.")] = 0,
) -> None:
    """Run the probes once and print the verdict of each.

    Exit code 0: all pass. 1: a promise was broken. 2: wrong usage or configuration. 3: undecided, or the service cannot be reached.
    """
    settings = load(config, os.environ)
    if unknown := set(probe or ()) - set(PROBES):
        raise ConfigError(f"no probe is called {', '.join(sorted(unknown))}; there are {', '.join(PROBES)}")
    order = Order(tuple(probe or ()), endpoint, vantage, duration_s(duration) if duration else 0.0, seed)
    with while_probing() as (begin, tell):
        shown = tell if output is Format.TEXT else lambda _: None
        results = asyncio.run(run_check(settings, order, os.environ, shown, begin))
    if output is Format.JSON:
        print(as_json(results))
    raise typer.Exit(int(exit_code(results)))


def embedded(
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8085,
    fault: Annotated[list[str] | None, typer.Option("--fault", metavar="SPEC", help="Such as drop:p=0.1,key=orders-*")] = None,
    admin_port: Annotated[int | None, typer.Option(help="Also listen for drills over HTTP here; 0 takes a free one.")] = None,
) -> None:
    """Run only the embedded Pub/Sub server, right or wrong on purpose."""
    try:
        asyncio.run(serve_embedded(port, [parse_fault(text) for text in fault or ()], admin_port))
    except FaultError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"cannot listen on port {port}: {error}; name another with --port") from error


def faults() -> None:
    """Explain the faults that the embedded server can inject, and what must find each."""
    print(describe_faults(), end="")


def probes() -> None:
    """List the probes and the promise that each tests."""
    for known in PROBES.values():
        print(f"{known.name}\n    {known.promise}")


def slos(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The configuration.")] = None,
    output: Annotated[Format, typer.Option("--format", help="Text, or JSON as the nightly jobs read it.")] = Format.TEXT,
) -> None:
    """List the objectives, what each counts, and when a counted thing is bad."""
    objectives = load(config, os.environ).objectives
    print(objectives_as_json(objectives) if output is Format.JSON else objectives_as_text(objectives))


config_app = typer.Typer(help="Show or validate the configuration.", rich_markup_mode=None)


@config_app.command("show")
def config_show(file: Annotated[str | None, typer.Argument(metavar="FILE")] = None) -> None:
    """Print the complete configuration, secrets masked."""
    print(show(load(file, os.environ)), end="")


@config_app.command("check")
def config_check(file: Annotated[str, typer.Argument(metavar="FILE")]) -> None:
    """Validate a configuration file; all problems are told together."""
    load(file, os.environ)
    print(f"{file}: valid")
