"""Key queues: the messages of one ordering key on one subscription, in order, how far they were sent, and who receives them.

The guarantee (documentation, "Order messages") is kept by one rule: what is sent next is the next position, or a position further back,
never one further on. Positions count the messages of the key queue; the cursor is the next one to send.

    sent and acknowledged | sent, not yet acknowledged ... | not sent yet ...
                          ^ floor                          ^ cursor             ^ end

A message that has to be redelivered moves the cursor back to it. That rewind takes back everything from there on: holds that subscribers
have on later messages end, and acknowledgements of later messages are forgotten, because "redeliveries of a message trigger redelivery
of all subsequent messages for that key, even acknowledged ones". What lies below the floor is settled and given up. A message without
a key, or on a subscription without ordering, has a key queue of its own, so the same rules hold trivially.

Streams with the same `client_id` are one subscriber (proto, StreamingPullRequest.client_id). Messages and subscribers refer to each other:
an outstanding message knows its stream, a stream the key queues that have something to send on it.
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
    removed   taken out: dead-lettered, expired or lost. Skipped silently, also by a rewind.
    failures  how often it was nacked or its deadline passed.
    ack_id    names the delivery that is outstanding; empty when none is.
    stream    the stream it is outstanding on; None for pull and push.
    sent_at, deadline  when the outstanding delivery was sent, and when its time is up.
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
    """What a key queue sends next instead: these positions, and after them what is at the cursor, which moves."""

    again: tuple[int, ...]
    cursor: int


@dataclass(slots=True, eq=False)
class KeyQueue:
    """The messages of one key.

    key      the ordering key, empty for a message that has no order to keep.
    offset   the position of `entries[0]`.
    floor    the lowest position that is not settled.
    cursor   the next position to send for the first time or, after a rewind, again.
    sent     the lowest position that the cursor never passed.
    asked    the last position of which a fault was asked whether it goes to a second holder.
    resumed  where the cursor was after the last detour.
    held     how many messages are outstanding; while there are any, only their holder gets more.
    again    positions to send before the cursor's: only a fault puts any here.
    client, stream  who got the last message; `shunned` is who let a deadline pass since.
    queued   it waits in a queue of key queues that have something to send.
    wake_at  nothing is sent before this time: back-off, or a fault.
    postponed  a fault is the reason for that; `decided` is up to where one had an opportunity to delay the first delivery.
    halt_at  a fault stops the key queue before this position until `halt_until`.
    acked_late  positions behind the cursor of which an acknowledgement came after their stream had closed; nothing was sent since.
    pinned   how many settled messages a fault may redeliver: none is given up as long.
    acked_from, acked_to  what the last rewind takes back at its end had all been acknowledged: from one position up to another.
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
        """One more than the highest position."""
        return self.offset + len(self.entries)

    @property
    def pending(self) -> bool:
        """Whether there is something to send, now or later."""
        return self.cursor < self.offset + len(self.entries) or bool(self.again)

    @property
    def idle(self) -> bool:
        """Nothing to send and nothing outstanding or remembered."""
        return not self.entries and not self.held and not self.queued

    def append(self, message: Message) -> QueueEntry:
        """Add a message at the end."""
        entry = QueueEntry(message, self, self.offset + len(self.entries))
        self.entries.append(entry)
        return entry

    def at(self, position: int) -> QueueEntry:
        """The entry at a position that is not given up."""
        return self.entries[position - self.offset]

    def sent_after(self, position: int) -> list[QueueEntry]:
        """What was sent beyond a position, in order, without what was taken out."""
        return [entry for entry in self.entries[position + 1 - self.offset : self.cursor - self.offset] if not entry.removed]

    def behind(self, position: int) -> Iterator[QueueEntry]:
        """What there is beyond a position, in order, without what was taken out."""
        return (entry for entry in islice(self.entries, position + 1 - self.offset, None) if not entry.removed)

    def held_before(self, position: int) -> list[QueueEntry]:
        """What is outstanding below a position, in order."""
        return [entry for entry in self.entries[self.floor - self.offset : position - self.offset] if entry.ack_id]

    def peek(self) -> QueueEntry | None:
        """The entry to send next, if any; taken-out ones are passed."""
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
        """What `peek` showed has been sent."""
        self.acked_late.clear()
        if self.again:
            self.again.popleft()
        else:
            self.go_to(self.cursor + 1)

    def acknowledge_late(self, entry: QueueEntry) -> None:
        """Takes an acknowledgement of a delivery that ended with its stream, unless something was sent since.

        It counts once all before it are acknowledged, too: a message that is sent again brings all later ones with it.
        """
        if entry.settled or entry.position < self.cursor or self.again:
            return
        self.acked_late.add(entry.position)
        while self.cursor in self.acked_late:
            self.acked_late.discard(self.cursor)
            self.at(self.cursor).settled = True
            self.go_to(self.cursor + 1)

    def follow(self, detour: Detour) -> None:
        """Send something else next; the message after that is sent as it should be."""
        self.again = deque((*(self.again or ()), *detour.again))
        self.go_to(detour.cursor)
        self.resumed = detour.cursor

    def go_to(self, cursor: int) -> None:
        """Move the cursor forward."""
        self.cursor = cursor
        self.sent = max(self.sent, cursor)

    def rewind(self, position: int) -> list[QueueEntry]:
        """Send everything from this position on again. The entries whose holds end with that, in order; the caller ends them."""
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
        """Passes what the last rewind took back although it had been acknowledged: it counts as acknowledged again."""
        passed = [entry for entry in self.entries[self.acked_from - self.offset : self.acked_to - self.offset] if not entry.removed]
        for entry in passed:
            entry.settled = True
        self.cursor = self.acked_to
        return passed

    @property
    def lowest_held(self) -> int:
        """The lowest position that is outstanding, of which there is one."""
        return next(entry.position for entry in self.entries[self.floor - self.offset :] if entry.ack_id)

    def trim(self) -> None:
        """Give up what is settled at the front."""
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
    """One subscriber: its open streams, and how many keys went to it last."""

    id: str
    streams: list[Stream] = field(default_factory=list)
    keys: int = 0

    def roomiest(self) -> Stream | None:
        """The stream with the least to do among those that may get more."""
        return roomiest(self.streams)


