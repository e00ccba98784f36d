"""Repeated verification of the runs of a history, in one pass over its events.

Each run has its own checker (`checking`) for all its keys and subscriptions. Checkers of overlapping runs take their events in the order of
the history. So the findings equal those of online verification, unless the checker has changed since. Witnesses are event numbers of the
run. Results are in the order in which the runs started; those of runs without an end come last.

Memory: the checkers of overlapping runs, and the events that the reader holds at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from prober.core.findings import Finding
from prober.core.verdict import Verdict
from prober.sinks.history.checking import RunChecker, Scope
from prober.sinks.history.reader import ALWAYS, HistoryReader, Recorded, RunRows, StoredRun, TimeSpan, extent
from prober.traces.verification import Verification

Watched: TypeAlias = Callable[[Iterable[Recorded], int], Iterable[Recorded]]
"""Wrapper of the events, called with their number, that reports the progress."""

_WHY: Final[Mapping[Scope, str]] = {
    Scope.WHOLE: "",
    Scope.PREFIX: "only the first part of the run was verified, as online",
    Scope.STOPPED: "the prober was stopped while the run went on",
    Scope.CUT_SHORT: "the run was cut short, or still goes on",
    Scope.HOLED: "events of the run are missing in the history",
    Scope.DAMAGED: "times of its events are damaged",
    Scope.MERGED: "several processes recorded the run, so its events have no common numbering",
}


@dataclass(frozen=True, slots=True)
class HistorySelection:
    """Part of a history to verify: runs with events in a time span, and findings on a key and a subscription.

    Runs are verified as a whole. None: all keys, all subscriptions.
    """

    key: str | None = None
    subscription: str | None = None
    span: TimeSpan = ALWAYS

    @property
    def is_everything(self) -> bool:
        """Whether the selection is the whole history."""
        return self == HistorySelection()

    def includes(self, finding: Finding) -> bool:
        """Return whether a finding is on the selected key and subscription."""
        return self.key in {None, finding.key} and self.subscription in {None, finding.subscription}


@dataclass(frozen=True, slots=True)
class Reverified:
    """Result of the repeated verification of a run.

    run        None if the history has no row of it.
    why        limit of the record that rules out a PASS; empty if there is none.
    recorded   number of its events in the history.
    stopped    it ended because the prober was stopped.
    """

    run_id: str
    run: StoredRun | None
    verification: Verification
    why: str = ""
    recorded: int = 0
    stopped: bool = False


def reverify(
    reader: HistoryReader, asked: HistorySelection, watched: Watched = lambda events, _number: events
) -> Iterator[Reverified]:
    """Yield the result of each selected run as soon as it and the runs before it are verified. Raises `HistoryError`."""
    runs, stored, unknown = _selected(reader, asked)
    for run_id in unknown:
        problem = f"run {run_id}: the history has no row of this run, so its rules are unknown"
        verification = Verification(f"run {run_id}", Verdict.UNKNOWN, malformed=problem)
        yield Reverified(run_id, None, verification, recorded=stored.get(run_id, _NOTHING).recorded)
    in_time = sorted(runs.values(), key=lambda run: (run.result is None, run.began_at))
    yield from _in_order([run.run_id for run in in_time], _verified(reader, asked, runs, stored, watched))


def _in_order(run_ids: Iterable[str], verified: Iterable[Reverified]) -> Iterator[Reverified]:
    """Yield the results in the order of the ids, each as soon as all earlier results are available."""
    waiting, come = deque(run_ids), {}
    for one in verified:
        come[one.run_id] = one
        while waiting and waiting[0] in come:
            yield come.pop(waiting.popleft())


def _verified(
    reader: HistoryReader,
    asked: HistorySelection,
    runs: Mapping[str, StoredRun],
    stored: Mapping[str, RunRows],
    watched: Watched,
) -> Iterator[Reverified]:
    """Yield the result of each run as soon as its last event is verified."""
    in_pass: dict[str, _Run] = {}
    for run_id, run in runs.items():
        verified = _Run(run, stored.get(run_id, _NOTHING), asked)
        if verified.is_readable:
            in_pass[run_id] = verified
        else:
            yield verified.finished()
    if in_pass:
        span = ALWAYS if asked.is_everything else extent(runs.values())
        events = reader.events(None, span=span, run_ids=None if asked.is_everything else tuple(in_pass))
        for recorded in watched(events, sum(stored[run_id].recorded for run_id in in_pass)):
            under_way = in_pass.get(recorded.run_id)
            if under_way and under_way.take(recorded):
                yield in_pass.pop(recorded.run_id).finished()
    yield from (verified.finished() for verified in in_pass.values())


def _selected(reader: HistoryReader, asked: HistorySelection) -> tuple[Mapping[str, StoredRun], Mapping[str, RunRows], list[str]]:
    """Return the selected runs, the counts of their event rows, and the ids of runs without a row."""
    if asked.is_everything:
        every, stored = {run.run_id: run for run in reader.runs()}, reader.run_rows()
        return every, stored, [run_id for run_id in stored if run_id not in every]
    touched = reader.run_ids(key=asked.key, subscription=asked.subscription, span=asked.span)
    runs = reader.runs_named(touched, asked.span)
    stored = reader.run_rows(span=extent(runs.values()), run_ids=tuple(runs)) if runs else {}
    return runs, stored, [run_id for run_id in touched if run_id not in runs]


_NOTHING: Final = RunRows(0, 0, 1)


class _Run:
    """Verification of one run. `is_readable`: it has events, with one numbering."""

    def __init__(self, run: StoredRun, rows: RunRows, asked: HistorySelection) -> None:
        self._run, self._rows = run, rows
        record = replace(run.record, merged=rows.processes > 1)
        self._checker = RunChecker(run.rules, record, asked.includes)
        self.is_readable = bool(rows.recorded) and not record.merged

    def take(self, recorded: Recorded) -> bool:
        """Verify the next event; return whether it was the last one."""
        self._checker.take(recorded.event, recorded.number)
        return recorded.number == self._rows.highest

    def finished(self) -> Reverified:
        """Return the result of the run, after its last event."""
        checker, run_id = self._checker, self._run.run_id
        checker.finish()
        verification = Verification(
            f"run {run_id}",
            checker.verdict,
            tuple(checker.found.kept),
            checker.found.counts,
            dict(checker.counters),
            checker.events,
            malformed=f"run {run_id}: {checker.damage}; its record is damaged" if checker.damage else "",
            crash=f"run {run_id}: {checker.crash}" if checker.crash else "",
        )
        return Reverified(run_id, self._run, verification, self._why, self._rows.recorded, checker.scope is Scope.STOPPED)

    @property
    def _why(self) -> str:
        result = self._run.result
        ending = f", which ended {result.verdict}: {result.reason}" if result is not None and result.reason else ""
        if not self._rows.recorded:
            return f"the history has no event of the run{ending}"
        why = _WHY[self._checker.scope]
        return f"{why}{ending}" if self._checker.scope is Scope.PREFIX else why
