"""What was seen of a stream that others publish: how its messages came, on which keys, and how old they were. Pure, and bounded.

Order is measured by group as `prober.ordering` does: how a resequencer would have seen the messages, and RFC 4737. Load is counted by
ordering key, of at most `KEYS_FOLLOWED` keys: those with the most messages, found by the Space-Saving algorithm (Metwally, Agrawal, El
Abbadi, 2005). A key that it follows may have been counted too high by what came before it was followed (`uncertain`), never too low.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import heapify, heapreplace, nlargest
from typing import Final

from prober.core.events import Delivered
from prober.monitoring.comparison import ProberAges
from prober.ordering.measurement import OrderMeasurement, OrderReport
from prober.ordering.resequencer import OrderRange

KEYS_FOLLOWED: Final = 1_000
AGES_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""The bounds by which ages are counted."""


@dataclass(slots=True)
class KeyLoad:
    """What came on one ordering key. `uncertain`: so many of the messages may have been on other keys."""

    key: str
    messages: int = 0
    bytes: int = 0
    uncertain: int = 0
    age_max_s: float = 0.0


class KeyLoads:
    """The keys with the most messages, by Space-Saving: a new key takes the place, and the count, of the one with the fewest."""

    def __init__(self, followed: int = KEYS_FOLLOWED) -> None:
        self.messages = 0
        self._followed = followed
        self._loads: dict[str, KeyLoad] = {}
        self._fewest: list[tuple[int, str]] = []

    def came(self, key: str, size: int, age_s: float) -> None:
        """One message came."""
        self.messages += 1
        load = self._loads.get(key) or self._follow(key)
        load.messages += 1
        load.bytes += size
        load.age_max_s = max(load.age_max_s, age_s)

    def most(self, count: int) -> list[KeyLoad]:
        """Those with the most messages, the most first."""
        return nlargest(count, self._loads.values(), key=lambda load: (load.messages - load.uncertain, load.key))

    @property
    def followed(self) -> int:
        """How many keys are followed; all that came, as long as there is room."""
        return len(self._loads)

    def _follow(self, key: str) -> KeyLoad:
        if len(self._loads) < self._followed:
            load = self._loads[key] = KeyLoad(key)
            self._fewest.append((0, key))
            if len(self._loads) == self._followed:
                heapify(self._fewest)
            return load
        while (known := self._loads[self._fewest[0][1]]).messages > self._fewest[0][0]:
            heapreplace(self._fewest, (known.messages, known.key))
        del self._loads[known.key]
        load = self._loads[key] = KeyLoad(key, known.messages, 0, known.messages)
        heapreplace(self._fewest, (load.messages, key))
        return load


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
        self.keys = KeyLoads()
        self.ages = Ages()
        bounds = None if initial is None else OrderRange(initial)
        self._order = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, bounds=bounds)
        self._unordered = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, bounds=bounds)
        self.unread = self.unreadable = ""
        self.observed_until = 0.0
        self.waits = ProberAges()

    def came(self, key: str, size: int, age_s: float | None) -> None:
        """A message came, whatever it is; `age_s` is None where the service does not say when it was published."""
        self.counts["received"] += 1
        if key:
            self.keys.came(key, size, age_s or 0.0)
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
