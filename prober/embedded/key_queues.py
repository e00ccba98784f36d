"""Key queues: the messages of one ordering key on one subscription, their progress and their subscriber.

One rule keeps the guarantee (documentation, "Order messages"): the next message sent is at the next position or further back, never further
on. Positions count the messages of the key queue; the cursor is the next position to send.

    sent and acknowledged | sent, not yet acknowledged ... | not sent yet ...
                          ^ floor                          ^ cursor             ^ end

The redelivery of a message moves the cursor back to it. That rewind cancels all later deliveries of the key: outstanding deliveries end,
and acknowledgements are forgotten, because "redeliveries of a message trigger redelivery of all subsequent messages for that key, even
acknowledged ones". Messages below the floor are settled and dropped. Each message without a key, or on a subscription without ordering, has
a key queue of its own, so the same rules hold trivially.

Streams with the same `client_id` are one subscriber (proto, StreamingPullRequest.client_id). Messages and subscribers refer to each other:
an outstanding message refers to its stream, a stream to its key queues with messages to send.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, TypeVar

from prober.embedded.messages import Delivery, Message

Owner = TypeVar("Owner")

_CLEAN_AT_LEAST: Final = 4_096  # places in the heap of deadlines before it is looked through
_DEAD_ENTRIES_MAX: Final = 64  # settled entries kept before the list is cut, so that cutting costs nothing on average


@dataclass(slots=True, eq=False)
class QueueEntry:
    """One message on one subscription.

    settled   acknowledged, or taken out of the key queue for good.
    removed   taken out: dead-lettered, expired or lost. Deliveries and rewinds skip it silently.
    failures  number of nacks and missed deadlines.
    ack_id    acknowledgement id of the outstanding delivery; empty if none is.
    stream    stream of the outstanding delivery; None for pull and push.
    sent_at, deadline  time of sending of the outstanding delivery, and end of its lease.
    """

    message: Message
    key_queue: KeyQueue
    position: int
    settled: bool = False
    removed: bool = False
    failures: int = 0
    ack_id: str = ""
    stream: Stream | None = None
    sent_at: float = 0.0
    deadline: float = 0.0


@dataclass(frozen=True, slots=True)
class Detour:
    """Positions that a key queue sends next instead of those at its cursor, and the cursor after them."""

    again: tuple[int, ...]
    cursor: int


@dataclass(slots=True, eq=False)
class KeyQueue:
    """The messages of one key.

    key      the ordering key, empty for a message without order.
    offset   the position of `entries[0]`.
    floor    the lowest position that is not settled.
    cursor   next position to send, for the first time or, after a rewind, again.
    sent     the lowest position that the cursor never passed.
    asked    last position at which a fault had an opportunity to choose a second holder.
    resumed  cursor after the last detour.
    held     number of outstanding messages; while it is positive, only their holder gets more.
    again    positions to send before the cursor, added only by faults.
    client, stream  receiver of the last message; `shunned`: client that let a deadline pass since.
    queued   whether it waits in a queue of key queues with messages to send.
    wake_at  no message is sent before this time: back-off, or a fault.
    postponed  whether a fault set `wake_at`; `decided`: end of the positions at which faults had an opportunity to delay the first
               delivery.
    halt_at  a fault stops the key queue before this position until `halt_until`.
    acked_late  positions behind the cursor whose acknowledgement arrived after their stream had closed; no message was sent since.
    pinned   number of settled messages that a fault may redeliver; while it is positive, no entry is dropped.
    acked_from, acked_to  the part at the end of the last rewind that was completely acknowledged before: first position, and end.
    """

    key: str
    entries: list[QueueEntry] = field(default_factory=list)
    offset: int = 1
    floor: int = 1
    cursor: int = 1
    sent: int = 1
    asked: int = 0
    resumed: int = 0
    held: int = 0
    again: deque[int] | None = None
    client: Client | None = None
    stream: Stream | None = None
    shunned: Client | None = None
    queued: bool = False
    wake_at: float = 0.0
    timer_at: float = 0.0
    postponed: bool = False
    decided: int = 1
    halt_at: int = 0
    halt_until: float = 0.0
    acked_from: int = 0
    acked_to: int = 0
    acked_late: set[int] = field(default_factory=set)
    pinned: int = 0

    @property
    def end(self) -> int:
        """The highest position plus one."""
        return self.offset + len(self.entries)

    @property
    def pending(self) -> bool:
        """Whether there are messages to send, now or later."""
        return self.cursor < self.offset + len(self.entries) or bool(self.again)

    @property
    def idle(self) -> bool:
        """Whether no message is to be sent, outstanding or remembered."""
        return not self.entries and not self.held and not self.queued

    def append(self, message: Message) -> QueueEntry:
        """Append a message; return its entry."""
        entry = QueueEntry(message, self, self.offset + len(self.entries))
        self.entries.append(entry)
        return entry

    def at(self, position: int) -> QueueEntry:
        """Return the entry at a position that is not dropped yet."""
        return self.entries[position - self.offset]

    def sent_after(self, position: int) -> list[QueueEntry]:
        """Return the entries sent beyond a position, in order, without those taken out."""
        return [entry for entry in self.entries[position + 1 - self.offset : self.cursor - self.offset] if not entry.removed]

    def behind(self, position: int) -> Iterator[QueueEntry]:
        """Yield the entries beyond a position, in order, without those taken out."""
        return (entry for entry in islice(self.entries, position + 1 - self.offset, None) if not entry.removed)

    def held_before(self, position: int) -> list[QueueEntry]:
        """Return the outstanding entries below a position, in order."""
        return [entry for entry in self.entries[self.floor - self.offset : position - self.offset] if entry.ack_id]

    def peek(self) -> QueueEntry | None:
        """Return the entry to send next, if any; move past entries taken out."""
        while self.again:
            entry = self.at(self.again[0]) if self.again[0] >= self.floor else None
            if entry is not None and not entry.settled:
                return entry
            self.again.popleft()
        end = self.offset + len(self.entries)
        while self.cursor < end:
            entry = self.entries[self.cursor - self.offset]
            if not entry.removed:
                return entry
            self.cursor += 1
        return None

    def advance(self) -> None:
        """Move past the entry that `peek` returned: it has been sent."""
        self.acked_late.clear()
        if self.again:
            self.again.popleft()
        else:
            self.go_to(self.cursor + 1)

    def acknowledge_late(self, entry: QueueEntry) -> None:
        """Accept an acknowledgement of a delivery that ended with its stream, unless a message was sent since.

        It counts when all messages before it are acknowledged too: the redelivery of a message includes all later ones.
        """
        if entry.settled or entry.position < self.cursor or self.again:
            return
        self.acked_late.add(entry.position)
        while self.cursor in self.acked_late:
            self.acked_late.discard(self.cursor)
            self.at(self.cursor).settled = True
            self.go_to(self.cursor + 1)

    def follow(self, detour: Detour) -> None:
        """Send the positions of a detour next, then continue regularly."""
        self.again = deque((*(self.again or ()), *detour.again))
        self.go_to(detour.cursor)
        self.resumed = detour.cursor

    def go_to(self, cursor: int) -> None:
        """Move the cursor forward."""
        self.cursor = cursor
        self.sent = max(self.sent, cursor)

    def rewind(self, position: int) -> list[QueueEntry]:
        """Rewind to a position; return the entries whose deliveries end by that, in order. The caller releases them."""
        freed = []
        self.acked_late.clear()
        self.acked_from, self.acked_to = position, self.cursor
        for index in range(position - self.offset, self.cursor - self.offset):
            entry = self.entries[index]
            if entry.ack_id:
                freed.append(entry)
            if not entry.settled:
                self.acked_from = entry.position + 1
            entry.settled = entry.removed
        self.cursor = min(self.cursor, position)
        self.again = deque(other for other in self.again if other < position) if self.again else None
        return freed

    def pass_acked(self) -> list[QueueEntry]:
        """Settle the tail of the last rewind that had been acknowledged before it, and move past it; return its entries."""
        passed = [entry for entry in self.entries[self.acked_from - self.offset : self.acked_to - self.offset] if not entry.removed]
        for entry in passed:
            entry.settled = True
        self.cursor = self.acked_to
        return passed

    @property
    def lowest_held(self) -> int:
        """The lowest outstanding position; at least one message must be outstanding."""
        return next(entry.position for entry in self.entries[self.floor - self.offset :] if entry.ack_id)

    def trim(self) -> None:
        """Drop settled entries at the front."""
        floor, end = self.floor, min(self.cursor, self.offset + len(self.entries))
        while floor < end and self.entries[floor - self.offset].settled:
            floor += 1
        self.floor = floor
        dead = floor - self.offset
        if self.pinned:
            return
        if dead == len(self.entries):
            self.entries.clear()
            self.offset = floor
        elif dead > _DEAD_ENTRIES_MAX and dead * 2 > len(self.entries):
            del self.entries[:dead]
            self.offset = floor


@dataclass(slots=True, eq=False)
class Client:
    """One subscriber: its open streams, and the number of keys bound to it."""

    id: str
    streams: list[Stream] = field(default_factory=list)
    keys: int = 0

    def roomiest(self) -> Stream | None:
        """Return the least busy stream of the client that has free flow control, or None."""
        return roomiest(self.streams)


@dataclass(slots=True, eq=False)
class Stream:
    """One StreamingPull stream.

    messages_max, bytes_max  flow control: no message is sent while a limit is reached; 0: no limit.
    deadline_s               lease of each message sent on it, in seconds.
    ready                    key queues with messages to send that are bound to this stream.
    outbox                   deliveries to send in this round of dispatching.
    breaking                 a fault ends it soon: no message is sent, since it would be lost.
    """

    id: str
    client: Client
    deadline_s: float
    messages_max: int = 0
    bytes_max: int = 0
    open: bool = True
    messages: int = 0
    bytes: int = 0
    ready: deque[KeyQueue] = field(default_factory=deque)
    outbox: list[Delivery] = field(default_factory=list)
    breaking: bool = False

    @property
    def has_room(self) -> bool:
        """Whether flow control permits at least one more message."""
        if self.breaking:
            return False
        return (self.messages < self.messages_max or self.messages_max <= 0) and (
            self.bytes < self.bytes_max or self.bytes_max <= 0
        )


@dataclass(slots=True, eq=False)
class PullCall:
    """A unary pull that waits for messages until `deadline`."""

    id: str
    messages_max: int
    deadline: float
    open: bool = True


def roomiest(streams: Iterable[Stream]) -> Stream | None:
    """Return the least busy stream that has free flow control, or None."""
    best: Stream | None = None
    for stream in streams:
        if stream.has_room and (best is None or stream.messages < best.messages):
            best = stream
    return best


def bind(key_queue: KeyQueue, stream: Stream | None) -> None:
    """Bind a key queue to the stream that gets its messages from now on; None: to no stream."""
    client = stream.client if stream is not None else None
    key_queue.stream = stream
    key_queue.shunned = None
    if key_queue.client is client:
        return
    if key_queue.client is not None:
        key_queue.client.keys -= 1
    if client is not None:
        client.keys += 1
    key_queue.client = client


class LeaseClock(Generic[Owner]):
    """Deadlines of all outstanding deliveries of a server, with their subscriptions: a heap with lazy deletion.

    A later deadline and an answer leave the element of the heap in place. An outdated element is dropped when its time comes, or when
    outdated elements would fill the heap. So each operation costs O(log n) on average, and an answer, the most frequent one, costs nothing.
    """

    __slots__ = ("_clean_at", "_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, QueueEntry, str, Owner]] = []
        self._serial = 0
        self._clean_at = _CLEAN_AT_LEAST

    def watch(self, owner: Owner, entry: QueueEntry) -> None:
        """Add the deadline of an entry, after a delivery or when the deadline moved earlier."""
        self._serial += 1
        heapq.heappush(self._heap, (entry.deadline, self._serial, entry, entry.ack_id, owner))
        if len(self._heap) >= self._clean_at:
            self._clean()

    def due(self, now: float) -> dict[Owner, list[QueueEntry]]:
        """Remove and return the entries with passed deadlines, by subscription, in the order of their deadlines.

        The caller ends their leases.
        """
        late: dict[Owner, dict[QueueEntry, None]] = {}
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, serial, entry, ack_id, owner = heapq.heappop(heap)
            if entry.ack_id != ack_id:
                continue
            if entry.deadline > now:
                heapq.heappush(heap, (entry.deadline, serial, entry, ack_id, owner))
            else:
                late.setdefault(owner, {})[entry] = None
        return {owner: list(entries) for owner, entries in late.items()}

    def next_time(self) -> float:
        """Return a time before which no deadline passes; infinity if no message is outstanding."""
        heap = self._heap
        while heap and heap[0][2].ack_id != heap[0][3]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def _clean(self) -> None:
        self._heap = [place for place in self._heap if place[2].ack_id == place[3]]
        heapq.heapify(self._heap)
        self._clean_at = max(_CLEAN_AT_LEAST, 2 * len(self._heap))
