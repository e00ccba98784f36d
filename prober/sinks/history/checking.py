"""Later verification of a recorded run, with the checker that verified it online: for `verify` on a history and for the nightly job
`reverify`.

A run is verified as it was online: all its events in the order of their numbers, by one checker, under the rules of the run. What may be
concluded is limited by what is on record:

* After a hole in the numbering nothing from before counts: an interruption is put there, unless the recorder has done so itself.
* An event at no finite time, or earlier than the event before it, shows that one of the two is damaged. Verification stops before both.
* Events after those that were verified online are left out, and what was on hold there stays so. The same holds at the end of a run that
  was cut short.

Memory: the checker, and 8 bytes for each event of the run.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Any

from prober.core.events import Event, Interrupted
from prober.core.findings import Finding
from prober.core.guarded_verifier import GuardedVerifier, KeptFindings, RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict, verdict_of


class Scope(StrEnum):
    """What the record of a run allows. Of any but `WHOLE` a verdict is FAIL or UNKNOWN."""

    WHOLE = "whole"
    PREFIX = "prefix"
    """Online verification stopped before the end of the run."""
    STOPPED = "stopped"
    """The prober was stopped while the run went on; the record is whole up to there."""
    CUT_SHORT = "cut_short"
    """The run has no end."""
    HOLED = "holed"
    """Events are missing."""
    DAMAGED = "damaged"
    """Times of events are not those that were recorded."""
    MERGED = "merged"
    """Several processes recorded it, so its events have no common numbering."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What the row of a run, and the processes that recorded its events, say of its record.

    ended     whether the history has its end.
    events    how many it had; None: unknown.
    dropped   how many of them the history had to give up.
    verified    only so many were verified online; None: all.
    merged    whether several processes recorded them.
    stopped   whether it ended because the prober was stopped.
    """

    ended: bool = True
    events: int | None = None
    dropped: int = 0
    verified: int | None = None
    merged: bool = False
    stopped: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any], *, merged: bool = False) -> RunRecord:
        """What a row of the table `runs` says, that of its end if there is one."""
        events, dropped, stopped = row["events"], row["events_dropped"] or 0, bool(row["stopped"])
        return cls(row["verdict"] is not None, events, dropped, row["verified_events"], merged, stopped)

    def scope(self, recorded: int, highest: int) -> Scope:
        """The scope of the run, of which so many events are in the history, up to this number."""
        if self.merged:
            return Scope.MERGED
        expected = highest if self.events is None else self.events - self.dropped
        if self.dropped or recorded < expected:
            return Scope.HOLED
        if not self.ended:
            return Scope.CUT_SHORT
        if self.verified is not None:
            return Scope.PREFIX
        return Scope.STOPPED if self.stopped else Scope.WHOLE


def _all(_finding: Finding) -> bool:
    return True


class RunChecker:
    """One recorded run on its way through the checker.

    found      its findings, in the numbers of the run.
    recorded   how many of its events were taken, verified or not.
    damage     what is wrong with the times of its events, in one line; empty if nothing is.
    """

    def __init__(self, rules: Mapping[str, Rules], record: RunRecord, wanted: Callable[[Finding], bool] = _all) -> None:
        """`rules`: by subscription. `wanted`: which findings count."""
        self.found = KeptFindings()
        self.recorded = 0
        self.damage = ""
        self._record = record
        self._wanted = wanted
        self._verifier = GuardedVerifier(rules, self._as_recorded)
        self._numbers = array("q")
        self._latest = 0
        self._next: tuple[Event, int] | None = None
        """The event that was taken last. It is verified when the one after it shows that its time is not too late."""
        self._left_out = False

    @property
    def events(self) -> int:
        """How many events were verified, interruptions that stand for holes included."""
        return len(self._numbers)

    @property
    def scope(self) -> Scope:
        """What the record allows, once the run is finished."""
        return Scope.DAMAGED if self.damage else self._record.scope(self.recorded, self._latest)

    @property
    def counters(self) -> Mapping[str, int]:
        """What the checker saw and verified."""
        return self._verifier.counters

    @property
    def crash(self) -> str:
        """Why the checker failed, one line; empty if it did not."""
        return self._verifier.stopped_because

    @property
    def verdict(self) -> Verdict:
        """The verdict, once the run is finished."""
        if self.crash:
            return Verdict.UNKNOWN
        incomplete = self._left_out or self.scope is not Scope.WHOLE or not self._numbers
        return verdict_of(failed=self.found.failed, pending=incomplete or self._verifier.pending)

    def take(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """Take the event with the next number, and verify the one before; give back the findings made by that.

        An event that was just taken does not count.
        """
        before = self._next
        if before is not None and number == before[1]:
            return ()
        self._next = event, number
        self.recorded += 1
        self.damage = self.damage or _damage(before, event, number)
        return () if self.damage or before is None else self._verify_next(*before)

    def verify(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """Verify an event at once where numbers may be missing, or are not those of one numbering."""
        self.recorded += 1
        return self._unless_beyond(event, number)

    def finish(self) -> Sequence[RecordedFinding]:
        """The run has no more events: settle what is on hold, unless it was cut off; give back the findings made so."""
        if self.damage:
            return ()
        last = () if self._next is None else self._verify_next(*self._next)
        record, waited = self._record, self._verifier.ended or self._record.merged
        if not record.ended or record.verified is not None or self._left_out or not waited:
            return last
        number = self._numbers[-1] if self._numbers else 0
        return [*last, *self._keep(self._verifier.finish(number), number)]

    def _verify_next(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        hole = number != self._latest + 1 and not isinstance(event, Interrupted) and not self._is_beyond(number)
        self._latest = number
        found = self._observe(Interrupted(event.t), number) if hole else ()
        return [*found, *self._unless_beyond(event, number)]

    def _unless_beyond(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        return () if self._is_beyond(number) else self._observe(event, number)

    def _is_beyond(self, number: int) -> bool:
        """Whether an event is not verified: it comes after those that were verified online, or the checker has failed."""
        beyond = self._record.verified is not None and number > self._record.verified
        self._left_out |= beyond
        return beyond or self._verifier.fault is not None

    def _observe(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        self._numbers.append(number)
        return self._keep(self._verifier.observe(event, number), number)

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


def _damage(before: tuple[Event, int] | None, event: Event, number: int) -> str:
    """Why the times of two successive events of a recorder cannot be right; empty if they can."""
    if not isfinite(event.t):
        return f"event {number} has the time {event.t}"
    if before is not None and event.t < before[0].t:
        return f"event {number} is earlier than event {before[1]}"
    return ""
