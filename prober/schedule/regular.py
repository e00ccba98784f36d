"""Something small that a loop does again and again."""

from __future__ import annotations

from collections.abc import Callable

from prober.clock import monotonic_s


class Regular:
    """Something to be done again and again, `every_s` seconds after the time before."""

    def __init__(self, every_s: float, action: Callable[[], None]) -> None:
        self._every_s, self._action = every_s, action
        self._due_t = monotonic_s() + every_s

    def at(self, now: float, *, at_once: bool = False) -> None:
        """Does it if it is due, or wanted at once."""
        if now >= self._due_t:
            self._due_t = max(now, self._due_t + self._every_s)
            at_once = True
        if at_once:
            self._action()
