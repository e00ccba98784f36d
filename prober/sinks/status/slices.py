"""Counts of objectives by slice of time: they survive restarts and add up over several probers.

A process counts totals since its start. For each slice of time it stores the increase within the slice, under its own name, so a slice
may be written any number of times. A window is the sum of the slices of all processes. Slices of a minute serve windows up to two hours,
slices of five minutes windows up to a day, slices of an hour longer windows and the measured share of a period. A window begins at the
slice boundary nearest to its start, so its length is right to half a slice: a tenth for five minutes, 2 % or less for the others. Slices
of a minute of the publish availability also serve the monthly uptime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from prober.sinks.status.prober_records import Slice
from prober.slo.budgets import MeasuredHours, SloSnapshot, exhaustion_s
from prober.slo.objectives import DAY_S, HOUR_S, Objective, SliCounts
from prober.slo.uptime import COUNTED

MINUTE_SLICE_S: Final = 60
SHORT_S: Final = 300
LONG_S: Final = 3600
KEPT_S: Final[Mapping[int, float]] = MappingProxyType({MINUTE_SLICE_S: 3 * HOUR_S, SHORT_S: 2 * DAY_S, LONG_S: 92 * DAY_S})
UPTIME_DEFINITION: Final = str(COUNTED)
UPTIME_KEPT_S: Final = 63 * DAY_S
"""Retention of this definition's minute slices: the monthly uptime of this month and the last one needs them."""
WINDOW_MAX_S: Final[Mapping[int, float]] = MappingProxyType({MINUTE_SLICE_S: 2 * HOUR_S, SHORT_S: DAY_S})
"""Longest window that slices of each length serve."""
WAITING_MAX: Final = 50_000


class Series(NamedTuple):
    """A counted series: one definition, for one objective on one target."""

    target: str
    objective: str
    definition: str


class Counted(NamedTuple):
    """Sum of the slices of a window. `since`: start of its first slice, with the length of slices. `hours`: hours with decided events."""

    total: SliCounts
    since: float
    length_s: int
    hours: MeasuredHours


class SliceSpan(NamedTuple):
    """A slice of a series."""

    series: Series
    length_s: int
    begins_at: float


@dataclass(slots=True)
class _Open:
    """The newest slice of a series: its start, and the total at that time."""

    begins_at: float
    base: SliCounts


class Slices:
    """Divides the totals of one process into slices, and keeps unwritten slices. Bounded; `dropped` counts discarded slices."""

    def __init__(self, process: str) -> None:
        self.dropped = 0
        self._process = process
        self._open: dict[tuple[Series, int], _Open] = {}
        self._totals: dict[Series, SliCounts] = {}
        self._waiting: dict[SliceSpan, SliCounts] = {}

    def record(self, series: Series, total: SliCounts, at: float) -> None:
        """Record the total since the start of the process.

        The increase since the last call belongs to the slice of `at`.
        """
        before = self._totals.get(series, SliCounts())
        if total == before:
            return
        self._totals[series] = total
        for length_s in KEPT_S:
            begins_at = begin_of(at, length_s)
            current = self._open.get((series, length_s))
            if current is None or current.begins_at < begins_at:
                current = self._open[series, length_s] = _Open(begins_at, before)
            self._keep(SliceSpan(series, length_s, current.begins_at), total - current.base)

    def take(self) -> dict[SliceSpan, SliCounts]:
        """Return and remove the slices to write."""
        taken, self._waiting = self._waiting, {}
        return taken

    def put_back(self, taken: Mapping[SliceSpan, SliCounts]) -> None:
        """Keep slices that could not be written. Newer counts take precedence; slices older than any window are omitted."""
        newer, self._waiting = self._waiting, {}
        waiting = dict(taken) | newer
        newest = max((span.begins_at for span in waiting), default=0.0)
        for span, counts in waiting.items():
            if span.begins_at >= newest - kept_s(span.length_s, span.series.definition):
                self._keep(span, counts)

    def as_slices(self, taken: Mapping[SliceSpan, SliCounts]) -> list[Slice]:
        """Return taken slices as records."""
        return [Slice(self._process, *span.series, span.length_s, span.begins_at, counts) for span, counts in taken.items()]

    def _keep(self, span: SliceSpan, counts: SliCounts) -> None:
        if span not in self._waiting and len(self._waiting) >= WAITING_MAX:
            del self._waiting[next(iter(self._waiting))]  # the oldest
            self.dropped += 1
        self._waiting[span] = counts


def begin_of(at: float, length_s: int) -> float:
    """Return the start of the slice that contains a time."""
    return at // length_s * length_s


def counting_since(windows: Iterable[Counted], started: Iterable[float]) -> float:
    """Return the time since which events were counted in the longest of these windows of a series.

    As exactly as the slices of shorter windows show, and not before the first prober started.
    """
    by_length = sorted(windows, key=lambda one: (one.since, -one.length_s))
    since, length_s = by_length[0].since, by_length[0].length_s
    for one in by_length[1:]:
        if one.length_s < length_s and one.since < since + length_s:
            since, length_s = one.since, one.length_s
    first = min(started, default=since)
    return first if since <= first < since + length_s else since


def kept_s(length_s: int, definition: str) -> float:
    """Return the retention of slices of this length and definition, in seconds."""
    return UPTIME_KEPT_S if definition == UPTIME_DEFINITION and length_s == MINUTE_SLICE_S else KEPT_S[length_s]


def length_for(window_s: float) -> int:
    """Return the length of the slices that add up to a window."""
    return next((length_s for length_s, max_s in WINDOW_MAX_S.items() if window_s <= max_s), LONG_S)


def window_begin(window_s: float, now: float) -> float:
    """Return the start of the first slice of a window that ends now: the boundary nearest to `now - window_s`."""
    length_s = length_for(window_s)
    return begin_of(now - window_s + length_s / 2, length_s)


def definition_of(objective: Objective) -> str:
    """Return the definition of an objective's counts as text; when it changes, old counts are invalid."""
    return str(objective.indicator) if objective.threshold_s is None else f"{objective.indicator} {objective.threshold_s!r} s"


# --- how fast the budget of an objective was spent lately, for the pages and for programs alike -------------------------------


@dataclass(frozen=True, slots=True)
class CountedWindow:
    """The counts of an objective on a target in the last `window_s` seconds; None where nothing was decided."""

    window_s: float
    total: SliCounts
    burn_rate: float | None
    exhausted_in_s: float | None


def counted_windows(slo: SloSnapshot, counted: Mapping[float, Mapping[Series, SliCounts]]) -> Iterator[CountedWindow]:
    """The windows of an objective on a target, by what was `counted` in each of them."""
    objective = slo.objective
    series = Series(slo.target, objective.name, definition_of(objective))
    for window_s, counts in counted.items():
        total = counts.get(series, SliCounts())
        rate = objective.burn_rate(total)
        yield CountedWindow(window_s, total, rate, exhaustion_s(objective, slo.budget_left, rate))
