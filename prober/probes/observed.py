"""What was seen of a stream that others publish: how its messages came, and how old they were. Pure, and bounded.

Order is measured by group as in `prober.ordering`: the numbers of a resequencer, and RFC 4737. Load by ordering key is counted by
`prober.sinks.top_keys`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from prober.core.events import Delivered
from prober.monitoring.comparison import ProberAges
from prober.ordering.measurement import OrderMeasurement, OrderReport
from prober.ordering.resequencer import OrderRange

SKETCH_K: Final = 1000
"""Size of the sketch of ages: quantile ranks are exact up to that many messages, and off by at most 0.3 % beyond."""


class Ages:
    """Ages of messages at their receipt, by their publish times. A sketch bounds the memory."""

    def __init__(self) -> None:
        from datasketches import kll_doubles_sketch  # imports numpy, which no help text needs

        self._sketch = kll_doubles_sketch(SKETCH_K)

    @property
    def count(self) -> int:
        """Number of received messages."""
        return int(self._sketch.n)

    @property
    def max_s(self) -> float:
        """Largest age in seconds; 0 without messages."""
        return float(self._sketch.get_max_value()) if self.count else 0.0

    def came(self, age_s: float) -> None:
        """Add the age of one message."""
        self._sketch.update(age_s)

    def quantile_s(self, share: float) -> float | None:
        """Return the age that this share of the messages did not exceed, in seconds; None without messages."""
        return float(self._sketch.get_quantile(share, True)) if self.count else None


class ObservedStream:
    """What came of one stream, message by message.

    counts      messages by what they were: `received`, `ungrouped`, `unnumbered`, `without_key`, `not_sampled`, `above_maximum`.
    unread      the first message that has no group or no number, and why.
    unreadable  why nothing could be read.
    waits       how old messages were when they came, for as long as that is of interest.
    observed_until  until when all that was published was to be observed, in seconds since 1970; 0 before.
    """

    def __init__(self, wait_timeout_s: float, idle_timeout_s: float, initial: int | None = None) -> None:
        """Create empty measurements. `initial`: first number of every group; None: the first number received."""
        self.counts: Counter[str] = Counter()
        self.ages = Ages()
        bounds = None if initial is None else OrderRange(initial)
        self._order = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, bounds=bounds)
        self._unordered = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, bounds=bounds)
        self.unread = self.unreadable = ""
        self.observed_until = 0.0
        self.waits = ProberAges()

    def came(self, age_s: float | None) -> None:
        """Count a message; `age_s` is None if the service does not report its publish time."""
        self.counts["received"] += 1
        if age_s is not None:
            self.ages.came(max(0.0, age_s))

    def numbered(self, group: str, number: int, t: float) -> None:
        """Take group and number of a message of the ordered subscription."""
        self._order.observe(Delivered(t, "", group, "", "", number, ""))

    def unordered(self, group: str, number: int, t: float) -> None:
        """Take group and number of a message of the subscription without ordering."""
        self._unordered.observe(Delivered(t, "", group, "", "", number, ""))

    def order(self) -> OrderReport:
        """Return the order of messages on the ordered subscription so far."""
        return self._order.report()

    def order_without_ordering(self) -> OrderReport:
        """Return the order of messages on the subscription without ordering so far."""
        return self._unordered.report()
