"""What `ordering-prober verify` does with a history: it judges every key of every run that is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from prober.cli.history import span_of
from prober.cli.process import ExitCode, Format
from prober.cli.verify_report import judgement_as_json, judgement_as_text, worst_code
from prober.sinks.history.reader import HistoryReader, TimeSpan
from prober.sinks.history.rejudge import rejudge
from prober.traces.judgement import Judgement

FIRST_EVENT: Final = 1


def verify_history(
    location: str, output: Format, *, key: str | None, subscription: str | None, since: str | None, until: str | None
) -> ExitCode:
    """Judges and prints one line or paragraph per run and key, as `verify_files` does per file; witnesses are event numbers of the run.

    It judges one key or all, on one subscription or all, and whole runs that touch the span of time. Raises `HistoryError` if the
    history cannot be read, and `ConfigError` for what is not a time.
    """
    codes = []
    for judgement, wall in _judged(location, key, subscription, span_of(since, until)):
        print((judgement_as_json if output is Format.JSON else judgement_as_text)(judgement, {}, FIRST_EVENT, wall), flush=True)
        if trouble := judgement.malformed or judgement.crash:
            print(trouble, file=sys.stderr, flush=True)
        codes.append(judgement)
    if not codes:
        print(f"{location}: no recorded event matches", file=sys.stderr)
    return worst_code(codes)


def _judged(location: str, key: str | None, subscription: str | None, span: TimeSpan) -> Iterator[tuple[Judgement, float | None]]:
    """Every judgement, with what turns its times into seconds since 1970."""
    reader = HistoryReader(location)
    for each in [key] if key is not None else reader.keys(subscription=subscription, span=span):
        for rejudged in rejudge(reader, each, subscription=subscription, span=span):
            wall = None if rejudged.run is None else rejudged.run.clock_offset_s
            yield replace(rejudged.judgement, path=f"{location}: run {rejudged.run_id}, key {each}"), wall
