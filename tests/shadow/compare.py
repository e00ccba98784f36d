"""Prints where `prober.checker` and `prober.core` disagree about simulated histories, legal ones and broken ones.

    python -m tests.shadow.compare --histories 40 --seed 0
    python -m tests.shadow.compare --histories 40 --mode pull --fault overlap

Per fault: how many histories both call definitely wrong, only the old checker, only the new one, neither, with seeds. A history in which
the fault never fired is legal, and left out. `--histories` is their number per mode and fault.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prober.checker.verifier import Verifier as NewVerifier
from prober.core.events import Event
from prober.core.findings import FAILING, Finding
from prober.core.rules import Mode
from prober.core.verifier import Verifier
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.service import Run, simulate_run

SHOWN = 5


class Checker(Protocol):
    """What both have in common."""

    def observe(self, event: Event) -> Sequence[Finding]:
        """Takes the next event."""

    def finish(self) -> Sequence[Finding]:
        """The history is over."""


def definite(checker: Checker, events: Iterable[Event]) -> list[Finding]:
    """The violations and liveness findings of a history."""
    found = [finding for event in events for finding in checker.observe(event)]
    return [finding for finding in (*found, *checker.finish()) if finding.status in FAILING]


def old(run: Run) -> list[Finding]:
    """What the checker in use says for certain."""
    rules = run.rules_by_subscription
    return definite(Verifier(run.rules, subscriptions=list(rules), rules_by_subscription=rules), run.events)


def new(run: Run) -> list[Finding]:
    """What the other one says for certain."""
    rules = run.rules_by_subscription
    return definite(NewVerifier(run.rules, subscriptions=list(rules), rules_by_subscription=rules), run.events)


@dataclass(slots=True)
class Agreement:
    """The seeds of one fault by who called them wrong."""

    seeds: dict[str, list[int]] = field(default_factory=lambda: {"both": [], "old": [], "new": [], "neither": []})

    def add(self, seed: int, run: Run) -> None:
        """Judges a run twice."""
        before, after = bool(old(run)), bool(new(run))
        by = {(True, True): "both", (True, False): "old", (False, True): "new", (False, False): "neither"}[before, after]
        self.seeds[by].append(seed)

    def line(self, name: str) -> str:
        """The counts, and some seeds to look at."""
        counts = "".join(f"{len(seeds):9}" for seeds in self.seeds.values())
        return f"{name:36}{counts}  only old {self.seeds['old'][:SHOWN]}  only new {self.seeds['new'][:SHOWN]}"


def compared(mode: Mode, fault: Fault | None, seeds: Sequence[int], simulate: Callable[..., Run] = simulate_run) -> Agreement:
    """The runs of some seeds; of a fault those in which it fired."""
    agreement = Agreement()
    for seed in seeds:
        run = simulate(seed, mode, fault)
        if fault is None or run.fired:
            agreement.add(seed, run)
    return agreement


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--histories", type=int, default=40, help="per mode and fault")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--mode", choices=list(Mode), type=Mode, action="append")
    parser.add_argument("--fault", choices=["none", *Fault], action="append")
    args = parser.parse_args()
    print(f"{'mode and fault':36}{'both':>9}{'old':>9}{'new':>9}{'neither':>9}")
    faults: Mapping[Mode, Sequence[Fault]] = FAULTS
    for mode in args.mode or list(Mode):
        for fault in (None, *faults[mode]):
            if args.fault is None or (fault or "none") in args.fault:
                agreement = compared(mode, fault, range(args.seed, args.seed + args.histories))
                print(agreement.line(f"{mode} {fault or 'none'}"), flush=True)


if __name__ == "__main__":
    main()
