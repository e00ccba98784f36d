"""Proves that a legal service is never accused: verifies legal histories and prints what they contained and what was found.

    python -m tests.simulation.legal --histories 30000 --processes 2
    python -m tests.simulation.legal --seed 4711 --mode pull          prints one of them, with its findings
    python -m tests.simulation.legal --only race --histories 1000     only one feature (or several) of `features`, or all --without one
    python -m tests.simulation.legal --by-feature --histories 1000    each feature alone, so many histories each

The histories are spread over the three modes. Every violation and every liveness finding is an error, of the checker or of the
simulation: it is printed with its seed and its mode, and the exit code is 1. So it is if a situation that excuses something did not occur
in a mode that has it, since the absence of findings would then prove nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pool
from typing import TypeAlias

from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Mode
from tests.simulation.features import FEATURES, only, without
from tests.simulation.service import Run, simulate_run
from tests.simulation.situations import SITUATIONS
from tests.simulation.swarm import swarm
from tests.simulation.trace import show
from tests.verification import FAILURES, verify

HISTORIES_PER_TASK = 50
ENOUGH_FOR_EVERY_SITUATION = 3000
"""From so many histories on, each situation has to occur in each mode that has it."""


@dataclass(frozen=True, slots=True)
class Accused:
    """A legal history with a definite finding."""

    mode: Mode
    seed: int
    kinds: tuple[Kind, ...]


@dataclass(slots=True)
class Counts:
    """What the histories of one mode contained, and what was found in them."""

    histories: int = 0
    events: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    found: Counter[tuple[Kind, Status]] = field(default_factory=Counter)
    accused: list[Accused] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.histories += other.histories
        self.events += other.events
        self.seen.update(other.seen)
        self.found.update(other.found)
        self.accused += other.accused


def findings_of(run: Run) -> list[Finding]:
    """What the checker says about a run."""
    return verify(run.rules, run.events, run.rules_by_subscription)


def definite(findings: Iterable[Finding]) -> list[Finding]:
    """The violations and liveness findings."""
    return [finding for finding in findings if finding.status in FAILURES]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which features the histories may have: all but some, or no others than some."""

    without: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None

    def run(self, seed: int, mode: Mode) -> Run:
        """The history with this seed."""
        options = without(swarm(seed, mode), self.without)
        return simulate_run(seed, mode, options=options if self.only is None else only(options, self.only))

    @property
    def words(self) -> str:
        """As arguments of the command."""
        kept = "".join(f" --only {name}" for name in self.only or ())
        return kept + "".join(f" --without {name}" for name in self.without)


def counted(choice: Choice, mode: Mode, seeds: Iterable[int]) -> Counts:
    """Simulates and verifies."""
    result = Counts()
    for seed in seeds:
        run = choice.run(seed, mode)
        findings = findings_of(run)
        result.histories += 1
        result.events += len(run.events)
        result.seen.update(run.seen)
        result.found.update((finding.kind, finding.status) for finding in findings)
        kinds = tuple(sorted({finding.kind for finding in definite(findings)}))
        if kinds:
            result.accused.append(Accused(mode, seed, kinds))
    return result


Task: TypeAlias = tuple[Choice, Mode, range]


def _do(task: Task) -> tuple[Mode, Counts]:
    return task[1], counted(*task)


def _tasks(choice: Choice, first: int, histories: int, modes: Sequence[Mode]) -> Iterator[Task]:
    """Equal shares of the histories for each mode, in portions."""
    for number, mode in enumerate(modes):
        end = first + histories // len(modes) + (number < histories % len(modes))
        for start in range(first, end, HISTORIES_PER_TASK):
            yield choice, mode, range(start, min(end, start + HISTORIES_PER_TASK))


def run_all(tasks: Sequence[Task], processes: int) -> dict[Mode, Counts]:
    """The counts of each mode."""
    totals = {mode: Counts() for _, mode, _ in tasks}
    if processes > 1:
        with Pool(processes) as pool:
            for mode, portion in pool.imap_unordered(_do, tasks):
                totals[mode].add(portion)
    else:
        for mode, portion in map(_do, tasks):
            totals[mode].add(portion)
    return totals


def missing(totals: dict[Mode, Counts]) -> list[str]:
    """Situations that did not occur where they should."""
    return [f"{mode}: {name}" for mode, total in totals.items() for name in SITUATIONS[mode] if not total.seen[name]]


