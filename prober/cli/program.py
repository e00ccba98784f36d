"""The command line, `ordering-prober`: what the commands are called and take. What they do stands elsewhere.

Every error that a user can cause is one line on standard error; the exit codes are 0 pass, 1 a violation, 2 wrong usage or input,
3 undecided.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from prober.cli.process import ExitCode, collect_rarely, own_version
from prober.errors import BrokerError, ProberError

PROGRAM: Final = "ordering-prober"
INTERRUPTED: Final = 130  # as a shell reports Ctrl-C

_COMMANDS: Final = {
    "run": "run:run",
    "status": "status:status",
    "verify": "verify:verify",
    "observe": "observe:observe",
    "check": "check:check",
    "compare": "compare:compare",
    "embedded": "embedded:embedded",
    "faults": "commands:faults",
    "probes": "commands:probes",
    "slos": "commands:slos",
    "alerts": "commands:alerts",
    "api": "api:api",
    "drill": "drill:drill",
    "simulate": "simulate:simulate_seeds",
    "export": "export:export",
    "cleanup": "cleanup:cleanup",
    "history": "history:history_app",
    "config": "commands:config_app",
}
"""Where each command is: a module next to this one, and a function or an application in it."""


class _Commands(TyperGroup):
    """Imports a command when it is asked for: the API in a process of its own needs nothing that probes."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        names: dict[str, Any] = dict.fromkeys(_COMMANDS)  # nobody but `get_command` asks for what is behind them
        self.commands = names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # its types are private to typer
        """The command of a name; None if there is none."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"prober.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(found)
        return typer.main.get_command(single)


app = typer.Typer(cls=_Commands, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    print(f"{PROGRAM} {own_version()}")
    raise typer.Exit


@app.callback()
def _program(
    _shown: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Checks what Google Cloud Pub/Sub promises about ordering keys."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (default: the process's) and return its exit code."""
    collect_rarely()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a key need not be writable in the terminal's encoding
    try:
        return int(app(args=arguments, prog_name=PROGRAM, standalone_mode=False) or 0)
    except BrokerError as trouble:
        print(f"{PROGRAM}: {trouble}", file=sys.stderr)
        return ExitCode.UNKNOWN
    except ProberError as wrong:
        print(f"{PROGRAM}: {wrong}", file=sys.stderr)
        return ExitCode.MALFORMED
    except typer.TyperException as wrong:
        print(f"{PROGRAM}: {' '.join(wrong.format_message().split())} (see {PROGRAM} --help)", file=sys.stderr)
        return ExitCode.MALFORMED
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception:
        # Python would exit with 1, which means that the service broke a promise.
        traceback.print_exc()
        print(f"{PROGRAM}: internal error; please report this with the lines above", file=sys.stderr)
        return ExitCode.UNKNOWN
