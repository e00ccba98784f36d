"""The command line, `ordering-prober`: names and lazy imports of the commands, and the exit codes of errors.

`COMMAND --help` answers in less than half a second. So a command's module imports at its top only modules that load quickly; functions
import the configuration, the brokers, the store and the servers.

Every error that a user can cause is one line on standard error. The exit codes are 0 pass, 1 a violation, 2 wrong usage or input,
3 undecided.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from prober.cli.process import ExitCode, help_without_command, own_version
from prober.cycles import collect_rarely
from prober.errors import BrokerError, ProberError

PROGRAM: Final = "ordering-prober"
INTERRUPTED: Final = 130  # as a shell reports Ctrl-C
WIDTH_MAX: Final = 120  # columns of a help text

COMMANDS: Final = {
    "run": ("run:run", "Run the service: probes, metrics, API, status page."),
    "demo": ("demo:demo", "Show faults and findings, in two minutes."),
    "status": ("status:status", "Show how the running service stands."),
    "verify": ("verify:verify", "Verify trace files, or a history."),
    "observe": ("observe:observe", "Verify a stream that others publish."),
    "check": ("check:check", "Run the probes once and print the verdicts."),
    "compare": ("compare:compare", "Compare two targets: is one no worse?"),
    "embedded": ("commands:embedded", "Run the embedded Pub/Sub server alone."),
    "faults": ("commands:faults", "Explain the faults that the server can inject."),
    "probes": ("commands:probes", "List the probes: guarantee, power, cost."),
    "slos": ("commands:slos", "List the objectives and what each counts."),
    "alerts": ("commands:alerts", "Write the rules for Prometheus."),
    "api": ("run:api", "Serve the API and the status page alone."),
    "drill": ("drill:drill", "Inject faults and follow each to the page."),
    "simulate": ("simulate:simulate_seeds", "Simulate the prober in virtual time."),
    "export": ("export:export", "Check the order of keys in exported files."),
    "cleanup": ("cleanup:cleanup", "Delete what probers left behind."),
    "store": ("store:store_app", "Show, upgrade or downgrade the status store."),
    "history": ("history:history_app", "Export trace files from a history."),
    "config": ("commands:config_app", "Show or validate the configuration."),
    "help": ("help:show_help", "Explain a command or a topic."),
}
"""For each command: the module in this package with its function or application, and its line in the list of all commands."""


class _Commands(TyperGroup):
    """Imports a command on its first use: the process of the API needs no module that probes."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)  # only `get_command` needs the commands behind them
        self.commands = names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # its types are private to typer
        """Return the command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        found = getattr(import_module(f"prober.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(found)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": WIDTH_MAX}
"""Settings that every command inherits."""
app = typer.Typer(
    cls=_Commands, invoke_without_command=True, context_settings=SETTINGS, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    print(f"{PROGRAM} {own_version()}")
    raise typer.Exit


@app.callback()
def _program(
    ctx: typer.Context,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Check what Google Cloud Pub/Sub guarantees about ordering keys.

    Exit codes: 0 pass, 1 violation, 2 wrong usage or configuration, 3 undecided or unreachable. `help TOPIC` explains more.
    """
    help_without_command(ctx)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (default: those of the process) and return its exit code."""
    collect_rarely()
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it writes to standard error what a message of ours reports
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
        command = getattr(getattr(wrong, "ctx", None), "command_path", PROGRAM)
        text = " ".join(wrong.format_message().split()).replace("Value error, ", "")
        print(f"{PROGRAM}: {text} (see {command} --help)", file=sys.stderr)
        return ExitCode.MALFORMED
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception:
        # Python would exit with 1, which means that the service violated a guarantee.
        traceback.print_exc()
        print(f"{PROGRAM}: internal error; please report this with the lines above", file=sys.stderr)
        return ExitCode.UNKNOWN
