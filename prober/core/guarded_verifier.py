"""The guarded verifier: input events, output findings and a verdict, the same for a run, a trace file, the history and Spark.

It keeps a bounded selection of the findings. A fault of the checker never counts as a violation of the service, nor as a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from prober.core.events import Ended, Event
from prober.core.findings import FAILING, Finding, Kind, Status
from prober.core.rules import Rules
from prober.core.verdict import Verdict, verdict_of
from prober.core.verifier import Verifier

KEPT_PER_KIND_MAX: Final = 100

Sort: TypeAlias = tuple[Kind, Status]


@dataclass(frozen=True, slots=True)
class RecordedFinding:
    """A finding and the number of events after which it was made."""

    finding: Finding
    after: int

    @property
    def sort(self) -> Sort:
        """The kind and status by which findings are counted."""
        return self.finding.kind, self.finding.status


@dataclass(slots=True)
class KeptFindings:
    """Findings in the order in which they were made: all are counted, the first of each kind and status are kept."""

    kept: list[RecordedFinding] = field(default_factory=list)
    counts: Counter[Sort] = field(default_factory=Counter)

    def add(self, findings: Iterable[Finding], after: int) -> None:
        """Add the findings made after `after` events."""
        for made in (RecordedFinding(finding, after) for finding in findings):
            self.counts[made.sort] += 1
            if self.counts[made.sort] <= KEPT_PER_KIND_MAX:
                self.kept.append(made)

    @property
    def failed(self) -> bool:
        """Whether the service violated a guarantee."""
        return any(status in FAILING for _, status in self.counts)


class GuardedVerifier:
    """The checker with its error handling, the same for a run, a trace file and the history: input events, output findings and a verdict.

    A fault of the checker ends verification and makes the verdict UNKNOWN, whatever was found before: it is neither a violation of the
    service nor a pass. No method raises. For one thread.

    findings         the kept findings, and the number of all.
    ended            whether the history ended after the recorder had waited for deliveries. A history that was cut off may lack the
                     explanation of deliveries on hold, so its recorder does not settle them.
    stopped_because  why verification ended before the history did, one line; empty if it did not.
    verified         after how many events it ended; None if it did not.
    fault            the exception of the checker, if it raised one.
    """

    def __init__(
        self, rules: Mapping[str, Rules], reported: Callable[[Sequence[Finding]], Sequence[Finding]] | None = None
    ) -> None:
        """Start with an empty history.

        `rules`: the subscriptions of the history, each with its bounds and settings. `reported` maps new findings to those that are kept
        and returned, if a part of a history is verified in place of the whole.
        """
        default = next(iter(rules.values()), Rules())
        self._verifier = Verifier(default, subscriptions=rules, rules_by_subscription=rules)
        self._reported = reported
        self.findings = KeptFindings()
        self.ended = False
        self.stopped_because = ""
        self.verified: int | None = None
        self.fault: Exception | None = None

    @property
    def counters(self) -> Counter[str]:
        """The counters of the checker so far."""
        return self._verifier.counters

    @property
    def pending(self) -> bool:
        """Whether an accepted message is still pending."""
        return self._verifier.pending

    def observe(self, event: Event, number: int) -> Sequence[Finding]:
        """Verify the next event, which has this number in its history; return its findings. Return none after verification has stopped."""
        if self.stopped_because:
            return ()
        if isinstance(event, Ended):
            self.ended = event.drained
        try:
            findings = self._verifier.observe(event)
        except Exception as fault:
            self.fail(fault, number)
            return ()
        return self._keep(findings, number) if findings else ()

    def finish(self, number: int) -> Sequence[Finding]:
        """Settle the deliveries on hold after the last event, unless verification has stopped; return the findings."""
        if self.stopped_because:
            return ()
        try:
            findings = self._verifier.finish()
        except Exception as fault:
            self.fail(fault, number)
            return ()
        return self._keep(findings, number)

    def stop(self, why: str, verified: int) -> None:
        """End verification after `verified` events; earlier findings remain."""
        if not self.stopped_because:
            self.stopped_because, self.verified = why, verified

    def fail(self, fault: Exception, number: int) -> None:
        """Stop verification because the checker failed at this event."""
        self.fault, self.verified = fault, number - 1
        self.stopped_because = (
            f"the checker failed at event {number}: {fault!r}, so later events were not verified; please report this"
        )

    def verdict(self, *, incomplete: bool = False) -> Verdict:
        """Return the verdict on the history so far.

        `incomplete`: more of the history exists, or may exist, that was not verified.
        """
        if self.fault is not None:
            return Verdict.UNKNOWN
        return verdict_of(failed=self.findings.failed, pending=incomplete or bool(self.stopped_because) or self.pending)

    def _keep(self, findings: Sequence[Finding], number: int) -> Sequence[Finding]:
        reported = findings if self._reported is None else self._reported(findings)
        self.findings.add(reported, number)
        return reported
