"""Judging one recorded history: every event through the checker, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prober.core.events import Event
from prober.core.judge import KEPT_PER_KIND_MAX, Judge, RecordedFinding, Sort
from prober.core.verdict import Verdict
from prober.traces.header import TraceHeader
from prober.traces.trace import TraceError


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
