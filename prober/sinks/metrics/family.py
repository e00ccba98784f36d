"""The declaration of a metric family: everything that is known of it, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

from prober.slo.indicators import Indicator

PREFIX: Final = "pubsub_prober"


class MetricType(StrEnum):
    """The metric types of Prometheus that are in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One family.

    kind       fixed by `counter`, `gauge`, `histogram` and `info`, which declare families.
    name       without the prefix, and without the `_total` or `_info` that its kind adds.
    scope      the labels that name what it is about: a target, a subscription, a probe instance; none for the prober itself.
    help       one sentence.
    values     its other labels, and every value that each may have.
    start      the value of its series as soon as what it is about is there. None: each is absent until it is measured.
    indicator  what it is read for: a histogram has the durations of an indicator, a counter its checks or what never ended.
    counters   the counters of a run that it adds up, each with the values of the other labels.
    bounds     the upper bounds of a histogram's buckets, to which the thresholds of the objectives are added.
    scraped    whether it is computed for each scrape (`snapshots`).
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
        """The name as it is scraped; of a histogram without `_bucket`, `_sum` and `_count`."""
        suffix = {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}.get(self.kind, "")
        return f"{PREFIX}_{self.name}{suffix}"


counter: Final = partial(Family, MetricType.COUNTER)
gauge: Final = partial(Family, MetricType.GAUGE)
histogram: Final = partial(Family, MetricType.HISTOGRAM)
info: Final = partial(Family, MetricType.INFO, start=None)
