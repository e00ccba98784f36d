"""Judging a recorded history again, key by key and run by run: `ordering-prober verify HISTORY`.

Every run has its own rules, so every run gives a verdict of its own for each of its keys. To judge whole days of many keys, the nightly job
`reverify` does the same on all cores or a cluster.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from prober.cli.exit_codes import ExitCode
from prober.cli.verify import Format, worst_code
from prober.cli.verify_report import as_json, as_text
from prober.sinks.history.reader import ALWAYS, HistoryReader, Span
from prober.sinks.history.rejudge import rejudge
from prober.traces.judgement import Judgement

FIRST_EVENT = 1


@dataclass(frozen=True, slots=True)
class Question:
    """What of a history is to be judged: one key or all, on one subscription or all, whole runs that touch a span of time."""

    key: str | None = None
    subscription: str | None = None
    span: Span = ALWAYS


def is_history(path: str) -> bool:
    """Whether a path is a history's and not a trace file's."""
    return bool(urlsplit(path).scheme in ("gs", "s3", "hdfs")) or os.path.isdir(path)


def verify_history(location: str, question: Question, output: Format) -> ExitCode:
    """Judges and prints one line or paragraph per run and key, as `verify` does per file; witnesses are event numbers of the run.

    Raises `HistoryError` if the history cannot be read.
    """
    codes = []
    for judgement, wall in _judged(location, question):
        print((as_json if output is Format.JSON else as_text)(judgement, {}, FIRST_EVENT, wall), flush=True)
        if trouble := judgement.malformed or judgement.crash:
            print(trouble, file=sys.stderr, flush=True)
        codes.append(judgement)
    if not codes:
        print(f"{location}: nothing is recorded there about what was asked for", file=sys.stderr)
    return worst_code(codes)


def _judged(location: str, question: Question) -> Iterator[tuple[Judgement, float | None]]:
    """Every judgement, with what turns its times into seconds since 1970."""
    reader = HistoryReader(location)
    for key in _keys(reader, question):
        for rejudged in rejudge(reader, key, subscription=question.subscription, span=question.span):
            wall = None if rejudged.run is None else rejudged.run.clock_offset_s
            yield replace(rejudged.judgement, path=f"{location}: run {rejudged.run_id}, key {key}"), wall


def _keys(reader: HistoryReader, question: Question) -> Iterable[str]:
    if question.key is not None:
        return (question.key,)
    return reader.keys(subscription=question.subscription, span=question.span)
