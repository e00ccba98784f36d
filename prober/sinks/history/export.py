"""What a history has of one key, as trace files, to be cut down or handed on: one file per run, under the rules of the run."""

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
    """A trace file that was written: its path, the run, and how many events it holds."""

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
    """Writes what concerns the key on one subscription in that time: one file per run, since each run has its own rules and clock.

    If something did not come in time, the file has all keys of the run, since messages of other keys may have been the reason.
    One run goes to `output`; several go to files beside it, `trace.jsonl` becoming `trace-RUN.jsonl`. A run that began before the span
    begins in its file with an interruption, and with the sessions that were open then, so that what is missing is not held against the
    service. Existing files are replaced. `agree` is called with the number of files before the first one is written, and may raise.

    Raises `HistoryError` if there is nothing, or if a run has several subscriptions and none is named.
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
    """The runs that have the subscription, and events of the key in that time."""
    runs = reader.runs_named(reader.run_ids(key=key, subscription=subscription, span=span), span)
    return {one: run for one, run in runs.items() if subscription is None or subscription in run.rules}


def _where(subscription: str | None, span: TimeSpan) -> str:
    where = f" on {subscription}" if subscription else ""
    return where + (" in that time" if span != ALWAYS else "")


def _beside(target: Path, run_id: str) -> Path:
    """`trace.jsonl` becomes `trace-RUN.jsonl`, with only what is harmless in the name of a file."""
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
    """Whether the events of the key alone do not say enough: something did not come in time, and other keys may be why."""
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
    """What stands for the events before `t`: nothing if there are none."""
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
