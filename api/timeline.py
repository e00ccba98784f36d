"""Timeline of the probes: a row of cells for each probe instance, each with the worst condition of a period."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from api.charts import ChartSpan, TimeRange
from api.words import clock, counted
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.condition import Condition
from prober.sinks.status.over_time import RunsOfCell

RANGE: Final = TimeRange.DAY
"""Default range."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A period at one probe instance. `runs` None: no run that started in it is stored."""

    begin: float
    runs: RunsOfCell | None

    @property
    def condition(self) -> Condition | None:
        """Worst condition of its runs."""
        return None if self.runs is None else self.runs.worst

    @property
    def words(self) -> str:
        """Start of the cell, its runs by condition, and the reason of the linked run."""
        if self.runs is None:
            return f"{clock(self.begin)}: no runs"
        by_condition = ", ".join(f"{self.runs.runs[one]} {one}" for one in Condition if one in self.runs.runs)
        reason = f"; {self.runs.reason}" if self.runs.reason else ""
        return f"{clock(self.begin)}: {counted(sum(self.runs.runs.values()), 'run')}: {by_condition}{reason}"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rows by probe instance, none if the store could not be queried.

    `span` is the time from the first cell to the end of the last one, which is not over yet.
    """

    span: ChartSpan
    rows: Mapping[InstanceKey, tuple[Cell, ...]]


def timeline_span(now: float, reach: TimeRange) -> ChartSpan:
    """Return the whole cells up to the present one."""
    end = (now // reach.cell_s + 1.0) * reach.cell_s
    return ChartSpan.until(end, reach)


def timeline_of(
    instances: Iterable[InstanceKey], found: Mapping[InstanceKey, Mapping[int, RunsOfCell]], span: ChartSpan
) -> Timeline:
    """Return the timeline of these probe instances from the runs found."""
    numbers = range(int(span.since // span.reach.cell_s), int(span.now // span.reach.cell_s))
    rows = {
        instance: tuple(Cell(number * float(span.reach.cell_s), found.get(instance, {}).get(number)) for number in numbers)
        for instance in instances
    }
    return Timeline(span, rows)


def in_words(cells: Iterable[Cell]) -> str:
    """Return a row as text for screen readers."""
    runs = [cell.runs for cell in cells if cell.runs is not None]
    total = {one: sum(each.runs.get(one, 0) for each in runs) for one in Condition}
    said = ", ".join(f"{count} {one}" for one, count in total.items() if count)
    return f"{counted(sum(total.values()), 'run')}: {said}" if said else "no runs"
