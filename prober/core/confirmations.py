"""When acknowledgements were confirmed (exactly-once delivery), until that is so long ago that a redelivery certainly was sent later.

Each is a chance then (`chances`): from now on the message must not come again, and if it did, that would be told.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.positions import LearnedLog
from prober.core.rules import Rules

if TYPE_CHECKING:
    from prober.core.collector import Counts

STEPS: Final = 16
"""Into how many counts the confirmations of one Delta are divided."""


class Confirmations:
    """The confirmations of one subscription that are not certain yet: until when at most they are not, and how many."""

    __slots__ = ("_counts", "_rules")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._counts: list[tuple[float, int]] = []

    def confirm(self, counts: Counts, log: LearnedLog, position: int, t: float, number: int) -> None:
        """The acknowledgement of a position was confirmed, by event `number`; only the first time counts."""
        counts.chances_confirmed += self.take(t)
        if log.confirmation(position) is None:
            counts.acks_confirmed += 1
            self._add(t)
        log.confirm(position, t, number)

    def _add(self, t: float) -> None:
        step_s = self._rules.delivery_delay_max_s / STEPS
        until_t = (t // step_s + 1.0) * step_s if 0.0 < step_s < inf else t if not step_s else inf
        if self._counts and self._counts[-1][0] == until_t:
            self._counts[-1] = (until_t, self._counts[-1][1] + 1)
        else:
            self._counts.append((until_t, 1))

    def take(self, t: float) -> int:
        """How many have become certain by `t`; each is told once."""
        sent_t = t - self._rules.delivery_delay_max_s - self._rules.clock_error_s
        return self._take(sum(1 for until_t, _ in self._counts if until_t < sent_t))

    def take_all(self) -> int:
        """The same when a stream is opened and no other is open: what comes from now on was sent after all of them."""
        return self._take(len(self._counts))

    def _take(self, number: int) -> int:
        taken, self._counts = self._counts[:number], self._counts[number:]
        return sum(count for _, count in taken)