@dataclass(slots=True, eq=False)
class Stream:
    """One StreamingPull stream.

    messages_max, bytes_max  flow control: as long as it is reached nothing more is sent; 0 means no limit.
    deadline_s               how long each message sent on it may stay unanswered.
    ready                    key queues with something to send that are bound to this stream.
    outbox                   what this round of dispatching sends.
    breaking                 a fault will end it soon, and what would be sent on it meanwhile would be lost: nothing is.
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
        """Whether flow control lets at least one more message pass."""
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


@dataclass(frozen=True, slots=True)
class EarlyLook:
    """A lease that may end before its time: that is decided when its first part has passed."""

    ack_id: str


@dataclass(frozen=True, slots=True)
class ConfirmedAck:
    """A confirmed acknowledgement that may be forgotten: that is decided later."""

    entry: QueueEntry


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """An acknowledgement (`seconds` None) or a further deadline that takes effect later, unless the delivery is over by then."""

    ack_id: str
    seconds: int | None


def roomiest(streams: Iterable[Stream]) -> Stream | None:
    """The stream with the least to do among those that may get more."""
    best: Stream | None = None
    for stream in streams:
        if stream.has_room and (best is None or stream.messages < best.messages):
            best = stream
    return best


def bind(key_queue: KeyQueue, stream: Stream | None) -> None:
    """Bind a key queue to the stream that gets its messages now; None: to none."""
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
    """The deadlines of all outstanding deliveries of a server, with the subscription that each belongs to: a heap that forgets lazily.

    A deadline that is moved further away, and a delivery that is answered, leave their place in the heap as it is; a place that has
    become meaningless is dropped when its time comes, or when such places would fill the heap. So every operation costs O(log n) on
    average, and an answer, the most frequent one, nothing.
    """

    __slots__ = ("_clean_at", "_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, QueueEntry, str, Owner]] = []
        self._serial = 0
        self._clean_at = _CLEAN_AT_LEAST

    def watch(self, owner: Owner, entry: QueueEntry) -> None:
        """Remember an entry's deadline, after a delivery or when the deadline came nearer."""
        self._serial += 1
        heapq.heappush(self._heap, (entry.deadline, self._serial, entry, entry.ack_id, owner))
        if len(self._heap) >= self._clean_at:
            self._clean()

    def due(self, now: float) -> dict[Owner, list[QueueEntry]]:
        """The entries whose time is up, by subscription, in the order of their deadlines. The caller ends their leases."""
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
        """No delivery falls due before this; infinity when nothing is outstanding."""
        heap = self._heap
        while heap and heap[0][2].ack_id != heap[0][3]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def _clean(self) -> None:
        self._heap = [place for place in self._heap if place[2].ack_id == place[3]]
        heapq.heapify(self._heap)
        self._clean_at = max(_CLEAN_AT_LEAST, 2 * len(self._heap))
