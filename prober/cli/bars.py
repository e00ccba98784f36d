"""Progress bars on standard error, on a terminal only, so that standard output is unchanged."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, Protocol, TypeVar

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from prober.cli.terminal import progress_console
from prober.core.events import Event

BYTES_MIN: Final = 4 << 20  # smaller files are verified before a bar could be read
EVENTS_BETWEEN: Final = 5_000  # two updates of the bar
NAME_SHOWN: Final = 30  # characters of a file name beside the bar

_Item = TypeVar("_Item")


@contextmanager
def while_reading(stream: BinaryIO, name: str) -> Iterator[Callable[[Iterable[Event]], Iterable[Event]]]:
    """Show a bar while a big file is read, by bytes; on a terminal only."""
    raw = getattr(stream, "fileobj", stream)  # of a compressed file: what is on the disk
    size = os.fstat(raw.fileno()).st_size if sys.stderr.isatty() and raw.seekable() else 0
    if size < BYTES_MIN:
        yield lambda events: events
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=progress_console(), transient=True) as bar:
        task = bar.add_task(os.path.basename(name)[-NAME_SHOWN:], total=size)

        def watched(events: Iterable[Event]) -> Iterator[Event]:
            for count, event in enumerate(events):
                if count % EVENTS_BETWEEN == 0:
                    bar.update(task, completed=raw.tell())
                yield event

        yield watched


@contextmanager
def while_verifying() -> Iterator[Callable[[Iterable[_Item], int], Iterator[_Item]]]:
    """Show a bar while events are verified, on a terminal only. Yields a function that takes the events and their number."""
    columns = (
        TextColumn("verifying"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} events"),
        TimeRemainingColumn(),
    )
    to_stdout, shown = sys.stdout.isatty(), sys.stderr.isatty()
    with Progress(*columns, console=progress_console(), transient=True, disable=not shown, redirect_stdout=to_stdout) as bar:

        def watched(events: Iterable[_Item], total: int) -> Iterator[_Item]:
            task = bar.add_task("", total=total)
            for count, event in enumerate(events):
                if count % EVENTS_BETWEEN == 0:
                    bar.update(task, completed=count)
                yield event

        yield watched


class Show(Protocol):
    """Shows the running probes."""

    def __call__(self, running: str, total: int, done: int | None = None) -> None:
        """`total`: the runs of a round. `done`: how many of them have ended; None: all that were shown before in this round."""


@contextmanager
def while_running() -> Iterator[Show]:
    """Show a bar during a round of runs, on a terminal only; lines printed meanwhile stay whole."""
    if not sys.stderr.isatty():
        yield lambda running, total, done=None: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"), TimeElapsedColumn())
    # What is printed goes above the bar if both are on the terminal, and only then through it.
    with Progress(*columns, console=progress_console(), transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task("connecting", total=None, count="")
        begun = 0

        def show(running: str, total: int, done: int | None = None) -> None:
            nonlocal begun
            done = begun % total if done is None else done
            bar.update(task, description=running, total=total, completed=done, count=f"{done} of {total}")
            begun += 1

        yield show
