"""Durations and counts over time, from what is kept: small charts, ready to be drawn. What is not known is a gap, never a zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil, log10
from typing import Final

from api.words import clock, counted, day, duration, hour, share
from prober.sinks.status.over_time import BinOfRuns, WorstDurations
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S, Objective, SliCounts

WIDTH: Final = 300
HEIGHT: Final = 60
BINS_MAX: Final = 240
"""So many points a line has at most."""
MISSED_INTERVALS: Final = 3
"""Two points are joined unless so many runs are missing between them."""
BUDGET_BELOW_TOP: Final = 1.5
"""The top of a chart of counts is at least so many budgets high."""
EDGE: Final = 8.0
"""A time that is written nearer to an edge, in percent, is written on its inner side."""

TITLES: Final = {
    Indicator.PUBLISH_LATENCY: "publish latency",
    Indicator.END_TO_END_LATENCY: "end-to-end latency",
    Indicator.OLDEST_UNACKED_MESSAGE_AGE: "oldest unacknowledged message",
}
"""What is shown, in this order."""


class TimeRange(StrEnum):
    """How far back charts reach."""

    HOUR = "1h"
    HOURS = "6h"
    DAY = "24h"
    WEEK = "7d"
    MONTHS = "90d"

    @property
    def seconds(self) -> float:
        """How long that is."""
        return _RANGES[self][0]

    @property
    def slice_s(self) -> int:
        """How much time counts are added up for."""
        return _RANGES[self][1]

    @property
    def tick_s(self) -> float:
        """How far the times are apart that are written below."""
        return _RANGES[self][2]

    @property
    def cell_s(self) -> int:
        """How much time a cell of the timeline is."""
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
    """A time on the axis: how far from the left in percent, how its text is set there, and the text, in UTC."""

    at: float
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class ChartSpan:
    """The time that charts show."""

    since: float
    now: float
    reach: TimeRange

    @classmethod
    def until(cls, now: float, reach: TimeRange) -> ChartSpan:
        """The range that ends now."""
        return cls(now - reach.seconds, now, reach)

    @property
    def bin_s(self) -> float:
        """How much time is a point of a line."""
        return self.reach.seconds / BINS_MAX

    def x(self, at: float) -> float:
        """Where a time is; what is outside is at the edge."""
        return round(min(1.0, max(0.0, (at - self.since) / (self.now - self.since))) * WIDTH, 2)

    def box(self, begin: float, end: float) -> tuple[float, float]:
        """Left edge and width of a stretch of time, which is seen however short it is."""
        return self.x(begin), round(max(1.0, self.x(end) - self.x(begin)), 2)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Full hours or days."""
        step = self.reach.tick_s
        return tuple(self._tick(number * step) for number in range(ceil(self.since / step), int(self.now // step) + 1))

    def _tick(self, at: float) -> Tick:
        place = round((at - self.since) / (self.now - self.since) * 100.0, 2)
        anchor = "start" if place < EDGE else "end" if place > 100.0 - EDGE else "middle"
        return Tick(place, anchor, day(at) if at % DAY_S == 0.0 else hour(at))


@dataclass(frozen=True, slots=True)
class Chart:
    """One indicator at one probe instance.

    upper, lower   path data of what 99 % did not exceed and of the median, or of the longest and nothing for an age.
    gaps           where nothing is known: left edge and width.
    ceiling_s      the top of the chart; `limit` is the height of the objective's threshold in it, None if it lies above or there is none.
    latest         of the newest runs that know; None: none of them does.
    """

    title: str
    span: ChartSpan
    upper: str
    lower: str
    gaps: tuple[tuple[float, float], ...]
    ceiling_s: float
    limit: float | None
    latest: WorstDurations | None
    highest_s: float
    is_age: bool

    @property
    def words(self) -> str:
        """The chart for those who do not see it."""
        if self.latest is None:
            return f"{self.title}: nothing is known"
        gaps = f"; {counted(len(self.gaps), 'gap')} in which nothing is known" if self.gaps else ""
        return f"{self.title}: {self.now}; at most {duration(self.highest_s)} in the time shown{gaps}"

    @property
    def now(self) -> str:
        """What the newest runs say, in words."""
        if self.latest is None:
            return "unknown"
        if self.is_age:
            return f"up to {duration(self.latest.max_s)}"
        return f"99 % within {duration(self.latest.p99_s)}, half within {duration(self.latest.p50_s)}"


@dataclass(frozen=True, slots=True)
class CountChart:
    """Which share of the counted things was bad, slice by slice.

    bars        path data: of the decided things; `doubtful`: from there on up to what it would be if all undecided ones were bad.
    gaps        where nothing was decided: left edge and width.
    ceiling     the share at the top; `limit` is the height of the error budget.
    worst       the largest share and when its slice began; None: nothing was decided at all.
    """

    span: ChartSpan
    bars: str
    doubtful: str
    gaps: tuple[tuple[float, float], ...]
    ceiling: float
    limit: float
    worst: tuple[float, float] | None

    @property
    def words(self) -> str:
        """The chart for those who do not see it."""
        if self.worst is None:
            return "share of bad ones: nothing was decided"
        gaps = f"; {counted(len(self.gaps), 'gap')} in which nothing was decided" if self.gaps else ""
        most, at = self.worst
        return f"share of bad ones: {f'at most {share(most)}, at {clock(at)}' if most else 'none was bad'}{gaps}"


def charts(bins: Sequence[BinOfRuns], interval_s: float, span: ChartSpan, objectives: Iterable[Objective]) -> tuple[Chart, ...]:
    """The charts of a probe instance from the runs of the span, the oldest first."""
    limits = {objective.indicator: objective.threshold_s for objective in objectives}
    join_s = MISSED_INTERVALS * interval_s + max((one.longest_s for one in bins), default=0.0)
    return tuple(_chart(indicator, bins, join_s, span, limits.get(indicator)) for indicator in TITLES)


def count_chart(objective: Objective, counts: Mapping[float, SliCounts], span: ChartSpan) -> CountChart:
    """The chart of an objective on a target from its slices, by when they began."""
    length_s = span.reach.slice_s
    ratios = {at: one.error_ratio for at, one in sorted(counts.items()) if one.error_ratio is not None}
    ceiling = min(1.0, _round_up(max([BUDGET_BELOW_TOP * objective.budget, *ratios.values()])))
    starts = [number * float(length_s) for number in range(int(span.since // length_s), ceil(span.now / length_s))]

    def bar(at: float, low: float, high: float) -> str:
        left, width = span.box(at, min(at + length_s, span.now))
        top, bottom = (round(HEIGHT - min(1.0, ratio / ceiling) * HEIGHT, 2) for ratio in (high, low))
        return f"M{left:g} {bottom:g}V{top:g}h{width:g}V{bottom:g}z"

    unsure = {at: (ratio, counts[at].error_ratio_bounds.high) for at, ratio in ratios.items() if counts[at].undecided}
    gaps = _merged((at, min(at + length_s, span.now)) for at in starts if at not in ratios)
    return CountChart(
        span=span,
        bars="".join(bar(at, 0.0, ratio) for at, ratio in ratios.items() if ratio),
        doubtful="".join(bar(at, low, high) for at, (low, high) in unsure.items() if high > low),
        gaps=tuple(span.box(begin, end) for begin, end in gaps if end > span.since),
        ceiling=ceiling,
        limit=round(HEIGHT - objective.budget / ceiling * HEIGHT, 2),
        worst=max(((ratio, at) for at, ratio in ratios.items()), default=None),
    )


def filled(budget_left: float, width: int) -> str:
    """How much of a bar of this width is spent: at least a sliver if anything is, all of it only if nothing is left."""
    spent = (1.0 - budget_left) * width
    return f"{min(max(spent, 2.0), width if budget_left <= 0.0 else width - 2.0):.4g}"


def _chart(indicator: Indicator, bins: Sequence[BinOfRuns], join_s: float, span: ChartSpan, limit_s: float | None) -> Chart:
    is_age = indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE
    known = [one.durations[indicator] for one in bins if indicator in one.durations]
    highest = max((spread.max_s if is_age else spread.p99_s for spread in known), default=0.0)
    ceiling = _round_up(highest)

    def path(value: Callable[[WorstDurations], float]) -> str:
        return "".join(_path(indicator, bins, join_s, span.x, lambda spread: HEIGHT - value(spread) / ceiling * HEIGHT))

    return Chart(
        title=TITLES[indicator],
        span=span,
        upper=path(lambda spread: spread.max_s if is_age else spread.p99_s),
        lower="" if is_age else path(lambda spread: spread.p50_s),
        gaps=tuple(span.box(begin, end) for begin, end in _merged(_gaps(indicator, bins, join_s, span))),
        ceiling_s=ceiling,
        limit=None if limit_s is None or limit_s > ceiling else round(HEIGHT - limit_s / ceiling * HEIGHT, 2),
        latest=known[-1] if known else None,
        highest_s=highest,
        is_age=is_age,
    )


def _path(
    indicator: Indicator,
    bins: Iterable[BinOfRuns],
    join_s: float,
    x: Callable[[float], float],
    y: Callable[[WorstDurations], float],
) -> Iterator[str]:
    """A line that is broken where nothing is known; a point between two gaps is a dot."""
    previous: BinOfRuns | None = None
    for one in bins:
        spread = one.durations.get(indicator)
        if spread is not None:
            joined = previous is not None and indicator in previous.durations and one.first_at - previous.last_at <= join_s
            yield f"{'L' if joined else 'M'}{x(one.last_at):g} {y(spread):.2f}{'' if joined else 'h0'}"
        previous = one


def _gaps(indicator: Indicator, bins: Sequence[BinOfRuns], join_s: float, span: ChartSpan) -> Iterator[tuple[float, float]]:
    """From when to when nothing is known; a bin counts as a whole if one of its runs knows nothing. They may touch."""
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


def _merged(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same stretches of time in order, those that touch as one."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _round_up(value: float) -> float:
    """The next of 1, 2 or 5 times a power of ten."""
    if value <= 0.0:
        return 0.001
    power = 10.0 ** (ceil(log10(value)) - 1)
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999))
