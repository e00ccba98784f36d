"""How a network behaves: how long things take to get through it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Weather:
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

    def delay_s(self, chance: Random) -> float:
        """How long the next thing takes."""
        delay_s = self.latency_s
        if self.jitter_s:
            delay_s += chance.expovariate(1 / self.jitter_s)
        if self.lull_share and chance.random() < self.lull_share:
            delay_s += self.lull_s
        return delay_s


CALM = Weather()
