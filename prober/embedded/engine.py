"""State shared by all subscriptions of a server."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import Generic, TypeAlias, TypeVar

from prober.embedded.behaviour import Behaviour
from prober.embedded.key_queues import ConfirmedAck, EarlyLook, KeyQueue, LateAnswer, LeaseClock, PullCall, QueueEntry, Stream
from prober.embedded.messages import Effect, EndStream

Owner = TypeVar("Owner")
"""Type of the subscription queues."""
Timed: TypeAlias = KeyQueue | PullCall | Stream | LateAnswer | EarlyLook | ConfirmedAck | EndStream


class Engine(Generic[Owner]):
    """Deadlines, timers, serial numbers, the behaviour, and the list of effects.

    effects  effects of the state since the last take.
    dirty    subscription queues that may have messages to send, in the order of their changes.
    forward  forwards a message to its dead-letter topic; returns False if the topic does not exist.
    elsewhere  outstanding entries on the other subscriptions of the topic.
    """

    __slots__ = ("_timers", "behaviour", "dirty", "effects", "elsewhere", "forward", "leases", "serial")

    def __init__(
        self,
        behaviour: Behaviour,
        first_serial: int,
        forward: Callable[[Owner, QueueEntry, float], bool],
        elsewhere: Callable[[Owner], Iterator[QueueEntry]],
    ) -> None:
        self.behaviour = behaviour
        self.leases: LeaseClock[Owner] = LeaseClock()
        self.effects: list[Effect] = []
        self.dirty: dict[Owner, None] = {}
        self.forward = forward
        self.elsewhere = elsewhere
        self.serial = first_serial
        self._timers: list[tuple[float, int, Owner, Timed]] = []

    def next_serial(self) -> int:
        """Return a new unique serial number."""
        self.serial += 1
        return self.serial

    def set_timer(self, at: float, queue: Owner, what: Timed) -> None:
        """Schedule `what` of a queue for handling at time `at`."""
        heapq.heappush(self._timers, (at, self.next_serial(), queue, what))

    def take_timers(self, now: float) -> list[tuple[Owner, Timed]]:
        """Remove and return the timers that are due by now."""
        due = []
        while self._timers and self._timers[0][0] <= now:
            _, _, queue, what = heapq.heappop(self._timers)
            due.append((queue, what))
        return due

    def next_timer(self) -> float:
        """Return the time of the next timer."""
        return self._timers[0][0] if self._timers else math.inf
