"""The process of the command line: its version, output formats, times and exit codes."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import typer

from prober.core.verdict import Verdict, worst
from prober.errors import ConfigError, no_such

if TYPE_CHECKING:
    from prober.config.sections import Telemetry
    from prober.core.events import Event
    from prober.traces.header import TraceHeader

DISTRIBUTION: Final = "ordering-keys-prober"
SWITCH_S: Final = 0.001
"""Longest time that another thread computes while the event loop of a service waits.

With Python's default of 5 ms, one message waits several times.
"""


def own_version() -> str:
    """Return the installed version, or that none is installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "not installed"


class Format(StrEnum):
    """Output format."""

    TEXT = "text"
    JSON = "json"


class ExitCode(IntEnum):
    """Exit code: the first of malformed, failed, unknown that applies to a verified item; else pass."""

    PASS = 0
    FAIL = 1
    MALFORMED = 2
    UNKNOWN = 3


class Verified(Protocol):
    """A result with a verdict, such as a run or a drill."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""


def code_of(verdict: Verdict) -> ExitCode:
    """Return the exit code of a verdict, for every command."""
    return ExitCode[verdict.name]


def overall_verdict(results: Iterable[Verified]) -> Verdict:
    """Return the worst verdict of several results; without any, UNKNOWN."""
    return worst(result.verdict for result in results)


def help_without_command(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command. Callback of each group."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        raise typer.Exit(int(ExitCode.MALFORMED))


def warn(warnings: Iterable[str]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def must_know(what: str, names: Iterable[str], known: Collection[str], otherwise: str = "") -> None:
    """Raise ConfigError for names of a `what`, such as a target, that the user gave and that are unknown."""
    if unknown := sorted(set(names) - set(known)):
        raise ConfigError("; ".join(no_such(what, name, known, otherwise) for name in unknown))


def confirm(question: str, otherwise: str) -> None:
    """Return if the user agrees; otherwise end the command like Ctrl-C.

    Raises ConfigError with the advice `otherwise` if standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise ConfigError(f"standard input is not a terminal, so nobody can be asked: {otherwise}")
    typer.confirm(question, abort=True)


def start_logs(telemetry: Telemetry) -> Callable[[str], None]:
    """Set up the logs of a service. Returns a function that announces its status page.

    JSON goes to standard output, of which platforms such as GKE read every line, so the announcement is a log line too. Text goes to
    standard error.
    """
    from prober.config.sections import LogFormat
    from prober.logs import set_up

    as_json = telemetry.log_format is LogFormat.JSON
    set_up(sys.stdout if as_json else sys.stderr, telemetry.log_level, as_json=as_json)
    if as_json:
        return partial(logging.getLogger(__name__).info, "status page: %s")
    return lambda url: print(f"status page: {url}", flush=True)


def favour_the_loop() -> None:
    """Reduce delays of the event loop. Call it once, after the set-up of a service.

    Objects made until now are excluded from garbage collection; other threads yield sooner.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_S)


def time_of(text: str | None, default: float) -> float:
    """Return a time in seconds since 1970; without a zone it is UTC. `default` if it was omitted. Raises ConfigError."""
    if text is None:
        return default
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a time; write one like 2026-11-20T08:00:00Z") from None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def save_trace(path: str | Path, header: TraceHeader, events: Iterable[Event]) -> None:
    """Write a trace file. Raises ConfigError if it cannot be written."""
    from prober.traces.trace import write_trace

    try:
        write_trace(path, header, events)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
