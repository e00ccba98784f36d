"""The commands `ordering-prober history ...`: what was recorded, as trace files; and histories made up to try jobs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from prober.cli.bars import while_writing
from prober.cli.times import Since, Until, time_of
from prober.errors import ConfigError
from prober.sinks.history.export import export_traces
from prober.sinks.history.reader import HistoryReader, TimeSpan
from prober.sinks.history.synthesis.plan import Recipe
from prober.sinks.history.synthesize import TRUTH, make_history

history_app = typer.Typer(help="Export trace files from a history, or generate a synthetic history.", rich_markup_mode=None)


def span_of(since: str | None, until: str | None) -> TimeSpan:
    """A span of time as it is written on the command line; what is left out has no bound. Raises ConfigError."""
    return TimeSpan(*(time_of(text, default) for text, default in ((since, float("-inf")), (until, float("inf")))))


@history_app.command()
def export(
    location: Annotated[str, typer.Argument(metavar="HISTORY", help="Folder, or gs:// or s3:// URI.")],
    key: Annotated[str, typer.Option(help="The ordering key.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The trace file to write; several runs become FILE-RUN.jsonl.")
    ] = "trace.jsonl",
    subscription: Annotated[str | None, typer.Option(help="Only this subscription, by its full name.")] = None,
    since: Since = None,
    until: Until = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Only this run.")] = None,
) -> None:
    """Write what was recorded about a key as trace files, one per run."""
    reader = HistoryReader(location)
    written = export_traces(reader, key, output, subscription=subscription, span=span_of(since, until), run_id=run)
    for one in written:
        print(f"{one.path}: run {one.run_id}, {one.events:,} events")


@history_app.command()
def synthesize(
    location: Annotated[str, typer.Argument(metavar="HISTORY", help="An empty folder, or one that is not there yet.")],
    start: Annotated[str, typer.Option(metavar="DATE", help="The first day, UTC.")],
    days: Annotated[int, typer.Option(help="How many days.")] = 3,
    events: Annotated[int, typer.Option(help="About how many events in all.")] = 1_000_000,
    targets: Annotated[int, typer.Option(help="How many targets.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same history.")] = 1,
) -> None:
    """Generate a history with known hot keys, known budget burn and known violations, to try the nightly jobs on."""
    with while_writing(events) as progress, _recipe_errors():
        recipe = Recipe(time_of(start, 0.0), days=days, events=events, targets=targets, seed=seed)
        make_history(location, recipe, progress)
    print(f"{location}: written; {TRUTH} lists its hot keys, violations and times of trouble")


@contextmanager
def _recipe_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from wrong
