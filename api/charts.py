"""Durations and counts over time as charts that `static/plots.js` draws. An unknown value is a gap, never a zero."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil
from typing import Final

from api.words import clock, counted, day, duration, hour, share
from prober.runs.result import HISTOGRAM_BOUNDS_S, Durations
from prober.sinks.status.over_time import BinOfRuns, WorstDurations
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S, Objective, SliCounts

BINS_MAX: Final = 240
"""Maximum number of points of a line."""
MISSED_INTERVALS: Final = 3
"""Number of missing runs between two points that interrupts a line."""
BUDGET_BELOW_TOP: Final = 1.5
"""Minimum height of a chart of shares, in error budgets."""
EDGE: Final = 8.0
"""Distance to an edge, in percent, below which the label of a time is on its inner side."""

TITLES: Final = {
    Indicator.PUBLISH_LATENCY: "publish latency",
    Indicator.END_TO_END_LATENCY: "end-to-end latency",
    Indicator.OLDEST_UNACKED_MESSAGE_AGE: "oldest unacknowledged message",
}
"""Titles of the charts, in their order."""
LATENCIES: Final = (Indicator.PUBLISH_LATENCY, Indicator.END_TO_END_LATENCY)
"""Latencies that also have histograms over time."""


BUCKETS: Final = (*(f"to {duration(bound)}" for bound in HISTOGRAM_BOUNDS_S), f"above {duration(HISTOGRAM_BOUNDS_S[-1])}")
"""Names of the buckets of a histogram."""


class TimeRange(StrEnum):
    """Time range of charts."""

    HOUR = "1h"
    HOURS = "6h"
    DAY = "24h"
    WEEK = "7d"
    MONTHS = "90d"

    @property
    def seconds(self) -> float:
        """Length of the range."""
        return _RANGES[self][0]

    @property
    def slice_s(self) -> int:
        """Period over which counts are summed."""
        return _RANGES[self][1]

    @property
    def tick_s(self) -> float:
        """Distance of the labelled times."""
        return _RANGES[self][2]

    @property
    def cell_s(self) -> int:
        """Length of a cell of the timeline."""
        return _RANGES[self][3]


_RANGES: Final = {
    TimeRange.HOUR: (HOUR_S, 300, 15 * MINUTE_S, 60),
    TimeRange.HOURS: (6 * HOUR_S, 300, 2 * HOUR_S, 450),
    TimeRange.DAY: (DAY_S, 900, 6 * HOUR_S, 1800),
    TimeRange.WEEK: (7 * DAY_S, 7200, 2 * DAY_S, 14_400),
    TimeRange.MONTHS: (90 * DAY_S, 86_400, 15 * DAY_S, 86_400),
}


@dataclass(frozen=True, slots=True)
class Tick:
    """A time on the axis: distance from the left in percent, alignment of its text, and the text, in UTC."""

    at: float
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class ChartSpan:
    """Period that charts show."""

    since: float
    now: float
    reach: TimeRange

    @classmethod
    def until(cls, now: float, reach: TimeRange) -> ChartSpan:
        """Return the range that ends now."""
        return cls(now - reach.seconds, now, reach)

    @property
    def bin_s(self) -> float:
        """Period of a point of a line."""
        return self.reach.seconds / BINS_MAX

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Times of the axis: full hours or days."""
        step = self.reach.tick_s
        return tuple(self._tick(number * step) for number in range(ceil(self.since / step), int(self.now // step) + 1))

    def _tick(self, at: float) -> Tick:
        place = round((at - self.since) / (self.now - self.since) * 100.0, 2)
        anchor = "start" if place < EDGE else "end" if place > 100.0 - EDGE else "middle"
        return Tick(place, anchor, day(at) if at % DAY_S == 0.0 else hour(at))


@dataclass(frozen=True, slots=True)
class Line:
    """A series of a chart. `kind`: its style; `limit` is a threshold."""

    label: str
    kind: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled position on the horizontal axis: a time in seconds since 1970, or a position between the names of that axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class PlotData:
    """Data of a chart, as `static/plots.js` reads them.

    unit    unit of the values: `seconds` on a logarithmic axis, `share` or `count` on a linear one, whose top is at least `top`.
    span    ends of the horizontal axis; `names`: names of its whole numbers, None: it is time.
    gaps    periods without data.
    """

    unit: str
    x_label: str
    y_label: str
    span: tuple[float, float]
    x: tuple[float, ...]
    series: tuple[Line, ...]
    gaps: tuple[tuple[float, float], ...] = ()
    marks: tuple[Mark, ...] = ()
    top: float = 0.0
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart. `words`: its text for screen readers; `now`: newest value; `data` None: no data."""

    title: str
    words: str
    now: str
    data: PlotData | None


def thresholds(objectives: Iterable[Objective]) -> dict[Indicator, float | None]:
    """Return the threshold of each indicator with an objective, in seconds; None: the objective has no threshold."""
    return {objective.indicator: objective.threshold_s for objective in objectives}


def duration_plots(
    bins: Sequence[BinOfRuns], interval_s: float, span: ChartSpan, objectives: Iterable[Objective]
) -> tuple[Plot, ...]:
    """Return the charts of a probe instance from the runs of the span, the oldest first."""
    limits = thresholds(objectives)
    join_s = MISSED_INTERVALS * interval_s + max((one.longest_s for one in bins), default=0.0)
    return tuple(_duration_plot(indicator, bins, join_s, span, limits.get(indicator)) for indicator in TITLES)


def share_plot(objective: Objective, counts: Mapping[float, SliCounts], span: ChartSpan) -> Plot:
    """Return the chart of an objective's share of bad events on a target, from its slices by start time."""
    length_s = span.reach.slice_s
    starts = [number * float(length_s) for number in range(int(span.since // length_s), ceil(span.now / length_s))]
    ratios = [counts[at].error_ratio if at in counts else None for at in starts]
    most = [counts[at].error_ratio_bounds.high if ratio is not None else None for at, ratio in zip(starts, ratios, strict=True)]
    unknown = ((at, at + length_s) for at, ratio in zip(starts, ratios, strict=True) if ratio is None)
    gaps = tuple((begin, min(end, span.now)) for begin, end in merged(unknown))
    decided = [(ratio, at) for at, ratio in zip(starts, ratios, strict=True) if ratio is not None]
    data = PlotData(
        "share",
        "time (UTC)",
        "share of bad",
        (span.since, span.now),
        (*starts, span.now),
        (
            Line("if all undecided were bad", "doubtful", (*most, None)),
            Line("bad", "bad", (*ratios, None)),
            Line("error budget", "limit", (objective.budget,) * (len(starts) + 1)),
        ),
        gaps,
        top=BUDGET_BELOW_TOP * objective.budget,
    )
    return Plot(objective.name, _share_words(decided, gaps), "", data if decided else None)


def histogram_plot(indicator: Indicator, durations: Durations, limit_s: float | None) -> Plot:
    """Return the histogram of a run's durations, with their percentiles and the threshold of the objective."""
    names = BUCKETS
    named = {"p50": durations.p50_s, "p99": durations.p99_s, "max": durations.max_s, "SLO": limit_s}
    marks = tuple(Mark(float(bisect_left(HISTOGRAM_BOUNDS_S, at)), name) for name, at in named.items() if at is not None)
    used = [number for number, count in enumerate(durations.histogram) if count] + [round(mark.at) for mark in marks]
    shown = range(max(0, min(used) - 1), min(len(names), max(used) + 2))
    data = PlotData(
        "count",
        "duration",
        "measurements",
        (shown[0] - 0.5, shown[-1] + 0.5),
        tuple(float(number) for number in shown),
        (Line("measurements", "histogram", tuple(float(durations.histogram[number]) for number in shown)),),
        marks=_spread(marks),
        names=names,
    )
    words = ", ".join(f"{name} {duration(at)}" for name, at in named.items() if at is not None)
    return Plot(str(indicator), f"{indicator} of {counted(durations.count, 'measurement')}: {words}", words, data)


def as_json(data: PlotData) -> str:
    """Return the data of a chart in the form for its HTML element."""
    return json.dumps(asdict(data))


def filled(budget_left: float, width: int) -> str:
    """Return the spent part of a bar of this width: not empty if any budget is spent, full only if none is left."""
    spent = (1.0 - budget_left) * width
    return f"{min(max(spent, 2.0), width if budget_left <= 0.0 else width - 2.0):.4g}"


def _duration_plot(indicator: Indicator, bins: Sequence[BinOfRuns], join_s: float, span: ChartSpan, limit_s: float | None) -> Plot:
    title, is_age = TITLES[indicator], indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE
    known = [one.durations[indicator] for one in bins if indicator in one.durations]
    if not known:
        return Plot(title, f"{title}: nothing is known", "unknown", None)
    points = list(_points(indicator, bins, join_s, span))
    shown = [("longest", "main")] if is_age else [("p99", "main"), ("p50", "secondary")]
    take = {"longest": lambda one: one.max_s, "p99": lambda one: one.p99_s, "p50": lambda one: one.p50_s}
    lines = [Line(name, kind, tuple(None if one is None else take[name](one) for _, one in points)) for name, kind in shown]
    if limit_s is not None:
        lines.append(Line("objective", "limit", (limit_s,) * len(points)))
    gaps = tuple(merged(_gaps(indicator, bins, join_s, span)))
    data = PlotData(
        "seconds",
        "time (UTC)",
        "age" if is_age else "latency",
        (span.since, span.now),
        tuple(at for at, _ in points),
        tuple(lines),
        gaps,
    )
    newest = f"up to {duration(known[-1].max_s)}" if is_age else f"p99 {duration(known[-1].p99_s)}, p50 {duration(known[-1].p50_s)}"
    highest = duration(max(one.max_s if is_age else one.p99_s for one in known))
    return Plot(title, f"{title}: {newest}; at most {highest} in the time shown{_in_gaps(gaps, 'is known')}", newest, data)


def _points(
    indicator: Indicator, bins: Sequence[BinOfRuns], join_s: float, span: ChartSpan
) -> Iterator[tuple[float, WorstDurations | None]]:
    """Yield the points of a line from edge to edge; None interrupts it: a bin without data, or too many missing runs."""
    yield span.since, None
    previous: BinOfRuns | None = None
    for one in bins:
        if previous is not None and one.first_at - previous.last_at > join_s:
            yield (previous.last_at + one.first_at) / 2.0, None
        yield one.last_at, one.durations.get(indicator)
        previous = one
    yield span.now, None


def _share_words(decided: Sequence[tuple[float, float]], gaps: Sequence[object]) -> str:
    if not decided:
        return "share of bad ones: nothing was decided"
    most, at = max(decided)
    said = f"at most {share(most)}, at {clock(at)}" if most else "none was bad"
    return f"share of bad ones: {said}{_in_gaps(gaps, 'was decided')}"


def _in_gaps(gaps: Sequence[object], what: str) -> str:
    return f"; {counted(len(gaps), 'gap')} in which nothing {what}" if gaps else ""


def _spread(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return the marks from left to right, merging those at one position."""
    labels: dict[float, list[str]] = {}
    for mark in sorted(marks, key=lambda mark: mark.at):
        labels.setdefault(mark.at, []).append(mark.label)
    return tuple(Mark(at, ", ".join(names)) for at, names in labels.items())


def _gaps(indicator: Indicator, bins: Sequence[BinOfRuns], join_s: float, span: ChartSpan) -> Iterator[tuple[float, float]]:
    """Yield the periods without data, which may touch. A bin counts completely if one of its runs has no data."""
    if not bins:
        yield span.since, span.now
        return
    if bins[0].first_at - span.since > join_s:
        yield span.since, bins[0].first_at
    for earlier, one in pairwise(bins):
        if one.first_at - earlier.last_at > join_s or indicator not in one.durations or indicator not in earlier.durations:
            yield earlier.last_at, one.first_at
    for one in bins:
        if one.known[indicator] < one.runs:
            yield one.first_at, one.last_at
    if span.now - bins[-1].last_at > join_s or indicator not in bins[-1].durations:
        yield bins[-1].last_at, span.now


def merged(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the periods in order, merging those that touch."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
