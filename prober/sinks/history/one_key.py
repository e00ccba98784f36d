"""One key in the history: judged again, and what was recorded about it as trace files, to be cut down or handed on.

Each of its runs is judged by itself, under the rules that the run was judged under. The same checker sees the same events in the same
order, at first without those of other keys. These matter to it only where something did not come in time (`ABOUT_TIME`): then the whole run
is judged once more with all its keys, and what that says of this one counts. So the same is said as online, unless the checker has changed
since. Witnesses are numbers of events in the run, as in online findings.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from prober.core.events import Closed, Ended, Event, Interrupted, Opened
from prober.core.findings import Finding
from prober.core.judge import Judge
from prober.core.verdict import Verdict
from prober.sinks.history.reader import ALWAYS, HistoryReader, StoredRun, TimeSpan
from prober.sinks.history.schema import ABOUT_TIME
from prober.sinks.history.store import HistoryError
from prober.traces.header import TraceHeader
from prober.traces.judgement import Judgement
from prober.traces.trace import write_trace

_DAY_S: Final = 86400.0
_MARGIN_S: Final = 60.0
"""A run's own times are read a little before and after those of its events."""


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A run judged again as far as one key goes. `run` is None if the history holds no row of it; then it is UNKNOWN."""

    run_id: str
    run: StoredRun | None
    judgement: Judgement


def rejudge(reader: HistoryReader, key: str, *, subscription: str | None = None, span: TimeSpan = ALWAYS) -> Iterator[Rejudged]:
    """The judgement of each run that has events of the key in that time, of the whole run, as soon as its end was read.

    With a subscription, what others received is left out. Memory: what the checker needs for the runs that overlap, and 8 bytes for
    each of their events. Raises `HistoryError` if the history cannot be read.
    """
    runs, unknown = runs_about(reader, key, subscription, span)
    for judged in _each(reader, key, runs, subscription, span):
        yield _among_all_keys(reader, key, judged, subscription) if _is_about_time(judged) else judged
    for missing in unknown:
        problem = f"{missing}: the history holds no row of this run, so its rules are not known"
        yield Rejudged(missing, None, Judgement(missing, Verdict.UNKNOWN, malformed=problem))


def others_matter(reader: HistoryReader, run: StoredRun, key: str, subscription: str | None) -> bool:
    """Whether what a run says of a key cannot be told without the events of its other keys."""
    return any(map(_is_about_time, _each(reader, key, {run.run_id: run}, subscription, ALWAYS)))


def _is_about_time(judged: Rejudged) -> bool:
    return any(kind in ABOUT_TIME for kind, _ in judged.judgement.counts)


def _each(
    reader: HistoryReader, key: str, runs: Mapping[str, StoredRun], subscription: str | None, span: TimeSpan
) -> Iterator[Rejudged]:
    """Each run judged by the events of the key alone."""
    under_way: dict[str, _Slice] = {}
    whole = extent(runs.values()) if runs else span
    for recorded in reader.events(key, subscription=subscription, span=whole, run_ids=tuple(runs)):
        judged = under_way.get(recorded.run_id)
        if judged is None:
            judged = under_way[recorded.run_id] = _Slice(runs[recorded.run_id], subscription)
        judged.take(recorded.number, recorded.event)
        if isinstance(recorded.event, Ended):
            yield under_way.pop(recorded.run_id).judged()
    yield from (judged.judged() for judged in under_way.values())


def _among_all_keys(reader: HistoryReader, key: str, alone: Rejudged, subscription: str | None) -> Rejudged:
    """What is found about a key when its run is judged with all keys; `alone` says the rest."""
    run = alone.run
    if run is None:
        return alone
    whole = _Slice(run, subscription, key)
    for recorded in reader.events(None, subscription=subscription, span=extent([run]), run_ids=(run.run_id,)):
        whole.take(recorded.number, recorded.event)
    together = whole.judged().judgement
    counters = {name: count for name, count in alone.judgement.counters.items() if not name.startswith("findings_")}
    for (_, status), count in together.counts.items():
        counters[f"findings_{status}"] = counters.get(f"findings_{status}", 0) + count
    return replace(alone, judgement=replace(together, counters=counters, events=alone.judgement.events))


def runs_about(
    reader: HistoryReader, key: str, subscription: str | None, span: TimeSpan, run_id: str | None = None
) -> tuple[Mapping[str, StoredRun], Sequence[str]]:
    """The runs that have the subscription, and events of the key in that time, and the names of those that have no row.

    `run_id`: only this one.
    """
    wanted = [one for one in reader.run_ids(key, subscription=subscription, span=span) if run_id in (None, one)]
    runs = _runs_named(reader, wanted, span)
    unknown = [one for one in wanted if one not in runs]
    return {one: run for one, run in runs.items() if subscription is None or subscription in run.rules}, unknown


def _runs_named(reader: HistoryReader, run_ids: Sequence[str], span: TimeSpan) -> Mapping[str, StoredRun]:
    """Looks first where the rows of runs of that time should be."""
    if not run_ids:
        return {}
    near = TimeSpan(span.since - _DAY_S, span.until + _DAY_S)
    runs = {run.run_id: run for run in reader.runs(span=near, run_ids=run_ids)}
    rest = [run_id for run_id in run_ids if run_id not in runs]
    if rest and near != ALWAYS:
        runs |= {run.run_id: run for run in reader.runs(run_ids=rest)}
    return {run_id: runs[run_id] for run_id in run_ids if run_id in runs}


def extent(runs: Iterable[StoredRun]) -> TimeSpan:
    """The time that covers all events of these runs, of which there is at least one."""
    listed = list(runs)
    return TimeSpan(min(run.began_at for run in listed) - _MARGIN_S, max(run.ended_at for run in listed) + _MARGIN_S)


class _Slice:
    """A part of a run, on its way through the checker. Findings about other keys than `key` are left out; None: about none."""

    def __init__(self, run: StoredRun, subscription: str | None, key: str | None = None) -> None:
        rules = run.rules if subscription is None else {subscription: run.rules[subscription]}
        self._judge = Judge(rules, self._as_in_run)
        self._run = run
        self._key = key
        self._numbers = array("q")
        self._left_out = False

    def take(self, number: int, event: Event) -> None:
        """Judges the next event, unless it was recorded after judging had stopped."""
        limit = self._run.judged_events
        if self._judge.stopped_because or (limit is not None and number > limit):
            self._left_out = True
            return
        self._numbers.append(number)
        self._judge.observe(event, number)

    def judged(self) -> Rejudged:
        """Settles what is on hold, unless the run was cut off; what is said about the run."""
        if self._judge.ended:
            self._judge.finish(self._numbers[-1] if self._numbers else 0)
        judgement = Judgement(
            self._run.run_id,
            self._judge.verdict(incomplete=self._left_out),
            tuple(self._judge.findings.kept),
            self._judge.findings.counts,
            dict(self._judge.counters),
            len(self._numbers),
            crash=f"{self._run.run_id}: {self._judge.stopped_because}" if self._judge.stopped_because else "",
        )
        return Rejudged(self._run.run_id, self._run, judgement)

    def _as_in_run(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Those about the key, in the numbers of the whole run."""
        return [
            replace(finding, witnesses=tuple(self._numbers[witness - 1] for witness in finding.witnesses))
            for finding in findings
            if self._key in (None, finding.key)
        ]


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
    run_id: str | None = None,
) -> list[Exported]:
    """Writes what concerns the key on one subscription in that time: one file per run, since each run has its own rules and clock.

    If something did not come in time, the file has all keys of the run, since messages of other keys may have been the reason.
    One run goes to `output`; several go to files beside it, `trace.jsonl` becoming `trace-RUN.jsonl`. A run that began before the span
    begins in its file with an interruption, and with the sessions that were open then, so that what is missing is not held against the
    service. Existing files are replaced. Raises `HistoryError` if there is nothing, or if a run has several subscriptions and none is
    named.
    """
    runs, _ = runs_about(reader, key, subscription, span, run_id)
    if not runs:
        raise HistoryError(f"{reader.location}: no run with events of key {key!r}{_where(subscription, span, run_id)}")
    target = Path(output)
    return [
        _export_run(reader, run, key, target if len(runs) == 1 else _beside(target, run.run_id), subscription, span)
        for run in runs.values()
    ]


def _where(subscription: str | None, span: TimeSpan, run_id: str | None) -> str:
    said = [
        f"on {subscription}" if subscription else "",
        "in that time" if span != ALWAYS else "",
        f"in run {run_id}" if run_id else "",
    ]
    return "".join(f" {words}" for words in said if words)


def _beside(target: Path, run_id: str) -> Path:
    """`trace.jsonl` becomes `trace-RUN.jsonl`, with only what is harmless in the name of a file."""
    return target.with_name(f"{target.stem}-{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)}{target.suffix}")


def _export_run(reader: HistoryReader, run: StoredRun, key: str, path: Path, subscription: str | None, span: TimeSpan) -> Exported:
    name = subscription or _only(run)
    header = TraceHeader(name, key, run.rules[name], name=f"{key} in run {run.run_id}", extra=_about(run))
    try:
        keys = None if others_matter(reader, run, key, name) else key
        count = write_trace(path, header, _events(reader, run, keys, name, span))
    except OSError as error:
        raise HistoryError(f"{path}: cannot be written: {error.strerror or error}") from error
    return Exported(str(path), run.run_id, count)


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
