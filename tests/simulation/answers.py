"""What a subscriber of streaming or unary pull does with a message: acknowledge, refuse, ignore, prolong or shorten its lease.

Everything is allowed here, at any time; what counts is what is recorded, and that it is recorded before it is sent (S1). An answer may
get lost. A lease that is prolonged again and again lasts longer than every deadline of the checker (row 3 of the amendments).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from prober.core.events import Acked, Delivered, LeaseModified, Nacked
from tests.simulation.faults import Fault
from tests.simulation.lane import Lane
from tests.simulation.line import Hold, Record, Session
from tests.simulation.world import ProbeInstance


class Listener(Protocol):
    """The service, as far as it hears answers."""

    def ack(self, lane: Lane, hold: Hold) -> None: ...

    def nack(self, lane: Lane, hold: Hold) -> None: ...

    def modify(self, lane: Lane, hold: Hold, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Copy:
    """One delivery on its way or at its client: the message as the client is shown it, under another `key` by a bug.

    Nothing is held by a copy that a bug invented.
    """

    session: Session
    lane: Lane
    record: Record
    hold: Hold | None
    attempt: int
    key: str = ""


def record_delivery(instance: ProbeInstance, copy: Copy) -> None:
    """The delivery reaches its client and is recorded."""
    message = copy.record.message
    copy.record.attempt_seen = max(copy.record.attempt_seen, copy.attempt)
    if copy.hold is not None:
        copy.hold.received = True
    instance.world.record(
        Delivered(
            copy.session.recorder.t,
            instance.name,
            copy.key or message.key,
            copy.session.name,
            message.epoch,
            message.seq,
            message.message_id,
            message.generation,
            copy.attempt,
            defect="ordering_key" if copy.key else None,
            publish_time=message.publish_time,
        )
    )


@dataclass(slots=True)
class Answers:
    """Answers for all clients of a subscription; `usable` tells whether a client can still send on the session of a copy."""

    probe_instance: ProbeInstance
    listener: Listener
    usable: Callable[[Session], bool]

    def decide(self, copy: Copy) -> None:
        world, options = self.probe_instance.world, self.probe_instance.options
        client, lease = options.client, options.bounds.lease_s
        delay = 0.01 if world.draining else world.between(0, 0.3)
        if world.happens(client.late_ack):
            delay = world.between(0, 1.2 * lease)
        if world.happens(client.hold):
            world.note("held for long")
            self._hold(copy, world.now + world.between(lease, client.hold_max_s))
            return
        if world.happens(client.shorten):
            world.after(world.between(0, 0.2), lambda: self._modify(copy, lease / 4))
        elif world.happens(client.extend):
            world.after(world.between(0, lease), lambda: self._modify(copy, lease))
        if world.happens(client.ignore):
            world.note("ignored")
        else:
            self._answer(copy, delay)

    def _answer(self, copy: Copy, delay: float) -> None:
        if self.probe_instance.world.happens(self.probe_instance.options.client.nack):
            self.probe_instance.world.after(delay, lambda: self._nack(copy))
        else:
            self.probe_instance.world.after(delay, lambda: self._ack(copy))

    def _hold(self, copy: Copy, until: float) -> None:
        """Prolongs the lease before it ends, until the client has had enough."""
        world, lease = self.probe_instance.world, self.probe_instance.options.bounds.lease_s
        if world.now >= until:
            self._answer(copy, 0.0)
        elif self.usable(copy.session):
            self._modify(copy, lease)
            world.after(
                world.between(0.3, 0.8) * (lease - self.probe_instance.options.bounds.ack_lag_s), lambda: self._hold(copy, until)
            )

    def _answered(self, copy: Copy) -> None:
        if copy.hold is not None:
            copy.hold.answered = True

    def _ack(self, copy: Copy) -> None:
        world, client = self.probe_instance.world, self.probe_instance.options.client
        if not self.usable(copy.session) and not world.happens(client.ack_after_close):
            return
        session, message = copy.session, copy.record.message
        self._answered(copy)
        world.record(Acked(session.recorder.t, self.probe_instance.name, copy.key or message.key, session.name, message.message_id))
        if world.happens(client.ack_loss):
            world.note("lost ack")
        elif copy.hold is not None:
            hold = copy.hold
            lag = 0.01 if world.draining else world.between(0, self.probe_instance.options.bounds.ack_lag_s)
            world.after(lag, lambda: self.listener.ack(copy.lane, hold))

    def _nack(self, copy: Copy) -> None:
        world = self.probe_instance.world
        if not self.usable(copy.session):
            return
        world.note("nack")
        session, message = copy.session, copy.record.message
        self._answered(copy)
        world.record(
            Nacked(session.recorder.t, self.probe_instance.name, copy.key or message.key, session.name, message.message_id)
        )
        if copy.hold is not None and not world.happens(self.probe_instance.options.client.ack_loss):
            hold = copy.hold
            world.after(world.between(0, self.probe_instance.options.bounds.ack_lag_s), lambda: self.listener.nack(copy.lane, hold))

    def _modify(self, copy: Copy, seconds: float) -> None:
        world, session, message = self.probe_instance.world, copy.session, copy.record.message
        if not self.usable(session):
            return
        if seconds < self.probe_instance.options.bounds.lease_s:
            self._answered(copy)
        world.record(
            LeaseModified(
                session.recorder.t, self.probe_instance.name, copy.key or message.key, session.name, message.message_id, seconds
            )
        )
        if copy.hold is not None and not world.happens(self.probe_instance.options.client.ack_loss):
            hold = copy.hold
            world.after(
                world.between(0, self.probe_instance.options.bounds.ack_lag_s),
                lambda: self.listener.modify(copy.lane, hold, seconds),
            )


def addressed(instance: ProbeInstance, session: Session, lane: Lane, record: Record, hold: Hold | None) -> Copy:
    """The delivery of a message, as its client will see it; the bug is to deliver it under another key."""
    attempt = record.attempts if instance.options.service.dead_letter else 0
    key = ""
    if instance.world.broken(Fault.WRONG_KEY, 0.1):
        instance.world.fire(f"{record.message.message_id} under another key")
        key = f"{lane.key}-other"
    return Copy(session, lane, record, hold, attempt, key)
