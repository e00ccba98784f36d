"""Network conditions: delays and order of transfers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class NetworkConditions:
    """Delays of a network, in seconds.

    latency_s     minimum one-way delay.
    jitter_s      mean of the exponentially distributed delay on top of it.
    lull_share    share of transfers that are held up for `lull_s` longer, and with them all later ones of the connection.
    disorder_s    maximum wait of a unary request at the service, so that later requests may overtake it.
    """

    latency_s: float = 0.001
    jitter_s: float = 0.0
    lull_share: float = 0.0
    lull_s: float = 0.0
    disorder_s: float = 0.0

    def delay_s(self, rng: Random) -> float:
        """Return the delay of the next transfer, in seconds."""
        delay_s = self.latency_s
        if self.jitter_s:
            delay_s += rng.expovariate(1 / self.jitter_s)
        if self.lull_share and rng.random() < self.lull_share:
            delay_s += self.lull_s
        return delay_s


CALM = NetworkConditions()


class Pipe:
    """One direction of a connection: data arrives later, in the order of sending. `delay_s`: delay of the next transfer."""

    def __init__(self, delay_s: Callable[[], float]) -> None:
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        self._under_way: deque[Callable[[], None]] = deque()
        self._last_t = 0.0
        self._generation = 0

    def put(self, arrive: Callable[[], None]) -> None:
        """Send data: `arrive` is called at its arrival, unless the connection breaks before."""
        self._last_t = max(self._last_t, self._loop.time() + self._delay_s())
        self._under_way.append(arrive)
        self._loop.call_at(self._last_t, self._arrived, self._generation)

    def lose(self) -> None:
        """Lose all data in transit."""
        self._under_way.clear()
        self._generation += 1

    def _arrived(self, generation: int) -> None:
        if generation == self._generation:
            self._under_way.popleft()()
