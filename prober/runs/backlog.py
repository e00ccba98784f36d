"""Pending messages of one subscription, by key, from their intended send time.

The tracker supplies the metrics between events: the age of the oldest unacknowledged message, the number of pending messages, and the
stalled keys. It receives the same events as the checker, and exists as long as its subscription is used, over many runs. Its memory grows
only with the pending messages, of which it tracks at most `PENDING_MAX`; publishes beyond that are counted and not tracked.

A message is pending from its intended send time until

* it is acknowledged, whether or not the acknowledgement is confirmed: the service redelivers it if it was lost;
* it arrives at the dead-letter topic;
* its publish definitely stored nothing.

A publish without an answer may have been stored, so its age counts, too. A delivery proves that it was stored.

A message is *written off* if it is unknown whether the service still has to deliver it. It is counted, and no longer pending. The cases:

* a publish without an answer was abandoned, by the publisher or by the end of the run;
* the message retention has ended;
* a seek, a filter change or a gap in the record happened. A seek back makes messages pending again, since the time of the seek;
* the subscription was deleted;
* its run ended, unless the service is late with it: the key stalled, a later message overtook it, or the target is unreachable. After the
  run the subscription has no subscriber. If its last allowed attempt was delivered, the dead-letter policy may have dropped it;
* the key moved in a later run: the message is lost, and that run or an earlier one reported it. Until then the age of a late message
  grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf
from typing import Any

from prober.core.events import (
    Acked,
    DeadLettered,
    Delivered,
    Event,
    FilterChanged,
    Interrupted,
    PublishAbandoned,
    Published,
    PublishEvent,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
    Sought,
)

PENDING_MAX = 2_000_000


@dataclass(frozen=True, slots=True)
class Backlog:
    """Pending messages of a subscription at one time."""

    oldest_unacked_age_s: float = 0.0
    undelivered: int = 0
    stalled_keys: int = 0

    def joined(self, other: Backlog) -> Backlog:
        """Return the backlog of two subscriptions together."""
        return Backlog(
            max(self.oldest_unacked_age_s, other.oldest_unacked_age_s),
            self.undelivered + other.undelivered,
            self.stalled_keys + other.stalled_keys,
        )


@dataclass(slots=True)
class PendingMessage:
    """A stored message without an acknowledgement. `number`: its position in the order of sending.

    last_attempt   the dead-letter policy may forward it from now on.
    """

    epoch: str
    since_t: float
    number: int
    delivered: bool = False
    last_attempt: bool = False


@dataclass(slots=True)
class PendingPublish:
    """Attempts to publish one sequence number.

    open     attempts without an answer, by generation, with their positions in the order of sending.
    unknown  an attempt ended with an unknown outcome.
    stored   an attempt was provably stored: its message is tracked, and only open attempts matter.
    """

    since_t: float
    open: dict[int, int] = field(default_factory=dict)
    unknown: bool = False
    stored: bool = False

    @property
    def settled(self) -> bool:
        """Whether no relevant attempt can become a message any more."""
        return not self.open and (self.stored or not self.unknown)


@dataclass(slots=True)
class PendingKey:
    """A key with pending messages by id, and publishes by epoch and sequence number, both in the order of sending.

    moved_t   time of the latest delivery, acknowledgement or dead-lettering, or of the first stored message.
    reached   largest position of a delivered message in the order of sending, and its epoch.
    """

    moved_t: float
    messages: dict[str, PendingMessage] = field(default_factory=dict)
    publishes: dict[tuple[str, int], PendingPublish] = field(default_factory=dict)
    reached: tuple[int, str] = (0, "")

    @property
    def oldest_t(self) -> float:
        """Intended send time of its oldest message or publish."""
        stored = (message.since_t for message in self.messages.values())
        published = (publish.since_t for publish in self.publishes.values() if not publish.stored)
        return min(next(stored, inf), next(published, inf))


def joined(backlogs: Iterable[Backlog]) -> Backlog:
    """Return the backlog of several subscriptions together; empty without subscriptions."""
    return reduce(Backlog.joined, backlogs, Backlog())


class BacklogTracker:
    """Pending messages of one subscription. Belongs to the event loop; times are the recorder's, in seconds.

    written_off   messages written off so far.
    """

    def __init__(
        self,
        stalled_after_s: float,
        *,
        retention_s: float = inf,
        attempts_max: int = 0,
        retains_acked: bool = False,
        excludes: Callable[[int], bool] = lambda _seq: False,
    ) -> None:
        """Create an empty tracker.

        `stalled_after_s`: a key with a pending message that does not move for longer counts as stalled. `retention_s`: the message
        retention. `attempts_max`: limit of the dead-letter policy, 0 without a policy. `retains_acked`: a seek restores acknowledged
        messages. `excludes`: whether the filter excludes a sequence number.
        """
        self.written_off = 0
        self._stalled_after_s, self._retention_s = stalled_after_s, retention_s
        self._attempts_max, self._retains_acked, self._excludes = attempts_max, retains_acked, excludes
        self._keys: dict[str, PendingKey] = {}
        self._retained: dict[tuple[str, str], PendingMessage] = {}
        self._pending = self._publishes = self._sent = self._dropped = 0
        self._handlers: Mapping[type[Any], Callable[[Any], None]] = {
            PublishInvoked: self._invoked,
            Published: self._published,
            PublishFailed: self._failed,
            PublishUnknown: self._unknown,
            PublishAbandoned: self._abandoned,
            Delivered: self._delivered,
            Acked: self._acked,
            DeadLettered: self._acked,
            Sought: self._sought,
            FilterChanged: self._unsettled,
            Interrupted: self._unsettled,
        }

    def listen(self, event: Event) -> None:
        """Process an event of the subscription."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def backlog(self, now: float) -> Backlog:
        """Return the backlog at `now`; `undelivered` are stored messages. Takes time proportional to the keys with pending messages."""
        self._expire(now - self._retention_s)
        oldest_t = min((key.oldest_t for key in self._keys.values()), default=inf)
        stalled = sum(1 for key in self._keys.values() if key.messages and self._is_stalled(key, now))
        return Backlog(max(0.0, now - oldest_t), self._pending, stalled)

    def missing(self, epoch: str) -> Mapping[str, int]:
        """Return the number of undelivered stored messages of an epoch, by key."""
        counts = {
            name: sum(1 for message in key.messages.values() if message.epoch == epoch and not message.delivered)
            for name, key in self._keys.items()
        }
        return {name: count for name, count in counts.items() if count}

    def take_dropped(self) -> int:
        """Return the number of publishes not tracked since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def end_run(self, epoch: str, now: float, *, unreachable: bool = False, paused: bool = False) -> int:
        """End the run of an epoch: only messages that the service is late with stay pending.

        Return the number of messages written off. `unreachable`: the target did not answer at the end. `paused`: the prober's process
        paused, so that no key counts as stalled.
        """
        before = self.written_off
        for name, key in list(self._keys.items()):
            self._write_off_publishes(key)
            late = unreachable or (not paused and self._is_stalled(key, now))
            gone = [message_id for message_id, message in key.messages.items() if _is_over(message, key, epoch, late=late)]
            self._write_off(key, gone)
            self._forget_if_empty(name, key)
        self._retained.clear()
        return self.written_off - before

    def clear(self) -> None:
        """Write off all messages: the subscription was deleted."""
        for key in self._keys.values():
            self._write_off_publishes(key)
            self._write_off(key, list(key.messages))
        self._keys.clear()
        self._retained.clear()

    # --- publishes -----------------------------------------------------------------------------------------------------------

    def _invoked(self, event: PublishInvoked) -> None:
        if self._excludes(event.seq):
            return
        if self._pending + self._publishes >= PENDING_MAX:
            self._dropped += 1
            return
        intended_t = event.t if event.intended_t is None else event.intended_t
        key = self._keys.get(event.key)
        if key is None:
            key = self._keys[event.key] = PendingKey(intended_t)
        publish = key.publishes.get((event.epoch, event.seq))
        if publish is None:
            publish = key.publishes[event.epoch, event.seq] = PendingPublish(intended_t)
            self._publishes += 1
        self._sent += 1
        publish.open[event.generation] = self._sent

    def _published(self, event: Published) -> None:
        self._answered(event, stored=event.message_id)

    def _failed(self, event: PublishFailed) -> None:
        self._answered(event)

    def _unknown(self, event: PublishUnknown) -> None:
        self._answered(event, unknown=True)

    def _answered(self, event: Published | PublishFailed | PublishUnknown, *, stored: str = "", unknown: bool = False) -> None:
        """Process the answer to an attempt. An attempt that is not open was not tracked, or its message was delivered before."""
        key = self._keys.get(event.key)
        publish = key.publishes.get((event.epoch, event.seq)) if key is not None else None
        if key is None or publish is None or (number := publish.open.pop(event.generation, None)) is None:
            return
        publish.unknown |= unknown
        if stored:
            self._store(key, stored, PendingMessage(event.epoch, publish.since_t, number), event.t)
            publish.stored = True
        self._forget_if_settled(event, key, publish)

    def _abandoned(self, event: PublishAbandoned) -> None:
        key = self._keys.get(event.key)
        publish = key.publishes.get((event.epoch, event.seq)) if key is not None else None
        if key is not None and publish is not None:
            publish.open.clear()
            self.written_off += not publish.stored
            publish.stored = True
            self._forget_if_settled(event, key, publish)

    def _store(self, key: PendingKey, message_id: str, message: PendingMessage, t: float) -> None:
        if not key.messages:
            key.moved_t = max(key.moved_t, t)
        if message_id not in key.messages:  # a service may give an id twice
            key.messages[message_id] = message
            self._pending += 1

    # --- deliveries ----------------------------------------------------------------------------------------------------------

    def _delivered(self, event: Delivered) -> None:
        key = self._keys.get(event.key)
        if key is None:
            return
        key.moved_t = event.t
        message = key.messages.get(event.message_id) or self._proven(event, key)
        if message is not None:
            message.delivered = True
            message.last_attempt = 0 < self._attempts_max <= event.delivery_attempt
            key.reached = max(key.reached, (message.number, message.epoch))

    def _proven(self, event: Delivered, key: PendingKey) -> PendingMessage | None:
        """Return the message of a publish without an answer, if this delivery proves that it was stored."""
        publish = key.publishes.get((event.epoch, event.seq))
        if publish is None or not (event.generation in publish.open or (publish.unknown and not publish.stored)):
            return None
        message = PendingMessage(event.epoch, publish.since_t, publish.open.pop(event.generation, 0))
        self._store(key, event.message_id, message, event.t)
        publish.stored = True
        self._forget_if_settled(event, key, publish)
        return message

    def _acked(self, event: Acked | DeadLettered) -> None:
        key = self._keys.get(event.key)
        message = key.messages.pop(event.message_id, None) if key is not None else None
        if key is None or message is None:
            return
        self._pending -= 1
        key.moved_t = event.t
        self._retain(event.key, event.message_id, message)
        self._forget_if_empty(event.key, key)

    # --- pending again, or unknown --------------------------------------------------------------------------------------------

    def _sought(self, event: Sought) -> None:
        """Write off all messages, then restore those sent since the time of a seek back."""
        self._unsettled(event)
        if event.since_t is None:
            return
        for (name, message_id), message in self._retained.items():
            if message.since_t >= event.since_t:
                key = self._keys.setdefault(name, PendingKey(event.t))
                self._store(key, message_id, replace(message, since_t=event.t, delivered=True), event.t)

    def _unsettled(self, event: Sought | FilterChanged | Interrupted) -> None:
        del event
        for name, key in self._keys.items():
            for message_id, message in key.messages.items():
                self._retain(name, message_id, message)
        retained = dict(self._retained)
        self.clear()
        self._retained = retained

    def _retain(self, key: str, message_id: str, message: PendingMessage) -> None:
        if self._retains_acked and len(self._retained) < PENDING_MAX:
            self._retained.setdefault((key, message_id), message)

    def _expire(self, published_before_t: float) -> None:
        for name, key in list(self._keys.items()):
            if key.oldest_t < published_before_t:
                self._write_off(key, [each for each, message in key.messages.items() if message.since_t < published_before_t])
                self._forget_if_empty(name, key)

    # --- tidying -------------------------------------------------------------------------------------------------------------

    def _is_stalled(self, key: PendingKey, now: float) -> bool:
        return now - key.moved_t > self._stalled_after_s

    def _write_off(self, key: PendingKey, message_ids: Iterable[str]) -> None:
        for message_id in message_ids:
            del key.messages[message_id]
            self._pending -= 1
            self.written_off += 1

    def _write_off_publishes(self, key: PendingKey) -> None:
        self.written_off += sum(1 for publish in key.publishes.values() if not publish.stored)
        self._publishes -= len(key.publishes)
        key.publishes.clear()

    def _forget_if_settled(self, event: PublishEvent | Delivered, key: PendingKey, publish: PendingPublish) -> None:
        if publish.settled:
            del key.publishes[event.epoch, event.seq]
            self._publishes -= 1
            self._forget_if_empty(event.key, key)

    def _forget_if_empty(self, name: str, key: PendingKey) -> None:
        if not key.messages and not key.publishes:
            del self._keys[name]


def _is_over(message: PendingMessage, key: PendingKey, epoch: str, *, late: bool) -> bool:
    """Return whether a message is no longer pending after the run of an epoch.

    `late`: the service is late with the whole key.
    """
    number, reached_epoch = key.reached
    is_overtaken = not message.delivered and message.number < number
    if message.epoch != epoch:
        return reached_epoch == epoch and message.number < number
    return message.last_attempt or not (late or is_overtaken)
