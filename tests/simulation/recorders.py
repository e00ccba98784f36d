"""The clocks of the processes that record: one, or several that disagree.

With one recorder its clock is the time itself. With several, each is wrong by something between 0 and the clock error, so that two of
them disagree by at most that (S4); an error is constant or, in some runs, steps now and then within the same range. No clock ever goes
back. What was recorded is merged by recorded times: each recorder's own events stay in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.simulation.options import RecordOptions

STEP_EVERY_S = 60.0


@dataclass(slots=True)
class Recorder:
    """One process's clock. `time` is the true time."""

    time: Callable[[], float]
    error_s: float = 0.0
    last_t: float = 0.0

    @property
    def t(self) -> float:
        """What the clock shows now."""
        self.last_t = max(self.last_t, self.time() + self.error_s)
        return self.last_t


@dataclass(slots=True)
class Recorders:
    """All recorders of a run; the first belongs to the publisher."""

    random: Random
    options: RecordOptions
    time: Callable[[], float]
    all: list[Recorder] = field(default_factory=list)

    def __post_init__(self) -> None:
        for _ in range(self.options.recorders):
            self.all.append(Recorder(self.time, self._error()))

    @property
    def publisher(self) -> Recorder:
        return self.all[0]

    def any(self) -> Recorder:
        """The recorder of a new client."""
        return self.random.choice(self.all) if len(self.all) > 1 else self.all[0]

    def step(self) -> None:
        """A clock is corrected."""
        self.random.choice(self.all).error_s = self._error()

    def _error(self) -> float:
        error = self.options.clock_error_s
        return self.random.choice((0.0, error, self.random.uniform(0, error))) if error else 0.0
