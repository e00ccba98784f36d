"""Where the service may misbehave: the decisions that a guarantee depends on.

`Behaviour` is the honest service. `storage_faults` and `delivery_faults` override it point by point, so what a fault does stands in one
place and the state machine reads as if there were none. Each point is asked with the time and with what it is about, never with more
than it may change; a fault is only asked for where it would make a difference. A new fault is a description in `catalogue` and a few
lines there.
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
    """How much of a publish request is stored, whether `store` keeps it for later, and the error instead of the ids, if any."""

    stored: int
    error: ServiceError | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Redelivery:
    """How a message is redelivered.

    again       these positions are sent, and the cursor stays where it is; None: the honest rewind.
    detour      what is sent next after the honest rewind.
    halt_until  the key queue is silent after the first message of the redelivery, until this time; 0: it is not.
    """

    again: tuple[int, ...] | None = None
    detour: Detour | None = None
    halt_until: float = 0.0


HONEST_REDELIVERY = Redelivery()


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """A pull response that never arrives.

    error: what the client gets instead; None: nothing.
    """

    error: ServiceError | None = None


class Behaviour:
    """The honest service."""

    def admit(self, topic: str, drafts: Sequence[PublishDraft], now: float) -> Admission:
        """A publish request has arrived and is in order."""
        return Admission(len(drafts))

    def refuse(self, call: str, now: float) -> ServiceError | None:
        """An administrative call has arrived: the error that it ends with at once, if any."""
        return None

    def answer_after(self, call: str, where: str, key: str, now: float) -> float:
        """A call was carried out, `Publish` or an administrative one: how many seconds pass before it is answered."""
        return 0.0

    def store(self, topic: str, messages: list[Message], now: float, *, late: bool) -> list[Message]:
        """Messages of one request have their ids: what is stored, in this order. The publisher gets the ids of all."""
        return messages

    def repeat(self, topic: str, stored: Sequence[Message], now: float) -> Sequence[Message]:
        """Messages were just stored: the messages to store again after them.

        Of these messages or earlier ones, each under its id with a new publish time.
        """
        return ()

    def invent(self, topic: str, stored: Sequence[Message], now: float) -> Sequence[PublishDraft]:
        """Messages were just stored: further messages to store, without a publish."""
        return ()

    def overdue(self, now: float) -> Iterable[tuple[str, list[Message]]]:
        """Messages that `store` kept back and that are stored now, each time with their topic."""
        return ()

    def next_overdue(self) -> float:
        """When `overdue` has something; infinity: never."""
        return math.inf

    def arrange(
        self, topic: str, subscriptions: Sequence[str], stored: Sequence[Message], now: float
    ) -> Mapping[str, Sequence[Message]]:
        """Messages go to all subscriptions: the order in which those with ordering get them that get another one than was stored."""
        return {}

    def filter(self, subscription: str, message: Message, now: float, *, passes: bool) -> bool:
        """A stored message meets the filter of a subscription, which it passes or not: whether it goes on to the subscription."""
        return passes

    def enqueue(self, subscription: str, message: Message, now: float) -> bool:
        """A stored message passed a subscription's filter: whether the subscription ever gets to see it."""
        return True

    def detour(self, subscription: str, key_queue: KeyQueue, now: float) -> Detour | None:
        """A key queue may send its next message, if it has one: whether it sends something else first."""
        return None

    def redeliver(self, subscription: Subscription, entry: QueueEntry, now: float, *, expired: bool) -> Redelivery:
        """A sent message was nacked or its deadline passed."""
        return HONEST_REDELIVERY

    def skips_backoff(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """By a retry policy a message that was refused, or whose deadline passed, has to wait: whether it does not."""
        return False

    def postpone(
        self,
        subscription: str,
        key_queue: KeyQueue,
        outstanding: Iterable[QueueEntry],
        elsewhere: Iterable[QueueEntry],
        now: float,
    ) -> float:
        """A key queue has something to send: the time before which it is silent (infinity: for good), or 0.

        outstanding: on all keys of the subscription, what was sent first in front. elsewhere: on the other subscriptions of the topic.
        """
        return 0.0

    def dead_lettered(self, subscription: str, entry: QueueEntry, now: float) -> float:
        """A message went to the dead-letter topic: the time before which all keys of the subscription are silent, or 0."""
        return 0.0

    def forwards_late(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """A message goes to the dead-letter topic: whether `store` keeps it for later."""
        return False

    def overlap(self, subscription: Subscription, key_queues: Iterable[KeyQueue], now: float) -> KeyQueue | None:
        """For a pull or push: a key queue to send despite its outstanding messages.

        None: there is none.
        """
        return None

    def before_push(self, subscription: str, key_queue: KeyQueue, now: float) -> float:
        """A message of a key queue is about to be pushed: the time before which it is not, or 0."""
        return 0.0

    def stray(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """A key queue whose messages are outstanding at its stream gets more: another stream to send it to, or None."""
        return None

    def lose_track(self, subscription: str, key_queue: KeyQueue, streams: Iterable[Stream], now: float) -> Stream | None:
        """As for `stray`: a stream on which the key queue starts again, from the lowest outstanding message on, or None."""
        return None

    def forget_holds(self, subscription: str, key_queue: KeyQueue, now: float) -> bool:
        """A key queue of which messages are outstanding gets another: whether it starts again from the lowest of them on."""
        return False

    def looks_early(self, lease_s: float) -> float:
        """A message is sent with a lease of so many seconds: after how many of them `ends_early` is asked; 0: never."""
        return 0.0

    def ends_early(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """A message is still outstanding: whether its time is up already."""
        return False

    def breaks(self, subscription: str, key_queue: KeyQueue, now: float) -> float | None:
        """A stream is about to get messages of this key queue: after how many seconds its client learns that it breaks instead.

        None: it does not break.
        """
        return None

    def stream_gone(self, subscription: Subscription, entry: QueueEntry, now: float) -> float:
        """A stream is gone on which a message was outstanding: the time before which its key is silent, or 0."""
        return 0.0

    def resumes_past(self, subscription: str, held: Sequence[QueueEntry], now: float) -> bool:
        """A stream with outstanding messages of a key is gone: whether to lose them."""
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

    def looks_again(self) -> float:
        """With exactly-once delivery an acknowledgement is confirmed: after how many seconds `forgets_ack` is asked; 0: never."""
        return 0.0

    def forgets_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """A confirmed acknowledgement is that old: whether to redeliver from it on."""
        return False

    def lose_ack(self, subscription: str, entry: QueueEntry, now: float) -> bool:
        """A valid acknowledgement has arrived: whether it is forgotten."""
        return False

    def silent_until(self, now: float) -> float:
        """The time before which nothing is delivered; a past time has no effect.

        Asked when a message could be delivered.
        """
        return 0.0
