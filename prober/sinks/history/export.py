"""Export of a key's events from a history as trace files, one per run, under the rules of the run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from prober.core.events import Closed, Event, Interrupted, Opened
from prober.sinks.history.checking import RunChecker
from prober.sinks.history.reader import ALWAYS, HistoryReader, StoredRun, TimeSpan, extent
from prober.sinks.history.schema import ABOUT_TIME
from prober.sinks.history.store import HistoryError
from prober.traces.header import TraceHeader
from prober.traces.trace import write_trace


@dataclass(frozen=True, slots=True)
class Exported:
    """A written trace file: its path, the run, and the number of its events."""

    path: str
    run_id: str
    events: int


def export_traces(
    reader: HistoryReader,
    key: str,
    output: str | os.PathLike[str],
    *,
    subscription: str | None = None,
    span: TimeSpan = ALWAYS,
    agree: Callable[[int], None] = lambda _files: None,
) -> list[Exported]:
    """Write the events that concern a key on one subscription in a time span; return the written files.

    Each run has its own rules and clock, and so a file of its own. One run is written to `output`; several runs are written to files beside
    it, to `trace-RUN.jsonl` for `trace.jsonl`. Existing files are replaced.

    If the key has a finding about a missed deadline, the file contains all keys of the run, since messages of other keys may be the reason.
    If a run started before the span, its file starts with an interruption and with the sessions that were open at that time, so that
    missing events do not count against the service. `agree` is called with the number of files before the first file is written, and may
    raise.

    Raises `HistoryError` if there are no events, if a run has several subscriptions and none is named, or if a file cannot be written.
    """
    runs = _runs_about(reader, key, subscription, span)
    if not runs:
        raise HistoryError(f"{reader.location}: no run with events of key {key!r}{_where(subscription, span)}")
    agree(len(runs))
    target = Path(output)
    return [
        _export_run(reader, run, key, target if len(runs) == 1 else _beside(target, run.run_id), subscription, span)
        for run in runs.values()
    ]


def _runs_about(reader: HistoryReader, key: str, subscription: str | None, span: TimeSpan) -> Mapping[str, StoredRun]:
    runs = reader.runs_named(reader.run_ids(key=key, subscription=subscription, span=span), span)
    return {one: run for one, run in runs.items() if subscription is None or subscription in run.rules}


def _where(subscription: str | None, span: TimeSpan) -> str:
    where = f" on {subscription}" if subscription else ""
    return where + (" in that time" if span != ALWAYS else "")


def _beside(target: Path, run_id: str) -> Path:
    """Return `trace-RUN.jsonl` for `trace.jsonl`; characters of the run's id that are unsafe in a file name become `_`."""
    return target.with_name(f"{target.stem}-{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)}{target.suffix}")


def _export_run(reader: HistoryReader, run: StoredRun, key: str, path: Path, subscription: str | None, span: TimeSpan) -> Exported:
    name = subscription or _only(run)
    header = TraceHeader(name, key, run.rules[name], name=f"{key} in run {run.run_id}", extra=_about(run))
    try:
        keys = None if _others_matter(reader, run, key, name) else key
        count = write_trace(path, header, _events(reader, run, keys, name, span))
    except OSError as error:
        raise HistoryError(f"{path}: cannot be written: {error.strerror or error}") from error
    return Exported(str(path), run.run_id, count)


def _others_matter(reader: HistoryReader, run: StoredRun, key: str, subscription: str) -> bool:
    """Return whether events of the key alone show a missed deadline, for which other keys may be the reason."""
    checker = RunChecker({subscription: run.rules[subscription]}, run.record)
    for recorded in reader.events(key, subscription=subscription, span=extent([run]), run_ids=(run.run_id,)):
        checker.verify(recorded.event, recorded.number)
    checker.finish()
    return any(kind in ABOUT_TIME for kind, _ in checker.found.counts)


def _about(run: StoredRun) -> Mapping[str, object]:
    context = run.context
    return {
        "run": run.run_id,
        "target": context.target,
        "probe": context.probe,
        "vantage": context.vantage,
        "clock_offset_s": run.clock_offset_s,
    }


def _only(run: StoredRun) -> str:
    if len(run.rules) != 1:
        raise HistoryError(f"run {run.run_id} has several subscriptions; name one of {', '.join(run.rules)} (--subscription)")
    return next(iter(run.rules))


def _events(reader: HistoryReader, run: StoredRun, key: str | None, subscription: str, span: TimeSpan) -> Iterator[Event]:
    whole = extent([run])
    since, until = max(span.since, whole.since), min(span.until, whole.until)
    part = reader.events(key, subscription=subscription, span=TimeSpan(since, until), run_ids=(run.run_id,))
    events = (recorded.event for recorded in part)
    first = next(events, None)
    if first is None:
        return
    if since > run.began_at:
        earlier = reader.events(key, subscription=subscription, span=TimeSpan(whole.since, since), run_ids=(run.run_id,))
        yield from _cut((recorded.event for recorded in earlier), first.t)
    yield from chain([first], events)


def _cut(earlier: Iterable[Event], t: float) -> Iterator[Event]:
    """Yield an interruption and the open sessions in place of the events before `t`; nothing if there are none."""
    sessions: dict[str, Opened] = {}
    event = None
    for event in earlier:
        if isinstance(event, Opened):
            sessions[event.session] = event
        elif isinstance(event, Closed):
            sessions.pop(event.session, None)
    if event is not None:
        yield Interrupted(t)
        yield from (replace(opened, t=t, invoked_t=None) for opened in sessions.values())
