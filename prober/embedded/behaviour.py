"""Where the service may misbehave: the points at which it decides something that a promise is about.

`Behaviour` is the honest service. `FaultyBehaviour` overrides it point by point, so what a fault does stands in one place and the state
machine reads as if there were none. Each point is asked with the time and with what it is about, never with more than it may change; a
fault is only asked for where it would make a difference. A new fault is a description in `faults` and a few lines here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from prober.embedded.errors import ServiceError, unavailable
from prober.embedded.faults import Armed, Faults
from prober.embedded.key_queues import KeyQueue, QueueEntry, Stream
from prober.embedded.messages import Delivery, Message, PublishDraft

_SLOW_S: Final = 2.0
_JITTER_MAX_S: Final = 0.5
_LATE_MAX_S: Final = 2.0
_LATE_MIN_S: Final = 0.1
_PLACES_MAX: Final = 100_000  # topics with a key of which something is remembered


@dataclass(frozen=True, slots=True)
class Admission:
    """How much of a publish request is stored, and the error that is answered instead of the ids, if any."""

    stored: int
    error: ServiceError | None = None


@dataclass(frozen=True, slots=True)
class Redelivery:
    """How a message is redelivered.

    again       these positions are sent, and the cursor stays where it is; None: the honest rewind.
    halt_until  the key queue is silent after the first message of the redelivery, until this time; 0: it is not.
    """

    again: tuple[int, ...] | None = None
    halt_until: float = 0.0


HONEST_REDELIVERY = Redelivery()


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """An answer to a pull that never arrives. error: what the client gets instead; None: nothing at all."""

    error: ServiceError | None = None


class Behaviour:
    """The honest service."""

    def admit(self, topic: str, drafts: Sequence[PublishDraft], now: float) -> Admission:
        """A publish request has arrived and is in order."""
        return Admission(len(drafts))

    def store(self, topic: str, messages: list[Message], now: float) -> list[Message]:
        """Messages of one request have their ids: what is stored, in this order. The publisher gets the ids of all."""
        return messages

    def repeat(self, topic: str, stored: Sequence[Message], now: float) -> Sequence[Message]:
        """These were just stored: what is stored once more after them, of these or of before, under its id with a new publish time."""
        return ()

    def enqueue(self, subscription: str, message: Message, now: float) -> bool:
        """A stored message passed a subscription's filter: whether the subscription ever gets to see it."""
        return True

    def redeliver(self, subscription: str, entry: QueueEntry, now: float) -> Redelivery:
        """A sent message was refused or its deadline passed."""
        return HONEST_REDELIVERY

    def postpone(self, subscription: str, key_queue: KeyQueue, now: float) -> float:
        """A key queue has something to send: the time before which it is silent (infinity: for good), or 0."""
        return 0.0

    def stray(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """A key queue whose messages are outstanding at its stream gets more: another stream to send it to, or None."""
        return None

    def lose_track(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """As for `stray`: a stream on which the key queue starts again, from the lowest outstanding message on, or None."""
        return None

    def breaks(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """A stream is about to get messages of this key queue: whether it breaks instead."""
        return False

    def lose_tail(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """What follows in a redelivery had all been acknowledged before: whether it is sent into a stream that is about to break."""
        return False

    def lose_answer(self, subscription: str, deliveries: Sequence[Delivery], now: float) -> LostAnswer | None:
        """A pull is about to be answered with these messages, which are outstanding from now on: whether the answer is lost."""
        return None

    def delay_answer(self, subscription: str, entry: QueueEntry, now: float) -> float:
        """A message is acknowledged, or its deadline moved further away: by how many seconds that takes effect later."""
        return 0.0

    def lose_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """A valid acknowledgement has arrived: whether it is forgotten."""
        return False

    def silent_until(self, now: float) -> float:
        """Something could be delivered: nothing at all is before this time; a past time means business as usual."""
        return 0.0


class FaultyBehaviour(Behaviour):
    """The service with faults. Without any armed it is honest."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._last_ids: dict[tuple[str, str], str] = {}
        self._stored_once: dict[tuple[str, str], Sequence[Message]] = {}
        self._stall: Armed | None = None

    def admit(self, topic: str, drafts: Sequence[PublishDraft], now: float) -> Admission:
        """publish_unavailable, partial_batch, reply_lost."""
        key = drafts[0].ordering_key
        if self.faults.strike("publish_unavailable", topic, key, now):
            return Admission(0, unavailable())
        if len(drafts) > 1 and (armed := self.faults.strike("partial_batch", topic, key, now)):
            return Admission(armed.dice.randrange(1, len(drafts)), unavailable())
        if self.faults.strike("reply_lost", topic, key, now):
            return Admission(len(drafts), unavailable())
        return Admission(len(drafts))

    def store(self, topic: str, messages: list[Message], now: float) -> list[Message]:
        """duplicate_id, swap_in_batch, lose_write."""
        if self.faults.has("duplicate_id"):
            for message in messages:
                self._duplicate_id(topic, message, now)
        stored = [
            message for message in messages if not self.faults.strike("lose_write", topic, message.ordering_key, now, message.id)
        ]
        if len(stored) > 1 and stored[0].ordering_key:
            self._swap(topic, stored, now)
        return stored

    def _duplicate_id(self, topic: str, message: Message, now: float) -> None:
        place = (topic, message.ordering_key)
        last = self._last_ids.get(place)
        if message.ordering_key and last and self.faults.strike("duplicate_id", topic, message.ordering_key, now, last):
            message.id = last
        if len(self._last_ids) >= _PLACES_MAX:
            self._last_ids.clear()
        self._last_ids[place] = message.id

    def _swap(self, topic: str, stored: list[Message], now: float) -> None:
        armed = self.faults.strike("swap_in_batch", topic, stored[0].ordering_key, now, stored[0].id)
        if armed:
            at = armed.dice.randrange(len(stored) - 1)
            earlier, later = stored[at], stored[at + 1]
            earlier.sequence, later.sequence = later.sequence, earlier.sequence  # so that a seek replays the wrong order too
            stored[at], stored[at + 1] = later, earlier

    def repeat(self, topic: str, stored: Sequence[Message], now: float) -> Sequence[Message]:
        """duplicate_publish_same_id: these, and every other time those of the request of their key before; each message once."""
        if not stored or not self.faults.has("duplicate_publish_same_id"):
            return ()
        key, once = stored[0].ordering_key, self._stored_once
        if len(once) >= _PLACES_MAX:
            once.clear()
        late = self.faults.ledger.counts["duplicate_publish_same_id"] % 2 == 1
        before = once.pop((topic, key), ())
        chosen = before if late else stored
        struck = bool(chosen) and self.faults.strike("duplicate_publish_same_id", topic, key, now, chosen[0].id)
        if late or not struck:
            once[topic, key] = stored
        return chosen if struck else ()

    def enqueue(self, subscription: str, message: Message, now: float) -> bool:
        """Drop."""
        return not self.faults.strike("drop", subscription, message.ordering_key, now, message.id)

    def redeliver(self, subscription: str, entry: QueueEntry, now: float) -> Redelivery:
        """never_redeliver, stall_run, redeliver_single, redeliver_unacked_only; the latter three only if something was sent after it."""
        key_queue, message = entry.key_queue, entry.message
        if self.faults.strike("never_redeliver", subscription, key_queue.key, now, message.id):
            return Redelivery(again=())
        later = key_queue.sent_after(entry.position)
        if not later:
            return HONEST_REDELIVERY
        if armed := self.faults.strike("stall_run", subscription, key_queue.key, now, message.id):
            return Redelivery(halt_until=armed.ends)
        if self.faults.strike("redeliver_single", subscription, key_queue.key, now, message.id):
            return Redelivery(again=(entry.position,))
        acknowledged = any(other.settled for other in later)
        if acknowledged and self.faults.strike("redeliver_unacked_only", subscription, key_queue.key, now, message.id):
            return Redelivery(again=(entry.position, *(other.position for other in later if not other.settled)))
        return HONEST_REDELIVERY

    def postpone(self, subscription: str, key_queue: KeyQueue, now: float) -> float:
        """stall_key, slow_delivery, jitter: once for each message that is new in the key queue."""
        if key_queue.decided >= key_queue.end:
            return 0.0
        key_queue.decided = key_queue.end
        if key_queue.key and (armed := self.faults.strike("stall_key", subscription, key_queue.key, now)):
            return armed.ends
        if self.faults.strike("slow_delivery", subscription, key_queue.key, now):
            return now + _SLOW_S
        if armed := self.faults.strike("jitter", subscription, key_queue.key, now):
            return now + armed.dice.uniform(0.0, _JITTER_MAX_S)
        return 0.0

    def stray(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """split_holder, if there is another subscriber that has room."""
        if not self.faults.has("split_holder"):
            return None
        others = [stream for stream in streams if stream.open and stream.client is not key_queue.client and stream.has_room]
        entry = key_queue.peek() if others else None
        armed = self.faults.strike("split_holder", subscription, key_queue.key, now, entry.message.id) if entry else None
        return armed.dice.choice(others) if armed else None

    def lose_track(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """early_redelivery, if there is another subscriber that has room, and not of what is only being sent."""
        if not self.faults.has("early_redelivery") or key_queue.stream is None or key_queue.stream.outbox:
            return None
        others = [stream for stream in streams if stream.open and stream.client is not key_queue.client and stream.has_room]
        lowest = key_queue.at(key_queue.lowest_held).message
        armed = self.faults.strike("early_redelivery", subscription, key_queue.key, now, lowest.id) if others else None
        return armed.dice.choice(others) if armed else None

    def breaks(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """stream_break."""
        return bool(self.faults.strike("stream_break", subscription, key_queue.key, now))

    def lose_tail(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """lost_tail."""
        return bool(
            self.faults.strike("lost_tail", subscription, key_queue.key, now, key_queue.at(key_queue.acked_from).message.id)
        )

    def lose_answer(self, subscription: str, deliveries: Sequence[Delivery], now: float) -> LostAnswer | None:
        """lost_pull_answer: half of the time the client gets an error."""
        first = deliveries[0].message
        armed = self.faults.strike("lost_pull_answer", subscription, first.ordering_key, now, first.id)
        if armed is None:
            return None
        return LostAnswer(unavailable() if armed.dice.random() < 0.5 else None)

    def delay_answer(self, subscription: str, entry: QueueEntry, now: float) -> float:
        """slow_ack_extension."""
        armed = self.faults.strike("slow_ack_extension", subscription, entry.key_queue.key, now, entry.message.id)
        return armed.dice.uniform(_LATE_MIN_S, _LATE_MAX_S) if armed else 0.0

    def lose_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """ack_lost."""
        return bool(self.faults.strike("ack_lost", subscription, entry.key_queue.key, now, entry.message.id))

    def silent_until(self, now: float) -> float:
        """stall_all."""
        if self._stall is not None and (self._stall.ends <= now or self._stall not in self.faults.all()):
            self._stall = None
        if self._stall is None:
            self._stall = self.faults.strike("stall_all", "", "", now)
        return self._stall.ends if self._stall is not None else -math.inf
