"""The command line as a process: its version, output formats, times and exit codes."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
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
"""How long another thread may go on computing while the event loop of a service wants to: the default, 5 ms, is paid several times for one
message.
"""


def own_version() -> str:
    """The version that is installed, or that none is."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "not installed"


class Format(StrEnum):
    """The format of the output."""

    TEXT = "text"
    JSON = "json"


class ExitCode(IntEnum):
    """The exit code: the first of malformed, failed, unknown that is true of anything that was verified; else pass."""

    PASS = 0
    FAIL = 1
    MALFORMED = 2
    UNKNOWN = 3


_CODE: Final[Mapping[Verdict, ExitCode]] = {
    Verdict.PASS: ExitCode.PASS,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}


class Verified(Protocol):
    """A run, a drill: anything that came to a verdict."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""


def code_of(verdict: Verdict) -> ExitCode:
    """The exit code that stands for a verdict, for every command that comes to one."""
    return _CODE[verdict]


def overall_verdict(results: Iterable[Verified]) -> Verdict:
    """The worst verdict of several results; of none it is UNKNOWN."""
    return worst(result.verdict for result in results)


def help_without_command(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command. Callback of each group."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        raise typer.Exit(int(ExitCode.MALFORMED))


def warn(warnings: Iterable[str]) -> None:
    """Tells what is worth a second look, on standard error."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def must_know(what: str, names: Iterable[str], known: Collection[str], otherwise: str = "") -> None:
    """Raises ConfigError for names of a `what`, such as a target, that the user gave and that are not known."""
    if unknown := sorted(set(names) - set(known)):
        raise ConfigError("; ".join(no_such(what, name, known, otherwise) for name in unknown))


def confirm(question: str, otherwise: str) -> None:
    """Returns if the user agrees, and ends the command like Ctrl-C if not.

    Raises ConfigError with the advice `otherwise` if standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise ConfigError(f"standard input is not a terminal, so nobody can be asked: {otherwise}")
    typer.confirm(question, abort=True)


def start_logs(telemetry: Telemetry) -> Callable[[str], None]:
    """Sets up the logs of a service. Returns what announces its status page.

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
    """Keeps what is not the event loop's from holding it up. To be called once, by a service that has been set up.

    Objects made until now stay, so the search for cycles leaves them out; other threads give way sooner.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_S)


def time_of(text: str | None, default: float) -> float:
    """A time in seconds since 1970; what names no zone is UTC. `default` if it was left out. Raises ConfigError."""
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
