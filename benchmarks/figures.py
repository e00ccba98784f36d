"""Figures of the report on speed: measured ratios that hold on any machine, and their goals."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any, Final

import orjson

REGRESSION: Final = 0.1
"""Relative slowdown above which a measurement is reported."""

LINE: Final = (
    b'{"event":"delivered","t":1717.123456,"subscription":"s","key":"key-3","session":"one","epoch":"e","seq":17,"id":"12345678"}'
)
"""A line of a trace file: the time of `orjson.loads` for it is the default yardstick."""
LINES: Final = 200_000


class CannotMeasureError(Exception):
    """A program to compare with is missing on this machine; the text names what to install."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured ratio.

    name     subject of the measurement.
    unit     unit of a value, such as "times orjson.loads of the same line".
    values   measured values in order, at least one.
    goal     upper bound, or lower bound if `more` is better; None: no goal.
    group    its benchmark; filled in by the report.
    date     ISO 8601 date of the measurement; filled in by the report.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    goal: float | None = None
    more: bool = False
    group: str = ""
    date: str = ""

    @property
    def best(self) -> float:
        """Best value, the least disturbed by other work."""
        return max(self.values) if self.more else min(self.values)

    @property
    def worst(self) -> float:
        """Worst value."""
        return min(self.values) if self.more else max(self.values)

    @property
    def reaches_goal(self) -> bool | None:
        """Whether the best value reaches the goal; None without a goal."""
        if self.goal is None:
            return None
        return self.best >= self.goal if self.more else self.best <= self.goal

    def is_worse_than(self, before: Figure) -> bool:
        """Return whether best and worst value are both worse by more than `REGRESSION`; a change of one may be noise."""
        change = [mine / theirs for mine, theirs in ((self.best, before.best), (self.worst, before.worst))]
        return max(change) < 1 - REGRESSION if self.more else min(change) > 1 + REGRESSION

    def marked(self, group: str, date: str) -> Figure:
        """Return the figure with its group and date."""
        return replace(self, group=group, date=date)


def in_turn(repeat: int, *measurements: Callable[[], float]) -> Iterator[tuple[float, ...]]:
    """Yield the results of the measurements, in rounds of one each, so that a change of the machine's speed affects all of them."""
    for _ in range(repeat):
        yield tuple(measure() for measure in measurements)


def yardstick_s() -> float:
    """Return the CPU seconds of `orjson.loads` for one line, on this machine, now."""
    began = process_time()
    for _ in range(LINES):
        orjson.loads(LINE)
    return (process_time() - began) / LINES


# --- the file that keeps them ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """Stored figures of earlier days, and the machine of the last measurement."""

    figures: Sequence[Figure] = ()
    machine: str = ""


def read(path: Path) -> Kept:
    """Read stored figures; return none if the file does not exist."""
    if not path.exists():
        return Kept()
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Kept([figure_of(one) for one in kept["figures"]], kept["machine"])


def write(path: Path, kept: Kept) -> None:
    """Store the figures."""
    path.write_text(f"{json.dumps(asdict(kept), indent=1)}\n", encoding="utf-8")


def figure_of(kept: Any) -> Figure:
    """Return a figure from its JSON object."""
    return Figure(**{**kept, "values": tuple(kept["values"])})


def merged(before: Iterable[Figure], measured: Iterable[Figure]) -> list[Figure]:
    """Replace the stored figures of all measured groups by the new ones; return all figures."""
    new = list(measured)
    groups = {figure.group for figure in new}
    return sorted([old for old in before if old.group not in groups] + new, key=lambda one: one.group)


def machine() -> str:
    """Return a description of this machine, in a line."""
    return f"{os.cpu_count()} processors ({processor()}), {platform.system()}, CPython {platform.python_version()}"


def processor() -> str:
    """Return the name of the processor, as far as the system reports it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
