"""The report on speed: what counts as worse, what is kept of earlier measurements, and what the page says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures import Figure, Kept, read, write
from benchmarks.report import GROUPS, KEPT, regressions, table

COST = Figure("verify", "times a line", [4.0, 4.4, 4.1], 5.0, group="checker", date="2026-11-20")
OTHER = Figure("probe", "times as much", [6.5, 6.1], group="end_to_end", date="2026-11-20")


@pytest.mark.parametrize(
    ("now", "is_worse"),
    [
        ([4.3, 4.5], False),  # within a tenth
        ([5.0, 4.9], True),
        ([4.2, 9.0], False),  # disturbed once
        ([2.0], False),
    ],
)
def test_worse_is_what_is_worse_at_its_best_too(now: list[float], is_worse: bool) -> None:
    line = f"checker, verify: 4.00 became {min(now):.2f} times a line"
    assert list(regressions([OTHER, COST], [replace(COST, values=now)])) == ([line] if is_worse else [])


def test_what_is_new_is_not_worse() -> None:
    assert not list(regressions([], [COST]))


def test_what_is_not_measured_keeps_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    write(file, Kept([OTHER, replace(COST, name="gone"), COST], "two processors"))
    now = replace(COST, values=[3.0], date="2026-11-23")
    assert read(file).updated("checker", [now]).figures == [now, OTHER]


@pytest.mark.parametrize(("goal", "row"), [(5.0, "**4**"), (3.0, "4"), (None, "**4**")])
def test_bold_is_what_misses_no_goal(goal: float | None, row: str) -> None:
    wanted = "" if goal is None else f"at most {goal:.0f}"
    assert f"| times a line | goal |\n|---|---|---|\n| verify | {row} | {wanted} |" in table([replace(COST, goal=goal)])


def test_every_figure_belongs_to_a_benchmark() -> None:
    assert {figure.group for figure in read(KEPT).figures} <= set(GROUPS)
