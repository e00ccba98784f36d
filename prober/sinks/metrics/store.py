"""Where the numbers are, one registry of its own with one prometheus metric per family, and how they are written for a scrape.

The buckets of a histogram say where a duration may be told apart from a longer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from prober.sinks.metrics import families
from prober.sinks.metrics.families import FAMILIES
from prober.sinks.metrics.family import PREFIX, Family, MetricType
from prober.slo.objectives import MICROS, Objective, bucket_bounds, whole_micros

_SHORT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_DEFAULT_BOUNDS: Final = MappingProxyType(
    {
        families.PUBLISH_LATENCY: _SHORT,
        families.END_TO_END_LATENCY: _LONG,
        families.REDELIVERY_LATENCY: _LONG,
        families.HEAD_OF_LINE_DELAY: _SHORT,
        families.CONTROL_PLANE_LATENCY: (*_SHORT, 30.0, 60.0),
        families.LOOP_LAG: (0.001, *_SHORT),
    }
)
BACKLOG_FAMILIES: Final = (families.OLDEST_UNACKED_AGE, families.UNDELIVERED, families.STALLED_KEYS)
TOP_KEY_FAMILIES: Final = (families.TOP_KEY_BYTES, families.TOP_KEY_SHARE, families.TOP_KEY_AGE)
SNAPSHOT_FAMILIES: Final = (*BACKLOG_FAMILIES, *TOP_KEY_FAMILIES)
"""The families that are computed for each scrape."""
_EXEMPLAR_CHARACTERS_MAX: Final = 128  # of names and values together: OpenMetrics 1.0, "Exemplars"


def bounds_of(family: Family, objectives: Iterable[Objective]) -> tuple[float, ...]:
    """The bucket bounds of a histogram in seconds, ascending: the threshold of every objective about it is one of them."""
    thresholds = [
        one.threshold_s for one in objectives if families.LATENCIES.get(one.indicator) == family and one.threshold_s is not None
    ]
    return tuple(bucket_bounds(_DEFAULT_BOUNDS[family], thresholds))


Exemplar = Mapping[str, str]


def exemplar_of(run_id: str, trace_id: str = "") -> Exemplar:
    """What to attach to the durations of a run, so that a slow one can be looked up. Make it once per run.

    Too long for an exemplar, it is left out: a run's durations matter more than its name.
    """
    exemplar = {name: value for name, value in (("run_id", run_id), ("trace_id", trace_id)) if value}
    return exemplar if sum(len(name) + len(value) for name, value in exemplar.items()) <= _EXEMPLAR_CHARACTERS_MAX else {}


class MetricStore:
    """The metrics of all families but those that are computed when they are scraped.

    Label values stand in the order of the family's labels. KeyError for a family of another type, or one that is computed. May be used
    in any thread.
    """

    def __init__(self, objectives: Iterable[Objective]) -> None:
        # Times of creation would double the series, and say nothing that a scrape does not.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry: Final = CollectorRegistry()
        self._counters: Final[dict[Family, Counter]] = {}
        self._gauges: Final[dict[Family, Gauge]] = {}
        self._histograms: Final[dict[Family, Histogram]] = {}
        self._infos: Final[dict[Family, Info]] = {}
        self._bounds: Final[dict[Family, tuple[float, ...]]] = {}
        promises = tuple(objectives)
        for family in FAMILIES:
            if family not in SNAPSHOT_FAMILIES:
                self._add(family, promises)

    def counter(self, family: Family, *labels: str) -> Counter:
        """The counter with these label values, made with value 0 if it was not there."""
        return self._counters[family].labels(*labels) if labels else self._counters[family]

    def gauge(self, family: Family, *labels: str) -> Gauge:
        """The gauge with these label values."""
        return self._gauges[family].labels(*labels) if labels else self._gauges[family]

    def take_away(self, family: Family, *labels: str) -> None:
        """Takes the gauge with these label values away, if it is there."""
        self._gauges[family].remove(*labels)

    def histogram(self, family: Family, *labels: str) -> Histogram:
        """The histogram with these label values."""
        return self._histograms[family].labels(*labels) if labels else self._histograms[family]

    def info(self, family: Family, labels: Iterable[str], values: Mapping[str, str]) -> None:
        """States facts about something."""
        given = tuple(labels)
        info = self._infos[family]
        (info.labels(*given) if given else info).info(dict(values))

    def forget(self, **labels: str) -> None:
        """Removes every series that has all of these labels with these values."""
        metrics: dict[Family, Counter | Gauge | Histogram | Info] = {
            **self._counters,
            **self._gauges,
            **self._histograms,
            **self._infos,
        }
        for family, metric in metrics.items():
            if labels.keys() <= set(family.labels):
                metric.remove_by_labels(labels)

    def has_bound(self, objective: Objective) -> bool:
        """Whether the threshold of an objective is a bucket bound, so that what is counted says how many were good."""
        family = families.LATENCIES.get(objective.indicator)
        return family is None or objective.threshold_s in self._bounds[family]

    def _add(self, family: Family, objectives: tuple[Objective, ...]) -> None:
        name = f"{PREFIX}_{family.name}"
        if family.kind is MetricType.COUNTER:
            self._counters[family] = Counter(name, family.help, family.labels, registry=self.registry)
        elif family.kind is MetricType.GAUGE:
            self._gauges[family] = Gauge(name, family.help, family.labels, registry=self.registry)
        elif family.kind is MetricType.INFO:
            self._infos[family] = Info(name, family.help, family.labels, registry=self.registry)
        else:
            bounds = self._bounds[family] = bounds_of(family, objectives)
            self._histograms[family] = Histogram(name, family.help, family.labels, registry=self.registry, buckets=bounds)


def gauge_of(family: Family) -> GaugeMetricFamily:
    """An empty gauge of a family that is computed for each scrape."""
    return GaugeMetricFamily(f"{PREFIX}_{family.name}", family.help, labels=family.labels)


class Stopwatch:
    """One histogram about a service. A negative duration counts as 0 and is counted apart: it is a fact about our clocks."""

    __slots__ = ("_histogram", "_negative")

    def __init__(self, histogram: Histogram, negative: Counter) -> None:
        self._histogram = histogram
        self._negative = negative

    def took(self, duration_s: float, exemplar: Exemplar | None = None) -> None:
        """One duration was measured."""
        if duration_s < 0.0:
            self._negative.inc()
            duration_s = 0.0
        # As objectives are judged: what is not longer than a threshold is in its bucket, whatever floats make of it.
        self._histogram.observe(whole_micros(duration_s) / MICROS, dict(exemplar) if exemplar else None)


# --- how it is written -------------------------------------------------------------------------------------------------------


def content_type_for(accept: str) -> str:
    """One of few, for an Accept header: OpenMetrics or version 1 of the text format, whichever it names first; else plain text.

    As in every exporter that is written in Python the order counts, not the quality: Prometheus begins with what it wants most.
    """
    try:
        return choose_encoder(accept)[1]
    except TypeError:  # it asks for a version that is no number
        return choose_encoder("")[1]


def render(registry: Collector, content_type: str) -> bytes:
    """The body in one of these formats. Takes milliseconds per subscription; may be called in any thread while metrics are counted."""
    encode, _ = choose_encoder(content_type)
    return encode(registry)
