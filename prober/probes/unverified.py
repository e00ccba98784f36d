"""Deliveries without a verdict: a subscription that does not guarantee order.

They are no events: the checker, the history and the counts of deliveries do not get them. The probe gets each message of its own run;
everything is acknowledged at once, unless a probe decides otherwise (`of_run`).
"""

from __future__ import annotations

from collections.abc import Callable

from prober.brokers.base import BrokerSession, Received
from prober.probes.payload import Stamp, read

Read = Callable[[str, Stamp], None]
"""Gets a message: its ordering key, and its stamp.

Called on the event loop; must not block.
"""


class UnverifiedTap:
    """Tells a probe what one subscriber receives of an epoch."""

    def __init__(self, epoch: str, reported: Read = lambda _key, _stamp: None) -> None:
        self._epoch, self._reported = epoch, reported

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """A session is of no interest."""

    def received(self, session: BrokerSession, received: Received) -> None:
        """Acknowledges what is not of the run, and hands on the rest."""
        message = read(received.ordering_key, received.data, received.attributes)
        if message is None or message.stamp.epoch != self._epoch:
            session.ack(received)
        else:
            self.of_run(session, received, message.stamp)

    def of_run(self, session: BrokerSession, received: Received, stamp: Stamp) -> None:
        """A message of the run was received: it is acknowledged."""
        session.ack(received)
        self._reported(received.ordering_key, stamp)

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        """Everything is answered."""

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Whether an acknowledgement was confirmed is of no interest."""

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        """A session that ends is of no interest."""
