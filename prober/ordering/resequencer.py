"""The actions of a resequencer on one stream: it classifies each arrival, and counts the missing numbers that it would give up.

A resequencer passes messages on in the order of their numbers. It knows the number expected next:

* number == expected: **in order**. It is released at once, and so are the waiting messages that continue the sequence from it.
* number > expected: **early**. It waits, from its own arrival on, for the missing ones before it.
* a message waited for the wait timeout: the resequencer **gives up** the missing ones before it. Every message waiting up to it is
  released, lowest number first. One that jumps over missing numbers *overtook* them; one that continues the sequence is in order.
* number < expected: nothing can be released any more without breaking the order, so the message is refused. It is a **duplicate** if
  its number was seen before, **late** if its number had been given up, and **before the start** if it lies below the first number.
* nothing arrived or was released for the idle timeout, and nothing waits: the stream is **forgotten**, and restarts from its first number.

The behaviour is that of Apache NiFi's EnforceOrder processor, as used in Neil Kolban, "GCP Pub/Sub ordering and Apache NiFi" (2020)
and as coded in EnforceOrder.java. The differences are on purpose:

* No loop-back queue. EnforceOrder hands an early file back to the flow, and sees it and its timeout only when it comes round again.
  Here successors follow at once, and a wait ends *at* its deadline (EnforceOrder polls, and so needs strictly more than the timeout). The
  counts do not depend on how often `advance` is called.
* Late and duplicate are distinct: given-up numbers are remembered. EnforceOrder sends both to `skipped`.
* A second copy of a waiting message is a duplicate at once. EnforceOrder lets both wait.
* When a wait ends, lower numbers that wait too are released before it. EnforceOrder jumps over them, then skips them as late.
* A stream is never forgotten while it waits. In EnforceOrder only a moving target is activity: a group that only waits is forgotten,
  after which all of it waits and overtakes. Hence the idle timeout need not exceed the wait timeout here.

Memory is bounded, and patience is what gives way, never a message. Above a bound on waiting messages, waits end early. Above the bound on
remembered gaps the lowest are forgotten, and arrivals from there are late or duplicates.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import inf
from typing import Final

from prober.core.gaps import Gaps

WAITING_MAX: Final = 1_000
GAPS_MAX: Final = 100


@dataclass(slots=True)
class Arrivals:
    """Deliveries by outcome, as a resequencer with timeouts classifies them.

    Each field counts deliveries unless its row names something else.

    deliveries         all that were measured: the sum of in_order, early, late, duplicates, late_or_duplicate and before_start.
    in_order           the next expected message.
    early              an earlier message was missing, so it had to wait.
    overtook           of the early ones: its wait ended by timeout, and it was released before the missing ones.
    waiting            of the early ones: its wait had not ended when the history did.
    late               received after it had been given up.
    duplicates         its number had been received before.
    late_or_duplicate  either of the two; too many numbers were given up to remember which.
    before_start       its number is below the first of its stream.
    gave_up            missing numbers that were given up because a wait timed out.
    gave_up_early      missing numbers that were given up because too many messages waited at once.
    forgotten          how often the stream was idle for so long that it restarted from its first number.
    released           released messages.
    """

    deliveries: int = 0
    early: int = 0
    overtook: int = 0
    late: int = 0
    duplicates: int = 0
    late_or_duplicate: int = 0
    before_start: int = 0
    gave_up: int = 0
    gave_up_early: int = 0
    forgotten: int = 0
    released: int = 0

    @property
    def in_order(self) -> int:
        """The number of deliveries without the early and the refused ones."""
        return self.deliveries - self.early - self.late - self.duplicates - self.late_or_duplicate - self.before_start

    @property
    def waiting(self) -> int:
        """The number of early messages that were not released; every in-order message was released at once."""
        return self.in_order + self.early - self.released


class Resequencer:
    """The resequencer of one stream whose first number is `first`; timeouts in seconds, `inf`: never. Time must not go back.

    arrivals    the counts so far.
    """

    def __init__(
        self,
        first: int,
        wait_timeout_s: float,
        idle_timeout_s: float,
        *,
        waiting_max: int = WAITING_MAX,
        gaps_max: int = GAPS_MAX,
    ) -> None:
        self.arrivals = Arrivals()
        self._first, self._wait_timeout_s, self._idle_timeout_s = first, wait_timeout_s, idle_timeout_s
        self._waiting_max, self._gaps_max = waiting_max, gaps_max
        self._lowest: list[int] = []  # a heap of the waiting numbers
        self._waiting: dict[int, float] = {}  # the arrival of each, the longest wait first
        self._begin()

    def _begin(self) -> None:
        self._expected = self._first
        self._given_up: Gaps[None] = Gaps(self._gaps_max)  # numbers below `_expected` that were never seen
        self._active_t = inf

    def arrive(self, number: int, now: float) -> None:
        """Count an arrival, after the timers due by `now`."""
        self.advance(now)
        counts = self.arrivals
        counts.deliveries += 1
        if number < self._first:
            counts.before_start += 1
        elif number == self._expected:
            self._release(number)
        elif number > self._expected and number not in self._waiting:
            self._wait(number, now)
        elif number < self._given_up.known_from:
            counts.late_or_duplicate += 1
        elif number < self._expected and self._given_up.find(number):
            counts.late += 1
            self._given_up.fill(number)  # so that the next copy is a duplicate
        else:
            counts.duplicates += 1
        self._active_t = now

    def advance(self, now: float) -> None:
        """Fire the timers due at or before `now`, each at its own time."""
        while self._waiting:
            number, since_t = next(iter(self._waiting.items()))
            due_t = since_t + self._wait_timeout_s
            if due_t > now or due_t == inf:
                return
            while number in self._waiting:
                self.arrivals.gave_up += self._overtake()
            self._active_t = due_t
        due_t = self._active_t + self._idle_timeout_s
        if due_t <= now and due_t < inf:
            self.arrivals.forgotten += 1
            self._begin()

    def give_up(self) -> None:
        """End all waits early."""
        while self._waiting:
            self.arrivals.gave_up_early += self._overtake()

    def _wait(self, number: int, now: float) -> None:
        self.arrivals.early += 1
        heapq.heappush(self._lowest, number)
        self._waiting[number] = now
        if len(self._waiting) > self._waiting_max:
            self.arrivals.gave_up_early += self._overtake()

    def _overtake(self) -> int:
        """Give up the numbers missing before the lowest waiting message, and release it; return how many."""
        lowest, missing = self._lowest[0], self._lowest[0] - self._expected
        self._given_up.add(self._expected, lowest - 1, None)
        self.arrivals.overtook += 1
        self._expected = lowest
        self._release_waiting()
        return missing

    def _release(self, number: int) -> None:
        self.arrivals.released += 1
        self._expected = number + 1
        self._release_waiting()

    def _release_waiting(self) -> None:
        """Release the waiting messages that continue the sequence."""
        while self._lowest and self._lowest[0] == self._expected:
            del self._waiting[heapq.heappop(self._lowest)]
            self.arrivals.released += 1
            self._expected += 1
