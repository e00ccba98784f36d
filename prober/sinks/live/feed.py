"""The events of runs under way, for people who watch them: a sink that keeps the latest of each run, and hands new ones to viewers.

Everything is bounded: events of a run, keys, events of a key, and viewers. Belongs to the loop.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from typing import Final, NamedTuple

from prober.clock import monotonic_s
from prober.core.events import Event, Opened
from prober.core.findings import Finding
from prober.core.verdict import Verdict
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.sink import RunBegun, RunEnded

EVENTS_KEPT_MAX: Final = 500
"""Of each run, the latest."""
KEY_EVENTS_KEPT_MAX: Final = 100
"""Of each key, the latest beside those."""
KEYS_KEPT_MAX: Final = 200
"""Of each run, those with the latest events."""
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

    @property
    def key(self) -> str | None:
        """The ordering key of the event's message, empty if that has none; None: the event concerns all keys."""
        key: str | None = getattr(self.event, "key", None)
        return key


_latest_steps = partial(deque[Step], maxlen=KEY_EVENTS_KEPT_MAX)


@dataclass(eq=False, slots=True)
class WatchedRun:
    """A run under way, or one that has ended (`verdict`).

    steps        the latest events. `count`: how many there were.
    begun_t      when the run began, on the recorder's clock; `first_t`: the time of the first event.
    keys         the latest events of each key, and those that revealed a finding on it; the key with the newest event last.
    general      the latest events that concern all keys.
    owners       the subscriber of a session, by subscription and session.
    places       each subscriber with its place in the order of their beginning.
    """

    run_id: str
    probe_instance: ProbeInstance
    started_at: float
    steps: deque[Step] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT_MAX))
    keys: OrderedDict[str, deque[Step]] = field(default_factory=OrderedDict)
    general: deque[Step] = field(default_factory=_latest_steps)
    owners: dict[tuple[str, str], str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    count: int = 0
    begun_t: float = field(default_factory=monotonic_s)
    first_t: float = 0.0
    verdict: Verdict | None = None

    @property
    def last(self) -> int:
        """The number of the newest step; 0: there is none."""
        return self.steps[-1].number if self.steps else 0

    def steps_of(self, key: str) -> list[Step]:
        """The latest events of a key with those that concern all keys, in order; of an empty key, the latest of all."""
        if not key:
            return list(self.steps)
        own = self.keys.get(key) or [step for step in self.steps if step.key == key]
        return list(merge(own, self.general, key=lambda step: step.number))

    def event(self, seen: Observation) -> None:
        """Keeps an event."""
        event = seen.event
        if isinstance(event, Opened) and len(self.owners) < SESSIONS_MAX:
            self.owners[event.subscription, event.session] = event.subscriber
            self.places.setdefault(event.subscriber, len(self.places))
        self.first_t = self.first_t if self.count else event.t
        self.count += 1
        self._keep(Step(self.count, event, seen.findings))

    def ended(self, end: RunEnded) -> None:
        """Keeps the verdict, and the findings that only the end decided."""
        self.verdict = end.result.verdict
        self._keep(Step(self.count + 1, None, end.findings))

    def _keep(self, step: Step) -> None:
        self.steps.append(step)
        keys = {step.key, *(finding.key for finding in step.findings)}
        if None in keys:
            self.general.append(step)
        else:
            for key in filter(None, keys):
                self._latest_of(key).append(step)

    def _latest_of(self, key: str) -> deque[Step]:
        """The latest events of a key, which becomes the newest; the oldest key is dropped for a new one."""
        if key not in self.keys:
            self.keys[key] = _latest_steps()
            if len(self.keys) > KEYS_KEPT_MAX:
                self.keys.popitem(last=False)
        self.keys.move_to_end(key)
        return self.keys[key]


@dataclass(eq=False, slots=True)
class Viewer:
    """Follows a run behind an event; with a key, only the events of that key and those that concern all keys."""

    run: WatchedRun
    key: str
    after: int

    @property
    def is_over(self) -> bool:
        """Whether the run has ended and all its events were handed over."""
        return self.run.verdict is not None and self.after >= self.run.last

    def take(self, at_most: int) -> list[Step]:
        """The next events, at most so many."""
        taken = [step for step in self.run.steps_of(self.key) if step.number > self.after][:at_most]
        if taken:
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
    def watching(self, run: WatchedRun, key: str, after: int) -> Iterator[Viewer]:
        """A viewer of the events of a run behind this number; `key` empty: of all keys. Raises `TooManyViewers`."""
        if self.viewers >= VIEWERS_MAX:
            self.refused += 1
            raise TooManyViewers
        self.viewers += 1
        try:
            yield Viewer(run, key, after)
        finally:
            self.viewers -= 1
