"""How soon a subscriber that joins has keys: measured and never judged, for keys need not move to it at all."""

from __future__ import annotations

from collections.abc import Collection
from statistics import median

from prober.brokers.base import Subscriber
from prober.probes.context import Decide, Delivery, ProbeContext
from prober.slo.figures import Figure


class Joiners:
    """The subscribers that join in a run."""

    def __init__(self, context: ProbeContext, decide: Decide) -> None:
        self._context, self._decide = context, decide
        self._joined = 0
        self._served: dict[str, float] = {}

    async def join(self) -> Subscriber:
        """Adds one. Raises as `ProbeContext.subscribe` does."""
        asked_t = self._context.recording.now()

        def decide(delivery: Delivery) -> None:
            if delivery.session.subscriber not in self._served:
                self._served[delivery.session.subscriber] = self._context.recording.now() - asked_t
            self._decide(delivery)

        self._joined += 1
        return await self._context.subscribe(decide)

    def measure(self, holders: Collection[str]) -> None:
        """Tells the figures of the run, given the last subscriber of each key."""
        if not self._joined:
            return
        measured = self._context.recording.measured
        measured(Figure.JOINERS_SERVED, len(self._served) / self._joined)
        measured(Figure.KEYS_AT_JOINERS, sum(holder in self._served for holder in holders) / len(holders))
        if self._served:
            measured(Figure.JOINER_SERVED_AFTER, median(self._served.values()))
