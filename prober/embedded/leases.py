"""When deliveries fall due: a heap of deadlines that forgets lazily.

A deadline that is moved further away, and a delivery that is answered, leave their place in the heap as it is; a place that has become
meaningless is dropped when its time comes, or when such places would fill the heap. So every operation costs O(log n) on average, and
an answer, the most frequent one, nothing.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Final

from prober.embedded.lanes import Entry

if TYPE_CHECKING:
    from prober.embedded.feed import Feed

_CLEAN_AT_LEAST: Final = 4_096


class LeaseClock:
    """The deadlines of all outstanding deliveries of a server."""

    __slots__ = ("_clean_at", "_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Entry, str, Feed]] = []
        self._serial = 0
        self._clean_at = _CLEAN_AT_LEAST

    def watch(self, feed: Feed, entry: Entry) -> None:
        """Remember an entry's deadline, after a delivery or when the deadline came nearer."""
        self._serial += 1
        heapq.heappush(self._heap, (entry.deadline, self._serial, entry, entry.ack_id, feed))
        if len(self._heap) >= self._clean_at:
            self._clean()

    def due(self, now: float) -> dict[Feed, list[Entry]]:
        """The entries whose time is up, by subscription, in the order of their deadlines. The caller ends their leases."""
        late: dict[Feed, dict[Entry, None]] = {}
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, serial, entry, ack_id, feed = heapq.heappop(heap)
            if entry.ack_id != ack_id:
                continue
            if entry.deadline > now:
                heapq.heappush(heap, (entry.deadline, serial, entry, ack_id, feed))
            else:
                late.setdefault(feed, {})[entry] = None
        return {feed: list(entries) for feed, entries in late.items()}

    def next_time(self) -> float:
        """No delivery falls due before this; infinity when nothing is outstanding."""
        heap = self._heap
        while heap and heap[0][2].ack_id != heap[0][3]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def _clean(self) -> None:
        self._heap = [place for place in self._heap if place[2].ack_id == place[3]]
        heapq.heapify(self._heap)
        self._clean_at = max(_CLEAN_AT_LEAST, 2 * len(self._heap))
