"""Two rules of simpler probers, for comparison on the same events.

*Arrival order*: per key, a sequence number is at most one more than the last one that arrived.

*Google's prober*: the published logic of `ordering-keys-prober` (GoogleCloudPlatform/pubsub, OrderedProber.processMessage). Per key it
stores the largest number, the last delivery, and the last 250 deliveries. It raises an alarm for a number that exceeds the largest by more
than one, and for a number that exceeds the last by more than one, unless the message went to another subscriber or its id differs from the
earlier id of the number.

Both evaluate each run separately, since the numbers of a key restart with each run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from prober.core.events import Delivered, Event, Opened

HISTORY: Final = 250


class ArrivalOrder:
    """Rule: at most one more than the last number. `alarms` counts its alarms."""

    def __init__(self) -> None:
        self.alarms = 0
        self._last: dict[tuple[str, str, str], int] = {}

    def event(self, event: Event) -> None:
        """Process the next event."""
        if isinstance(event, Delivered):
            key = event.subscription, event.key, event.epoch
            self.alarms += event.seq > self._last.get(key, 0) + 1
            self._last[key] = event.seq


@dataclass(slots=True)
class _Key:
    largest: int | None = None
    last: tuple[int, str] | None = None
    history: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=HISTORY))


class GooglesProber:
    """Rule of Google's prober; see the head of this file."""

    def __init__(self) -> None:
        self.alarms = 0
        self._keys: dict[tuple[str, str, str], _Key] = {}
        self._subscribers: dict[str, str] = {}

    def event(self, event: Event) -> None:
        """Process the next event."""
        if isinstance(event, Opened):
            self._subscribers[event.session] = event.subscriber
        elif isinstance(event, Delivered):
            key = event.subscription, event.key, event.epoch
            if key not in self._keys:
                self._keys[key] = _Key()
            self._delivered(self._keys[key], event)

    def _delivered(self, known: _Key, event: Delivered) -> None:
        if known.largest is None or event.seq > known.largest:
            self.alarms += known.largest is not None and event.seq > known.largest + 1
            known.largest = event.seq
        known.history.append((event.seq, event.message_id))
        subscriber = self._subscribers.get(event.session, event.session)
        previous, known.last = known.last, (event.seq, subscriber)
        if previous is None or event.seq == previous[0] + 1:
            return
        same_id = next((message_id == event.message_id for seq, message_id in known.history if seq == event.seq), True)
        if event.seq > previous[0]:
            self.alarms += same_id and subscriber == previous[1]
        elif not same_id:
            known.last = previous  # published twice: skipped


OtherRule: TypeAlias = ArrivalOrder | GooglesProber

OTHER_RULES: Final[dict[str, type[OtherRule]]] = {
    "arrival order": ArrivalOrder,
    "Google's prober": GooglesProber,
}
