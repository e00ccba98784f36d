"""What all subscriptions of a server share: deadlines, timers, serial numbers, the conduct, and the list of effects."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from prober.embedded.conduct import Conduct
from prober.embedded.effects import Effect
from prober.embedded.lanes import Entry, Lane
from prober.embedded.leases import LeaseClock
from prober.embedded.subscribers import LateAnswer, PullCall, Stream

if TYPE_CHECKING:
    from prober.embedded.feed import Feed

Timed: TypeAlias = Lane | PullCall | Stream | LateAnswer
Forward: TypeAlias = "Callable[[Feed, Entry, float], bool]"


class Engine:
    """The shared part.

    effects  what the state wants done since somebody last took it.
    dirty    feeds that may have something to send, in the order in which that became known.
    forward  sends a message to its dead-letter topic; False when that does not exist.
    """

    __slots__ = ("_timers", "conduct", "dirty", "effects", "forward", "leases", "serial")

    def __init__(self, conduct: Conduct, first_serial: int, forward: Forward) -> None:
        self.conduct = conduct
        self.leases = LeaseClock()
        self.effects: list[Effect] = []
        self.dirty: dict[Feed, None] = {}
        self.forward = forward
        self.serial = first_serial
        self._timers: list[tuple[float, int, Feed, Timed]] = []

    def next_serial(self) -> int:
        """A number that was never given out before."""
        self.serial += 1
        return self.serial

    def set_timer(self, at: float, feed: Feed, what: Timed) -> None:
        """Have something looked at again at this time."""
        heapq.heappush(self._timers, (at, self.next_serial(), feed, what))

    def take_timers(self, now: float) -> list[tuple[Feed, Timed]]:
        """What has to be looked at again by now."""
        due = []
        while self._timers and self._timers[0][0] <= now:
            _, _, feed, what = heapq.heappop(self._timers)
            due.append((feed, what))
        return due

    def next_timer(self) -> float:
        """When the next timer is due."""
        return self._timers[0][0] if self._timers else math.inf
