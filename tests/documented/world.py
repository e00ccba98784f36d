"""Virtual time, seeded randomness and the recorders of one simulated history."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import count
from random import Random

from prober.core.events import Event, Opened, PublishInvoked, Sought
from tests.documented.freedoms import Freedom
from tests.documented.settings import Settings

LONGEST_S = 20_000.0


class World:
    """A discrete-event simulation: actions run in the order of their virtual times."""

    def __init__(self, settings: Settings, rng: Random, switched_off: Collection[Freedom]) -> None:
        self.settings = settings
        self.rng = rng
        self.now = 0.0
        self.faults = True
        self.used: Counter[Freedom] = Counter()
        self.switched_off = switched_off
        self.recorder = Recorder(rng, settings.clock_error_s)
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Schedule an action in `delay_s` seconds."""
        self.at(self.now + delay_s, action)

    def at(self, t: float, action: Callable[[], None]) -> None:
        """Schedule an action for a time; actions of the same time keep their order."""
        heapq.heappush(self._actions, (t, next(self._numbers), action))

    def run(self) -> None:
        """Run until no action is left. Raises AssertionError if the history never ends."""
        while self._actions:
            self.now, _, action = heapq.heappop(self._actions)
            assert self.now < LONGEST_S, "the simulated service never drains"
            action()

    def between(self, low: float, high: float) -> float:
        """Draw a time that is mostly near the lower bound."""
        return low + (high - low) * self.rng.random() ** self.rng.choice((1, 4, 8))

    def fault(self, probability: float) -> bool:
        """Draw a fault: none happens while the history drains."""
        return self.faults and self.rng.random() < probability * self.settings.fault_rate

    def take(self, freedom: Freedom, probability: float = 9.0) -> bool:
        """Draw whether the service or its client takes a freedom now, and count it."""
        if freedom in self.switched_off or not self.fault(probability):
            return False
        self.used[freedom] += 1
        return True

    def note(self, freedom: Freedom) -> None:
        """Count a freedom that follows from earlier choices."""
        self.used[freedom] += 1


class Recorder:
    """Recorders with clocks of their own, whose records are merged by the times that they show."""

    def __init__(self, rng: Random, clock_error_s: float) -> None:
        self._rng = rng
        self._clock_error_s = clock_error_s
        self._skews: dict[str, float] = {}
        self._events: list[Event] = []

    def write(self, clock: str, event: Event) -> None:
        """Record an event with true times under the clock of its recorder."""
        skew = self._skew(clock)
        shown = replace(event, t=round(event.t + skew, 6))
        if isinstance(shown, Opened) and shown.invoked_t is not None:
            shown = replace(shown, invoked_t=round(shown.invoked_t + skew, 6))
        elif isinstance(shown, PublishInvoked) and shown.intended_t is not None:
            shown = replace(shown, intended_t=round(shown.intended_t + skew, 6))
        elif isinstance(shown, Sought) and shown.since_t is not None:
            shown = replace(shown, since_t=round(shown.since_t + skew, 6))
        self._events.append(shown)

    def events(self) -> list[Event]:
        """Return all events in the order of the times that their recorders show."""
        return sorted(self._events, key=lambda event: event.t)

    def _skew(self, clock: str) -> float:
        if clock not in self._skews:
            self._skews[clock] = (self._rng.random() - 0.5) * self._clock_error_s
        return self._skews[clock]
