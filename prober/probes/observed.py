"""What was seen of a stream that others publish: how its messages came, and how old they were. Pure, and bounded.

Order is measured by group as `prober.ordering` does: how a resequencer would have seen the messages, and RFC 4737. Load by ordering key is
counted by `prober.sinks.top_keys`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from prober.core.events import Delivered
from prober.monitoring.comparison import ProberAges
from prober.ordering.measurement import OrderMeasurement, OrderReport
from prober.ordering.resequencer import OrderRange

AGES_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""The bounds by which ages are counted."""


@dataclass(slots=True)
class Ages:
    """How old messages were when they came, by their publish times: how many were at most as old as each of `AGES_S`."""

    count: int = 0
    max_s: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * (len(AGES_S) + 1))

    def came(self, age_s: float) -> None:
        """One message of that age."""
        self.count += 1
        self.max_s = max(self.max_s, age_s)
        self.counts[sum(age_s > bound for bound in AGES_S)] += 1

    def within(self, share: float) -> float | None:
        """The least bound that this share of the messages kept; the largest age if none did, None without messages."""
        seen = 0
        for bound, count in zip(AGES_S, self.counts, strict=False):
            seen += count
            if self.count and seen >= share * self.count:
                return min(bound, self.max_s)
        return self.max_s if self.count else None


class ObservedStream:
    """What came of one stream, message by message.

    counts      messages by what they were: `received`, `ungrouped`, `unnumbered`, `without_key`, `not_sampled`, `above_maximum`.
    unread      the first message that has no group or no number, and why.
    unreadable  why nothing could be read.
    waits       how old messages were when they came, for as long as that is of interest.
    observed_until  until when all that was published was to be observed, in seconds since 1970; 0 before.
    """

    def __init__(self, wait_timeout_s: float, idle_timeout_s: float, initial: int | None = None) -> None:
        """`initial`: the first number of every group; None: whatever comes first."""
        self.counts: Counter[str] = Counter()
        self.ages = Ages()
        bounds = None if initial is None else OrderRange(initial)
        self._order = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, bounds=bounds)
        self._unordered = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, bounds=bounds)
        self.unread = self.unreadable = ""
        self.observed_until = 0.0
        self.waits = ProberAges()

    def came(self, age_s: float | None) -> None:
        """A message came, whatever it is; `age_s` is None where the service does not say when it was published."""
        self.counts["received"] += 1
        if age_s is not None:
            self.ages.came(max(0.0, age_s))

    def numbered(self, group: str, number: int, t: float) -> None:
        """It has a group and a number."""
        self._order.observe(Delivered(t, "", group, "", "", number, ""))

    def unordered(self, group: str, number: int, t: float) -> None:
        """The same on the subscription without ordering."""
        self._unordered.observe(Delivered(t, "", group, "", "", number, ""))

    def order(self) -> OrderReport:
        """How messages came on the ordered subscription, by now."""
        return self._order.report()

    def order_without_ordering(self) -> OrderReport:
        """The same on the other one."""
        return self._unordered.report()
