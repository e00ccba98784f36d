"""Delay until the service redelivers a nacked message, on a subscription with a retry policy.

The last message of each key is nacked `NACKS` times, so each redelivery is of that message alone. A wait is the time from sending the nack
to the next receipt of the message. It includes the network round trip, so the service waited less: a wait below the policy's minimum
backoff was too short. A wait counts only if nack and receipt belong to the same session: if the session ended, the nack may have been lost
with it.

Google's documentation calls the policy best effort, so waits are measured and never a violation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from prober.brokers.base import BrokerSession, Received
from prober.probes.context import ProbeContext, comes_within
from prober.probes.payload import Stamp
from prober.probes.unverified import UnverifiedTap
from prober.slo.figures import Figure

BACKOFF: Final = "backoff"
"""What the subscription with the policy is called."""
MINIMUM_S: Final = 1.0
MAXIMUM_S: Final = 4.0
"""Bounds of the retry policy, in seconds."""
TOLERANCE: Final = 0.1
"""Share of the minimum backoff by which a redelivery may be early without being counted as early."""
NACKS: Final = 2
"""Number of nacks of the last message of a key."""
SETTLE_S: Final = 10.0
"""Longest wait for the redeliveries after the end of publishing, in seconds."""


@dataclass(slots=True)
class _Nacked:
    """Last message of a key: its id, number of nacks, and time and session of the latest nack."""

    message_id: str
    nacks: int = 0
    t: float = 0.0
    session: BrokerSession | None = None


def early_ratio(waits_s: Sequence[float]) -> float:
    """Return the share of redeliveries before the minimum backoff; `waits_s` is not empty."""
    return sum(wait_s < MINIMUM_S * (1.0 - TOLERANCE) for wait_s in waits_s) / len(waits_s)


class BackoffTap(UnverifiedTap):
    """Nacks the last message of each key, measures the waits, and acknowledges all other messages.

    For one subscriber, on the event loop.
    """

    def __init__(self, context: ProbeContext, last: Mapping[str, int]) -> None:
        """Create the tap. `last`: sequence number of the last message of each key."""
        super().__init__(context.epoch)
        self._context, self._last = context, last
        self._nacked: dict[str, _Nacked] = {}
        self._left = set(last)
        self._nothing_left = asyncio.Event()
        self._waits_s: list[float] = []

    def of_run(self, session: BrokerSession, received: Received, stamp: Stamp) -> None:
        """Answer a message of the run, and measure its wait if it was nacked before."""
        key, now = received.ordering_key, self._context.now()
        self._context.count("backoff_deliveries")
        if stamp.seq != self._last.get(key):
            session.ack(received)
            return
        nacked = self._nacked.setdefault(key, _Nacked(received.message_id))
        if nacked.message_id != received.message_id or nacked.nacks > NACKS:
            session.ack(received)  # a copy of the message, or a redelivery after the measurement
            return
        if nacked.session is session:
            self._waits_s.append(now - nacked.t)
        nacked.nacks, nacked.t, nacked.session = nacked.nacks + 1, now, session
        if nacked.nacks <= NACKS:
            session.nack(received)
            return
        session.ack(received)
        self._left.discard(key)
        if not self._left:
            self._nothing_left.set()

    async def measure(self) -> None:
        """Wait for the redeliveries, then record the measurements if there are any."""
        await comes_within(SETTLE_S, self._nothing_left)
        if waits_s := self._waits_s:
            measured = self._context.recording.measured
            self._context.count("backoffs_measured", len(waits_s))
            measured(Figure.BACKOFF_EARLY, early_ratio(waits_s))
            measured(Figure.BACKOFF_MEDIAN, median(waits_s))
            measured(Figure.BACKOFF_LONGEST, max(waits_s))
