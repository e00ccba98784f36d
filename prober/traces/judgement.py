"""Judging one recorded history: every event through the checker, a bounded choice of the findings, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from prober.core.events import Event
from prober.core.findings import FAILING, Finding, Kind, Status
from prober.core.rules import Rules
from prober.core.verdict import Verdict, verdict_of
from prober.core.verifier import Verifier
from prober.traces.header import TraceHeader
from prober.traces.trace import TraceError

KEPT_PER_KIND_MAX: Final = 100

Sort: TypeAlias = tuple[Kind, Status]


@dataclass(frozen=True, slots=True)
class RecordedFinding:
    """A finding and the number of events after which it was made."""

    finding: Finding
    after: int

    @property
    def sort(self) -> Sort:
        """What findings are counted by."""
        return self.finding.kind, self.finding.status


@dataclass(slots=True)
class KeptFindings:
    """Findings in the order in which they were made: the first of each kind and status are kept, all are counted."""

    kept: list[RecordedFinding] = field(default_factory=list)
    counts: Counter[Sort] = field(default_factory=Counter)

    def add(self, findings: Iterable[Finding], after: int) -> None:
        """Take in the findings made after this number of events."""
        for made in (RecordedFinding(finding, after) for finding in findings):
            self.counts[made.sort] += 1
            if self.counts[made.sort] <= KEPT_PER_KIND_MAX:
                self.kept.append(made)

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return any(status in FAILING for _, status in self.counts)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is said about one file.

    findings    those kept; `counts` says how many there were of each kind and status.
    counters    what the checker saw and judged.
    events      how many events were read.
    malformed   the line of text that says where and why reading stopped; empty if the file was read to its end.
    crash       the same for a fault of the checker itself.
    """

    path: str
    verdict: Verdict
    findings: tuple[RecordedFinding, ...] = ()
    counts: Mapping[Sort, int] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    malformed: str = ""
    crash: str = ""

    @property
    def omitted(self) -> Mapping[Sort, int]:
        """How many findings of each kind and status were counted and not kept."""
        return {sort: count - KEPT_PER_KIND_MAX for sort, count in self.counts.items() if count > KEPT_PER_KIND_MAX}


class Judge:
    """The checker with what belongs around it, the same for a run, a trace file and the history: events in, findings and a verdict out.

    A fault of the checker ends the judging and makes the verdict UNKNOWN, whatever was found before: it is ours, neither the service's
    nor a pass. Nothing here raises. For one thread.

    findings         those kept, and how many there were.
    stopped_because  why judging ended before the history did, one line; empty if it did not.
    fault            what the checker raised, if it did.
    """

    def __init__(self, rules: Mapping[str, Rules]) -> None:
        """`rules`: the subscriptions of the history, each with its bounds and settings."""
        default = next(iter(rules.values()), Rules())
        self._verifier = Verifier(default, subscriptions=rules, rules_by_subscription=rules)
        self.findings = KeptFindings()
        self.stopped_because = ""
        self.fault: Exception | None = None

    @property
    def counters(self) -> Counter[str]:
        """What the checker saw and judged so far."""
        return self._verifier.counters

    @property
    def owed(self) -> bool:
        """Whether something accepted is still owed to a subscriber."""
        return self._verifier.owed

    def observe(self, event: Event, number: int) -> Sequence[Finding]:
        """Judges the next event, which has this number in its history; what it shows. Nothing any more once judging has stopped."""
        if self.stopped_because:
            return ()
        try:
            findings = self._verifier.observe(event)
        except Exception as fault:
            self.fail(fault, number)
            return ()
        if findings:
            findings = self.told(findings)
            self.findings.add(findings, number)
        return findings

    def finish(self, number: int) -> Sequence[Finding]:
        """The history has ended with this event: settles what is on hold, unless judging has stopped."""
        if self.stopped_because:
            return ()
        try:
            findings = self.told(self._verifier.finish())
        except Exception as fault:
            self.fail(fault, number)
            return ()
        self.findings.add(findings, number)
        return findings

    def stop(self, why: str) -> None:
        """What follows cannot be judged; what was found so far stands."""
        self.stopped_because = self.stopped_because or why

    def fail(self, fault: Exception, number: int) -> None:
        """Something of ours failed at this event."""
        self.fault = fault
        self.stopped_because = f"the checker failed at event {number}: {fault!r}; please report this"

    def verdict(self, *, incomplete: bool = False) -> Verdict:
        """What is said about the history so far; `incomplete`: there is more of it, or there may be, that was not judged."""
        if self.fault is not None:
            return Verdict.UNKNOWN
        return verdict_of(failed=self.findings.failed, owed=incomplete or bool(self.stopped_because) or self.owed)

    def told(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """The findings as they are to be told; to be changed where a part of a history is judged in place of the whole."""
        return findings


def judge(path: str, header: TraceHeader, events: Iterable[Event]) -> Judgement:
    """Judge a history under its header's rules. Never raises for anything a file can contain.

    A malformed line ends the judging: what was proven before it stands, everything else is unknown. A fault of the checker makes
    the verdict unknown, whatever it said before. Memory is bounded by the checker and the kept findings.
    """
    judging, count, malformed = Judge({header.subscription: header.rules}), 0, ""
    try:
        for count, event in enumerate(events, 1):
            judging.observe(event, count)
        judging.finish(count)
    except TraceError as wrong:
        malformed = str(wrong)
    except Exception as fault:  # what reads the file has failed
        judging.fail(fault, count)
    crash = f"{path}: {judging.stopped_because} with the file" if judging.fault is not None else ""
    found = judging.findings
    return Judgement(
        path,
        judging.verdict(incomplete=bool(malformed)),
        tuple(found.kept),
        found.counts,
        dict(judging.counters),
        count,
        malformed,
        crash,
    )
