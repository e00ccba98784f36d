"""What each fault does, point by point of `conduct`. Each asks for its fault only where that would make a difference.

A new fault is a description in `fault_catalogue` and a few lines here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from prober.embedded import errors
from prober.embedded.conduct import HONEST_RUN, Admission, Conduct, Run
from prober.embedded.faults import Armed, Faults
from prober.embedded.lanes import Entry, Lane
from prober.embedded.messages import Draft, Message
from prober.embedded.subscribers import Stream

SLOW_S: Final = 2.0
JITTER_MAX_S: Final = 0.5
_LAST_IDS_MAX: Final = 100_000


class FaultyConduct(Conduct):
    """The service with faults. Without any armed it is honest."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._last_ids: dict[tuple[str, str], str] = {}
        self._stall: Armed | None = None

    def admit(self, topic: str, drafts: Sequence[Draft], now: float) -> Admission:
        """publish_unavailable, partial_batch, reply_lost."""
        key = drafts[0].ordering_key
        if self.faults.strike("publish_unavailable", topic, key, now):
            return Admission(0, errors.unavailable())
        if len(drafts) > 1 and (armed := self.faults.strike("partial_batch", topic, key, now)):
            return Admission(armed.dice.randrange(1, len(drafts)), errors.unavailable())
        if self.faults.strike("reply_lost", topic, key, now):
            return Admission(len(drafts), errors.unavailable())
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
        if len(self._last_ids) >= _LAST_IDS_MAX:
            self._last_ids.clear()
        self._last_ids[place] = message.id

    def _swap(self, topic: str, stored: list[Message], now: float) -> None:
        armed = self.faults.strike("swap_in_batch", topic, stored[0].ordering_key, now, stored[0].id)
        if armed:
            at = armed.dice.randrange(len(stored) - 1)
            earlier, later = stored[at], stored[at + 1]
            earlier.sequence, later.sequence = later.sequence, earlier.sequence  # so that a seek replays the wrong order too
            stored[at], stored[at + 1] = later, earlier

    def enqueue(self, subscription: str, message: Message, now: float) -> bool:
        """Drop."""
        return not self.faults.strike("drop", subscription, message.ordering_key, now, message.id)

    def redeliver(self, subscription: str, entry: Entry, now: float) -> Run:
        """never_redeliver, stall_run, redeliver_single, redeliver_unacked_only; the latter three only if something was sent after it."""
        lane, message = entry.lane, entry.message
        if self.faults.strike("never_redeliver", subscription, lane.key, now, message.id):
            return Run(again=())
        later = lane.sent_after(entry.position)
        if not later:
            return HONEST_RUN
        if armed := self.faults.strike("stall_run", subscription, lane.key, now, message.id):
            return Run(halt_until=armed.ends)
        if self.faults.strike("redeliver_single", subscription, lane.key, now, message.id):
            return Run(again=(entry.position,))
        acknowledged = any(other.settled for other in later)
        if acknowledged and self.faults.strike("redeliver_unacked_only", subscription, lane.key, now, message.id):
            return Run(again=(entry.position, *(other.position for other in later if not other.settled)))
        return HONEST_RUN

    def postpone(self, subscription: str, lane: Lane, now: float) -> float:
        """stall_key, slow_delivery, jitter: once for each message that is new in the lane."""
        if lane.decided >= lane.end:
            return 0.0
        lane.decided = lane.end
        if lane.key and (armed := self.faults.strike("stall_key", subscription, lane.key, now)):
            return armed.ends
        if self.faults.strike("slow_delivery", subscription, lane.key, now):
            return now + SLOW_S
        if armed := self.faults.strike("jitter", subscription, lane.key, now):
            return now + armed.dice.uniform(0.0, JITTER_MAX_S)
        return 0.0

    def stray(self, subscription: str, lane: Lane, streams: Iterable[Stream], now: float) -> Stream | None:
        """split_holder, if there is another subscriber that has room."""
        if not self.faults.has("split_holder"):
            return None
        others = [stream for stream in streams if stream.open and stream.client is not lane.client and stream.has_room]
        entry = lane.peek() if others else None
        armed = self.faults.strike("split_holder", subscription, lane.key, now, entry.message.id) if entry else None
        return armed.dice.choice(others) if armed else None

    def breaks(self, subscription: str, lane: Lane, now: float) -> bool:
        """stream_break."""
        return bool(self.faults.strike("stream_break", subscription, lane.key, now))

    def lose_ack(self, subscription: str, entry: Entry, now: float) -> bool:
        """ack_lost."""
        return bool(self.faults.strike("ack_lost", subscription, entry.lane.key, now, entry.message.id))

    def silent_until(self, now: float) -> float:
        """stall_all."""
        if self._stall is not None and (self._stall.ends <= now or self._stall not in self.faults.all()):
            self._stall = None
        if self._stall is None:
            self._stall = self.faults.strike("stall_all", "", "", now)
        return self._stall.ends if self._stall is not None else -math.inf
