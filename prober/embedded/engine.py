"""State shared by all subscriptions of a server."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Generic, TypeAlias, TypeVar

from prober.embedded.behaviour import Behaviour
from prober.embedded.key_queues import LeaseClock, QueueEntry
from prober.embedded.messages import Effect

Owner = TypeVar("Owner")
"""Type of the subscription queues."""
Action: TypeAlias = Callable[[float], None]
"""Action at its time, which it gets as argument."""


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
        self._timers: list[tuple[float, int, bool, Action]] = []

    def next_serial(self) -> int:
        """Return a new unique serial number."""
        self.serial += 1
        return self.serial

    def set_timer(self, at: float, action: Action, *, last: bool = False) -> None:
        """Schedule an action at time `at`; `last`: after all others that are due with it."""
        heapq.heappush(self._timers, (at, self.next_serial(), last, action))

    def run_timers(self, now: float) -> None:
        """Run the actions that are due by now."""
        due = []
        while self._timers and self._timers[0][0] <= now:
            _, _, last, action = heapq.heappop(self._timers)
            due.append((last, action))
        for _, action in sorted(due, key=itemgetter(0)):
            action(now)

    def next_timer(self) -> float:
        """Return the time of the next timer."""
        return self._timers[0][0] if self._timers else math.inf
