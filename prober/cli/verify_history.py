"""What `ordering-prober verify` does with a history: it judges every key of every run that is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from prober.cli.process import ExitCode, Format
from prober.cli.verify_report import Examples, judgement_as_json, judgement_as_text, worst_code
from prober.sinks.history.reader import HistoryReader, TimeSpan
from prober.sinks.history.rejudge import rejudge
from prober.traces.judgement import Judgement

FIRST_EVENT: Final = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a history is to be judged: one key or all, on one subscription or all, in whole runs that touch the span of time."""

    key: str | None
    subscription: str | None
    span: TimeSpan


def verify_history(location: str, output: Format, asked: Asked, *, everything: bool) -> ExitCode:
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


def _judged(location: str, asked: Asked) -> Iterator[tuple[Judgement, float | None]]:
    """Every judgement, with what turns its times into seconds since 1970."""
    reader = HistoryReader(location)
    keys = [asked.key] if asked.key is not None else reader.keys(subscription=asked.subscription, span=asked.span)
    for each in keys:
        for rejudged in rejudge(reader, each, subscription=asked.subscription, span=asked.span):
            wall = None if rejudged.run is None else rejudged.run.clock_offset_s
            yield replace(rejudged.judgement, path=f"{location}: run {rejudged.run_id}, key {each}"), wall
