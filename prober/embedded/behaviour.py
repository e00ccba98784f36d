"""Decisions of the service that a guarantee depends on, and that a fault can change.

`Behaviour` is the correct service. `storage_faults` and `delivery_faults` override single methods, so each fault is implemented in one
place and the state machine contains none. The state calls a method at each decision, with the time and the objects concerned, and only
where a fault would make a difference. A new fault is a description in `catalogue` and a few lines in one of the two modules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prober.embedded.errors import ServiceError
from prober.embedded.key_queues import Detour, KeyQueue, QueueEntry, Stream
from prober.embedded.messages import Delivery, Message, PublishDraft
from prober.embedded.resources import Subscription


@dataclass(frozen=True, slots=True)
class Admission:
    """Decision on a publish request.

    stored  number of messages that are stored.
    error   error that the publisher gets instead of ids, if any.
    late    `store` keeps the messages for later.
    """

    stored: int
    error: ServiceError | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Way of redelivery of a message.

    again       positions to send while the cursor stays in place; None: the correct rewind.
    detour      positions to send first after the correct rewind.
    halt_until  end of a silence of the key queue after the first redelivered message; 0: no silence.
    """

    again: tuple[int, ...] | None = None
    detour: Detour | None = None
    halt_until: float = 0.0


HONEST_REDELIVERY = Redelivery()


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """A pull response that never arrives.

    error: error that the client gets instead; None: no response.
    """

    error: ServiceError | None = None


class Behaviour:
    """The correct service."""

    def admit(self, topic: str, drafts: Sequence[PublishDraft], now: float) -> Admission:
        """Decide on a valid publish request that has arrived."""
        return Admission(len(drafts))

    def refuse(self, call: str, now: float) -> ServiceError | None:
        """Return the error with which an administrative call ends immediately, or None."""
        return None

    def answer_after(self, call: str, where: str, key: str, now: float) -> float:
        """Return the delay of the response to an executed `Publish` or administrative call, in seconds."""
        return 0.0

    def store(self, topic: str, messages: list[Message], now: float, *, late: bool) -> list[Message]:
        """Return the messages of one request to store, in this order. They have their ids; the publisher gets the ids of all."""
        return messages

    def repeat(self, topic: str, stored: Sequence[Message], now: float) -> Sequence[Message]:
        """Return messages to store a second time, after `stored`.

        They are of these messages or earlier ones, each under its id with a new publish time.
        """
        return ()

    def invent(self, topic: str, stored: Sequence[Message], now: float) -> Sequence[PublishDraft]:
        """Return further messages to store after `stored`, which no client published."""
        return ()

    def overdue(self, now: float) -> Iterable[tuple[str, list[Message]]]:
        """Yield messages that `store` kept back and that are stored now, each group with its topic."""
        return ()

    def next_overdue(self) -> float:
        """Return the time of the next result of `overdue`; infinity: never."""
        return math.inf

    def arrange(
        self, topic: str, subscriptions: Sequence[str], stored: Sequence[Message], now: float
    ) -> Mapping[str, Sequence[Message]]:
        """Return the order of stored messages for subscriptions with ordering that get another than the stored one."""
        return {}

    def filter(self, subscription: str, message: Message, now: float, *, passes: bool) -> bool:
        """Return whether a stored message goes on to a subscription; `passes`: whether it passes the filter."""
        return passes

    def enqueue(self, subscription: str, message: Message, now: float) -> bool:
        """Return whether a stored message that passed the filter reaches the subscription."""
        return True

    def detour(self, subscription: str, key_queue: KeyQueue, now: float) -> Detour | None:
        """Return positions that a key queue sends before its next message, or None."""
        return None

    def redeliver(self, subscription: Subscription, entry: QueueEntry, now: float, *, expired: bool) -> Redelivery:
        """Return the way of redelivery of a message that was nacked or whose deadline passed."""
        return HONEST_REDELIVERY

    def skips_backoff(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether a nacked or expired message is redelivered without the back-off of its retry policy."""
        return False

    def postpone(
        self,
        subscription: str,
        key_queue: KeyQueue,
        outstanding: Iterable[QueueEntry],
        elsewhere: Iterable[QueueEntry],
        now: float,
    ) -> float:
        """Return the time before which a key queue with messages to send stays silent (infinity: for good), or 0.

        outstanding: entries of all keys of the subscription, in the order in which they were sent. elsewhere: those of the topic's other
        subscriptions.
        """
        return 0.0

    def dead_lettered(self, subscription: str, entry: QueueEntry, now: float) -> float:
        """Return the time before which all keys of a subscription stay silent after it dead-lettered a message, or 0."""
        return 0.0

    def forwards_late(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether `store` keeps back a message on its way to the dead-letter topic."""
        return False

    def overlap(self, subscription: Subscription, key_queues: Iterable[KeyQueue], now: float) -> KeyQueue | None:
        """Return a key queue to serve by pull or push despite its outstanding messages, or None."""
        return None

    def before_push(self, subscription: str, key_queue: KeyQueue, now: float) -> float:
        """Return the time before which the next message of a key queue is not pushed, or 0."""
        return 0.0

    def stray(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """Return another stream for the next messages of a key queue than the one with its outstanding messages, or None."""
        return None

    def lose_track(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """Return another stream on which a key queue restarts from its lowest outstanding message, or None."""
        return None

    def forget_holds(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """Return whether a key queue with outstanding messages restarts from the lowest of them when it gets a new message."""
        return False

    def looks_early(self, lease_s: float) -> float:
        """Return the time after which `ends_early` is called for a lease of `lease_s` seconds, in seconds; 0: never."""
        return 0.0

    def ends_early(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether the lease of an outstanding message ends before its time."""
        return False

    def breaks(self, subscription: str, key_queue: KeyQueue, now: float) -> float | None:
        """Return the delay, in seconds, until a client learns that its stream breaks at messages of this key queue.

        None: it does not break.
        """
        return None

    def stream_gone(self, subscription: Subscription, entry: QueueEntry, now: float) -> float:
        """Return the time before which the key of an outstanding message stays silent after its stream ended, or 0."""
        return 0.0

    def resumes_past(self, subscription: str, held: Sequence[QueueEntry], now: float) -> bool:
        """Return whether to lose the outstanding messages of a key whose stream ended."""
        return False

    def lose_tail(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """Return whether the rest of a redelivery, all acknowledged before, is sent into a stream that is about to break."""
        return False

    def lose_answer(self, subscription: str, deliveries: Sequence[Delivery], now: float) -> LostAnswer | None:
        """Return the loss of a pull response with these messages, now outstanding, or None."""
        return None

    def delay_answer(self, subscription: str, entry: QueueEntry, now: float) -> float:
        """Return the delay of an acknowledgement or of a later deadline, in seconds."""
        return 0.0

    def looks_again(self) -> float:
        """Return the time after which `forgets_ack` is called for a confirmed acknowledgement, in seconds; 0: never.

        Only with exactly-once delivery.
        """
        return 0.0

    def forgets_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether to redeliver from a message whose acknowledgement was confirmed `looks_again` seconds ago."""
        return False

    def lose_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """Return whether a valid acknowledgement is lost."""
        return False

    def silent_until(self, now: float) -> float:
        """Return the time before which no message is delivered; a past time has no effect.

        Called when a message could be delivered.
        """
        return 0.0
