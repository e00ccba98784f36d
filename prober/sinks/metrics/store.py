"""The values of the metrics, in a registry of their own with one prometheus metric per family; and their text for a scrape."""

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
    """The bucket bounds of a histogram in seconds, ascending: the threshold of every objective about it is one of them."""
    thresholds = [one.threshold_s for one in objectives if one.indicator is family.indicator and one.threshold_s is not None]
    return tuple(bucket_bounds(family.bounds, thresholds))


Exemplar = Mapping[str, str]


def exemplar_of(run_id: str) -> Exemplar:
    """What to attach to the durations of a run, so that a slow one can be looked up. Make it once per run.

    Too long for an exemplar, it is left out: a run's durations matter more than its name.
    """
    exemplar = {"run_id": run_id, "trace_id": trace_id_of(run_id)}
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
        declared = tuple(objectives)
        for family in FAMILIES:
            if not family.scraped:
                self._add(family, declared)

    def counter(self, family: Family, *labels: str) -> Counter:
        """The counter with these label values, made with value 0 if it was not there."""
        return self._counters[family].labels(*labels) if labels else self._counters[family]

    def gauge(self, family: Family, *labels: str) -> Gauge:
        """The gauge with these label values."""
        return self._gauges[family].labels(*labels) if labels else self._gauges[family]

    def remove(self, family: Family, *labels: str) -> None:
        """Removes the gauge with these label values, if it is there."""
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


class Series:
    """The series of one thing, such as a target or a subscription: `labels` are its name.

    What may happen to it has series from the start, with the values of the declarations. May be used in any thread; nothing blocks.
    KeyError for a family of another type. `values` are those of the labels that a family has beside its scope.
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
        """Makes every series of a family, with its first value."""
        for values in product(*family.values.values()):
            if family.kind is MetricType.COUNTER:
                self.count(family, *values, by=0)
            elif family.kind is MetricType.HISTOGRAM:
                self._store.histogram(family, *self.labels, *values)
            else:
                gauge = self._store.gauge(family, *self.labels, *values)
                if family.start:  # all others are 0 when they are made, and keep their values
                    gauge.set(family.start)

    def count(self, family: Family, *values: str, by: float = 1) -> None:
        """Counts."""
        counter = self._counters.get((family, *values))
        if counter is None:
            counter = self._counters[family, *values] = self._store.counter(family, *self.labels, *values)
        counter.inc(by)

    def set(self, family: Family, value: float, *values: str) -> None:
        """Sets a gauge."""
        self._store.gauge(family, *self.labels, *values).set(value)

    def choose(self, family: Family, chosen: str) -> None:
        """Sets a gauge that has a series for each value of a label: 1 for this one, 0 for the others."""
        (values,) = family.values.values()
        for value in values:
            self.set(family, value == chosen, value)

    def took(self, family: Family, seconds: float, *values: str, exemplar: Exemplar | None = None) -> None:
        """Adds a duration to a histogram. A negative one counts as 0, and of a service is counted apart: a clock of ours is wrong."""
        if seconds < 0.0:
            seconds = 0.0
            if family.indicator is not None:
                self._store.counter(families.NEGATIVE_DURATIONS, *self.labels[: len(TARGET)], family.indicator).inc()
        # As objectives are evaluated: what is not longer than a threshold is in its bucket, whatever floats make of it.
        histogram = self._histograms.get((family, *values))
        if histogram is None:
            histogram = self._histograms[family, *values] = self._store.histogram(family, *self.labels, *values)
        histogram.observe(whole_micros(seconds) / MICROS, dict(exemplar) if exemplar else None)

    def remove(self, family: Family) -> None:
        """Ends a gauge that has no labels beside the scope."""
        self._store.remove(family, *self.labels)

    def forget(self) -> None:
        """Ends every series about it."""
        self._store.forget(**dict(zip(self._scope, self.labels, strict=True)))


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
