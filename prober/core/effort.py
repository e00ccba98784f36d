"""The limit of work on the order of one window of deliveries: the cost of a history is bounded, whatever the service does.

Verification runs between two events: a search delays everything else in the process. So the windows of a history share a common
allowance beyond a few sends for each delivery, and one event never takes longer than `CREDIT_MAX` sends (about a second).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from prober.core.coverage import Coverage

RECENT: Final = 128
"""Number of latest deliveries whose order is searched first; the whole window only if these have no legal order."""
SENDS_PER_WINDOW: Final = 20_000
"""Number of sends examined, in all searches together, until the order of a window is certain or given up."""


@dataclass(slots=True)
class Effort:
    """The work left for a window; each window starts with a new value.

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
