"""What is held of a key that is not on record: messages of another run, which is foreign to this one.

Nobody knows what is owed of them, so none has to come again. But until it is answered or its lease is over, such a message is held like any
other: it keeps back a key of which one batch or message may be held, uses up flow control, and may delay other keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prober.core.events import LONG_AGO
from prober.core.sessions import Arrival
from prober.core.subscription import Subscription

FOREIGN_KEPT: Final = 64
"""Foreign messages of a key known to be held; beyond that they are held until the last of their leases is over."""

_NONE: Final[Mapping[int, float]] = {}
_SEVERAL: Final = -1
"""Stands for several of them; no hash of a message id is so."""


class ForeignMessages:
    """Those of one key; see the head of this file."""

    __slots__ = ("_key", "_leases", "_settled_t", "_subscription")

    def __init__(self, key: str, subscription: Subscription) -> None:
        self._key = key
        self._subscription = subscription
        self._leases = _NONE
        self._settled_t = LONG_AGO

    def hold(self, arrival: Arrival, size: float) -> None:
        """One was delivered, of about that size."""
        rules, t = self._subscription.rules, arrival.t
        until_t = t + rules.ack_deadline_s + rules.delivery_delay_max_s
        held = {token: over_t for token, over_t in self._leases.items() if over_t > t}
        self._leases = (held if len(held) < FOREIGN_KEPT else {_SEVERAL: max(held.values())}) | {arrival.token: until_t}
        self._subscription.neighbours.held(self._key, t, until_t)
        self._subscription.take(arrival.track.session, arrival.token, size, t, until_t)

    def release(self, token: int, t: float) -> bool:
        """A message was answered; False if it is none of those that are held."""
        if token not in self._leases:
            return False
        self._leases = {held: until_t for held, until_t in self._leases.items() if held != token}
        self._settled_t = max(self._settled_t, t + self._subscription.ack_settled_s)
        return True

    def refuse(self, session: str, token: int, t: float) -> None:
        """A message was refused, perhaps one of them: other keys it may delay all the same, for it is not acknowledged."""
        if self.release(token, t):
            self._subscription.release(session, token, t)

    def is_held(self, t: float) -> bool:
        """Whether any is held."""
        return bool(self._leases) and max(self._leases.values()) > t

    @property
    def busy_until_t(self) -> float:
        """Until when any may count as held."""
        return max([self._settled_t, *self._leases.values()])
