"""A checker without doubts, for scale: what a single pass over a history costs in plain Python.

It knows one subscription, one epoch and no time: positions are learned from first deliveries, sequence numbers ascend, a redelivery goes
on where it began, and only one subscriber holds a key. It judges no publish outcome, no lease and no race, so it would accuse many a
legal history; nothing is done with what it finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prober.core.events import Acked, Closed, Delivered, Event, Nacked, Opened, Published, PublishInvoked


class Key:
    """What is known of one ordering key."""

    __slots__ = ("at", "confirmed", "held", "invoked", "positions", "received", "session")

    def __init__(self) -> None:
        self.invoked: dict[int, float] = {}
        self.confirmed: dict[str, int] = {}
        self.positions: dict[str, int] = {}
        self.held: dict[int, str] = {}
        self.received = 0
        self.at = 0
        self.session = ""


class PlainChecker:
    """Takes events and keeps what looks wrong."""

    def __init__(self) -> None:
        self.wrong: list[Event] = []
        self._keys: dict[str, Key] = {}
        self._owners: dict[str, str] = {}

    def observe(self, observed: Event) -> None:
        """Takes the next event."""
        event: Any = observed  # asking for its type costs more than it is worth here
        kind = type(event)
        if kind is Opened:
            self._owners[event.session] = event.subscriber
        elif kind is Closed:
            self._owners.pop(event.session, None)
        elif kind in _OF_A_KEY:
            key = self._keys.get(event.key)
            if key is None:
                key = self._keys[event.key] = Key()
            _OF_A_KEY[kind](self, key, event)

    def _invoked(self, key: Key, event: PublishInvoked) -> None:
        key.invoked[event.seq] = event.t

    def _published(self, key: Key, event: Published) -> None:
        key.confirmed[event.message_id] = event.seq
        if key.invoked.pop(event.seq, event.t) > event.t:
            self.wrong.append(event)

    def _delivered(self, key: Key, event: Delivered) -> None:
        position = key.positions.get(event.message_id)
        if position is None:
            position = key.positions[event.message_id] = len(key.positions) + 1
            if key.confirmed.pop(event.message_id, event.seq) != key.received + 1:
                self.wrong.append(event)
            key.received = event.seq
        if position > key.at + 1 or (key.session != event.session and self._is_held(key, position, event.session)):
            self.wrong.append(event)
        key.at = position
        key.session = event.session
        key.held[position] = event.session

    def _is_held(self, key: Key, position: int, session: str) -> bool:
        owner = self._owners.get(key.held.get(position - 1, session))
        return owner is not None and owner != self._owners.get(session)

    def _settled(self, key: Key, event: Acked | Nacked) -> None:
        key.held.pop(key.positions.get(event.message_id, 0), None)


_OF_A_KEY: dict[type, Callable[[PlainChecker, Key, Any], None]] = {
    PublishInvoked: PlainChecker._invoked,
    Published: PlainChecker._published,
    Delivered: PlainChecker._delivered,
    Acked: PlainChecker._settled,
    Nacked: PlainChecker._settled,
}
