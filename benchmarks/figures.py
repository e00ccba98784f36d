"""Figures of the report on speed: measured ratios that hold on any machine, and their goals."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Final

import orjson

REGRESSION: Final = 0.1
"""Relative slowdown above which a measurement is reported."""

LINE: Final = (
    b'{"event":"delivered","t":1717.123456,"subscription":"s","key":"key-3","session":"one","epoch":"e","seq":17,"id":"12345678"}'
)
"""A line of a trace file: the time of `orjson.loads` for it is the default yardstick."""
LINES: Final = 200_000


class CannotMeasureError(Exception):
    """A measurement is not possible on this machine; the text names the reason."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured ratio; less is better.

    name     subject of the measurement.
    unit     unit of a value, such as "times orjson.loads of the same line".
    values   measured values in order, at least one.
    goal     upper bound; None: no goal.
    group    its benchmark; filled in by the report.
    date     ISO 8601 date of the measurement; filled in by the report.
    """

    name: str
    unit: str
    values: Sequence[float]
    goal: float | None = None
    group: str = ""
    date: str = ""

    @property
    def best(self) -> float:
        """Best value, the least disturbed by other work."""
        return min(self.values)

    @property
    def misses_goal(self) -> bool:
        """Whether even the best value is above the goal."""
        return self.goal is not None and self.best > self.goal

    def is_worse_than(self, before: Figure) -> bool:
        """Return whether best and worst value are both worse by more than `REGRESSION`; a change of one may be noise."""
        return min(self.best / before.best, max(self.values) / max(before.values)) > 1 + REGRESSION


def yardstick_s() -> float:
    """Return the CPU seconds of `orjson.loads` for one line, on this machine, now."""
    began = process_time()
    for _ in range(LINES):
        orjson.loads(LINE)
    return (process_time() - began) / LINES


@dataclass(frozen=True, slots=True)
class Kept:
    """Stored figures of earlier days, and the machine of the last measurement."""

    figures: Sequence[Figure]
    machine: str

    def updated(self, group: str, measured: Sequence[Figure]) -> Kept:
        """Replace the stored figures of a measured group by the new ones."""
        others = [old for old in self.figures if old.group != group]
        return Kept(sorted([*others, *measured], key=lambda figure: figure.group), machine())


def read(path: Path) -> Kept:
    """Read stored figures."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Kept([Figure(**one) for one in kept["figures"]], kept["machine"])


def write(path: Path, kept: Kept) -> None:
    """Store the figures."""
    path.write_text(f"{json.dumps(asdict(kept), indent=1)}\n", encoding="utf-8")


def machine() -> str:
    """Return a description of this machine, in a line."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    processor = next(names, platform.machine())
    return f"{os.cpu_count()} processors ({processor}), {platform.system()}, CPython {platform.python_version()}"
