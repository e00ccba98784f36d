"""How far the service keeps to the flow control of a subscriber: what is outstanding there, counted and never judged.

While as many messages are unacknowledged as a stream allows, "the server stops sending more messages" (reference, StreamingPullRequest,
`max_outstanding_messages`). What was acknowledged is not outstanding from the moment at which that was sent on, so the count is rather
too low. Nobody is accused of more than was allowed: when the service starts a key again elsewhere, it does not count what is held here
any more, and that may be seen here later or not at all.
"""

from __future__ import annotations

from typing import Final

from prober.probes.context import Delivery, ProbeContext

REACHED: Final = "flow_control_reached"
EXCEEDED: Final = "flow_control_exceeded"


class Allowance:
    """Counts how often a subscriber that allows so many outstanding messages on a stream had as many, and how often more."""

    def __init__(self, context: ProbeContext, messages_max: int) -> None:
        self._count, self._messages_max = context.count, messages_max
        self._outstanding: dict[str, set[str]] = {}

    def take(self, delivery: Delivery) -> None:
        """A message came to the subscriber. One that came before and was not answered is one message."""
        outstanding = self._outstanding.setdefault(delivery.session.name, set())
        known = len(outstanding)
        outstanding.add(delivery.received.message_id)
        if len(outstanding) > known >= self._messages_max - 1:
            self._count(REACHED if known < self._messages_max else EXCEEDED)

    def release(self, delivery: Delivery) -> None:
        """A message was answered; of another subscriber it changes nothing."""
        self._outstanding.get(delivery.session.name, set()).discard(delivery.received.message_id)
