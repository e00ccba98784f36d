"""Judging one recorded history: every event through the checker, a bounded choice of the findings, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from prober.core.events import Event
from prober.core.findings import FAILING, Finding, Kind, Status
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


def judge(path: str, header: TraceHeader, events: Iterable[Event]) -> Judgement:
    """Judge a history under its header's rules. Never raises for anything a file can contain.

    A malformed line ends the judging: what was proven before it stands, everything else is unknown. A fault of the checker makes
    the verdict unknown, whatever it said before. Memory is bounded by the checker and the kept findings.
    """
    verifier = Verifier(header.rules, subscriptions=(header.subscription,))
    found, count = KeptFindings(), 0
    malformed = crash = ""
    try:
        for count, event in enumerate(events, 1):
            if findings := verifier.observe(event):
                found.add(findings, count)
        found.add(verifier.finish(), count)
    except TraceError as wrong:
        malformed = str(wrong)
    except Exception as fault:  # a fault of ours is neither the service's nor a pass
        crash = f"{path}: the checker failed at event {count}: {fault!r}; please report this with the file"
    verdict = Verdict.UNKNOWN if crash else verdict_of(failed=found.failed, owed=bool(malformed) or verifier.owed)
    return Judgement(path, verdict, tuple(found.kept), found.counts, dict(verifier.counters), count, malformed, crash)
