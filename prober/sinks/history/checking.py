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
    """What the row of a run, and the processes that recorded its events, say of its record.

    ended     whether the history has its end.
    events    how many it had; None: unknown.
    dropped   how many of them the history had to give up.
    judged    only so many were judged online; None: all.
    merged    whether several processes recorded them.
    """

    ended: bool = True
    events: int | None = None
    dropped: int = 0
    judged: int | None = None
    merged: bool = False

    def scope(self, recorded: int, highest: int) -> Scope:
        """The scope of the run, of which so many events are in the history, up to this number."""
        if self.merged:
            return Scope.MERGED
        expected = highest if self.events is None else self.events - self.dropped
        if self.dropped or recorded < expected:
            return Scope.HOLED
        if not self.ended:
            return Scope.CUT_SHORT
        return Scope.WHOLE if self.judged is None else Scope.PREFIX


def _all(_finding: Finding) -> bool:
    return True


class RunChecker:
    """One recorded run on its way through the checker.

    found      its findings, in the numbers of the run.
    recorded   how many of its events were taken, judged or not.
    """

    def __init__(self, rules: Mapping[str, Rules], record: RunRecord, wanted: Callable[[Finding], bool] = _all) -> None:
        """`rules`: by subscription. `wanted`: which findings count."""
        self.found = KeptFindings()
        self.recorded = 0
        self._record = record
        self._wanted = wanted
        self._judge = Judge(rules, self._as_recorded)
        self._numbers = array("q")
        self._latest = 0
        self._left_out = False

    @property
    def events(self) -> int:
        """How many events were judged, interruptions that stand for holes included."""
        return len(self._numbers)

    @property
    def scope(self) -> Scope:
        """What the record allows, once the run is finished."""
        return self._record.scope(self.recorded, self._latest)

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
        incomplete = self._left_out or self.scope is not Scope.WHOLE or not self._numbers
        return verdict_of(failed=self.found.failed, owed=incomplete or self._judge.owed)

    def take(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """Judge the event with the next number, and give back the findings made by it. An event that was just taken does not count."""
        if number == self._latest:
            return ()
        hole = number != self._latest + 1 and not isinstance(event, Interrupted) and not self._is_beyond(number)
        self._latest = number
        found = self._observe(Interrupted(event.t), number) if hole else ()
        return [*found, *self.judge(event, number)]

    def judge(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """The same where numbers may be missing, or are not those of one numbering."""
        self.recorded += 1
        return () if self._is_beyond(number) else self._observe(event, number)

    def finish(self) -> Sequence[RecordedFinding]:
        """The run has no more events: settle what is on hold, unless it was cut off; give back the findings made so."""
        record, waited = self._record, self._judge.ended or self._record.merged
        if not record.ended or record.judged is not None or self._left_out or not waited:
            return ()
        number = self._numbers[-1] if self._numbers else 0
        return self._keep(self._judge.finish(number), number)

    def _is_beyond(self, number: int) -> bool:
        """Whether an event is not judged: it comes after those that were judged online, or the checker has failed."""
        beyond = self._record.judged is not None and number > self._record.judged
        self._left_out |= beyond
        return beyond or self._judge.fault is not None

    def _observe(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        self._numbers.append(number)
        return self._keep(self._judge.observe(event, number), number)

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
