"""What a subscription is still owed, or owes an acknowledgement for: by key, from the moment a message is to be sent.

It answers what is asked while nothing happens: how old the oldest unacknowledged message is, how many there are, which keys stand
still. It hears the same events as the checker, lives as long as its subscription is used, over many runs, and grows only with what is
outstanding: at most `WAITING_MAX` messages; what comes beyond is counted and not followed.

A message waits from its intended send time until it is acknowledged, or certainly was not stored. One whose publish had no answer may
have been stored, so it waits as well, and grows old while a service hangs. What is lost would wait for ever: it is written off when a
later run has shown that its key moves without it. While a key stands still, nothing of it is written off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from prober.core.events import Acked, Delivered, Event, Published, PublishFailed, PublishInvoked

WAITING_MAX = 2_000_000
EARLY_KEPT_MAX = 100_000
"""Messages remembered that came before their publish was confirmed, or whose confirmation was lost."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is owed on a subscription at one time."""

    oldest_unacked_age_s: float = 0.0
    undelivered: int = 0
    stalled_keys: int = 0

    def joined(self, other: Backlog) -> Backlog:
        """That of two subscriptions together."""
        return Backlog(
            max(self.oldest_unacked_age_s, other.oldest_unacked_age_s),
            self.undelivered + other.undelivered,
            self.stalled_keys + other.stalled_keys,
        )


@dataclass(slots=True)
class WaitingMessage:
    """A confirmed message without an acknowledgement."""

    epoch: str
    since_t: float
    delivered: bool


@dataclass(slots=True)
class WaitingKey:
    """A key with something outstanding. `unanswered` are publishes without an answer, by epoch and sequence number.

    Both mappings are in the order of sending, so the first of each is its oldest.
    """

    moved_t: float
    messages: dict[str, WaitingMessage] = field(default_factory=dict)
    unanswered: dict[tuple[str, int], float] = field(default_factory=dict)

    @property
    def oldest_t(self) -> float:
        """Since when something of the key waits."""
        confirmed = (message.since_t for message in self.messages.values())
        return min(next(confirmed, float("inf")), next(iter(self.unanswered.values()), float("inf")))


def joined(backlogs: Iterable[Backlog]) -> Backlog:
    """That of several subscriptions together; nothing if there is none."""
    return reduce(Backlog.joined, backlogs, Backlog())


