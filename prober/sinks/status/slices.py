"""What is counted for objectives, in slices of time, so that it survives restarts and adds up over several probers.

A process tells totals since it started. Of each slice of time it keeps how much of that falls into it, under its own name, so a slice may
be written any number of times, and whoever wants a window adds up the slices of all processes. Short slices serve the windows that alerts
look at, long ones the budget of a period; a window begins at the slice that it falls into.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from prober.sinks.status.records import Slice
from prober.slo.objectives import DAY_S, Objective, SliCounts

SHORT_S: Final = 300
LONG_S: Final = 3600
KEPT_S: Final[Mapping[int, float]] = MappingProxyType({SHORT_S: 2 * DAY_S, LONG_S: 92 * DAY_S})
SHORT_WINDOW_MAX_S: Final = DAY_S
WAITING_MAX: Final = 20_000


class Series(NamedTuple):
    """What a process counts: the things of one definition, for one objective on one target."""

    target: str
    objective: str
    definition: str


class Counted(NamedTuple):
    """What the slices of a window add up to. `since`: when the first of them began, of slices so long."""

    total: SliCounts
    since: float
    length_s: int


class SliceSpan(NamedTuple):
    """A slice of a series."""

    series: Series
    length_s: int
    begins_at: float


@dataclass(slots=True)
class _Open:
    """The newest slice of a series: when it began, and the total then."""

    begins_at: float
    base: SliCounts


class Slices:
    """Cuts the totals of one process into slices, and keeps those that have to be written. Bounded; `dropped` counts what was not kept."""

    def __init__(self, process: str) -> None:
        self.dropped = 0
        self._process = process
        self._open: dict[tuple[Series, int], _Open] = {}
        self._totals: dict[Series, SliCounts] = {}
        self._waiting: dict[SliceSpan, SliCounts] = {}

    def told(self, series: Series, total: SliCounts, at: float) -> None:
        """So much was counted since the process started. What was counted since it was last told belongs to the slice of `at`."""
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
        """What has to be written; it is not waiting any more."""
        taken, self._waiting = self._waiting, {}
        return taken

    def put_back(self, taken: Mapping[SliceSpan, SliCounts]) -> None:
        """It could not be written. What was told of the same slices since then takes precedence."""
        newer, self._waiting = self._waiting, {}
        for span, counts in (dict(taken) | newer).items():
            self._keep(span, counts)

    def as_slices(self, taken: Mapping[SliceSpan, SliCounts]) -> list[Slice]:
        """What was taken, as it is written."""
        return [Slice(self._process, *span.series, span.length_s, span.begins_at, counts) for span, counts in taken.items()]

    def _keep(self, span: SliceSpan, counts: SliCounts) -> None:
        if span not in self._waiting and len(self._waiting) >= WAITING_MAX:
            del self._waiting[next(iter(self._waiting))]  # the oldest
            self.dropped += 1
        self._waiting[span] = counts


def begin_of(at: float, length_s: int) -> float:
    """When the slice began that a point in time falls into."""
    return at // length_s * length_s


def counting_since(windows: Iterable[Counted], started: Iterable[float]) -> float:
    """Since when something was counted in the longest of these windows of a series, of which there is one.

    As exactly as the slices of shorter windows tell, and when probers started: nothing was counted before the first one did.
    """
    by_length = sorted(windows, key=lambda one: (one.since, -one.length_s))
    since, length_s = by_length[0].since, by_length[0].length_s
    for one in by_length[1:]:
        if one.length_s < length_s and one.since < since + length_s:
            since, length_s = one.since, one.length_s
    first = min(started, default=since)
    return first if since <= first < since + length_s else since


def length_for(window_s: float) -> int:
    """Which slices a window is added up from."""
    return SHORT_S if window_s <= SHORT_WINDOW_MAX_S else LONG_S


def definition_of(objective: Objective) -> str:
    """What an objective counts, as text: when this changes, old counts mean something else."""
    return str(objective.indicator) if objective.threshold_s is None else f"{objective.indicator} {objective.threshold_s!r} s"
