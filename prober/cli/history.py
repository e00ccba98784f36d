"""The command `ordering-prober history export`: what was recorded, as trace files.

And what `ordering-prober verify` does with a history: it judges every key of every run that is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Final

import typer

from prober.cli.process import ExitCode, Format, Since, Until, time_of
from prober.cli.verify_report import Examples, judgement_as_json, judgement_as_text, worst_code
from prober.sinks.history.one_key import export_traces, rejudge
from prober.sinks.history.reader import HistoryReader, TimeSpan
from prober.traces.judgement import Judgement

history_app = typer.Typer(help="Export trace files from a history.", rich_markup_mode=None)
FIRST_EVENT: Final = 1


def span_of(since: str | None, until: str | None) -> TimeSpan:
    """A span of time as it is written on the command line; what is left out has no bound. Raises ConfigError."""
    return TimeSpan(*(time_of(text, default) for text, default in ((since, float("-inf")), (until, float("inf")))))


@history_app.command("export")
def export_key(
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


@dataclass(frozen=True, slots=True)
class HistorySelection:
    """What of a history is to be judged: one key or all, on one subscription or all, in whole runs that touch the span of time."""

    key: str | None
    subscription: str | None
    span: TimeSpan


def verify_history(location: str, output: Format, asked: HistorySelection, *, everything: bool) -> ExitCode:
    """Judges and prints one line or paragraph per run and key, as `verify_files` does per file; witnesses are event numbers of the run.

    Unless `everything` is to be printed, text has the first findings of each kind in all of it. Raises `HistoryError` if the history
    cannot be read.
    """
    codes, examples = [], Examples(everything=everything)
    for judgement, wall in _judged(location, asked):
        if output is Format.JSON:
            print(judgement_as_json(judgement, {}, FIRST_EVENT, wall), flush=True)
        else:
            print(judgement_as_text(judgement, {}, FIRST_EVENT, wall, examples=examples), flush=True)
        if trouble := judgement.malformed or judgement.crash:
            print(trouble, file=sys.stderr, flush=True)
        codes.append(judgement)
    if not codes:
        print(f"{location}: no recorded event matches", file=sys.stderr)
    return worst_code(codes)


def _judged(location: str, asked: HistorySelection) -> Iterator[tuple[Judgement, float | None]]:
    """Every judgement, with what turns its times into seconds since 1970."""
    reader = HistoryReader(location)
    keys = [asked.key] if asked.key is not None else reader.keys(subscription=asked.subscription, span=asked.span)
    for each in keys:
        for rejudged in rejudge(reader, each, subscription=asked.subscription, span=asked.span):
            wall = None if rejudged.run is None else rejudged.run.clock_offset_s
            yield replace(rejudged.judgement, path=f"{location}: run {rejudged.run_id}, key {each}"), wall
