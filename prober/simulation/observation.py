"""Notes of each simulated run: injected faults, findings, alarms of other rules.

The ledger of the service contains the injected faults. A run is *clean* if no fault that violates a guarantee was ever injected into its
topic or subscriptions: every finding in it is a false alarm. A fault that was injected while the run was verified was *observable*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from prober.core.findings import FAILING, Finding
from prober.core.verdict import Verdict
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Injection, Ledger
from prober.evidence.explain import explain
from prober.probes.catalogue import PROBES
from prober.runs.classification import Observation
from prober.runs.sink import RunBegun, RunEnded
from prober.simulation.other_rules import OTHER_RULES
from prober.simulation.virtual_time import STARTED_AT
from prober.simulation.witnesses import Witnesses

PROOFS_MAX = 3


ALLOWED_WITH_DEAD_LETTERS: Final = frozenset({"redeliver_single", "redeliver_unacked_only", "reorder_run", "lone_duplicate"})
"""Faults of redelivery that are legal with dead letters, where consistent redelivery is not guaranteed."""


def caught_as(fault: str, probe: str) -> Sequence[str]:
    """Return the findings of which one must report a fault at a probe; none if the fault is legal there."""
    known = CATALOGUE[fault]
    if fault in ALLOWED_WITH_DEAD_LETTERS and any(plan.dead_letter_max_attempts for plan in PROBES[probe].subscriptions):
        return ()
    exactly_once = any(plan.exactly_once for plan in PROBES[probe].subscriptions)
    return known.exactly_once if exactly_once and known.exactly_once else known.findings


@dataclass(slots=True)
class RunNote:
    """Results of one run.

    verified  whether it was verified to its end: no process paused, and it was not cut short.
    injected  number of injections by fault that the run could observe; `injected_t`: time of the first that violates a guarantee there.
    unseen    number of other injections by fault (`witnesses`).
    found     findings that fail a run, by kind, with the time of the first of each.
    alarms    number of alarms by other rule.
    proofs    texts of the first findings.
    """

    probe: str
    run_id: str
    began_t: float
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    events: int = 0
    verified: bool = False
    clean: bool = True
    injected: Counter[str] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)
    injected_t: float | None = None
    found: dict[str, float] = field(default_factory=dict)
    alarms: dict[str, int] = field(default_factory=dict)
    proofs: list[str] = field(default_factory=list)
    internal_error: bool = False

    @property
    def is_false_alarm(self) -> bool:
        """Whether the run has findings although it is clean."""
        return self.clean and bool(self.found)

    def caught(self, fault: str) -> bool:
        """Return whether the run made one of the findings that must report a fault."""
        return any(kind in self.found for kind in caught_as(fault, self.probe))

    def after_s(self, fault: str) -> float | None:
        """Return the seconds from the first injection to the first finding of the fault."""
        times = [t for kind, t in self.found.items() if kind in caught_as(fault, self.probe)]
        return None if not times or self.injected_t is None else max(0.0, min(times) - self.injected_t)


class Observer:
    """Observer of all runs of a simulation. `notes`: results of the ended runs."""

    def __init__(self, ledger: Ledger) -> None:
        self.notes: list[RunNote] = []
        self._ledger = ledger
        self._tainted: set[str] = set()
        self._all_tainted = False

    def begin(self, run: RunBegun) -> RunObserver:
        """Start observing a run."""
        self.taint()
        return RunObserver(self, run)

    def taint(self) -> None:
        """Record the topics and subscriptions affected by violations of a guarantee."""
        for injection in self._ledger.latest:
            known = CATALOGUE[injection.fault]
            if known.findings or known.exactly_once:
                self._tainted.add(injection.where)
                self._all_tainted |= not injection.where

    def is_tainted(self, names: Sequence[str]) -> bool:
        """Return whether an injected fault violated a guarantee on one of these topics and subscriptions."""
        return self._all_tainted or not self._tainted.isdisjoint(names)

    def strikes(self, names: Sequence[str], since_t: float) -> list[Injection]:
        """Return the faults injected into these topics and subscriptions since `since_t`."""
        began = STARTED_AT.timestamp() + since_t
        here = {*names, ""}
        return [injection for injection in self._ledger.latest if injection.t >= began and injection.where in here]


class RunObserver:
    """Observer of one run."""

    def __init__(self, observer: Observer, run: RunBegun) -> None:
        self._observer, self._names = observer, (run.probe_instance.topic, *run.rules)
        self._rules = {name: rule() for name, rule in OTHER_RULES.items()}
        self._witnesses = Witnesses(run.rules, run.run_id)
        self._note = RunNote(run.probe_instance.probe, run.run_id, 0.0)
        self._began = False

    def event(self, seen: Observation) -> None:
        """Process the next event."""
        if not self._began:
            self._began, self._note.began_t = True, seen.event.t
        self._note.events += 1
        self._witnesses.event(seen.event)
        for rule in self._rules.values():
            rule.event(seen.event)
        if seen.findings:
            self._take(seen.findings)

    def ended(self, end: RunEnded) -> None:
        """Record the results of the ended run."""
        note, observer = self._note, self._observer
        self._take(end.findings)
        observer.taint()
        note.verdict, note.reason = end.result.verdict, end.result.reason
        note.internal_error = end.result.internal_error
        note.verified = self._began and not end.cut_short and end.recorded.verified is None
        note.clean = not observer.is_tainted(self._names)
        for injection in observer.strikes(self._names, note.began_t) if self._began else ():
            t = injection.t - STARTED_AT.timestamp()
            if not self._witnesses.saw(injection, t):
                note.unseen[injection.fault] += 1
                continue
            note.injected[injection.fault] += 1
            if note.injected_t is None and caught_as(injection.fault, note.probe):
                note.injected_t = t
        note.alarms = {name: rule.alarms for name, rule in self._rules.items()}
        observer.notes.append(note)

    def _take(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            if finding.status in FAILING:
                self._note.found.setdefault(str(finding.kind), finding.t)
                if len(self._note.proofs) < PROOFS_MAX:
                    self._note.proofs.append(f"{finding.kind} on {finding.subscription}, key {finding.key}: {explain(finding)}")
