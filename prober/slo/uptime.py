"""Monthly uptime by the definition of Pub/Sub's service level agreement, from counts of publishes by minute.

The agreement (https://cloud.google.com/pubsub/sla): uptime is the share of a month's minutes outside of downtime periods. A downtime
period is at least 60 consecutive seconds in which no valid publish succeeds. Google credits a share of the month's bill: 10 % below
an uptime of 99.95 %, 25 % below 99 %, 50 % below 95 %. Delivery, order and latency are not part of it.

Measured in clock minutes, with three values:

* A minute is *up* if a publish was confirmed in it.
* A minute is *down* if publishes failed in it, in the one before and in the one after, and none was confirmed in these three: so it lies
  between two failures with no success in between.
* Every other minute is *unknown*: nothing was published, nothing decided, or an outage perhaps began or ended in it.

Pure: minutes are numbers since 1970.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from prober.slo.confidence import ProportionBounds
from prober.slo.indicators import Indicator
from prober.slo.objectives import exact_fraction

COUNTED: Final = Indicator.PUBLISH_AVAILABILITY
"""The indicator whose counts determine the state of each minute."""


class CreditTier(NamedTuple):
    """An uptime, and the share of the month's bill that Google credits below it."""

    uptime: float
    credit: float


TIERS: Final = (CreditTier(0.95, 0.5), CreditTier(0.99, 0.25), CreditTier(0.9995, 0.1))
"""The tiers of the agreement, the largest credit first."""


def credit_for(uptime: Fraction) -> float:
    """Return the share of the bill that the agreement credits for an uptime; 0: none."""
    return next((tier.credit for tier in TIERS if uptime < exact_fraction(tier.uptime)), 0.0)


@dataclass(frozen=True, slots=True)
class MonthlyUptime:
    """Uptime of a target in a month: of its past `minutes`, the number of `up` and `down` ones; the others are unknown.

    month        such as `2026-03`, in UTC.
    is_over      whether all of the month has passed.
    """

    target: str
    month: str
    minutes: int
    up: int
    down: int
    is_over: bool

    @property
    def unknown(self) -> int:
        """The number of minutes with unknown state."""
        return self.minutes - self.up - self.down

    @property
    def uptime(self) -> ProportionBounds:
        """The least and greatest possible uptime, for any state of the unknown minutes."""
        return ProportionBounds(float(self._least), float(self._most))

    @property
    def credit(self) -> ProportionBounds:
        """The least and greatest possible credit; the tier is known if both are equal."""
        return ProportionBounds(credit_for(self._most), credit_for(self._least))

    @property
    def _least(self) -> Fraction:
        return Fraction(self.up, self.minutes) if self.minutes else Fraction(0)

    @property
    def _most(self) -> Fraction:
        return 1 - Fraction(self.down, self.minutes) if self.minutes else Fraction(1)


def minutes_down(failed: Collection[int]) -> frozenset[int]:
    """Return the minutes that were down, given those in which publishes failed and none was confirmed."""
    known = frozenset(failed)
    return frozenset(minute for minute in known if minute - 1 in known and minute + 1 in known)
