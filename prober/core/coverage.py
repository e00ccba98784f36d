"""Counters of a checked history: events, opportunities to observe a violation of each guarantee, and forgotten records."""

from __future__ import annotations

from collections import Counter
from typing import Final

from prober.core.collector import Counts

OWN: Final = ("holds", "unexplained", "windows_full")
CREDIT_MAX: Final = 20_000
"""Number of sends that the searches of a history may examine in a row."""
CREDIT_PER_DELIVERY: Final = 10
"""Number of sends that each delivery adds to that allowance."""


class Coverage(Counts):
    """The counters of a history.

    holds           deliveries that were not legal in the order of arrival.
    unexplained     deliveries on hold with too many possible explanations.
    windows_full    how often the order of deliveries was given up because too many were concurrent.
    sends           the number of sends examined in searches for an order; it measures work, so `by_name` leaves it out.
    """

    __slots__ = (*OWN, "_credit", "_credited", "sends")

    def __init__(self) -> None:
        super().__init__()
        self.holds = self.unexplained = self.windows_full = self.sends = 0
        self._credit, self._credited = CREDIT_MAX, 0

    def by_name(self) -> Counter[str]:
        """Return all counters that are not 0."""
        own = {name: getattr(self, name) for name in OWN}
        return super().by_name() + Counter({name: count for name, count in own.items() if count})

    def credit(self) -> int:
        """Return the number of sends that may still be examined before the next delivery."""
        earned = CREDIT_PER_DELIVERY * (self.deliveries_first + self.deliveries_redelivery)
        left = min(self._credit + earned - self._credited, CREDIT_MAX + self.sends)
        self._credit, self._credited = left, earned
        return left - self.sends
