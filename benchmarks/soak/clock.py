"""`ordering-prober` on a machine whose clock is set while it runs: `python -m benchmarks.soak.clock ARGUMENTS`.

SIGUSR1 sets the wall clock of this process forward by `STEP_S`, SIGUSR2 sets it back. What reads the clock in C sees the real one.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Final

STEP_S: Final = 30.0
FORWARD: Final = signal.SIGUSR1
BACK: Final = signal.SIGUSR2


class SteppedClock:
    """A clock with an adjustable offset to another clock."""

    def __init__(self, true: Callable[[], float]) -> None:
        self._true = true
        self.ahead_s = 0.0

    def __call__(self) -> float:
        """Return seconds since 1970, with the offset."""
        return self._true() + self.ahead_s

    def set_by(self, seconds: float) -> None:
        """Set the clock forward, or back."""
        self.ahead_s += seconds


def main() -> int:
    """Run the command with this clock in all threads."""
    clock = SteppedClock(time.time)
    time.time = clock
    signal.signal(FORWARD, lambda *_: clock.set_by(STEP_S))
    signal.signal(BACK, lambda *_: clock.set_by(-STEP_S))
    from prober.cli import main as command  # takes the clock when it is imported

    return command()


if __name__ == "__main__":
    sys.exit(main())
