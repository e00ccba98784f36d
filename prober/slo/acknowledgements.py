"""Time to acknowledge an incident: the rule, and its summary. It measures the engineers on call, so it has no error budget and no alert.

The objective: each incident is acknowledged within `WITHIN_S` of being raised. Google's engineers attend to alerts within five minutes
("Google Cloud Pub/Sub: A Google-Scale Messaging Service", Monitoring). That text names no share, so each incident counts.

Pure functions: times are arguments, in seconds since 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final, NamedTuple

from prober.slo.objectives import DAY_S, MINUTE_S

WITHIN_S: Final = 5 * MINUTE_S
PERIOD_S: Final = 30 * DAY_S
"""The age of the oldest counted incidents, in seconds."""
RULE: Final = (
    "Each outage and each broken guarantee is to be acknowledged within 5 min of being raised. An incident that ended earlier without an "
    "acknowledgement does not count."
)
"""The rule in words, for pages."""


class Timeliness(StrEnum):
    """Whether an incident was acknowledged in time.

    IN_TIME   acknowledged within `WITHIN_S`.
    LATE      not acknowledged within `WITHIN_S`, or not yet, and open for longer.
    PENDING   open, not acknowledged, for less than `WITHIN_S`.
    ENDED     ended within `WITHIN_S` without an acknowledgement: neither good nor bad.
    """

    IN_TIME = "in_time"
    LATE = "late"
    PENDING = "pending"
    ENDED = "ended"


class Raised(NamedTuple):
    """An incident that needs an engineer: when it was raised, first acknowledged (None: never), and closed (None: it is open)."""

    raised_at: float
    acknowledged_at: float | None
    closed_at: float | None

    @property
    def took_s(self) -> float | None:
        """Time to acknowledge in seconds; None if it was not acknowledged.

        0 if it was acknowledged before it was raised.
        """
        return None if self.acknowledged_at is None else max(0.0, self.acknowledged_at - self.raised_at)

    def timeliness(self, now: float) -> Timeliness:
        """Return whether it was acknowledged in time, as of `now`."""
        if self.took_s is not None and self.took_s <= WITHIN_S:
            return Timeliness.IN_TIME
        if self.closed_at is not None and self.closed_at - self.raised_at <= WITHIN_S:
            return Timeliness.ENDED
        if self.closed_at is None and self.took_s is None and now - self.raised_at <= WITHIN_S:
            return Timeliness.PENDING
        return Timeliness.LATE


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """Incidents by timeliness, and the median time to acknowledge, in seconds (None: none was acknowledged).

    left_out   older incidents of the period that were not read.
    """

    counts: Mapping[Timeliness, int]
    median_s: float | None
    left_out: int = 0

    @classmethod
    def of(cls, incidents: Iterable[Raised], now: float, left_out: int = 0) -> Acknowledgements:
        """Return the summary of incidents as of `now`."""
        raised = tuple(incidents)
        found = Counter(one.timeliness(now) for one in raised)
        took_s = [one.took_s for one in raised if one.took_s is not None]
        return cls({one: found[one] for one in Timeliness}, median(took_s) if took_s else None, left_out)

    @property
    def in_time(self) -> int:
        """The number of incidents acknowledged in time."""
        return self.counts[Timeliness.IN_TIME]

    @property
    def decided(self) -> int:
        """The number of incidents that are in time or late."""
        return self.in_time + self.counts[Timeliness.LATE]

    @property
    def ratio(self) -> float | None:
        """The share in time of the decided incidents; None if none is decided."""
        return self.in_time / self.decided if self.decided else None