def _print(totals: dict[Mode, Counts]) -> None:
    names = sorted({name for total in totals.values() for name in total.seen})
    width = max(len(name) for name in names)
    print(f"{'situation':{width}}" + "".join(f"{mode:>12}" for mode in totals))
    for name in names:
        print(f"{name:{width}}" + "".join(f"{total.seen[name]:12,}" for total in totals.values()))
    found = sorted({found for total in totals.values() for found in total.found})
    for kind, status in found:
        print(f"{f'{status} {kind}':{width}}" + "".join(f"{total.found[kind, status]:12,}" for total in totals.values()))
    for name, counts in (("histories", [t.histories for t in totals.values()]), ("events", [t.events for t in totals.values()])):
        print(f"{name:{width}}" + "".join(f"{count:12,}" for count in counts) + f"   together {sum(counts):,}")


def _print_accused(choice: Choice, totals: dict[Mode, Counts], shown: int) -> int:
    accused = sorted(
        (each for total in totals.values() for each in total.accused), key=lambda each: (each.mode, each.kinds, each.seed)
    )
    print(f"{len(accused)} histories with a definite finding")
    groups = Counter((each.mode, each.kinds) for each in accused)
    for (mode, kinds), count in groups.most_common(shown):
        print(f"  {count:6} {mode}: {', '.join(kinds)}")
    for mode, kinds in groups if len(groups) <= shown else ():
        each = next(each for each in accused if (each.mode, each.kinds) == (mode, kinds))
        print(f"  python -m tests.simulation.legal{choice.words} --mode {mode} --seed {each.seed}    {', '.join(kinds)}")
    return len(accused)


def _print_by_feature(args: argparse.Namespace, modes: Sequence[Mode]) -> int:
    """Each feature alone, and none: what is said of so many histories."""
    together = 0
    for name in ("", *FEATURES):
        choice = Choice(only=(name,) if name else ())
        totals = run_all(list(_tasks(choice, args.first, args.histories, modes)), args.processes)
        accused = [each for total in totals.values() for each in total.accused]
        by_kind = Counter(f"{each.mode} {kind}" for each in accused for kind in each.kinds)
        text = ", ".join(f"{kind} {count}" for kind, count in by_kind.most_common(6))
        print(f"{name or 'none':20} {len(accused):6}  {text}", flush=True)
        together += len(accused)
    return together


def replay(choice: Choice, seed: int, mode: Mode) -> int:
    """Prints a history and the definite findings; tells how many there are."""
    run = choice.run(seed, mode)
    findings = definite(findings_of(run))
    marks = {number for finding in findings for number in finding.witnesses}
    for name, rules in run.rules_by_subscription.items():
        print(f"{name}: {rules}")
    print(", ".join(f"{name} {count}" for name, count in sorted(run.seen.items())))
    places: list[tuple[str | None, str | None]] = [*sorted({(finding.key, finding.subscription) for finding in findings})]
    for key, subscription in places or [(None, None)]:
        print(show(run.events, key, subscription, marks))
    for finding in findings:
        print(finding)
    return len(findings)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--histories", type=int, default=3000, help="how many, all modes together")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--mode", choices=list(Mode), type=Mode, action="append", help="only these modes")
    parser.add_argument("--seed", type=int, help="print the history with this seed (needs --mode)")
    parser.add_argument("--only", choices=FEATURES, action="append", help="no other features than these")
    parser.add_argument("--without", choices=FEATURES, action="append", default=[], help="all features but these")
    parser.add_argument("--by-feature", action="store_true", help="each feature alone")
    parser.add_argument("--shown", type=int, default=20, help="how many kinds of accusations are listed")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = _arguments(arguments)
    modes = args.mode or list(Mode)
    choice = Choice(tuple(args.without), None if args.only is None else tuple(args.only))
    if args.seed is not None:
        return int(bool(sum(replay(choice, args.seed, mode) for mode in modes)))
    if args.by_feature:
        return int(bool(_print_by_feature(args, modes)))
    totals = run_all(list(_tasks(choice, args.first, args.histories, modes)), args.processes)
    _print(totals)
    accused = _print_accused(choice, totals, args.shown)
    vacuous = missing(totals) if args.histories >= ENOUGH_FOR_EVERY_SITUATION and choice == Choice() else []
    for each in vacuous:
        print(f"never occurred: {each}")
    return int(bool(accused or vacuous))


if __name__ == "__main__":
    sys.exit(main())
