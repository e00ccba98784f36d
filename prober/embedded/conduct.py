"""Where the service may misbehave: the points at which it decides something that a promise is about.

This is the honest conduct. `faulty` overrides it point by point, so what a fault does stands in one place and the state machine reads
as if there were none. Each point is asked with the time and with what it is about, never with more than it may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prober.embedded.errors import ServiceError
from prober.embedded.lanes import Entry, Lane
from prober.embedded.messages import Delivery, Draft, Message
from prober.embedded.subscribers import Stream


@dataclass(frozen=True, slots=True)
class Admission:
    """How much of a publish request is stored, and the error that is answered instead of the ids, if any."""

    stored: int
    error: ServiceError | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How a message is redelivered.

    again       these positions are sent, and the cursor stays where it is; None: the honest rewind.
    halt_until  the lane is silent after the first message of the run, until this time; 0: it is not.
    """

    again: tuple[int, ...] | None = None
    halt_until: float = 0.0


HONEST_RUN = Run()


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """An answer to a pull that never arrives. error: what the client gets instead; None: nothing at all."""

    error: ServiceError | None = None


class Conduct:
    """The honest service."""

    def admit(self, topic: str, drafts: Sequence[Draft], now: float) -> Admission:
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

    def redeliver(self, subscription: str, entry: Entry, now: float) -> Run:
        """A sent message was refused or its deadline passed."""
        return HONEST_RUN

    def postpone(self, subscription: str, lane: Lane, now: float) -> float:
        """A lane has something to send: the time before which it is silent (infinity: for good), or 0."""
        return 0.0

    def stray(self, subscription: str, lane: Lane, streams: Iterable[Stream], now: float) -> Stream | None:
        """A lane whose messages are outstanding at its stream gets more: another stream to send it to, or None."""
        return None

    def lose_track(self, subscription: str, lane: Lane, streams: Iterable[Stream], now: float) -> Stream | None:
        """As for `stray`: a stream on which the lane starts again, from the lowest outstanding message on, or None."""
        return None

    def breaks(self, subscription: str, lane: Lane, now: float) -> bool:
        """A stream is about to get messages of this lane: whether it breaks instead."""
        return False

    def lose_tail(self, subscription: str, lane: Lane, now: float) -> bool:
        """What follows in a redelivery had all been acknowledged before: whether it is sent into a stream that is about to break."""
        return False

    def lose_answer(self, subscription: str, deliveries: Sequence[Delivery], now: float) -> LostAnswer | None:
        """A pull is about to be answered with these messages, which are outstanding from now on: whether the answer is lost."""
        return None

    def delay_answer(self, subscription: str, entry: Entry, now: float) -> float:
        """A message is acknowledged, or its deadline moved further away: by how many seconds that takes effect later."""
        return 0.0

    def lose_ack(self, subscription: str, entry: Entry, now: float) -> bool:
        """A valid acknowledgement has arrived: whether it is forgotten."""
        return False

    def silent_until(self, now: float) -> float:
        """Something could be delivered: nothing at all is before this time; a past time means business as usual."""
        return 0.0
