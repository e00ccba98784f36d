"""Run of all benchmarks and update of docs/performance.md: `make bench`.

    python -m benchmarks.report [--only GROUP ...] [--keep]

Each group is measured in a process of its own, one after the other, and is written immediately: groups that are not measured keep their old
figures, with their date. The report ends with the measurements that became worse by more than a tenth against the committed ones
(`benchmarks/figures.json`). `--keep` leaves both files unchanged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.figures import CannotMeasureError, Figure, Kept, read, write
from benchmarks.processes import in_process

FOLDER: Final = Path(__file__).resolve().parent
KEPT: Final = FOLDER / "figures.json"
TEMPLATE: Final = "performance.md.j2"
PAGE: Final = FOLDER.parent / "docs" / "performance.md"

GROUPS: Final = {
    "checker": "The checker",
    "end_to_end": "A probed message",
    "spark_jobs": "The nightly jobs",
    "api": "The API",
}
"""Modules with figures, in the order of the page, and their subjects."""


def figures_of(group: str) -> list[Figure]:
    """Return the figures of a group, measured in this process."""
    today = datetime.now(UTC).date().isoformat()
    return [replace(figure, group=group, date=today) for figure in import_module(f"benchmarks.{group}").figures()]


def regressions(before: Sequence[Figure], now: Sequence[Figure]) -> Iterator[str]:
    """Yield a line for each figure that became worse."""
    old = {(figure.group, figure.name): figure for figure in before}
    for figure in now:
        known = old.get((figure.group, figure.name))
        if known is not None and figure.is_worse_than(known):
            yield f"{figure.group}, {figure.name}: {known.best:.2f} became {figure.best:.2f} {figure.unit}"


# --- the page ----------------------------------------------------------------------------------------------------------------


def page(kept: Kept) -> str:
    """Return the text of docs/performance.md."""
    environment = Environment(  # Markdown, of our own figures
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    tables = dict.fromkeys(GROUPS, "Not measured yet.")
    tables |= {group: table(list(members)) for group, members in groupby(kept.figures, lambda figure: figure.group)}
    missed = sum(figure.misses_goal for figure in kept.figures)
    return environment.get_template(TEMPLATE).render(
        machine=kept.machine, tables=tables, missed=missed, goals=sum(figure.goal is not None for figure in kept.figures)
    )


def table(figures: Sequence[Figure]) -> str:
    """Return the figures of a group: a table for each unit."""
    rows = []
    for unit, members in groupby(figures, lambda figure: figure.unit):
        rows += [f"| measurement | {unit} | goal |", "|---|---|---|"]
        for figure in members:
            best = show(figure.best) if figure.misses_goal else f"**{show(figure.best)}**"
            goal = "" if figure.goal is None else f"at most {show(figure.goal)}"
            rows.append(f"| {figure.name} | {best} | {goal} |")
        rows.append("")
    dates = " and ".join(sorted({figure.date for figure in figures}))
    return "\n".join([*rows, f"Measured on {dates}."])


def show(value: float) -> str:
    """Return a value with its significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Measure, write the page and report regressions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--keep", action="store_true", help="leave the figures that are committed, and the page, as they are")
    options = parser.parse_args()
    before = kept = read(KEPT)
    worse: list[str] = []
    for group in options.only:
        try:
            now = in_process(figures_of, group)
        except CannotMeasureError as reason:
            print(f"{group}: not measured: {reason}", file=sys.stderr)
            continue
        print(f"\n{GROUPS[group]}\n\n{table(now)}", flush=True)
        worse += regressions(before.figures, now)
        kept = kept.updated(group, now)
        if not options.keep:
            write(KEPT, kept)
            PAGE.write_text(page(kept), encoding="utf-8")
    print("", *(f"Worse than before: {line}" for line in worse or ["nothing by more than a tenth"]), sep="\n")


if __name__ == "__main__":
    main()
