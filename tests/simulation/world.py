"""Virtual time, one source of randomness and the record: what every part of the simulated system shares.

Time is a number that jumps from one timer to the next. Nothing sleeps, and a run is a function of its seed. What a recorder writes
carries the time of its clock (`recorders`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random

from prober.core.events import Event
from tests.simulation.faults import Fault
from tests.simulation.options import NEVER, Options, RecordOptions
from tests.simulation.recorders import STEP_EVERY_S, Recorder, Recorders


@dataclass(slots=True)
class World:
    """One run: clock, timers, dice, record. `fault` is the bug that the service has, None for a legal one."""

    random: Random
    record_options: RecordOptions
    fault: Fault | None = None
    now: float = 0.0
    draining: bool = False
    events: list[Event] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    fired: list[str] = field(default_factory=list)
    recorders: Recorders = field(init=False)
    _timers: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.recorders = Recorders(self.random, self.record_options, lambda: self.now)
        if self.record_options.clock_error_s and self.record_options.clock_steps:
            self.every(STEP_EVERY_S, self.recorders.step)

    def record(self, event: Event) -> None:
        self.events.append(event)

    def merged(self) -> list[Event]:
        """What all recorders wrote, by the times that they wrote; what has one time stays in the order in which it happened."""
        return sorted(self.events, key=lambda event: event.t)

    def note(self, what: str) -> None:
        """Count an interesting situation, so that a run in which nothing happened can be reported."""
        self.seen[what] += 1

    # --- time ---

    def after(self, delay: float, action: Callable[[], None]) -> None:
        assert delay >= 0
        self.at(self.now + delay, action)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Timers of the same time fire in the order in which they were set."""
        heappush(self._timers, (time, next(self._numbers), action))

    def every(self, mean_s: float, action: Callable[[], None]) -> None:
        """At random times, that far apart on average, until the run drains."""
        if mean_s >= NEVER:
            return

        def again() -> None:
            if not self.draining:
                action()
                self.after(self.random.expovariate(1 / mean_s), again)

        self.after(self.random.expovariate(1 / mean_s), again)

    def run(self, until: float) -> None:
        """Let timers fire up to and including `until`."""
        while self._timers and self._timers[0][0] <= until:
            self.now, _, action = heappop(self._timers)
            action()
        self.now = max(self.now, until)

    # --- randomness ---

    def happens(self, probability: float) -> bool:
        """Whether something happens that goes wrong, with this probability going wrong: never while draining."""
        return not self.draining and self.random.random() < probability

    def between(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)

    # --- bugs ---

    def broken(self, fault: Fault, probability: float) -> bool:
        """Whether the service's bug is `fault` and shows now. What it then does must be reported by `fire`."""
        return self.fault is fault and self.random.random() < probability

    def fire(self, what: str) -> None:
        """The bug made a difference."""
        self.fired.append(f"{what}@{self.now:.3f}")

    def number(self) -> int:
        return next(self._numbers)


@dataclass(slots=True)
class ProbeInstance:
    """One subscription in the world."""

    world: World
    name: str
    options: Options

    def any_recorder(self) -> Recorder:
        return self.world.recorders.any()
