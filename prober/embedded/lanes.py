"""A lane: the messages of one ordering key on one subscription, in order, and how far they were sent.

The promise (documentation, "Order messages") is kept by one rule: what is sent next is the next position, or a position further back,
never one further on. Positions count the messages of the lane; the cursor is the next one to send.

    sent and acknowledged | sent, not yet acknowledged ... | not sent yet ...
                          ^ floor                          ^ cursor             ^ end

A message that has to come again moves the cursor back to it. That rewind takes back everything from there on: holds that subscribers
have on later messages end, and acknowledgements of later messages are forgotten, because "redeliveries of a message trigger redelivery
of all subsequent messages for that key, even acknowledged ones". What lies below the floor is settled and given up. A message without
a key, or on a subscription without ordering, has a lane of its own, so the same rules hold trivially.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from prober.embedded.messages import Message

if TYPE_CHECKING:
    from prober.embedded.subscribers import Client, Stream

_DEAD_ENTRIES_MAX: Final = 64  # settled entries kept before the list is cut, so that cutting costs nothing on average


@dataclass(slots=True, eq=False)
class Entry:
    """One message on one subscription.

    settled   acknowledged, or taken out of the lane for good.
    removed   taken out: dead-lettered, expired or lost. Skipped silently, also by a rewind.
    failures  how often it was refused or its deadline passed.
    ack_id    names the delivery that is outstanding; empty when none is.
    stream    the stream it is outstanding on; None for pull and push.
    deadline  when the outstanding delivery's time is up.
    """

    message: Message
    lane: Lane
    position: int
    settled: bool = False
    removed: bool = False
    failures: int = 0
    ack_id: str = ""
    stream: Stream | None = None
    deadline: float = 0.0


@dataclass(slots=True, eq=False)
class Lane:
    """The messages of one key.

    key      the ordering key, empty for a message that has no order to keep.
    offset   the position of `entries[0]`.
    floor    the lowest position that is not settled.
    cursor   the next position to send for the first time or, after a rewind, again.
    held     how many messages are outstanding; while there are any, only their holder gets more.
    again    positions to send before the cursor's: only a fault puts any here.
    client, stream  who got the last message; `shunned` is who let a deadline pass since.
    queued   it waits in a queue of lanes that have something to send.
    wake_at  nothing is sent before this time: back-off, or a fault.
    postponed  a fault is the reason for that; `decided` is up to where one has had its chance to delay the first delivery.
    halt_at  a fault stops the lane before this position until `halt_until`.
    acked_from, acked_to  what the last rewind takes back at its end had all been acknowledged: from one position up to another.
    """

    key: str
    entries: list[Entry] = field(default_factory=list)
    offset: int = 1
    floor: int = 1
    cursor: int = 1
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

    def append(self, message: Message) -> Entry:
        """Add a message at the end."""
        entry = Entry(message, self, self.offset + len(self.entries))
        self.entries.append(entry)
        return entry

    def at(self, position: int) -> Entry:
        """The entry at a position that is not given up."""
        return self.entries[position - self.offset]

    def sent_after(self, position: int) -> list[Entry]:
        """What was sent beyond a position, in order, without what was taken out."""
        return [entry for entry in self.entries[position + 1 - self.offset : self.cursor - self.offset] if not entry.removed]

    def peek(self) -> Entry | None:
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
        if self.again:
            self.again.popleft()
        else:
            self.cursor += 1

    def rewind(self, position: int) -> list[Entry]:
        """Send everything from this position on again. The entries whose holds end with that, in order; the caller ends them."""
        freed = []
        self.acked_from, self.acked_to = position, self.cursor
        for index in range(position - self.offset, self.cursor - self.offset):
            entry = self.entries[index]
            if entry.ack_id:
                freed.append(entry)
            if not entry.settled:
                self.acked_from = entry.position + 1
            entry.settled = entry.removed
        self.cursor = min(self.cursor, position)
        self.again = None
        return freed

    def pass_acked(self) -> list[Entry]:
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
        if dead == len(self.entries):
            self.entries.clear()
            self.offset = floor
        elif dead > _DEAD_ENTRIES_MAX and dead * 2 > len(self.entries):
            del self.entries[:dead]
            self.offset = floor
