"""Prints which faults are found, by what, and how many legal runs raise a false alarm.

    python -m tests.simulation.matrix --seeds 500 --legal 10000

Per fault: runs in which it made a difference, how many of these were flagged (violation or liveness), and the kinds that flagged most.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from prober.core.findings import Kind
from prober.core.rules import Mode
from tests.simulation.faults import FAULTS, MUST_BE, Fault
from tests.simulation.legal import findings_of
from tests.simulation.service import simulate_run
from tests.verification import kinds


@dataclass(slots=True)
class Row:
    """What happened in the runs with one fault (or none): `missed` holds the seeds that fired and were not flagged."""

    events: int = 0
    fired: int = 0
    flagged: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    by_kind: Counter[Kind] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        return 1 - len(self.missed) / self.fired if self.fired else 0.0


def row(mode: Mode, fault: Fault | None, seeds: Iterable[int]) -> Row:
    """Simulate, verify, count. A run in which the fault never fired is legal, and not counted."""
    result = Row()
    for seed in seeds:
        run = simulate_run(seed, mode, fault)
        if fault is not None and not run.fired:
            continue
        found = kinds(findings_of(run))
        result.events += len(run.events)
        result.fired += 1
        result.by_kind.update(found)
        named = found & MUST_BE[fault] if fault in MUST_BE else found
        (result.flagged if named else result.missed).append(seed)
    return result


def _print(mode: Mode, name: str, result: Row) -> None:
    top = ", ".join(f"{kind} {count}" for kind, count in result.by_kind.most_common(4))
    print(f"{mode:10} {name:24} {result.fired:6} {len(result.flagged):6} {result.share:7.1%}  {top}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=200, help="runs per fault")
    parser.add_argument("--legal", type=int, default=1000, help="legal runs per mode")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--mode", choices=[str(mode) for mode in Mode], action="append", help="only these modes")
    args = parser.parse_args()
    print(f"{'mode':10} {'fault':24} {'fired':>6} {'found':>6} {'share':>7}  by")
    for mode in [mode for mode in Mode if not args.mode or mode in args.mode]:
        legal = row(mode, None, range(args.first, args.first + args.legal))
        _print(mode, f"none ({legal.events} events)", legal)
        if legal.flagged:
            print(f"{'':10} flagged legal seeds: {legal.flagged[:20]}")
        for fault in FAULTS[mode] if args.seeds else ():
            _print(mode, fault, row(mode, fault, range(args.first, args.first + args.seeds)))


if __name__ == "__main__":
    main()
