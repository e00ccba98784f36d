"""How long a service waits before it redelivers a nacked message, on a subscription with a retry policy.

The last message of each key is nacked `NACKS` times, so each redelivery is of that message alone. A wait is the time from sending the nack
to the next receipt of the message. It contains the way there and back, so the service waited less than that: a wait below the policy's
minimum backoff was too short. It counts only if both happened on one session: where that ended, the nack may have been lost with it.

Google's documentation calls the policy best effort, so this measures and is never a violation.
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
"""The bounds of its retry policy."""
TOLERANCE: Final = 0.1
"""By this share of the minimum a redelivery may be early without being counted as early."""
NACKS: Final = 2
"""How often the last message of a key is nacked."""
SETTLE_S: Final = 10.0
"""How long to wait for the redeliveries, from the end of publishing on."""


@dataclass(slots=True)
class _Nacked:
    """The last message of a key: its record, how often it was nacked, and the last time when and on which session."""

    message_id: str
    nacks: int = 0
    t: float = 0.0
    session: BrokerSession | None = None


def early_ratio(waits_s: Sequence[float]) -> float:
    """The share of redeliveries that came before the minimum backoff; there is at least one."""
    return sum(wait_s < MINIMUM_S * (1.0 - TOLERANCE) for wait_s in waits_s) / len(waits_s)


class BackoffTap(UnverifiedTap):
    """Nacks the last message of each key and measures the waits; acknowledges the others. For one subscriber, on the event loop."""

    def __init__(self, context: ProbeContext, last: Mapping[str, int]) -> None:
        """`last`: the number of the last message of each key."""
        super().__init__(context.epoch)
        self._context, self._last = context, last
        self._nacked: dict[str, _Nacked] = {}
        self._left = set(last)
        self._nothing_left = asyncio.Event()
        self._waits_s: list[float] = []

    def of_run(self, session: BrokerSession, received: Received, stamp: Stamp) -> None:
        """A message of the run was received."""
        key, now = received.ordering_key, self._context.now()
        self._context.count("backoff_deliveries")
        if stamp.seq != self._last.get(key):
            session.ack(received)
            return
        nacked = self._nacked.setdefault(key, _Nacked(received.message_id))
        if nacked.message_id != received.message_id or nacked.nacks > NACKS:
            session.ack(received)  # a copy of it, or again after all that was measured
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
        """Waits for the redeliveries and records the figures, if there were any."""
        await comes_within(SETTLE_S, self._nothing_left)
        if waits_s := self._waits_s:
            measured = self._context.recording.measured
            self._context.count("backoffs_measured", len(waits_s))
            measured(Figure.BACKOFF_EARLY, early_ratio(waits_s))
            measured(Figure.BACKOFF_MEDIAN, median(waits_s))
            measured(Figure.BACKOFF_LONGEST, max(waits_s))
