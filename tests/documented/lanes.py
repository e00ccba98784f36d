"""Delivery state of one ordering key on one subscription, as the documents describe it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Protocol

from prober.core.events import DeadLettered
from tests.documented.freedoms import Freedom
from tests.documented.publisher import Record
from tests.documented.settings import RETENTION_S, SubscriptionSettings
from tests.documented.world import World

HELD_S = 60.0


class AckResult(Enum):
    """Answer of the service to an acknowledgement."""

    APPLIED = "applied"
    OUT_OF_ORDER = "out_of_order"
    INVALID = "invalid"


@dataclass(slots=True, eq=False)
class Copy:
    """One delivery of a message, with the lease that the service keeps for it."""

    lane: Lane
    position: int
    record: Record
    attempt: int
    lease_until: float
    sent_t: float = 0.0
    open: bool = True
    on_settled: Callable[[Copy], None] | None = None

    @property
    def current(self) -> bool:
        """Whether no later delivery of this message exists."""
        return self.lane.latest.get(self.position) is self

    @property
    def holds(self) -> bool:
        """Whether the message is outstanding and no delivery of it was acknowledged."""
        return self.open and self.position not in self.lane.acked


class Sender(Protocol):
    """The part of the service that sends the messages of a lane to subscribers."""

    def kick(self, lane: Lane, delay_s: float = 0.0) -> None:
        """Send pending messages of the lane soon, if the mode lets it."""

    def restarted(self, lane: Lane) -> None:
        """Choose the receiver of a redelivery."""


class Lane:
    """The ordered messages of one key and region: a cursor that goes forward one by one, or back at a redelivery.

    https://cloud.google.com/pubsub/docs/ordering: messages are delivered in the order in which the service received them; a redelivery
    "triggers redelivery of all subsequent messages for that key, even acknowledged ones".
    """

    def __init__(self, world: World, settings: SubscriptionSettings, key: str, sender: Sender) -> None:
        self.world = world
        self.settings = settings
        self.key = key
        self.sender = sender
        self.records: list[Record] = []
        self.cursor = 0
        self.acked: set[int] = set()
        self.gone: set[int] = set()
        self.passed_over: set[int] = set()
        self.latest: dict[int, Copy] = {}
        self.open_copies: dict[Copy, None] = {}
        self.attempts: Counter[int] = Counter()
        self.not_before = 0.0
        self.blocker: Copy | None = None
        self.planned_restarts = 0

    @property
    def quiet(self) -> bool:
        """Whether the service has nothing to send or to wait for."""
        return self.next_position() is None and not self.open_copies and not self.planned_restarts

    def append(self, record: Record) -> None:
        self.records.append(record)
        self.sender.kick(self)

    def next_position(self) -> int | None:
        """Return the position of the message to be sent next, if any is pending."""
        self._drop_expired_messages()
        while self.cursor < len(self.records) and self._passes_over(self.cursor):
            self.cursor += 1
        return self.cursor if self.cursor < len(self.records) else None

    def _passes_over(self, position: int) -> bool:
        """Exactly-once delivery never redelivers a message whose acknowledgement succeeded.

        https://cloud.google.com/pubsub/docs/exactly-once-delivery: "No redelivery occurs after the message is successfully
        acknowledged".
        """
        once = self.settings.exactly_once and position in self.acked
        return once or position in self.gone or position in self.passed_over

    def _drop_expired_messages(self) -> None:
        """Drop messages older than the retention of the subscription.

        https://cloud.google.com/pubsub/docs/subscription-properties: "message retention duration" is how long messages are retained
        after publication.
        """
        if not self.settings.retained:
            return
        horizon = self.world.now - RETENTION_S
        for position in range(self.cursor, len(self.records)):
            if self.records[position].stored_t >= horizon:
                return
            if position not in self.gone:
                self.gone.add(position)
                self.world.note(Freedom.RETENTION)

    def held_back(self) -> bool:
        """Tell whether the service waits before it sends more of this key.

        https://cloud.google.com/pubsub/docs/ordering: "There is no guarantee that subsequent messages will be sent without the previous
        ones being acknowledged" (page of 2021), and "Unacknowledged messages for a given ordering key can potentially delay delivery of
        messages for other ordering keys".
        """
        world = self.world
        if self.blocker is not None and self.blocker.holds:
            self.sender.kick(self, 1.0)
            return True
        if world.now < self.not_before:
            self.sender.kick(self, self.not_before - world.now)
            return True
        return self.settings.successors_held and self._waits_for_acknowledgement()

    def _waits_for_acknowledgement(self) -> bool:
        """Tell whether earlier messages of this key hold back the next one."""
        since_t = min((copy.sent_t for copy in self.open_copies if copy.holds and copy.position < self.cursor), default=None)
        if since_t is None:
            return False
        self.world.note(Freedom.SUCCESSORS_HELD)
        if self.world.now - since_t > HELD_S and Freedom.SUCCESSORS_HELD_LONG in self.world.switched_off:
            return False
        if self.world.now - since_t > HELD_S:
            self.world.note(Freedom.SUCCESSORS_HELD_LONG)
        self.sender.kick(self, HELD_S)
        return True

    def send_next(self) -> Copy:
        """Begin the lease of the next message. Messages must be pending.

        With exactly-once delivery too, a redelivery brings subsequent messages whose leases are valid: the ordering page
        (https://cloud.google.com/pubsub/docs/ordering) demands it, although the page of exactly-once delivery excludes a redelivery "while
        a message is outstanding".
        """
        position, now = self.cursor, self.world.now
        if position in self.acked:
            self.world.note(Freedom.REDELIVERY_OF_ACKED)
        if position in self.latest and self.latest[position].open:
            self.world.note(Freedom.REDELIVERY_WHILE_LEASED)
        self.acked.discard(position)
        copy = Copy(self, position, self.records[position], self._attempt(position), now + self.settings.ack_deadline_s, now)
        self.latest[position] = copy
        self.open_copies[copy] = None
        self.cursor += 1
        self.world.after(self.settings.ack_deadline_s, partial(self._look_at_lease, copy))
        return copy

    def _attempt(self, position: int) -> int:
        """Return the delivery attempt that the service shows.

        https://cloud.google.com/pubsub/docs/dead-letter-topics: the count of delivery attempts is approximate.
        """
        if not self.settings.dead_letter_max_attempts:
            return 0
        error = self.world.rng.choice((-1, 1)) if self.world.take(Freedom.DELIVERY_ATTEMPT_APPROXIMATE, 0.05) else 0
        return max(1, self.attempts[position] + 1 + error)

    def change_lease(self, copy: Copy, seconds: float) -> None:
        """Apply a lease modification that the service received now."""
        if copy.open:
            copy.lease_until = self.world.now + seconds
            self.world.after(seconds, partial(self._look_at_lease, copy))

    def _look_at_lease(self, copy: Copy) -> None:
        if copy.open and copy.lease_until <= self.world.now + 1e-9:
            self.world.note(Freedom.LEASE_EXPIRED)
            self.give_back(copy)

    def close(self, copy: Copy) -> None:
        """End the lease of a delivery."""
        copy.open = False
        self.open_copies.pop(copy, None)
        if copy.on_settled is not None:
            copy.on_settled(copy)
        self.sender.kick(self)

    def acknowledge(self, copy: Copy) -> AckResult:
        """Apply an acknowledgement that the service received now.

        https://cloud.google.com/pubsub/docs/pull: an acknowledgement after the deadline is best effort.
        """
        if self.settings.exactly_once:
            return self._acknowledge_once(copy)
        if not copy.open:
            if self.world.take(Freedom.ACK_OF_EXPIRED_LEASE, 0.5):
                self.acked.add(copy.position)
            return AckResult.INVALID
        self.acked.add(copy.position)
        self.close(copy)
        return AckResult.APPLIED

    def _acknowledge_once(self, copy: Copy) -> AckResult:
        """Apply an acknowledgement of exactly-once delivery.

        https://cloud.google.com/pubsub/docs/exactly-once-delivery: only the latest acknowledgement id is valid; with ordering keys the
        service "expects the acknowledgments to be in order" and fails others with temporary errors. A message
        that waits for its redelivery may still be acknowledged by its latest id, and then "No redelivery occurs".
        """
        if not copy.open or not copy.current or copy.position in self.gone:
            return AckResult.INVALID
        if any(position not in self.acked and position not in self.gone for position in range(copy.position)):
            self.world.note(Freedom.ACK_OUT_OF_ORDER_REFUSED)
            return AckResult.OUT_OF_ORDER
        if copy.position >= self.cursor and not self.world.take(Freedom.ACK_DURING_REDELIVERY_ONCE):
            return AckResult.INVALID
        self.acked.add(copy.position)
        self.close(copy)
        return AckResult.APPLIED

    def give_back(self, copy: Copy, *, nacked: bool = False) -> None:
        """End a lease without an acknowledgement: the message is redelivered or dead-lettered."""
        settled = not copy.open or not copy.current or copy.position in self.gone
        if copy.open:
            self.close(copy)
        if settled or (copy.position in self.acked and not nacked):
            return
        self.attempts[copy.position] += 1
        if self._dead_letters(copy):
            self._dead_letter(copy)
        else:
            self._redeliver(copy.position, nacked=nacked)

    def _redeliver(self, position: int, *, nacked: bool) -> None:
        """Restart at a message whose lease is over, after the backoff of the retry policy.

        https://cloud.google.com/pubsub/docs/handling-failures: the retry policy delays the redelivery of a message after a negative
        acknowledgement or an expired deadline.
        """
        limit_s = self.settings.retry_backoff_max_s
        backoff_s = self.world.between(0.0, limit_s) if limit_s and self.world.take(Freedom.BACKOFF, 0.7) else 0.0
        if nacked and not self._one_at_a_time and self.world.take(Freedom.BUFFERED_AFTER_NACK, 0.3):
            self.planned_restarts += 1
            self.world.after(max(backoff_s, 1.0), partial(self._restart_later, position))
        else:
            self.restart(position)
            self.not_before = max(self.not_before, self.world.now + backoff_s)

    @property
    def _one_at_a_time(self) -> bool:
        return self.settings.mode != "streaming" or self.settings.exactly_once

    def _restart_later(self, position: int) -> None:
        self.planned_restarts -= 1
        self.restart(position)
        self.sender.kick(self)

    def restart(self, position: int) -> None:
        """Go back to a message, whose redelivery brings all subsequent ones."""
        if position >= self.cursor:
            return
        self.cursor = position
        self.passed_over.clear()
        self._skip_for_dead_letters()
        self.sender.restarted(self)
        self.sender.kick(self)

    def _skip_for_dead_letters(self) -> None:
        """Leave acknowledged messages out of a redelivery on a subscription with a dead-letter topic.

        https://cloud.google.com/pubsub/docs/ordering: with a dead-letter topic the redelivery of all subsequent messages "may not be
        true, as Pub/Sub forwards messages to dead-letter topics on a best-effort basis".
        """
        acked = [position for position in self.acked if position > self.cursor]
        if self.settings.dead_letter_max_attempts and acked and self.world.take(Freedom.DEAD_LETTER_SKIPS, 0.5):
            self.passed_over.update(position for position in sorted(acked) if self.world.rng.random() < 0.5)

    def _dead_letters(self, copy: Copy) -> bool:
        """Decide whether a message is forwarded now.

        https://cloud.google.com/pubsub/docs/dead-letter-topics: the number of attempts is approximate, "forwarding is best effort".
        """
        limit = self.settings.dead_letter_max_attempts
        if not limit or self.attempts[copy.position] < limit:
            return False
        return not self.world.take(Freedom.DEAD_LETTER_EXCEEDED, 0.2)

    def _dead_letter(self, copy: Copy) -> None:
        """Forward a message to the dead-letter topic, perhaps twice.

        https://cloud.google.com/pubsub/docs/dead-letter-topics: forwarding is best effort, and a message may be forwarded more than
        once.
        """
        world = self.world
        world.note(Freedom.DEAD_LETTERED)
        self.gone.add(copy.position)
        for _ in range(2 if world.take(Freedom.DEAD_LETTERED_TWICE, 0.1) else 1):
            world.after(world.between(0.01, 1.0), partial(self._record_dead_letter, copy.record))
        if world.rng.random() < 0.5:
            self.restart(copy.position)
        self.sender.kick(self)

    def _record_dead_letter(self, record: Record) -> None:
        event = DeadLettered(self.world.now, self.settings.name, record.key, record.message_id)
        self.world.recorder.write("dead letters", event)

    def seek(self, since_t: float) -> None:
        """Make everything that was stored since then unacknowledged, and everything before it acknowledged."""
        first = next((at for at, record in enumerate(self.records) if record.stored_t >= since_t), len(self.records))
        self.gone.update(range(first))
        self.acked = {position for position in self.acked if position < first}
        self.gone = {position for position in self.gone if position < first}
        self.latest.clear()
        self.restart(first)
        self.passed_over.clear()
        self.cursor = max(self.cursor, first)
        self.sender.kick(self)

    def early_position(self) -> int:
        """Choose where a redelivery begins for any subscriber: at the first unacknowledged message or before it."""
        position = max(0, self.cursor - 1 - int(self.world.between(0, self.cursor)))
        unacked = self.first_unacked()
        return position if unacked is None else min(position, unacked)

    def first_unacked(self) -> int | None:
        """Return the first message that was sent and is neither acknowledged nor gone."""
        for position in range(self.cursor):
            if position not in self.acked and position not in self.gone:
                return position
        return None
