"""Reactions of pull and streaming clients to a delivery: acknowledge, nack, change the lease, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prober.core.events import AckConfirmed, Acked, Delivered, LeaseModified, Nacked
from tests.documented.freedoms import Freedom
from tests.documented.lanes import AckResult, Copy
from tests.documented.settings import SubscriptionSettings
from tests.documented.world import World

RETRIES = 40
RETRY_S = 1.0


class Consumer:
    """A client that receives deliveries in one session and answers them."""

    def __init__(self, world: World, settings: SubscriptionSettings, clock: str, session: str) -> None:
        self.world = world
        self.settings = settings
        self.clock = clock
        self.session = session
        self.answers: Callable[[], bool] = lambda: True

    def receive(self, copy: Copy) -> None:
        """Record a delivery and plan the reaction to it."""
        self.record_delivery(copy)
        world = self.world
        roll = world.rng.random() / world.settings.fault_rate if world.faults else 1.0
        if roll < 0.06:
            self._later(0.01, 3.0, partial(self._nack, copy))
        elif roll < 0.10:
            return
        elif roll < 0.18:
            self._hold(copy, world.now + self._hold_s())
        elif roll < 0.21:
            self._shorten(copy)
        else:
            self._later(0.005, 3.0, partial(self._ack, copy, RETRIES))

    def record_delivery(self, copy: Copy) -> None:
        """Record what the subscriber received."""
        record, world = copy.record, self.world
        event = Delivered(
            world.now,
            self.settings.name,
            record.key,
            self.session,
            record.epoch,
            record.seq,
            record.message_id,
            record.generation,
            delivery_attempt=copy.attempt,
            publish_time=record.publish_time if world.settings.publish_times_recorded else None,
        )
        world.recorder.write(self.clock, event)

    def _later(self, low_s: float, high_s: float, action: Callable[[], None]) -> None:
        self.world.after(self.world.between(low_s, high_s), partial(self._if_alive, action))

    def _if_alive(self, action: Callable[[], None]) -> None:
        if self.answers():
            action()

    def _lag_s(self) -> float:
        lag_s = self.world.between(0.005, self.settings.ack_lag_max_s)
        if lag_s > self.settings.ack_lag_max_s / 2:
            self.world.note(Freedom.ACK_LATE)
        return lag_s

    def _ack(self, copy: Copy, retries: int) -> None:
        """Send an acknowledgement, which is best effort and may get lost.

        https://cloud.google.com/pubsub/docs/ordering: "a best-effort acknowledgment wasn't persisted in Pub/Sub";
        https://cloud.google.com/pubsub/docs/exactly-once-delivery: without exactly-once delivery acknowledgements are best effort.
        """
        world = self.world
        world.recorder.write(
            self.clock, Acked(world.now, self.settings.name, copy.record.key, self.session, copy.record.message_id)
        )
        if not world.take(Freedom.ACK_LOST, 0.05):
            world.after(self._lag_s(), partial(self._apply_ack, copy, retries))

    def _apply_ack(self, copy: Copy, retries: int) -> None:
        """Apply an acknowledgement at the service; with exactly-once delivery the client gets an answer.

        https://cloud.google.com/pubsub/docs/exactly-once-delivery: temporary failures are retried by the client library.
        """
        result = copy.lane.acknowledge(copy)
        if not self.settings.exactly_once:
            return
        if result is AckResult.OUT_OF_ORDER and retries:
            self._later(RETRY_S, 2 * RETRY_S, partial(self._ack, copy, retries - 1))
        elif result is AckResult.APPLIED and not self.world.take(Freedom.ACK_CONFIRMATION_LOST, 0.05):
            self.world.after(self.world.between(0.001, 1.0), partial(self._confirm, copy))

    def _confirm(self, copy: Copy) -> None:
        record = copy.record
        event = AckConfirmed(self.world.now, self.settings.name, record.key, self.session, record.message_id)
        self.world.recorder.write(self.clock, event)

    def _nack(self, copy: Copy) -> None:
        """Send a negative acknowledgement, which may get lost as every acknowledgement may.

        https://cloud.google.com/pubsub/docs/handling-failures: a nack is a lease modification to 0 and makes Pub/Sub redeliver.
        """
        world = self.world
        world.note(Freedom.NACK)
        world.recorder.write(
            self.clock, Nacked(world.now, self.settings.name, copy.record.key, self.session, copy.record.message_id)
        )
        if not world.take(Freedom.NACK_LOST, 0.1):
            world.after(self._lag_s(), partial(copy.lane.give_back, copy, nacked=True))

    def _hold(self, copy: Copy, until_t: float) -> None:
        """Extend a lease again and again before the acknowledgement.

        https://cloud.google.com/pubsub/docs/lease-management: client libraries extend the deadline of messages in process.
        """
        deadline_s = self.settings.ack_deadline_s
        if self.world.now >= until_t:
            return self._ack(copy, RETRIES)
        if self.world.now + 0.5 * deadline_s < until_t:
            self.world.note(Freedom.LEASE_EXTENDED)
            self._modify_lease(copy, deadline_s)
        return self._later(0.5 * deadline_s, 0.6 * deadline_s, partial(self._hold, copy, until_t))

    def _hold_s(self) -> float:
        """Choose how long a message is held: the documents name no limit of a lease.

        https://cloud.google.com/pubsub/docs/lease-management: client libraries extend a lease up to an hour by default.
        """
        if self.world.take(Freedom.LEASE_HELD_LONG, 0.05):
            return self.world.rng.uniform(150.0, 400.0)
        return self.world.between(5.0, 100.0)

    def _shorten(self, copy: Copy) -> None:
        """Shorten a lease without an answer later.

        https://cloud.google.com/pubsub/docs/lease-management: a lease modification replaces the deadline, also by an earlier one.
        """
        self.world.note(Freedom.LEASE_SHORTENED)
        self._modify_lease(copy, self.world.rng.choice((1.0, 3.0, 5.0)))

    def _modify_lease(self, copy: Copy, seconds: float) -> None:
        """Send a lease modification, which is best effort without exactly-once delivery.

        https://cloud.google.com/pubsub/docs/lease-management: without exactly-once delivery a lease may expire although it was
        extended.
        """
        world, record = self.world, copy.record
        event = LeaseModified(world.now, self.settings.name, record.key, self.session, record.message_id, seconds)
        world.recorder.write(self.clock, event)
        if not world.take(Freedom.LEASE_CHANGE_LOST, 0.1):
            world.after(self._lag_s(), partial(copy.lane.change_lease, copy, seconds))