class BacklogTracker:
    """What one subscription has not acknowledged yet. Belongs to the event loop; times are the recorder's, in seconds.

    written_off     messages given up so far, because their key moved without them or the subscription was made anew.
    """

    def __init__(self, stalled_after_s: float) -> None:
        """A key on which a confirmed message waits and nothing moves for longer than `stalled_after_s` counts as stalled."""
        self._dropped = 0
        self.written_off = 0
        self._stalled_after_s = stalled_after_s
        self._keys: dict[str, WaitingKey] = {}
        self._moved: set[str] = set()
        self._early: dict[tuple[str, str], bool] = {}
        self._waiting = self._unanswered = 0
        self._handlers: Mapping[type[Any], Callable[[Any], None]] = {
            PublishInvoked: self._invoked,
            Published: self._published,
            PublishFailed: self._failed,
            Delivered: self._delivered,
            Acked: self._acked,
        }

    def listen(self, event: Event) -> None:
        """Takes in one event."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def backlog(self, now: float) -> Backlog:
        """What waits at `now`; `undelivered` are confirmed messages. Costs time in the number of keys on which something waits."""
        oldest_t = min((key.oldest_t for key in self._keys.values()), default=now)
        stalled = sum(1 for key in self._keys.values() if key.messages and now - key.moved_t > self._stalled_after_s)
        return Backlog(now - oldest_t, self._waiting, stalled)

    def missing(self, epoch: str) -> Mapping[str, int]:
        """Confirmed messages of an epoch that were not delivered, by key."""
        counts = {
            name: sum(1 for message in key.messages.values() if message.epoch == epoch and not message.delivered)
            for name, key in self._keys.items()
        }
        return {name: count for name, count in counts.items() if count}

    def take_dropped(self) -> int:
        """How many messages were not followed since this was last asked."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def settle(self, epoch: str) -> None:
        """The run of that epoch is over: what an earlier one left on a key that moved in this run does not come any more."""
        for name in self._moved & self._keys.keys():
            key = self._keys[name]
            messages = {message_id: message for message_id, message in key.messages.items() if message.epoch == epoch}
            unanswered = {publish: since_t for publish, since_t in key.unanswered.items() if publish[0] == epoch}
            self._write_off(len(key.messages) - len(messages), len(key.unanswered) - len(unanswered))
            key.messages, key.unanswered = messages, unanswered
            self._forget_if_empty(name, key)
        self._moved.clear()
        self._early.clear()  # a confirmation that has not come by now comes never

    def clear(self) -> None:
        """The subscription was made anew: nothing from before is owed by it."""
        self._write_off(self._waiting, self._unanswered)
        self._keys.clear()
        self._moved.clear()
        self._early.clear()

    def _invoked(self, event: PublishInvoked) -> None:
        if self._waiting + self._unanswered >= WAITING_MAX:
            self._dropped += 1
            return
        intended_t = event.t if event.intended_t is None else event.intended_t
        key = self._keys.get(event.key)
        if key is None:
            key = self._keys[event.key] = WaitingKey(intended_t)
        publish = (event.epoch, event.seq)
        if publish not in key.unanswered:
            key.unanswered[publish] = intended_t
            self._unanswered += 1

    def _failed(self, event: PublishFailed) -> None:
        key = self._keys.get(event.key)
        if key is not None and key.unanswered.pop((event.epoch, event.seq), None) is not None:
            self._unanswered -= 1
            self._forget_if_empty(event.key, key)

    def _published(self, event: Published) -> None:
        acked = self._early.pop((event.key, event.message_id), None)
        key = self._keys.get(event.key)
        since_t = key.unanswered.pop((event.epoch, event.seq), None) if key is not None else None
        if key is None or since_t is None:
            return  # not followed from the start, or confirmed a second time
        self._unanswered -= 1
        if not acked and event.message_id not in key.messages:  # a service may give an id twice
            if not key.messages:
                key.moved_t = max(key.moved_t, event.t)
            self._waiting += 1
            key.messages[event.message_id] = WaitingMessage(event.epoch, since_t, delivered=acked is not None)
        self._forget_if_empty(event.key, key)

    def _delivered(self, event: Delivered) -> None:
        key = self._keys.get(event.key)
        message = key.messages.get(event.message_id) if key is not None else None
        if key is not None:
            key.moved_t = event.t
        if message is not None:
            message.delivered = True
        else:
            self._remember(event.key, event.message_id, acked=False)

    def _acked(self, event: Acked) -> None:
        key = self._keys.get(event.key)
        self._moved.add(event.key)
        if key is None or key.messages.pop(event.message_id, None) is None:
            self._remember(event.key, event.message_id, acked=True)
            return
        self._waiting -= 1
        key.moved_t = event.t
        self._forget_if_empty(event.key, key)

    def _remember(self, key: str, message_id: str, *, acked: bool) -> None:
        """The oldest go first: their confirmation is the least likely to come."""
        self._early[key, message_id] = acked or self._early.get((key, message_id), False)
        if len(self._early) > EARLY_KEPT_MAX:
            del self._early[next(iter(self._early))]

    def _forget_if_empty(self, name: str, key: WaitingKey) -> None:
        if not key.messages and not key.unanswered:
            del self._keys[name]

    def _write_off(self, confirmed: int, unanswered: int) -> None:
        self._waiting -= confirmed
        self._unanswered -= unanswered
        self.written_off += confirmed + unanswered
