"""Live feed of runs: a sink that keeps the latest events of each run and passes new events to viewers.

Numbers of events, keys and viewers are bounded. For the event loop only.
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
"""Latest events kept for each run."""
KEY_EVENTS_KEPT_MAX: Final = 100
"""Latest events kept for each key, in addition to those of its run."""
KEYS_KEPT_MAX: Final = 200
"""Keys kept for each run: those with the latest events."""
ENDED_KEPT_MAX: Final = 5
"""Ended runs whose events are kept, for links from a finding to its message."""
VIEWERS_MAX: Final = 5
SESSIONS_MAX: Final = 1_000
"""Sessions of a run whose subscriber is kept."""


class TooManyViewers(Exception):
    """The maximum number of viewers is reached; another would disturb the measurements."""


class Step(NamedTuple):
    """An event with its number in the run, from 1 on, and the findings made with it.

    Witnesses of findings are these numbers. `event` None: the end of the run.
    """

    number: int
    event: Event | None
    findings: Sequence[Finding]

    @property
    def key(self) -> str | None:
        """Ordering key of the event's message, empty if it has none; None: the event concerns all keys."""
        key: str | None = getattr(self.event, "key", None)
        return key


_latest_steps = partial(deque[Step], maxlen=KEY_EVENTS_KEPT_MAX)


@dataclass(eq=False, slots=True)
class WatchedRun:
    """A run in progress, or an ended run (`verdict`).

    steps        the latest events. `count`: number of all events.
    begun_t      start of the run, on the recorder's clock; `first_t`: time of the first event.
    keys         the latest events of each key, and those that revealed a finding on it; the key with the newest event last.
    general      the latest events that concern all keys.
    owners       subscriber of each session, by subscription and session.
    places       position of each subscriber in the order of their first sessions.
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
        """Number of the newest step; 0 if there is none."""
        return self.steps[-1].number if self.steps else 0

    def steps_of(self, key: str) -> list[Step]:
        """Return the latest events of a key and those that concern all keys, in order; for an empty key, the latest of all."""
        if not key:
            return list(self.steps)
        own = self.keys.get(key) or [step for step in self.steps if step.key == key]
        return list(merge(own, self.general, key=lambda step: step.number))

    def event(self, seen: Observation) -> None:
        """Keep an event."""
        event = seen.event
        if isinstance(event, Opened) and len(self.owners) < SESSIONS_MAX:
            self.owners[event.subscription, event.session] = event.subscriber
            self.places.setdefault(event.subscriber, len(self.places))
        self.first_t = self.first_t if self.count else event.t
        self.count += 1
        self._keep(Step(self.count, event, seen.findings))

    def ended(self, end: RunEnded) -> None:
        """Keep the verdict, and the findings that only the end decided."""
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
        """Return the latest events of a key and mark the key as the newest; beyond the limit, drop the oldest key."""
        if key not in self.keys:
            self.keys[key] = _latest_steps()
            if len(self.keys) > KEYS_KEPT_MAX:
                self.keys.popitem(last=False)
        self.keys.move_to_end(key)
        return self.keys[key]


@dataclass(eq=False, slots=True)
class Viewer:
    """Reader of a run's events after the number `after`; with a key, only of its events and those that concern all keys."""

    run: WatchedRun
    key: str
    after: int

    @property
    def is_over(self) -> bool:
        """Whether the run has ended and the viewer has taken all its events."""
        return self.run.verdict is not None and self.after >= self.run.last

    def take(self, at_most: int) -> list[Step]:
        """Return the next events, at most `at_most`."""
        taken = [step for step in self.run.steps_of(self.key) if step.number > self.after][:at_most]
        if taken:
            self.after = taken[-1].number
        return taken


class LiveFeed:
    """A sink of runs. `viewers`: number of current viewers; `refused`: number of viewers rejected so far because of the limit."""

    def __init__(self) -> None:
        self.viewers = 0
        self.refused = 0
        self._runs: dict[str, WatchedRun] = {}

    def begin(self, run: RunBegun) -> WatchedRun:
        """Return the record of a run that starts; drop the oldest ended runs beyond the limit."""
        ended = [one.run_id for one in self._runs.values() if one.verdict is not None]
        for run_id in ended[: max(0, len(ended) - ENDED_KEPT_MAX)]:
            del self._runs[run_id]
        self._runs[run.run_id] = WatchedRun(run.run_id, run.probe_instance, run.started_at)
        return self._runs[run.run_id]

    def runs(self) -> tuple[WatchedRun, ...]:
        """Return the runs in progress and the latest ended runs, the newest first."""
        return tuple(reversed(self._runs.values()))

    @contextmanager
    def watching(self, run: WatchedRun, key: str, after: int) -> Iterator[Viewer]:
        """Yield a viewer of a run's events after the number `after`; an empty key means all keys. Raises `TooManyViewers`."""
        if self.viewers >= VIEWERS_MAX:
            self.refused += 1
            raise TooManyViewers
        self.viewers += 1
        try:
            yield Viewer(run, key, after)
        finally:
            self.viewers -= 1
