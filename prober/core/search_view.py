"""The log of a key from the viewpoint of a send of the search.

It contains the definite positions, followed by those that the situation has learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.coverage import Coverage
from prober.core.names import RecordName

if TYPE_CHECKING:
    from prober.core.facts import Delivery
    from prober.core.search import Search
    from prober.core.state import Situation


@dataclass(slots=True)
class SearchView:
    """The log in a situation."""

    search: Search
    situation: Situation

    def skipped(self, after: int, before: int) -> list[int]:
        """See `Log`."""
        search = self.search
        committed = [one for one in search.log.between(after, min(before, search.frontier + 1)) if search.log.may_be_pending(one)]
        uncommitted = range(max(after, search.frontier) + 1, before)
        return [*committed, *(one for one in uncommitted if not self._first_at(one).unplaced)]

    def low(self, position: int) -> int:
        """See `Log`."""
        return position if position > self.search.frontier else self.search.log.low(position)

    def high(self, position: int) -> int:
        """See `Log`."""
        search = self.search
        return position if position > search.frontier else min(search.log.high(position), search.frontier)

    def is_open(self, one: int, other: int) -> bool:
        """See `Log`."""
        return self.search.log.is_open(one, other)

    def acked(self, position: int, by_t: float, since_t: float = -inf) -> bool:
        """See `Log`."""
        if any(since_t < one.acked_t <= by_t for one in self.search.deliveries_at(self.situation, position)):
            return True
        return position <= self.search.frontier and self.search.log.acked(position, by_t, since_t)

    def ack_confirmed(self, position: int, by_t: float) -> bool:
        """See `Log`."""
        log = self.search.log
        token = log.token(position) if position <= self.search.frontier else self._first_at(position).token
        return any(log.ack_confirmed(one, by_t) for one in log.positions_of(token))

    def provably_confirmed(self, position: int, by_t: float) -> bool:
        """See `Log`."""
        came = self.search.deliveries_at(self.situation, position)
        return all(one.t <= by_t for one in came) and self.ack_confirmed(position, by_t)

    def stays(self, position: int) -> bool:
        """See `Log`."""
        if position <= self.search.frontier:
            return self.search.log.stays(position)
        return self.search.subscription.stays(self._first_at(position))

    def invoked_t(self, position: int) -> float:
        """See `Log`."""
        if position <= self.search.frontier:
            return self.search.log.invoked_t(position)
        one = self._first_at(position)
        return -inf if one.publication is None else one.publication.invoked_t

    def holds(self, position: int) -> bool:
        """See `Log`."""
        return position > self.search.frontier or self.search.log.holds(position)

    def redelivered(self, upto: int, after: int, before: int) -> Delivery | None:
        """See `Log`."""
        search = self.search
        found = ((index, one) for index, one in enumerate(search.items) if after < one.number < before and not one.first)
        return next((one for index, one in found if 0 < search.position(self.situation, index) <= upto), None)

    def named(self, position: int) -> RecordName:
        """See `Log`."""
        if position <= self.search.frontier:
            return self.search.log.named(position)
        return RecordName.of(self._first_at(position))

    def _first_at(self, position: int) -> Delivery:
        return self.search.first_at(self.situation, position)


# --- the limit of work on the order of one window of deliveries: the cost of a history is bounded, whatever the service does ---


RECENT: Final = 128
"""Number of latest deliveries whose order is searched first; the whole window only if these have no legal order."""
SENDS_PER_WINDOW: Final = 20_000
"""Number of sends examined, in all searches together, until the order of a window is certain or given up."""


@dataclass(slots=True)
class Effort:
    """The work left for a window; each window starts with a new value.

    Verification runs between two events: a search delays everything else in the process. So the windows of a history share a common
    allowance beyond a few sends for each delivery, and one event never takes longer than `CREDIT_MAX` sends (about a second).

    counts      the counters of examined sends.
    patience    how many deliveries may wait before a legal order of all is searched.
    recent      how many of the last deliveries are searched first.
    sends       how many sends may still be examined.
    """

    counts: Coverage
    patience: int = 1
    recent: int = RECENT
    sends: int = SENDS_PER_WINDOW

    def look(self) -> None:
        """Count an examined send."""
        self.sends -= 1
        self.counts.sends += 1

    def until(self, sends_max: int) -> int:
        """Return the number of sends left at which a search that may examine `sends_max` sends has to end."""
        return self.sends - max(min(sends_max, self.sends, self.counts.credit()), 0)
