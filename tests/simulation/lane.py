"""The service's view of one ordering key on the subscription, common to the three ways of consuming it.

A lane has a log, a cursor (the next position to send) and the holds of what it sent. The only ways to move are: send at the cursor and
step by one, or rewind (D3). Removed positions are skipped (section 3.2). A hold ends by an acknowledgement, a negative
acknowledgement, the end of its lease, the loss of its session or a rewind to its position or below (section 3.3).

Dead-lettering follows section 5.8: a message leaves after it was negatively acknowledged or its lease ended, and only when a client was
shown a delivery attempt of at least the limit; that this is seen by the prober (`DeadLettered`) is a matter of luck. After it the run
restarts at the next message, or does not restart at all.

An acknowledgement that arrives after its message was sent again may count for the message (section 5.7: "ack sent before, applied after
the redelivery or the move"). Then the hold of the later delivery ends, or its message need not be sent again when its lease ends. It
must be if that later delivery was lost, because the observed run would step over it (D3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prober.core.events import AckConfirmed, DeadLettered
from tests.simulation.options import Fault
from tests.simulation.topic import Record
from tests.simulation.world import SUBSCRIPTION, World


@dataclass(slots=True)
class Hold:
    """An outstanding message: `lease_end` is when the service gives it up, `received` whether this delivery reached its client."""

    position: int
    session: str
    lease_end: float
    received: bool = False


@dataclass(slots=True)
class Lane:
    """Positions count from 0 here; the frontier is the first position that was never sent."""

    world: World
    key: str
    log: list[Record] = field(default_factory=list)
    cursor: int = 0
    frontier: int = 0
    holds: dict[int, Hold] = field(default_factory=dict)
    acked: set[int] = field(default_factory=set)
    frozen: bool = False

    def skip_removed(self) -> None:
        while self.cursor < len(self.log) and self.log[self.cursor].removed:
            self.cursor += 1
        self.frontier = max(self.frontier, self.cursor)

    @property
    def idle(self) -> bool:
        return not self.holds and (self.frozen or self.cursor >= len(self.log))

    def hold(self, position: int, session: str) -> tuple[Hold, int]:
        """Note that the message is being sent; tell the delivery attempt to show."""
        record = self.log[position]
        record.attempts += 1
        if position < self.frontier:
            self.world.note("redelivery")
            if position in self.acked:
                self.world.note("redelivery of acked")
        self.frontier = max(self.frontier, position + 1)
        held = Hold(position, session, self.world.now + self.world.options.lease_s)
        self.holds[position] = held
        return held, record.attempts if self.world.options.dead_letter else 0

    def current(self, held: Hold) -> bool:
        return self.holds.get(held.position) is held

    def acknowledge(self, held: Hold) -> bool:
        """An acknowledgement arrives. Tell whether the hold is over; exactly-once takes only the lowest, and only while it holds."""
        if self.world.options.exactly_once:
            if not self.current(held) or any(self._owed(position) for position in range(held.position)):
                self.world.note("rejected ack")
                return False
            self._confirm(held)
        self.acked.add(held.position)
        if not self.current(held):
            return self._old_ack(held.position)
        del self.holds[held.position]
        return True

    def _old_ack(self, position: int) -> bool:
        """An acknowledgement of an earlier delivery: it may count for the message, and then ends the hold of the later one."""
        self.world.note("late ack")
        later = self.holds.get(position)
        if later is None or not later.received or not self.world.chance(self.world.options.old_ack_counts):
            return False
        self.world.note("old ack counts")
        del self.holds[position]
        return True

    def _owed(self, position: int) -> bool:
        return position not in self.acked and not self.log[position].removed

    def _confirm(self, held: Hold) -> None:
        message_id, world = self.log[held.position].message_id, self.world
        if world.chance(0.1):
            return
        world.after(
            world.between(0, 0.5),
            lambda: world.record(AckConfirmed(world.now, SUBSCRIPTION, self.key, held.session, message_id)),
        )

    def modify(self, held: Hold, seconds: float) -> None:
        """A lease modification arrives: the lease now ends that long from now."""
        if self.current(held):
            held.lease_end = self.world.now + seconds

    def give_up(self, held: Hold) -> bool:
        """The hold ends without an acknowledgement. Tell whether the message has to be sent again."""
        if not self.current(held):
            return False
        del self.holds[held.position]
        record = self.log[held.position]
        limit = self.world.options.dead_letter
        if limit and record.attempt_seen >= limit and held.position not in self.acked and self.world.random.random() < 0.7:
            self._dead_letter(record)
            return self.world.chance(0.5)
        if held.position in self.acked and held.received and not self.world.chance(0.5):
            return False
        return not self._kept_back(held.position)

    def _dead_letter(self, record: Record) -> None:
        world = self.world
        record.removed = True
        world.note("dead-lettered")
        if world.random.random() < world.options.dead_letter_observed:
            world.after(
                world.between(0, 2),
                lambda: world.record(DeadLettered(world.now, SUBSCRIPTION, self.key, record.message_id)),
            )

    def _kept_back(self, position: int) -> bool:
        """The bug of not sending again what was not acknowledged."""
        if position in self.acked or not self.world.broken(Fault.NO_REDELIVER, 0.6):
            return False
        self.world.fire(f"{self.log[position].message_id} kept back")
        return True

    def rewind(self, position: int) -> None:
        """Send from here again; the holds from here on are dropped. Exactly-once: never past an acknowledgement that was accepted."""
        if self.world.options.exactly_once:
            position = max(position, max(self.acked, default=-1) + 1)
        if position < self.cursor:
            self.world.note("restart inside a run" if self.cursor < self.frontier else "rewind")
        self.cursor = min(self.cursor, position)
        for later in [held for held in self.holds if held >= position]:
            del self.holds[later]

    def deeper(self, position: int) -> int:
        """Some position at or below, at random: a service may rewind further than it must, though not past confirmed acks."""
        options = self.world.options
        if options.exactly_once or not self.world.chance(options.deeper_rewind):
            return position
        return self.world.random.randint(max(0, position - 4), position)

    def seek(self) -> None:
        """A seek takes effect: forward to somewhere in the backlog, or back. What lies before its target is gone for good."""
        self.holds.clear()
        target = self.world.random.randint(max(0, self.cursor - 8), len(self.log))
        for record in self.log[:target]:
            record.removed = True
        self.acked = set(range(target))
        self.cursor = target
        self.frontier = max(self.frontier, target)
