"""Faults of storage: of publish requests, of their messages, and of their way to subscriptions."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prober.embedded.errors import ServiceError, key_too_fast, unavailable
from prober.embedded.faults import Armed, Faults
from prober.embedded.messages import Message, PublishDraft

_PLACES_MAX: Final = 100_000  # topics with a key of which something is remembered
_RECENT_KEYS_MAX: Final = 20  # per topic, for a message to get the wrong one
_NEXT_REQUEST_S: Final = 2.0  # wait of the last message of a request for the next request
_ZOMBIE_S: Final = 1.0
_SLOW_PUBLISH_S: Final = 2.0
_KEY_BYTES_PER_S: Final = 500_000  # half of the documented limit, so that a permitted load meets it
_SLOW_ADMIN_S: Final = 6.0  # above the expected maximum of 5 s
_RAISE: Final = 1_000_000


@dataclass(slots=True, order=True)
class KeptBack:
    """Messages of one key that are stored later. armed: the fault that takes effect if another message is stored before."""

    until: float
    number: int
    topic: str = field(compare=False)
    messages: list[Message] = field(compare=False)
    armed: Armed | None = field(compare=False, default=None)


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


class StorageFaults:
    """Decisions about storage; correct while no fault is armed."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._last_ids: dict[tuple[str, str], str] = {}
        self._stored_once: dict[tuple[str, str], Sequence[Message]] = {}
        self._recent_keys: dict[str, dict[str, None]] = {}
        self._kept_back: list[KeptBack] = []
        self._waiting: dict[tuple[str, str], KeptBack] = {}
        self._allowances: dict[tuple[str, str], tuple[float, float]] = {}  # bytes that a key may still publish, as of when

    def admit(self, topic: str, drafts: Sequence[PublishDraft], now: float) -> Admission:
        """Decide on a valid publish request that has arrived.

        Injects publish_unavailable, throttle_key, zombie_publish, partial_batch or reply_lost.
        """
        key = drafts[0].ordering_key
        if self.faults.strike("publish_unavailable", topic, key, now):
            return Admission(0, unavailable())
        if key and self.faults.has("throttle_key") and self._is_too_fast(topic, drafts, now):
            return Admission(0, key_too_fast())
        if self.faults.strike("zombie_publish", topic, key, now):
            return Admission(len(drafts), unavailable(), late=True)
        if len(drafts) > 1 and (armed := self.faults.strike("partial_batch", topic, key, now)):
            return Admission(armed.dice.randrange(1, len(drafts)), unavailable())
        if self.faults.strike("reply_lost", topic, key, now):
            return Admission(len(drafts), unavailable())
        return Admission(len(drafts))

    def _is_too_fast(self, topic: str, drafts: Sequence[PublishDraft], now: float) -> bool:
        """Return whether throttle_key rejects a request, by a token bucket per key.

        A bucket holds the bytes of one second; a request that finds any left may overdraw it.
        """
        place = topic, drafts[0].ordering_key
        left, since = self._allowances.get(place, (_KEY_BYTES_PER_S, now))
        left = min(_KEY_BYTES_PER_S, left + (now - since) * _KEY_BYTES_PER_S)
        refused = left <= 0.0 and self.faults.strike("throttle_key", *place, now) is not None
        if len(self._allowances) >= _PLACES_MAX:
            self._allowances.clear()
        self._allowances[place] = left - (0 if refused else sum(len(draft.data) for draft in drafts)), now
        return refused

    def refuse(self, call: str, now: float) -> ServiceError | None:
        """Return the error with which an administrative call ends immediately, or None. Injects admin_error."""
        return unavailable() if self.faults.strike("admin_error", call, "", now) else None

    def answer_after(self, call: str, where: str, key: str, now: float) -> float:
        """Return the delay of the response to an executed `Publish` or administrative call, in seconds.

        Injects publish_slow or admin_slow.
        """
        if call == "Publish":
            return _SLOW_PUBLISH_S if self.faults.strike("publish_slow", where, key, now) else 0.0
        return _SLOW_ADMIN_S if self.faults.strike("admin_slow", call, "", now) else 0.0

    def store(self, topic: str, messages: list[Message], now: float, *, late: bool) -> list[Message]:
        """Return the messages of one request to store, in this order. They have their ids; the publisher gets the ids of all.

        Injects duplicate_id, lose_write, swap_in_batch, swap_across_batches, corrupt_payload and wrong_key.
        """
        if late:
            self._keep_back(now + _ZOMBIE_S, topic, messages)
            return []
        if not self.faults.any_armed and not self._waiting:
            return messages
        if self.faults.has("duplicate_id"):
            for message in messages:
                self._duplicate_id(topic, message, now)
        stored = [
            message for message in messages if not self.faults.strike("lose_write", topic, message.ordering_key, now, message.id)
        ]
        if stored and stored[0].ordering_key:
            self._swap(topic, stored, now)
            stored = self._swap_across(topic, stored, now)
        for message in stored:
            self._corrupt(topic, message, now)
            self._misplace(topic, message, now)
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
        if len(stored) > 1 and (armed := self.faults.strike("swap_in_batch", topic, stored[0].ordering_key, now, stored[0].id)):
            _exchange(stored, armed.dice.randrange(len(stored) - 1))

    def _swap_across(self, topic: str, stored: list[Message], now: float) -> list[Message]:
        """Hold the last message of a request back, and store it behind the first message of the key's next request."""
        key = stored[0].ordering_key
        before = self._waiting.pop((topic, key), None)
        if before is not None and before.armed is not None:
            self.faults.record(before.armed, topic, key, now, before.messages[0].id)
            stored[:0] = before.messages
            before.messages = []
            _exchange(stored, 0)
        elif len(self._waiting) < _PLACES_MAX and (armed := self.faults.choose("swap_across_batches", key, now)):
            self._waiting[topic, key] = self._keep_back(now + _NEXT_REQUEST_S, topic, [stored.pop()], armed)
        return stored

    def _keep_back(self, until: float, topic: str, messages: list[Message], armed: Armed | None = None) -> KeptBack:
        kept = KeptBack(until, messages[0].sequence, topic, messages, armed)
        heapq.heappush(self._kept_back, kept)
        return kept

    def overdue(self, now: float) -> list[tuple[str, list[Message]]]:
        """Yield messages that `store` kept back and that are stored now, each group with its topic."""
        due = []
        while self._kept_back and self._kept_back[0].until <= now:
            kept = heapq.heappop(self._kept_back)
            if not kept.messages:
                continue
            if kept.armed is not None:
                kept.armed.spare()
                del self._waiting[kept.topic, kept.messages[0].ordering_key]
            due.append((kept.topic, kept.messages))
        return due

    def next_overdue(self) -> float:
        """Return the time of the next result of `overdue`; infinity: never."""
        return self._kept_back[0].until if self._kept_back else math.inf

    def _corrupt(self, topic: str, message: Message, now: float) -> None:
        if message.data and self.faults.strike("corrupt_payload", topic, message.ordering_key, now, message.id):
            message.data = message.data[:-1] + bytes((message.data[-1] ^ 1,))

    def _misplace(self, topic: str, message: Message, now: float) -> None:
        """Inject wrong_key: give a message the key of another recent message to which the fault applies."""
        if not message.ordering_key or not self.faults.has("wrong_key"):
            return
        if topic not in self._recent_keys and len(self._recent_keys) >= _PLACES_MAX:
            self._recent_keys.clear()
        recent = self._recent_keys.setdefault(topic, {})
        others = [key for key in recent if key != message.ordering_key and self.faults.touches("wrong_key", key)]
        recent[message.ordering_key] = None
        if len(recent) > _RECENT_KEYS_MAX:
            del recent[next(iter(recent))]
        if others and (armed := self.faults.strike("wrong_key", topic, message.ordering_key, now, message.id)):
            message.ordering_key = armed.dice.choice(others)

    def invent(self, topic: str, stored: Sequence[Message], now: float) -> list[PublishDraft]:
        """Return further messages to store after `stored`, which no client published.

        Injects a phantom: a copy of the message before it with higher numbers. Messages without a number get no phantom: it would be an
        exact copy.
        """
        if not self.faults.has("phantom"):
            return []
        invented = []
        for message in stored:
            data, attributes = (
                _raised(message.data),
                {name: _raised(value.encode()).decode() for name, value in message.attributes.items()},
            )
            changed = data != message.data or attributes != dict(message.attributes)
            if changed and self.faults.strike("phantom", topic, message.ordering_key, now, message.id):
                invented.append(PublishDraft(data, attributes, message.ordering_key))
        return invented

    def arrange(
        self, topic: str, subscriptions: Sequence[str], stored: Sequence[Message], now: float
    ) -> Mapping[str, Sequence[Message]]:
        """Return the order of stored messages for subscriptions with ordering that get another than the stored one.

        Injects diverge_subscriptions: one subscription gets two adjacent messages in the wrong order.
        """
        if len(subscriptions) < 2 or len(stored) < 2 or not stored[0].ordering_key:
            return {}
        armed = self.faults.strike("diverge_subscriptions", topic, stored[0].ordering_key, now, stored[0].id)
        if armed is None:
            return {}
        order = list(stored)
        at = armed.dice.randrange(len(order) - 1)
        order[at], order[at + 1] = order[at + 1], order[at]
        return {armed.dice.choice(subscriptions): order}

    def repeat(self, topic: str, stored: Sequence[Message], now: float) -> Sequence[Message]:
        """Return messages to store a second time, after `stored`.

        They are of these messages or earlier ones, each under its id with a new publish time. Injects duplicate_publish_same_id: repeat
        these messages, or every other time those of the key's last request; each once.
        """
        if not stored or not self.faults.has("duplicate_publish_same_id"):
            return ()
        key, once = stored[0].ordering_key, self._stored_once
        if len(once) >= _PLACES_MAX:
            once.clear()
        late = self.faults.ledger.counts["duplicate_publish_same_id"] % 2 == 1
        before = once.pop((topic, key), ())
        chosen = before if late else stored
        injected = bool(chosen) and self.faults.strike("duplicate_publish_same_id", topic, key, now, chosen[0].id)
        if late or not injected:
            once[topic, key] = stored
        return chosen if injected else ()

    def filter(self, subscription: str, message: Message, now: float, *, passes: bool) -> bool:
        """Return whether a stored message goes on to a subscription; `passes`: whether it passes the filter.

        Injects filter_leaks or filter_drops.
        """
        fault = "filter_drops" if passes else "filter_leaks"
        return passes is not bool(self.faults.strike(fault, subscription, message.ordering_key, now, message.id))

    def enqueue(self, subscription: str, message: Message, now: float) -> bool:
        """Return whether a stored message that passed the filter reaches the subscription. Injects drop."""
        return not self.faults.strike("drop", subscription, message.ordering_key, now, message.id)


def _exchange(stored: list[Message], at: int) -> None:
    """Swap two adjacent messages, including their sequence numbers, by which a seek replays them."""
    earlier, later = stored[at], stored[at + 1]
    earlier.sequence, later.sequence = later.sequence, earlier.sequence
    stored[at], stored[at + 1] = later, earlier


def _raised(text: bytes) -> bytes:
    """Return a number raised by a million, if the text is a number."""
    return b"%d" % (int(text) + _RAISE) if text.isdigit() else text
