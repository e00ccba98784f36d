"""The only place where the project reads a clock."""

from __future__ import annotations

import time


def monotonic_s() -> float:
    """Seconds of a clock that never goes back, for durations and for the time of events."""
    return time.monotonic()


def wall_s() -> float:
    """Seconds since 1970, for people and for files; never for durations."""
    return time.time()
