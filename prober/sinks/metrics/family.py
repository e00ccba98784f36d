"""The declaration of a metric family: name, labels, help, type and initial values, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

from prober.slo.indicators import Indicator

PREFIX: Final = "pubsub_prober"


class MetricType(StrEnum):
    """Metric types of Prometheus that the prober uses."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A metric family.

    kind       fixed by `counter`, `gauge`, `histogram` and `info`, which declare families.
    name       without the prefix, and without the suffix `_total` or `_info` of its kind.
    scope      labels that name its subject: a target, a subscription, a probe instance; none for the prober itself.
    help       one sentence.
    values     other labels, each with all its possible values.
    start      initial value of all series of a subject. None: each series is absent until its first measurement.
    indicator  the indicator that the family measures: a histogram its durations, a counter its checks or unfinished operations.
    counters   names of a run's counters that it adds up, each with the values of the other labels.
    bounds     upper bounds of a histogram's buckets; thresholds of objectives are added.
    scraped    computed for each scrape (`snapshots`).
    """

    kind: MetricType
    name: str
    scope: tuple[str, ...]
    help: str
    values: Mapping[str, Iterable[str]] = field(default_factory=dict)
    start: float | None = 0.0
    indicator: Indicator | None = None
    counters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: tuple[float, ...] = ()
    scraped: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, in their order."""
        return (*self.scope, *self.values)

    @property
    def full_name(self) -> str:
        """Name in a scrape; for a histogram without `_bucket`, `_sum` and `_count`."""
        suffix = {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}.get(self.kind, "")
        return f"{PREFIX}_{self.name}{suffix}"


counter: Final = partial(Family, MetricType.COUNTER)
gauge: Final = partial(Family, MetricType.GAUGE)
histogram: Final = partial(Family, MetricType.HISTOGRAM)
info: Final = partial(Family, MetricType.INFO, start=None)
