"""One pending wake-up for each lane, at the earliest of the requested times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from tests.documented.lanes import Lane
from tests.documented.world import World


class Alarms:
    """Wakes the sender of a lane. The service takes up to 0.3 s longer than requested."""

    def __init__(self, world: World, wake: Callable[[Lane], None]) -> None:
        self._world = world
        self._wake = wake
        self._due: dict[Lane, float] = {}

    def set(self, lane: Lane, delay_s: float) -> None:
        """Request a wake-up in `delay_s` seconds; an earlier one that is pending suffices."""
        t = self._world.now + delay_s + self._world.between(0.001, 0.3)
        if t < self._due.get(lane, inf):
            self._due[lane] = t
            self._world.at(t, partial(self._ring, lane, t))

    def _ring(self, lane: Lane, t: float) -> None:
        if self._due.get(lane) == t:
            del self._due[lane]
            self._wake(lane)
