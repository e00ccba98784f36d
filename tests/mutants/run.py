"""Breaks the checker on purpose, one bug at a time, and wants a test to notice each.

    python tests/mutants/run.py [--only NAME]... [--jobs N] [--timeout SECONDS]

For every mutant of the catalogue: a copy of the project with that one bug, the fast tests on it, cheapest first, up to the first
failure. Two mutants prove that this proves anything: the identity must survive (its run shows that the tests pass on a copy), the
canary must be killed (the tests do run on the copy). Exit code 0 when all others are killed as well, 1 when one survives, 2 when
the harness itself does not work: a mutant that no longer applies, an unknown name, a failing identity.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from prober.clock import monotonic_s  # noqa: E402
from tests.mutants.catalogue import BY_NAME, CANARY, IDENTITY, repeated_names  # noqa: E402
from tests.mutants.inside import WRONG_CODE  # noqa: E402
from tests.mutants.mutant import Mutant, Removes  # noqa: E402

COPIED = ("prober", "api", "spark_jobs", "benchmarks", "docs", "tests", "pyproject.toml")
TESTS = ("tests/unit/core", "tests/unit/test_vectors.py", "tests/property", "tests/simulation", "tests/exhaustive")
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no")
TIMEOUT_S = 1800.0
PASSED, FAILED = 0, 1


class HarnessError(Exception):
    """The harness does not work; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant: `killer` is the test that noticed it, or what else ended the run; empty if it survived."""

    mutant: Mutant
    killer: str
    seconds: float

    @property
    def as_wanted(self) -> bool:
        return bool(self.killer) is (self.mutant.removes is not Removes.NOTHING)

    def line(self) -> str:
        return f"{self.mutant.name:<44} {self.mutant.removes:<8} {self.seconds:6.1f} s  {self.killer or 'SURVIVED'}"


def copy_project(target: Path) -> None:
    """Copy what the tests need."""
    target.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, target / name)


def killer_of(output: str, code: int) -> str:
    """The first test that failed, as pytest names it."""
    found = re.search(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", output, re.MULTILINE)
    return found[1] if found else f"pytest ended with exit code {code}"


def meet(mutant: Mutant, copy: Path, timeout_s: float) -> Fate:
    """Runs the tests on the copy with the mutant in it, and takes it out again."""
    path = mutant.path(copy)
    source = path.read_text()
    began = monotonic_s()
    try:
        path.write_text(mutant.apply(source))
        killer = _run(copy, timeout_s)
    finally:
        path.write_text(source)
    return Fate(mutant, killer, monotonic_s() - began)


def _run(copy: Path, timeout_s: float) -> str:
    tests = [test for test in TESTS if (copy / test).exists()]
    command = [sys.executable, str(copy / "tests/mutants/inside.py"), str(copy), *PYTEST, *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
    try:
        ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {timeout_s:g} s"
    if ran.returncode == WRONG_CODE:
        raise HarnessError("the tests did not run on the copy; has the way the project is installed changed?")
    return "" if ran.returncode == PASSED else killer_of(ran.stdout, ran.returncode)


def check_catalogue(mutants: Iterable[Mutant]) -> None:
    """Before anything runs: names are unique, every mutant applies."""
    if names := repeated_names():
        raise HarnessError(f"several mutants are called {', '.join(names)}")
    try:
        for mutant in mutants:
            mutant.apply(mutant.path(ROOT).read_text())
    except ValueError as wrong:
        raise HarnessError(f"{wrong}; adapt it to the checker as it is") from wrong


def run(mutants: Sequence[Mutant], jobs: int, timeout_s: float) -> list[Fate]:
    """The fates of the mutants, in the order of the catalogue; reported one by one as they are decided."""
    fates: dict[str, Fate] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copy_project(copy := Path(folder).resolve() / str(number))
            copies.put(copy)

        def fate_of(mutant: Mutant) -> Fate:
            copy = copies.get()
            try:
                return meet(mutant, copy, timeout_s)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(fate_of, mutant) for mutant in mutants]):
                fate = done.result()
                fates[fate.mutant.name] = fate
                show_progress(len(fates), len(mutants), fate)
    return [fates[mutant.name] for mutant in mutants]


def show_progress(done: int, total: int, fate: Fate) -> None:
    """On a terminal one line that is written over, and a line that stays for every survivor."""
    if not sys.stderr.isatty():
        return
    sys.stderr.write("\r\033[K")
    if not fate.as_wanted:
        sys.stderr.write(fate.line() + "\n")
    sys.stderr.write(f"[{done}/{total}] {fate.mutant.name}" if done < total else "")
    sys.stderr.flush()


def report(fates: Sequence[Fate]) -> int:
    """Prints the table and returns the exit code."""
    for fate in fates:
        print(fate.line(), flush=True)
    wrong = {fate.mutant.name: fate for fate in fates if not fate.as_wanted}
    if IDENTITY.name in wrong:
        raise HarnessError(f"the tests fail on an unchanged copy ({wrong[IDENTITY.name].killer}); make them pass first")
    if CANARY.name in wrong:
        raise HarnessError("the canary survived: the tests do not notice a checker that finds nothing")
    counted = [fate for fate in fates if fate.mutant not in (IDENTITY, CANARY)]
    killed = sum(fate.as_wanted for fate in counted)
    print(f"\n{killed} of {len(counted)} mutants killed" + "".join(f"\nSURVIVED {fate.line()}" for fate in wrong.values()))
    for fate in wrong.values():
        print(f"  {fate.mutant.name}: {fate.mutant.breaks}")
    return FAILED if wrong else PASSED


def chosen(names: Sequence[str]) -> list[Mutant]:
    """The mutants with these names, all without any; the canary is always there, the identity always with all."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise HarnessError(f"no mutant is called {', '.join(unknown)}")
    mutants = [BY_NAME[name] for name in names] if names else list(BY_NAME.values())
    return mutants if CANARY in mutants else [CANARY, *mutants]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Break the checker on purpose; a test must notice each bug.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this mutant; may be given again")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at a time (2)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="SECONDS", help=f"for each mutant ({TIMEOUT_S:g})")
    given = parser.parse_args(arguments)
    try:
        mutants = chosen(given.only)
        check_catalogue(mutants)
        return report(run(mutants, max(1, given.jobs), given.timeout))
    except HarnessError as wrong:
        print(f"mutants: {wrong}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
