"""A key's messages in one region as a subscription has them, and what is outstanding of them.

A line has a log and a cursor, the next position to send. The only ways to move are: send at the cursor and step by one, or rewind (D3).
Removed positions are skipped (section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.recorders import Recorder
from tests.simulation.topic import Message


@dataclass(slots=True, eq=False)
class Session:
    """What carries messages to a client: a stream, the answer of a pull, a push request. `messages` and `bytes` are outstanding on it."""

    name: str
    recorder: Recorder
    messages: int = 0
    bytes: int = 0


@dataclass(slots=True, eq=False)
class Record:
    """A message in a line; positions count from 0.

    `attempts` counts its deliveries, `attempt_seen` is the highest count that a client was shown, `failures` counts those that were
    refused, not acknowledged in time, or lost with their stream.
    """

    message: Message
    line: Line
    position: int
    attempts: int = 0
    attempt_seen: int = 0
    failures: int = 0
    removed: bool = False
    acked: bool = False
    waited_unseen: bool = False
    poison: bool = False


@dataclass(slots=True, eq=False)
class Hold:
    """An outstanding message.

    `lease_end` is when the service gives it up and calls `over`, `received` tells whether this delivery reached its client, `answered`
    whether the client acknowledged or refused it or shortened its lease.
    """

    record: Record
    session: Session
    sent_t: float
    lease_end: float
    over: Callable[[Hold], None]
    received: bool = False
    answered: bool = False

    @property
    def kept(self) -> bool:
        """Whether the client has it, and has not said that it does not want it."""
        return self.received and not self.answered


@dataclass(slots=True, eq=False)
class Line:
    """One region's log. The frontier is the first position that was never sent.

    Nothing from `rests_from` on is sent before `rests_until`.
    """

    region: str
    log: list[Record] = field(default_factory=list)
    cursor: int = 0
    frontier: int = 0
    rests_from: int = 0
    rests_until: float = 0.0

    def skip_removed(self) -> None:
        log, end = self.log, len(self.log)
        while self.cursor < end and log[self.cursor].removed:
            self.cursor += 1
        if self.cursor > self.frontier:
            self.frontier = self.cursor

    @property
    def all_sent(self) -> bool:
        return self.cursor >= len(self.log)

    def sendable(self, now: float) -> bool:
        if self.cursor >= len(self.log):
            return False
        self.skip_removed()
        return not self.all_sent and not (now < self.rests_until and self.cursor >= self.rests_from)

    def step(self) -> tuple[Record, bool]:
        """The next record to send, and whether it is sent for the first time; the cursor moves past it."""
        record, first = self.log[self.cursor], self.cursor >= self.frontier
        self.cursor += 1
        return record, first
