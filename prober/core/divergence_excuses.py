"""Excuses of ORDER_DIVERGENCE: why one subscription may lack a record that another has (docs/model.md, section 12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.excuses import BESIDE, NO_POLICY, Excuse, is_expired, none_lost_beside, within_retention
from prober.core.facts import Delivery
from prober.core.rules import Rules

if TYPE_CHECKING:
    from prober.core.divergence import Side

DEAD_LETTER: Final = "the dead-letter policy may have removed what one of them did not receive"
EXPIRED: Final = "what one of them did not receive may have been older than the retention"


class Lacking(NamedTuple):
    """Records that precede a position on one subscription, `having`, and that the other has not received before that position."""

    lacking: Side
    position: int
    having: Side
    records: Sequence[int]

    @property
    def rules(self) -> Rules:
        """The rules of the subscription that lacks the records."""
        return self.lacking.checker.rules

    @property
    def one(self) -> Delivery | None:
        """The delivery at the position, None if it is not remembered."""
        return self.lacking.delivery_of(self.position)

    @property
    def t(self) -> float:
        """The time at which the delivery was recorded."""
        return self.lacking.checker.last_t if self.one is None else self.one.t

    def invoked_t(self) -> Iterator[float]:
        """Return the publish invocation times of the records."""
        return map(self.having.log.invoked_t, self.records)


def _have_expired(case: Lacking) -> str:
    latest_t = case.t + case.rules.clock_error_s
    return EXPIRED if all(is_expired(case.rules, invoked, latest_t) for invoked in case.invoked_t()) else ""


def _lost_beside(case: Lacking) -> str:
    one, subscription = case.one, case.lacking.checker.subscription
    if one is None:
        return BESIDE if subscription.losses and subscription.streaming else ""
    return BESIDE if all(subscription.may_have_lost_beside(invoked, one) for invoked in case.invoked_t()) else ""


DIVERGED: Final[tuple[Excuse[Lacking], ...]] = (
    Excuse(lambda case: DEAD_LETTER if case.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),
    Excuse(_have_expired, lambda case: within_retention(case.rules, max(case.invoked_t()), "a message that one of them lacks")),
    Excuse(_lost_beside, lambda case: none_lost_beside(case.rules, case.one)),
)
"""Excuses of a subscription that received a record before its predecessors on the other subscription."""
