"""How a network behaves: how long things take to get through it, and in which order they do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class NetworkConditions:
    """Times in seconds.

    latency_s     one way, at least.
    jitter_s      on top of that, exponentially distributed, on average.
    lull_share    of all that gets through, so much is held up for `lull_s` longer, and with it what comes behind it.
    disorder_s    a request of its own waits for up to so long at the service, so that it may be overtaken.
    """

    latency_s: float = 0.001
    jitter_s: float = 0.0
    lull_share: float = 0.0
    lull_s: float = 0.0
    disorder_s: float = 0.0

    def delay_s(self, rng: Random) -> float:
        """How long the next thing takes."""
        delay_s = self.latency_s
        if self.jitter_s:
            delay_s += rng.expovariate(1 / self.jitter_s)
        if self.lull_share and rng.random() < self.lull_share:
            delay_s += self.lull_s
        return delay_s


CALM = NetworkConditions()


class Pipe:
    """One direction of a connection: what is put in comes out in that order, later. `delay_s`: how long the next thing takes."""

    def __init__(self, delay_s: Callable[[], float]) -> None:
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        self._under_way: deque[Callable[[], None]] = deque()
        self._last_t = 0.0
        self._generation = 0

    def put(self, arrive: Callable[[], None]) -> None:
        """Calls `arrive` when it has got through, unless the connection breaks before."""
        self._last_t = max(self._last_t, self._loop.time() + self._delay_s())
        self._under_way.append(arrive)
        self._loop.call_at(self._last_t, self._arrived, self._generation)

    def lose(self) -> None:
        """What is under way never arrives."""
        self._under_way.clear()
        self._generation += 1

    def _arrived(self, generation: int) -> None:
        if generation == self._generation:
            self._under_way.popleft()()
