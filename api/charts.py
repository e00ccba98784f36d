"""Durations over time, from the runs that are kept: small charts, ready to be drawn. What is not known is a gap, never a zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log10
from typing import Final

from api.words import counted, duration
from prober.runs.result import Durations
from prober.sinks.status.records import RunRecord
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective

RUNS_MAX: Final = 240
"""So many of the newest runs of a site make its charts."""
WIDTH: Final = 300.0
HEIGHT: Final = 60.0
MISSED_INTERVALS: Final = 3
"""Two points are joined unless so many runs are missing between them."""

TITLES: Final = {
    Indicator.PUBLISH_LATENCY: "publish latency",
    Indicator.END_TO_END_LATENCY: "end-to-end latency",
    Indicator.OLDEST_UNACKED_MESSAGE_AGE: "oldest unacknowledged message",
}
"""What is shown, in this order."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a run that ended at `at` knows; None: nothing."""

    at: float
    durations: Durations | None


@dataclass(frozen=True, slots=True)
class Chart:
    """One indicator at one site.

    upper, lower   path data of what 99 % did not exceed and of the median, or of the longest and nothing for an age.
    gaps           where nothing is known: left edge and width.
    ceiling_s      the top of the chart; `limit` is the height of the objective's threshold in it, None if it lies above or there is none.
    latest         of the newest run that knows; None: none of them does.
    """

    title: str
    upper: str
    lower: str
    gaps: tuple[tuple[float, float], ...]
    ceiling_s: float
    limit: float | None
    latest: Durations | None
    highest_s: float
    since: float
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
        """What the newest run says, in words."""
        if self.latest is None:
            return "unknown"
        if self.is_age:
            return f"up to {duration(self.latest.max_s)}"
        return f"99 % within {duration(self.latest.p99_s)}, half within {duration(self.latest.p50_s)}"


def charts(runs: Sequence[RunRecord], interval_s: float, now: float, objectives: Iterable[Objective]) -> tuple[Chart, ...]:
    """The charts of a site from its newest runs, in any order. None without runs."""
    ordered = sorted(runs, key=lambda run: run.ended_at)
    if not ordered:
        return ()
    limits = {objective.indicator: objective.threshold_s for objective in objectives}
    join_s = MISSED_INTERVALS * interval_s + max(run.result.duration_s for run in ordered)
    return tuple(
        _chart(
            indicator,
            [Point(run.ended_at, run.result.durations.get(indicator)) for run in ordered],
            join_s,
            now,
            limits.get(indicator),
        )
        for indicator in TITLES
    )


def _chart(indicator: Indicator, points: Sequence[Point], join_s: float, now: float, limit_s: float | None) -> Chart:
    is_age = indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE
    known = [point.durations for point in points if point.durations is not None]
    highest = max((spread.max_s if is_age else spread.p99_s for spread in known), default=0.0)
    ceiling = _round_up(highest)
    since = points[0].at
    span = max(now - since, 1.0)

    def x(at: float) -> float:
        return round(min(1.0, max(0.0, (at - since) / span)) * WIDTH, 2)

    def path(value: Callable[[Durations], float]) -> str:
        return "".join(_path(points, join_s, x, lambda spread: HEIGHT - value(spread) / ceiling * HEIGHT))

    return Chart(
        title=TITLES[indicator],
        upper=path(lambda spread: spread.max_s if is_age else spread.p99_s),
        lower="" if is_age else path(lambda spread: spread.p50_s),
        gaps=tuple((x(begin), round(max(1.0, x(end) - x(begin)), 2)) for begin, end in _gaps(points, join_s, now)),
        ceiling_s=ceiling,
        limit=None if limit_s is None or limit_s > ceiling else round(HEIGHT - limit_s / ceiling * HEIGHT, 2),
        latest=known[-1] if known else None,
        highest_s=highest,
        since=since,
        is_age=is_age,
    )


def _path(points: Iterable[Point], join_s: float, x: Callable[[float], float], y: Callable[[Durations], float]) -> Iterator[str]:
    """A line that is broken where nothing is known; a point between two gaps is a dot."""
    previous: Point | None = None
    for point in points:
        if point.durations is not None:
            joined = previous is not None and previous.durations is not None and point.at - previous.at <= join_s
            yield f"{'L' if joined else 'M'}{x(point.at):g} {y(point.durations):.2f}{'' if joined else 'h0'}"
        previous = point


def _gaps(points: Sequence[Point], join_s: float, now: float) -> Iterator[tuple[float, float]]:
    """From when to when nothing is known."""
    begin = points[0].at if points[0].durations is None else None
    for earlier, point in pairwise(points):
        if point.durations is None:
            begin = earlier.at if begin is None else begin
        elif begin is not None:
            yield begin, point.at
            begin = None
        elif point.at - earlier.at > join_s:
            yield earlier.at, point.at
    late = now - points[-1].at > join_s
    if begin is not None or late:
        yield (points[-1].at if begin is None else begin), now


def _round_up(value: float) -> float:
    """The next of 1, 2 or 5 times a power of ten."""
    if value <= 0.0:
        return 0.001
    power = 10.0 ** (ceil(log10(value)) - 1)
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999))
