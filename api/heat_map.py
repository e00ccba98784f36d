"""Heat maps: rows of cells over time, with shades relative to the largest value of the map."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from math import ceil, sqrt
from typing import Final

from api.charts import BUCKETS, ChartSpan, TimeRange
from api.words import duration, hour, number, size
from prober.reports.values import KeyCourse, ReportedKey
from prober.runs.result import HISTOGRAM_BOUNDS_S
from prober.slo.objectives import DAY_S

LEVELS: Final = 6
"""Number of shades for values above 0."""
KEYS_MAX: Final = 20
PART_S: Final = 1800.0


class Measure(StrEnum):
    """Measure of a map of keys."""

    BACKLOG = "backlog"
    AGE = "age"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A period of a row: its level, 0 to `LEVELS`, None without data, and both in words."""

    level: int | None
    words: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A row with its name, and the largest of its values in words."""

    name: str
    cells: tuple[HeatCell, ...]
    most: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows over a span of time. `bounds`: the largest value of each level in words."""

    span: ChartSpan
    rows: tuple[HeatRow, ...]
    bounds: tuple[str, ...]


_OF_KEY: Final[Mapping[Measure, tuple[Callable[[KeyCourse], float], Callable[[float], str]]]] = {
    Measure.BACKLOG: (lambda part: part.backlog, number),
    Measure.AGE: (lambda part: part.age_s, duration),
    Measure.THROUGHPUT: (lambda part: part.bytes_per_s, lambda value: f"{size(value)}/s"),
}


def key_map(keys: Sequence[ReportedKey], day: date, measure: Measure) -> HeatMap | None:
    """Return the map of the hot keys of a day, by half hour; None without data on any of them."""
    begin = datetime.combine(day, time(), UTC).timestamp()
    value_of, written = _OF_KEY[measure]
    known = [one for one in keys if one.course][:KEYS_MAX]
    values = {one.key: {part.at: value_of(part) for part in one.course} for one in known}
    times = [begin + PART_S * part for part in range(round(DAY_S / PART_S))]
    return heat_map(ChartSpan(begin, begin + DAY_S, TimeRange.DAY), times, values, written) if known else None


def latency_map(histograms: Mapping[int, Sequence[int]], span: ChartSpan, limit_s: float | None) -> HeatMap | None:
    """Return the distribution of durations over time, the longest at the top; None if no run of the time counted them.

    `histograms`: by number of their cell in the span.
    """
    used = [bucket for counts in histograms.values() for bucket, count in enumerate(counts) if count]
    if not used:
        return None
    limit = None if limit_s is None else bisect_left(HISTOGRAM_BOUNDS_S, limit_s)
    shown = range(min(used), max(max(used), -1 if limit is None else limit) + 1)
    names = {bucket: f"{'SLO: ' if bucket == limit else ''}{BUCKETS[bucket]}" for bucket in shown}
    length_s = float(span.reach.cell_s)
    values = {
        names[bucket]: {cell * length_s: float(counts[bucket]) for cell, counts in histograms.items()} for bucket in reversed(shown)
    }
    times = [cell * length_s for cell in range(int(span.since // length_s), int(span.now // length_s))]
    return heat_map(span, times, values, number)


def heat_map(
    span: ChartSpan, times: Sequence[float], values: Mapping[str, Mapping[float, float]], written: Callable[[float], str]
) -> HeatMap:
    """Return a map of the values of each row by the start of their period. A shade depends on the square root of the value."""
    most = max((value for row in values.values() for value in row.values()), default=0.0)

    def cell(at: float, value: float | None) -> HeatCell:
        if value is None:
            return HeatCell(None, f"{hour(at)}: nothing is known")
        return HeatCell(ceil(LEVELS * sqrt(value / most)) if value else 0, f"{hour(at)}: {written(value)}")

    rows = tuple(
        HeatRow(name, tuple(cell(at, row.get(at)) for at in times), written(_largest(row.values()))) for name, row in values.items()
    )
    return HeatMap(span, rows, tuple(written(most * (level / LEVELS) ** 2) for level in range(1, LEVELS + 1)))


def _largest(values: Iterable[float]) -> float:
    return max(values, default=0.0)
