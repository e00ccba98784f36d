"""Prints where the checker and the reference disagree about simulated histories, legal ones and broken ones.

    python -m tests.reference.compare --histories 40 --seed 0
    python -m tests.reference.compare --histories 40 --mode pull --fault overlap --show

Per fault: how many histories both call definitely wrong, only the checker, only the reference, neither; with the seeds of each
difference. A history in which the fault never fired is legal. `--histories` is their number per mode and fault. `--show` also says what
was found where they differ. Histories that are too long for the reference, or too much to explain, are counted and left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from tests.judging import FAILURES
from tests.reference.checker import Opinion, opinion
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.service import Run, simulate_run

LONGEST = 1000
"""Events; the reference looks everything up in everything."""


@dataclass(slots=True)
class Table:
    """The seeds of one fault by who called them wrong."""

    both: list[int] = field(default_factory=list)
    checker: list[int] = field(default_factory=list)
    reference: list[int] = field(default_factory=list)
    neither: list[int] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)

    def add(self, seed: int, found: bool, theirs: Opinion | None) -> None:
        """Files a history."""
        if theirs is None or (theirs.gave_up and not theirs.broken):
            self.left_out.append(seed)
        elif found:
            (self.both if theirs.broken else self.checker).append(seed)
        else:
            (self.reference if theirs.broken else self.neither).append(seed)

    def line(self, name: str) -> str:
        """The counts, and the seeds to look at."""
        counts = [len(one) for one in (self.both, self.checker, self.reference, self.neither, self.left_out)]
        seeds = f"  only checker {self.checker}" if self.checker else ""
        seeds += f"  only reference {self.reference}" if self.reference else ""
        return f"{name:34}" + "".join(f"{count:10}" for count in counts) + seeds


def definite(rules: Rules, events: list[Event], by_subscription: dict[str, Rules]) -> list[Finding]:
    """The violations and liveness findings of the checker."""
    verifier = Verifier(rules, subscriptions=list(by_subscription), rules_by_subscription=by_subscription)
    found = [finding for event in events for finding in verifier.observe(event)]
    found.extend(verifier.finish())
    return [finding for finding in found if finding.status in FAILURES]


def _runs(mode: Mode, fault: Fault | None, first: int, count: int) -> Iterator[tuple[int, Run]]:
    for seed in range(first, first + count):
        run = simulate_run(seed, mode, fault)
        if fault is None or run.fired:
            yield seed, run


def compare(mode: Mode, fault: Fault | None, first: int, count: int, *, show: bool = False) -> Table:
    """Judges histories twice."""
    table = Table()
    for seed, run in _runs(mode, fault, first, count):
        theirs = opinion(run.rules, run.events, run.rules_by_subscription) if len(run.events) <= LONGEST else None
        found = definite(run.rules, run.events, run.rules_by_subscription)
        table.add(seed, bool(found), theirs)
        if show and theirs is not None and bool(found) != bool(theirs.broken):
            print(f"  {mode} {fault} {seed}: fired {run.fired[:3]}")
            print(f"    checker {[(str(one.kind), one.key, round(one.t, 3), one.witnesses[-3:]) for one in found[:3]]}")
            print(f"    reference {theirs.where[:3]}", flush=True)
    return table


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--histories", type=int, default=40, help="per mode and fault")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--mode", choices=list(Mode), type=Mode, action="append")
    parser.add_argument("--fault", choices=["none", *Fault], action="append")
    parser.add_argument("--show", action="store_true", help="what was found where they differ")
    args = parser.parse_args()
    print(f"{'mode and fault':34}{'both':>10}{'checker':>10}{'reference':>10}{'neither':>10}{'left out':>10}")
    for mode in args.mode or list(Mode):
        for fault in (None, *FAULTS[mode]):
            if args.fault is None or (fault or "none") in args.fault:
                table = compare(mode, fault, args.seed, args.histories, show=args.show)
                print(table.line(f"{mode} {fault or 'none'}"), flush=True)


if __name__ == "__main__":
    main()
