"""The command line, `ordering-prober`: what the commands are called and take. What they do stands elsewhere.

Every error that a user can cause is one line on standard error; the exit codes are 0 pass, 1 a violation, 2 wrong usage or input,
3 undecided.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, BinaryIO, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from prober.core.events import Event
from prober.verify import ExitCode, Format
from prober.verify import verify as verify_files

PROGRAM: Final = "ordering-prober"
DISTRIBUTION: Final = "ordering-keys-prober"
INTERRUPTED: Final = 130  # as a shell reports Ctrl-C
PIPE_CLOSED: Final = 141  # as a shell reports SIGPIPE
PROGRESS_BYTES_MIN: Final = 4 << 20  # smaller files are judged before a bar could be read
PROGRESS_EVENTS: Final = 5_000  # between two updates of the bar

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        print(f"{PROGRAM} {version(DISTRIBUTION)}")
    except PackageNotFoundError:
        print(f"{PROGRAM} (not installed)")
    raise typer.Exit


@app.callback()
def program(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Checks what Google Cloud Pub/Sub promises about ordering keys."""


@contextmanager
def _progress(stream: BinaryIO, name: str) -> Iterator[Callable[[Iterable[Event]], Iterable[Event]]]:
    """A bar on standard error while a big file is read, by bytes; only on a terminal."""
    raw = getattr(stream, "fileobj", stream)  # of a compressed file: what is on the disk
    size = os.fstat(raw.fileno()).st_size if sys.stderr.isatty() and raw.seekable() else 0
    if size < PROGRESS_BYTES_MIN:
        yield lambda events: events
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=size)

        def watched(events: Iterable[Event]) -> Iterator[Event]:
            for count, event in enumerate(events):
                if count % PROGRESS_EVENTS == 0:
                    bar.update(task, completed=raw.tell())
                yield event

        yield watched


@app.command()
def verify(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Trace files (.jsonl, .jsonl.gz), or - for standard input.")],
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON object per file and line.")] = Format.TEXT,
    explain: Annotated[bool, typer.Option("--explain", help="Show the smallest history behind each finding as a diagram.")] = False,
) -> None:
    """Judge recorded histories.

    Exit code 0: all pass. 1: a promise was broken. 2: wrong usage, or a file that cannot be read. 3: otherwise undecided.
    """
    try:
        code = int(verify_files(files, output, explain=explain, watch=_progress))
    except BrokenPipeError:
        # Python would complain once more while it shuts down and flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = PIPE_CLOSED
    raise typer.Exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments (default: the process's) and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a key need not be writable in the terminal's encoding
    try:
        return int(app(args=arguments, prog_name=PROGRAM, standalone_mode=False) or 0)
    except typer.TyperException as wrong:
        print(f"{PROGRAM}: {' '.join(wrong.format_message().split())} (see {PROGRAM} --help)", file=sys.stderr)
        return ExitCode.MALFORMED
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
