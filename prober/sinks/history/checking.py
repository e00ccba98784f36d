"""Judging a recorded run again, with the checker that judged it online: for `verify` on a history and for the nightly job `reverify`.

A run is judged as it was online: all its events in the order of their numbers, by one checker, under the rules of the run. What may be
concluded is limited by what is on record:

* After a hole in the numbering nothing from before counts: an interruption is put there, unless the recorder has done so itself.
* Events after those that were judged online are left out, and what was on hold there stays so. The same holds at the end of a run that
  was cut short.

Memory: the checker, and 8 bytes for each event of the run.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from prober.core.events import Event, Interrupted
from prober.core.findings import Finding
from prober.core.judge import Judge, KeptFindings, RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict, verdict_of


class Scope(StrEnum):
    """What the record of a run allows. Of any but `WHOLE` a verdict is FAIL or UNKNOWN."""

    WHOLE = "whole"
    PREFIX = "prefix"
    """Online judging stopped before the end of the run."""
    CUT_SHORT = "cut_short"
    """The run has no end."""
    HOLED = "holed"
    """Events are missing."""
    MERGED = "merged"
    """Several processes recorded it, so its events have no common numbering."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The events of a run in a history: how many, the highest number, and how many processes recorded them."""

    recorded: int = 0
    highest: int = 0
    processes: int = 1


def scope_of(record: RunRecord, *, ended: bool, events: int | None, dropped: int, judged_events: int | None) -> Scope:
    """The scope of a run.

    events, dropped   how many it had, and how many of them the history had to give up, by the row of its end; None: unknown.
    judged_events     only so many were judged online; None: all.
    """
    if record.processes > 1:
        return Scope.MERGED
    expected = record.highest if events is None else events - dropped
    if dropped or record.recorded < expected:
        return Scope.HOLED
    if not ended:
        return Scope.CUT_SHORT
    return Scope.WHOLE if judged_events is None else Scope.PREFIX


class RunChecker:
    """One recorded run on its way through the checker.

    found    its findings, in the numbers of the run.
    events   how many events were judged, interruptions that stand for holes included.
    """

    def __init__(
        self,
        rules: Mapping[str, Rules],
        scope: Scope = Scope.WHOLE,
        *,
        ended: bool = True,
        limit: int | None = None,
        wanted: Callable[[Finding], bool] = lambda _finding: True,
    ) -> None:
        """Begin a run.

        rules    by subscription.
        ended    whether the history has the end of the run.
        limit    the number of the last event that was judged online; None: all were.
        wanted   which findings count.
        """
        self.found = KeptFindings()
        self._judge = Judge(rules, self._as_recorded)
        self._scope = scope
        self._limit = limit
        self._settled = ended and limit is None
        self._wanted = wanted
        self._numbers = array("q")
        self._latest = 0
        self._left_out = False

    @property
    def events(self) -> int:
        """See above."""
        return len(self._numbers)

    @property
    def counters(self) -> Mapping[str, int]:
        """What the checker saw and judged."""
        return self._judge.counters

    @property
    def crash(self) -> str:
        """Why the checker failed, one line; empty if it did not."""
        return self._judge.stopped_because

    @property
    def verdict(self) -> Verdict:
        """The verdict, once the run is finished."""
        if self.crash:
            return Verdict.UNKNOWN
        incomplete = self._left_out or self._scope is not Scope.WHOLE or not self._numbers
        return verdict_of(failed=self.found.failed, owed=incomplete or self._judge.owed)

    def take(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """Judge the event with the next number, and give back the findings made by it. An event that was just taken does not count."""
        if number == self._latest or self.is_beyond(number):
            return ()
        found = self._interrupt(event, number) if number != self._latest + 1 else ()
        self._latest = number
        return [*found, *self.observe(event, number)]

    def finish(self) -> Sequence[RecordedFinding]:
        """The run has no more events: settle what is on hold, unless it was cut off; give back the findings made so."""
        if not self._settled or self._left_out or not (self._judge.ended or self._scope is Scope.MERGED):
            return ()
        number = self._numbers[-1] if self._numbers else 0
        return self._keep(self._judge.finish(number), number)

    def is_beyond(self, number: int) -> bool:
        """Whether an event is not judged: it comes after what was judged online, or the checker has failed."""
        beyond = self._limit is not None and number > self._limit
        self._left_out |= beyond
        return beyond or self._judge.fault is not None

    def observe(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """Judge an event whatever its number is."""
        self._numbers.append(number)
        return self._keep(self._judge.observe(event, number), number)

    def _interrupt(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        return () if isinstance(event, Interrupted) else self.observe(Interrupted(event.t), number)

    def _keep(self, findings: Sequence[Finding], number: int) -> Sequence[RecordedFinding]:
        self.found.add(findings, number)
        return [RecordedFinding(finding, number) for finding in findings]

    def _as_recorded(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """The findings that are wanted, in the numbers of the run."""
        return [
            replace(finding, witnesses=tuple(self._numbers[witness - 1] for witness in finding.witnesses))
            for finding in findings
            if self._wanted(finding)
        ]
