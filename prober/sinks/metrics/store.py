"""Values of the metrics, in a registry of their own with one prometheus metric per family; and their text for a scrape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from prober.logs import trace_id_of
from prober.sinks.metrics import families
from prober.sinks.metrics.families import FAMILIES
from prober.sinks.metrics.family import PREFIX, Family, MetricType
from prober.sinks.metrics.scopes import TARGET
from prober.slo.objectives import MICROS, Objective, bucket_bounds, whole_micros

_EXEMPLAR_CHARACTERS_MAX: Final = 128  # of names and values together: OpenMetrics 1.0, "Exemplars"


def bounds_of(family: Family, objectives: Iterable[Objective]) -> tuple[float, ...]:
    """Return the bucket bounds of a histogram in seconds, ascending, including the thresholds of all objectives of its indicator."""
    thresholds = [one.threshold_s for one in objectives if one.indicator is family.indicator and one.threshold_s is not None]
    return tuple(bucket_bounds(family.bounds, thresholds))


Exemplar = Mapping[str, str]


def exemplar_of(run_id: str) -> Exemplar:
    """Return the exemplar for durations of a run, which leads to the run. To be created once per run.

    It is empty if it would exceed the size limit of exemplars: the durations of a run matter more than its id.
    """
    exemplar = {"run_id": run_id, "trace_id": trace_id_of(run_id)}
    return exemplar if sum(len(name) + len(value) for name, value in exemplar.items()) <= _EXEMPLAR_CHARACTERS_MAX else {}


class MetricStore:
    """Metrics of all families except those that are computed for each scrape.

    Label values are in the order of the family's labels. Methods raise KeyError for a family of another type, or a computed one. Safe in
    any thread.
    """

    def __init__(self, objectives: Iterable[Objective]) -> None:
        # Times of creation would double the series without information beyond that of scrapes.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry: Final = CollectorRegistry()
        self._counters: Final[dict[Family, Counter]] = {}
        self._gauges: Final[dict[Family, Gauge]] = {}
        self._histograms: Final[dict[Family, Histogram]] = {}
        self._infos: Final[dict[Family, Info]] = {}
        self._bounds: Final[dict[Family, tuple[float, ...]]] = {}
        declared = tuple(objectives)
        for family in FAMILIES:
            if not family.scraped:
                self._add(family, declared)

    def counter(self, family: Family, *labels: str) -> Counter:
        """Return the counter with these label values; a new one starts at 0."""
        return self._counters[family].labels(*labels) if labels else self._counters[family]

    def gauge(self, family: Family, *labels: str) -> Gauge:
        """Return the gauge with these label values."""
        return self._gauges[family].labels(*labels) if labels else self._gauges[family]

    def remove(self, family: Family, *labels: str) -> None:
        """Remove the gauge with these label values, if it exists."""
        self._gauges[family].remove(*labels)

    def histogram(self, family: Family, *labels: str) -> Histogram:
        """Return the histogram with these label values."""
        return self._histograms[family].labels(*labels) if labels else self._histograms[family]

    def info(self, family: Family, labels: Iterable[str], values: Mapping[str, str]) -> None:
        """Set the values of an info metric."""
        given = tuple(labels)
        info = self._infos[family]
        (info.labels(*given) if given else info).info(dict(values))

    def forget(self, **labels: str) -> None:
        """Remove every series with all of these label values."""
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
        """Return whether an objective's threshold is a bucket bound, so that the histogram counts its good events."""
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


class Series:
    """Series of one subject, such as a target or a subscription, which `labels` name.

    Series with a declared start value exist from the start. Safe in any thread; no method blocks. Methods raise KeyError for a family of
    another type. `values` are those of a family's labels beyond its scope.
    """

    def __init__(self, store: MetricStore, scope: tuple[str, ...], labels: tuple[str, ...]) -> None:
        self.labels: Final = labels
        self._store, self._scope = store, scope
        self._counters: dict[tuple[Family | str, ...], Counter] = {}
        self._histograms: dict[tuple[Family | str, ...], Histogram] = {}
        for family in FAMILIES:
            if family.scope == scope and family.start is not None and not family.scraped:
                self.start(family)

    def start(self, family: Family) -> None:
        """Create every series of a family, with its initial value."""
        for values in product(*family.values.values()):
            if family.kind is MetricType.COUNTER:
                self.count(family, *values, by=0)
            elif family.kind is MetricType.HISTOGRAM:
                self._store.histogram(family, *self.labels, *values)
            else:
                gauge = self._store.gauge(family, *self.labels, *values)
                if family.start:  # other gauges start at 0, and existing ones keep their values
                    gauge.set(family.start)

    def count(self, family: Family, *values: str, by: float = 1) -> None:
        """Increase a counter."""
        counter = self._counters.get((family, *values))
        if counter is None:
            counter = self._counters[family, *values] = self._store.counter(family, *self.labels, *values)
        counter.inc(by)

    def set(self, family: Family, value: float, *values: str) -> None:
        """Set a gauge."""
        self._store.gauge(family, *self.labels, *values).set(value)

    def choose(self, family: Family, chosen: str) -> None:
        """Set a gauge with a series for each value of a label: 1 for `chosen`, 0 for the others."""
        (values,) = family.values.values()
        for value in values:
            self.set(family, value == chosen, value)

    def took(self, family: Family, seconds: float, *values: str, exemplar: Exemplar | None = None) -> None:
        """Add a duration to a histogram. A negative one counts as 0; if of an indicator, it is also counted apart: a clock is wrong."""
        if seconds < 0.0:
            seconds = 0.0
            if family.indicator is not None:
                self._store.counter(families.NEGATIVE_DURATIONS, *self.labels[: len(TARGET)], family.indicator).inc()
        # In whole microseconds, like objectives: rounding of floats must not move a duration out of a threshold's bucket.
        histogram = self._histograms.get((family, *values))
        if histogram is None:
            histogram = self._histograms[family, *values] = self._store.histogram(family, *self.labels, *values)
        histogram.observe(whole_micros(seconds) / MICROS, dict(exemplar) if exemplar else None)

    def remove(self, family: Family) -> None:
        """Remove a gauge whose labels are the scope only."""
        self._store.remove(family, *self.labels)

    def forget(self) -> None:
        """Remove every series of the subject."""
        self._store.forget(**dict(zip(self._scope, self.labels, strict=True)))


# --- text for scrapes --------------------------------------------------------------------------------------------------------


def content_type_for(accept: str) -> str:
    """Return a content type for an Accept header: OpenMetrics or version 1 of the text format, the first of them; else plain text.

    The order counts, not the quality, as in every exporter in Python: Prometheus lists its preferred format first.
    """
    try:
        return choose_encoder(accept)[1]
    except TypeError:  # the header requests a version that is not a number
        return choose_encoder("")[1]


def render(registry: Collector, content_type: str) -> bytes:
    """Return the body in this content type. Takes milliseconds per subscription. Safe in any thread while metrics are counted."""
    encode, _ = choose_encoder(content_type)
    return encode(registry)
