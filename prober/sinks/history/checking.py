"""Repeated verification of a recorded run by the checker of online verification, for `verify` on a history and the nightly job `reverify`.

A run is verified as it was online: all its events in the order of their numbers, by one checker, under the rules of the run. The record
limits the conclusions:

* At a gap in the numbering an interruption is inserted, unless the recorder has recorded one: events before it no longer count.
* If the time of an event is not finite, or earlier than that of the previous event, one of the two is damaged. Verification stops before
both.
* Events after the last one that was verified online are left out, and deliveries that await an explanation there remain undecided. The same
applies at the end of a run that was cut short.

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
    """Completeness of a run's record. With any scope but `WHOLE` the verdict is FAIL or UNKNOWN."""

    WHOLE = "whole"
    PREFIX = "prefix"
    """Online verification stopped before the end of the run."""
    STOPPED = "stopped"
    """The prober was stopped during the run; the record is complete up to that point."""
    CUT_SHORT = "cut_short"
    """The record has no end of the run."""
    HOLED = "holed"
    """Events are missing."""
    DAMAGED = "damaged"
    """Times of events differ from the recorded times."""
    MERGED = "merged"
    """Several processes recorded the run, so its events have no common numbering."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """State of a run's record, from the row of the run and from the processes that recorded its events.

    ended     the history contains the end of the run.
    events    number of its events; None: unknown.
    dropped   number of its events that the history dropped.
    verified  number of events that were verified online, the first ones; None: all.
    merged    several processes recorded its events.
    stopped   it ended because the prober was stopped.
    """

    ended: bool = True
    events: int | None = None
    dropped: int = 0
    verified: int | None = None
    merged: bool = False
    stopped: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RunRecord:
        """Return the record of a run from its row in `runs`; of two rows, from that of its end."""
        events, dropped, stopped = row["events"], row["events_dropped"] or 0, bool(row["stopped"])
        return cls(row["verdict"] is not None, events, dropped, row["verified_events"], stopped=stopped)

    def scope(self, recorded: int, highest: int) -> Scope:
        """Return the scope of a run with `recorded` events in the history, the last of them numbered `highest`."""
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
    """Verification of one recorded run.

    found      its findings; their witnesses are event numbers of the run.
    recorded   number of its events that were taken, verified or not.
    damage     error in the times of its events, in one line; empty if there is none.
    """

    def __init__(self, rules: Mapping[str, Rules], record: RunRecord, wanted: Callable[[Finding], bool] = _all) -> None:
        """Start without events. `rules`: by subscription. `wanted`: filter of the findings to keep."""
        self.found = KeptFindings()
        self.recorded = 0
        self.damage = ""
        self._record = record
        self._wanted = wanted
        self._verifier = GuardedVerifier(rules, self._as_recorded)
        self._numbers = array("q")
        self._latest = 0
        self._next: tuple[Event, int] | None = None
        """The latest event. It is verified once the next event shows that its time is not too late."""
        self._left_out = False

    @property
    def events(self) -> int:
        """Number of verified events, including interruptions inserted at gaps."""
        return len(self._numbers)

    @property
    def scope(self) -> Scope:
        """Completeness of the record, once the run is finished."""
        return Scope.DAMAGED if self.damage else self._record.scope(self.recorded, self._latest)

    @property
    def counters(self) -> Mapping[str, int]:
        """Counters of the checker: observed events and performed checks."""
        return self._verifier.counters

    @property
    def crash(self) -> str:
        """Reason for a failure of the checker, one line; empty if it did not fail."""
        return self._verifier.stopped_because

    @property
    def verdict(self) -> Verdict:
        """The verdict, once the run is finished."""
        if self.crash:
            return Verdict.UNKNOWN
        incomplete = self._left_out or self.scope is not Scope.WHOLE or not self._numbers
        return verdict_of(failed=self.found.failed, pending=incomplete or self._verifier.pending)

    def take(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """Take the event with the next number and verify the previous event; return the findings of that verification.

        A second event with the number of the previous one is ignored.
        """
        before = self._next
        if before is not None and number == before[1]:
            return ()
        self._next = event, number
        self.recorded += 1
        self.damage = self.damage or _damage(before, event, number)
        return () if self.damage or before is None else self._verify_next(*before)

    def verify(self, event: Event, number: int) -> Sequence[RecordedFinding]:
        """Verify an event immediately and return its findings.

        For events whose numbers have gaps.
        """
        self.recorded += 1
        return self._unless_beyond(event, number)

    def finish(self) -> Sequence[RecordedFinding]:
        """Verify the last event and settle deliveries that await an explanation; return the findings.

        The deliveries remain undecided if the run was cut short or verified online only in part.
        """
        if self.damage:
            return ()
        last = () if self._next is None else self._verify_next(*self._next)
        record = self._record
        if not record.ended or record.verified is not None or self._left_out or not self._verifier.ended:
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
        """Return whether an event is left out: it follows the last one verified online, or the checker has failed."""
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
        """Return the wanted findings, with event numbers of the run as witnesses."""
        return [
            replace(finding, witnesses=tuple(self._numbers[witness - 1] for witness in finding.witnesses))
            for finding in findings
            if self._wanted(finding)
        ]


def _damage(before: tuple[Event, int] | None, event: Event, number: int) -> str:
    """Return the error in the times of two successive events of a recorder; empty if there is none."""
    if not isfinite(event.t):
        return f"event {number} has the time {event.t}"
    if before is not None and event.t < before[0].t:
        return f"event {number} is earlier than event {before[1]}"
    return ""
