"""Deliveries without a verdict: a subscription that does not guarantee order.

They are no events: the checker, the history and the counts of deliveries do not contain them. The probe receives each message of its own
run. Every message is acknowledged at once, unless a probe decides otherwise (`of_run`).
"""

from __future__ import annotations

from collections.abc import Callable

from prober.brokers.base import BrokerSession, Received
from prober.probes.payload import Stamp, read

Read = Callable[[str, Stamp], None]
"""Receiver of a message: its ordering key, and its stamp.

Called on the event loop; must not block.
"""


class UnverifiedTap:
    """Reports the messages of an epoch that a subscriber receives to a probe."""

    def __init__(self, epoch: str, reported: Read = lambda _key, _stamp: None) -> None:
        self._epoch, self._reported = epoch, reported

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """Ignore a new session."""

    def received(self, session: BrokerSession, received: Received) -> None:
        """Acknowledge messages of other runs; report the others."""
        message = read(received.ordering_key, received.data, received.attributes)
        if message is None or message.stamp.epoch != self._epoch:
            session.ack(received)
        else:
            self.of_run(session, received, message.stamp)

    def of_run(self, session: BrokerSession, received: Received, stamp: Stamp) -> None:
        """Acknowledge a message of the run, and report it."""
        session.ack(received)
        self._reported(received.ordering_key, stamp)

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        """Do nothing: every message is answered."""

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Ignore the confirmation of an acknowledgement."""

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        """Ignore a closed session."""
