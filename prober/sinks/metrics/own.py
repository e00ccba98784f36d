"""What Cloud Monitoring says of the user's own subscriptions, told to the metrics. What is not known is not a number."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Final

from prober.config import TargetSettings
from prober.monitoring.comparison import Late, OwnSubscriptionSnapshot, Point, ReadFailure
from prober.sinks.metrics import families
from prober.sinks.metrics.store import MetricStore

_VALUES: Final = {
    families.OWN_OLDEST_UNACKED_AGE: "oldest_unacked_age",
    families.OWN_UNDELIVERED: "undelivered",
    families.OWN_ACKED: "acked",
    families.OWN_EXPIRED: "expired",
}


class OwnMetrics:
    """The metrics of the user's own subscriptions. The configuration bounds how many there are."""

    def __init__(self, store: MetricStore, watched: Iterable[tuple[TargetSettings, str]]) -> None:
        self._store = store
        for target, name in watched:
            for family in (*_VALUES, families.OWN_POINT_AT):
                store.gauge(family, *target.series, name).set(nan)
            for who in Late:
                store.gauge(families.OWN_LATE, *target.series, name, who).set(who is Late.UNKNOWN)
            for reason in ReadFailure:
                store.counter(families.OWN_READ_FAILURES, *target.series, name, reason)

    def read(self, target: TargetSettings, own: OwnSubscriptionSnapshot) -> None:
        """How a subscription stands now. While it cannot be read, nothing of it is known."""
        labels = (*target.series, own.status.name)
        reading = own.status.reading
        known = not own.status.failure
        for family, field in _VALUES.items():
            point: Point | None = getattr(reading, field)
            self._store.gauge(family, *labels).set(point.value if known and point is not None else nan)
        newest = reading.oldest_unacked_age
        self._store.gauge(families.OWN_POINT_AT, *labels).set(nan if newest is None else newest.at)
        for who in Late:
            self._store.gauge(families.OWN_LATE, *labels, who).set(who is own.late)

    def failed(self, target: TargetSettings, name: str, reason: ReadFailure) -> None:
        """A subscription could not be read."""
        self._store.counter(families.OWN_READ_FAILURES, *target.series, name, reason).inc()
