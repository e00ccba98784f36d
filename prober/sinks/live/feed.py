"""The events of runs under way, for people who watch them: a sink that keeps the latest of each run, and hands new ones to viewers.

Everything is bounded: events of a run, viewers, and events that wait for a viewer. What a viewer misses is counted. Belongs to the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from prober.core.events import Event, Opened
from prober.core.findings import Finding
from prober.core.verdict import Verdict
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.sink import RunBegun, RunEnded

EVENTS_KEPT_MAX: Final = 500
"""Of each run, the latest."""
ENDED_KEPT_MAX: Final = 5
"""Runs that have ended; their events are kept for those who follow a finding to its message."""
VIEWERS_MAX: Final = 5
SESSIONS_MAX: Final = 1_000
"""Sessions of a run whose subscriber is kept."""


class TooManyViewers(Exception):
    """So many watch already that another one would disturb what is measured."""


class Step(NamedTuple):
    """An event with its number in the run, from 1 on, as findings name it; the findings made with it. `event` None: the end of the run."""

    number: int
    event: Event | None
    findings: Sequence[Finding]


@dataclass(eq=False, slots=True)
class WatchedRun:
    """A run under way, or one that has ended (`verdict`).

    steps        the latest events. `count`: how many there were; `first_t`: the time of the first, on the recorder's clock.
    owners       the subscriber of a session, by subscription and session.
    places       each subscriber with its place in the order of their beginning.
    """

    run_id: str
    probe_instance: ProbeInstance
    started_at: float
    steps: deque[Step] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT_MAX))
    owners: dict[tuple[str, str], str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    count: int = 0
    first_t: float = 0.0
    verdict: Verdict | None = None

    @property
    def last(self) -> int:
        """The number of the newest step; 0: there is none."""
        return self.steps[-1].number if self.steps else 0

    @property
    def missed(self) -> int:
        """How many events were too early to be kept."""
        return self.steps[0].number - 1 if self.steps else 0

    def event(self, seen: Observation) -> None:
        """Keeps an event."""
        event = seen.event
        if isinstance(event, Opened) and len(self.owners) < SESSIONS_MAX:
            self.owners[event.subscription, event.session] = event.subscriber
            self.places.setdefault(event.subscriber, len(self.places))
        self.first_t = self.first_t if self.count else event.t
        self.count += 1
        self.steps.append(Step(self.count, event, seen.findings))

    def ended(self, end: RunEnded) -> None:
        """Keeps the verdict, and the findings that only the end decided."""
        self.verdict = end.result.verdict
        self.steps.append(Step(self.count + 1, None, end.findings))


@dataclass(eq=False, slots=True)
class Viewer:
    """Follows a run behind an event. `missed`: events that were gone before they could be handed over."""

    run: WatchedRun
    after: int
    missed: int = 0

    def take(self, at_most: int) -> list[Step]:
        """The next events, at most so many."""
        taken = [step for step in self.run.steps if step.number > self.after][:at_most]
        if taken:
            self.missed += taken[0].number - self.after - 1
            self.after = taken[-1].number
        return taken


class LiveFeed:
    """A sink of runs. `viewers`: how many watch at the moment; `refused`: how many were one too many so far."""

    def __init__(self) -> None:
        self.viewers = 0
        self.refused = 0
        self._runs: dict[str, WatchedRun] = {}

    def begin(self, run: RunBegun) -> WatchedRun:
        """A run begins; the oldest of those that have ended is forgotten."""
        ended = [one.run_id for one in self._runs.values() if one.verdict is not None]
        for run_id in ended[: max(0, len(ended) - ENDED_KEPT_MAX)]:
            del self._runs[run_id]
        self._runs[run.run_id] = WatchedRun(run.run_id, run.probe_instance, run.started_at)
        return self._runs[run.run_id]

    def runs(self) -> tuple[WatchedRun, ...]:
        """The runs under way and the last that have ended, the newest first."""
        return tuple(reversed(self._runs.values()))

    @contextmanager
    def watching(self, run: WatchedRun, after: int) -> Iterator[Viewer]:
        """A viewer of the events of a run behind this number. Raises `TooManyViewers`."""
        if self.viewers >= VIEWERS_MAX:
            self.refused += 1
            raise TooManyViewers
        self.viewers += 1
        try:
            yield Viewer(run, after)
        finally:
            self.viewers -= 1
