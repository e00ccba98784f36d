"""Totals of many simulations: detections by probe and fault, and false alarms.

For each probe and fault they contain the number of detections, their findings and their delays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from prober.simulation.observation import RunNote, caught_as
from prober.simulation.other_rules import OTHER_RULES
from prober.simulation.plan import Temper
from prober.simulation.world import Simulated
from prober.slo.confidence import ProportionBounds, interval

FOUND_AT_LEAST: Final = 0.99
"""Required share of detections among runs with the observable fault, at the best probe."""

CERTAIN: Final = 0.999
"""Confidence required to report a fault as missed: that a probe finds it less often than it should."""


@dataclass(slots=True)
class Cell:
    """The runs of one probe with an observable fault that it must find.

    Observable: the fault was injected while the run was verified.

    calm, found_calm    runs of simulations without other disturbances, and those of them in which the fault was found.
    kinds               number of runs by kind of finding.
    after_s             number of runs by time from fault to finding, rounded to tenths of a second.
    others              number of runs with an alarm, by other rule.
    """

    observable: int = 0
    found: int = 0
    calm: int = 0
    found_calm: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    after_s: Counter[float] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)

    def add(self, note: RunNote, fault: str, *, calm: bool) -> None:
        """Add a run."""
        self.observable += 1
        self.calm += calm
        self.others.update(name for name, alarms in note.alarms.items() if alarms)
        if note.caught(fault):
            self.found += 1
            self.found_calm += calm
            self.kinds.update(kind for kind in note.found if kind in caught_as(fault, note.probe))
            after_s = note.after_s(fault)
            if after_s is not None:
                self.after_s[round(after_s, 1)] += 1

    @property
    def bounds(self) -> ProportionBounds:
        """95 % confidence interval of the true share."""
        return interval(self.found, self.observable)

    @property
    def is_significantly_below(self) -> bool:
        """Whether the fault is found too rarely, beyond random variation."""
        return interval(self.found, self.observable, CERTAIN).high < FOUND_AT_LEAST

    @property
    def median_after_s(self) -> float | None:
        """Median time from fault to finding, in seconds; of two middle values the shorter one. None without a value."""
        middle = (self.after_s.total() + 1) // 2
        for after_s in sorted(self.after_s):
            middle -= self.after_s[after_s]
            if middle <= 0:
                return after_s
        return None


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in the simulation of a seed, with its evidence."""

    seed: int
    what: str
    evidence: tuple[str, ...]


@dataclass(slots=True)
class Detection:
    """Totals of simulations, in any order. `cells`: results by fault and probe."""

    simulations: int = 0
    hours: float = 0.0
    probe_hours: float = 0.0
    runs: int = 0
    events: int = 0
    clean_runs: int = 0
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)
    false_alarms: Counter[str] = field(default_factory=Counter)
    """Clean runs in which another rule raised an alarm, by rule."""
    failures: list[Failure] = field(default_factory=list)
    missing: dict[str, list[int]] = field(default_factory=dict)
    """By fault, the seeds of simulations with the observable fault in which no run found it."""

    @classmethod
    def of(cls, simulated: Iterable[Simulated]) -> Detection:
        """Return the totals of these simulations."""
        total = cls()
        for one in simulated:
            total.add(one)
        return total

    def add(self, simulated: Simulated) -> None:
        """Add a simulation."""
        self.simulations += 1
        self.hours += simulated.plan.hours
        self.probe_hours += simulated.plan.hours * len(simulated.plan.probes)
        seed = simulated.plan.seed
        self.failures += [Failure(seed, "an internal error", (fault,)) for fault in simulated.faults]
        for note in simulated.notes:
            self._add_run(seed, note, calm=simulated.plan.temper is Temper.CALM)
        self._add_missing(simulated)

    def _add_run(self, seed: int, note: RunNote, *, calm: bool) -> None:
        self.runs += 1
        self.events += note.events
        if note.is_false_alarm:
            self.failures.append(Failure(seed, f"a false alarm in run {note.run_id}", tuple(note.proofs)))
        if note.internal_error:
            self.failures.append(Failure(seed, f"an internal error in run {note.run_id}", (note.reason,)))
        if note.verified and note.clean:
            self.clean_runs += 1
            self.false_alarms.update(name for name, alarms in note.alarms.items() if alarms)
        for fault in observable_in(note):
            self.cells.setdefault(fault, {}).setdefault(note.probe, Cell()).add(note, fault, calm=calm)

    def _add_missing(self, simulated: Simulated) -> None:
        injected = [note for note in simulated.notes if simulated.plan.fault in observable_in(note)]
        if injected and not any(note.caught(simulated.plan.fault) for note in injected):
            self.missing.setdefault(simulated.plan.fault, []).append(simulated.plan.seed)

    def best(self, fault: str) -> tuple[str, Cell]:
        """Return the best probe for a fault, by the lower bound of the confidence interval."""
        return max(self.cells[fault].items(), key=lambda one: (one[1].bounds.low, one[0]))

    @property
    def matrix(self) -> Iterator[tuple[str, str, Cell]]:
        """All faults and probes, in the order of their names."""
        for fault in self.faults:
            yield from ((fault, probe, cell) for probe, cell in sorted(self.cells[fault].items()))

    @property
    def faults(self) -> Sequence[str]:
        """Faults that were observable in a run."""
        return sorted(self.cells)

    @property
    def below(self) -> Sequence[str]:
        """Faults that even the best probe finds too rarely, with confidence `CERTAIN`."""
        return [fault for fault in self.faults if self.best(fault)[1].is_significantly_below]

    @property
    def is_as_expected(self) -> bool:
        """Whether there was no failure, such as a false alarm, and no missed fault."""
        return not self.failures and not self.below


def observable_in(note: RunNote) -> Sequence[str]:
    """Return the faults that a run must find: injected while it was verified."""
    return [fault for fault in note.injected if caught_as(fault, note.probe)] if note.verified else []


def rules() -> Sequence[str]:
    """Return the names of the other rules."""
    return tuple(OTHER_RULES)
