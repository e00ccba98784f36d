"""How much work may go into the order of one window of deliveries: so the cost of a history is bounded, whatever the service does.

Verification while events arrive happens between two of them: a search delays everything else in the process. So the windows of a history
share what they spend beyond a few sends for each delivery, and one event never takes longer than `CREDIT_MAX` sends (a second, about).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from prober.core.coverage import Coverage

RECENT: Final = 128
"""Deliveries of a window whose order is looked at first; that of all only if these have no legal one."""
SENDS_PER_WINDOW: Final = 20_000
"""Sends that are looked at, in all searches together, until the order of a window is certain or given up."""


@dataclass(slots=True)
class Effort:
    """The work that is left for a window; each begins with a new one.

    counts      where the sends that are looked at are counted.
    patience    how many deliveries may wait until a legal order of all is looked for.
    recent      how many of the last deliveries are looked at first.
    sends       how many sends may still be looked at.
    """

    counts: Coverage
    patience: int = 1
    recent: int = RECENT
    sends: int = SENDS_PER_WINDOW

    def look(self) -> None:
        """A send is looked at."""
        self.sends -= 1
        self.counts.sends += 1

    def until(self, sends_max: int) -> int:
        """How many sends are left for this window when a search that looks at `sends_max` at most has to end."""
        return self.sends - max(min(sends_max, self.sends, self.counts.credit()), 0)
