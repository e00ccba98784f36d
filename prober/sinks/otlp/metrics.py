"""The metrics of /metrics as OpenTelemetry data, exported every interval.

Names and labels are those of a scrape. Units are empty, so that no receiver adds them to names. Counters are monotonic cumulative sums
since the start of the prober. Histograms keep their bounds. All other families, such as `_info`, are gauges. Exemplars name the root span
of their run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import SERVICE_VERSION, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric
from prometheus_client.samples import Sample

from prober.clock import wall_s
from prober.logs import span_context_of
from prober.sinks.metrics import Component, Metrics
from prober.sinks.metrics.label_values import Signal
from prober.sinks.otlp.exporters import Exports, export_interval_s, exports_of

LAST_EXPORT_MAX_S: Final = 5.0
"""Time limit of the last export, at the end of the prober."""

_log = logging.getLogger(__name__)


def metrics_export(resource: Resource, metrics: Metrics) -> MetricsExport:
    """Return the export that the environment configures (`prober.sinks.otlp.exporters`). Raises ConfigError for a wrong value."""
    return MetricsExport(exports_of(Signal.METRICS, metrics.health), metrics, resource, export_interval_s())


class MetricsExport:
    """Context in which metrics are exported every interval, and a last time at its exit. Without `exports` it does nothing.

    Belongs to one event loop, on which the metrics are counted.
    """

    def __init__(self, exports: Exports | None, metrics: Metrics, resource: Resource, interval_s: float) -> None:
        self._exports, self._metrics, self._resource, self._interval_s = exports, metrics, resource, interval_s
        self._started_at = wall_s()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metrics export")

    async def __aenter__(self) -> Self:
        if self._exports is not None:
            self._exporting = asyncio.create_task(self._keep_on(), name="metrics export")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._exports is None:
            return
        self._exporting.cancel()
        self._exports.hurry()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._export(), LAST_EXPORT_MAX_S)
        await asyncio.to_thread(self._exports.close)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _keep_on(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self._export()
            except Exception:
                self._metrics.health.internal_error(Component.METRICS)
                _log.exception("internal error: metrics could not be exported")

    async def _export(self) -> None:
        self._metrics.look()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._send)

    def _send(self) -> None:
        assert self._exports is not None
        self._exports.export(metrics_data(self._metrics.collect(), self._resource, self._started_at, wall_s()))


def metrics_data(families: Iterable[Metric], resource: Resource, started_at: float, now: float) -> sdk.MetricsData:
    """Return families as OpenTelemetry data. `started_at` of all series and `now` of the values are seconds since 1970."""
    times = _Times(round(started_at * 1e9), round(now * 1e9))
    scope = InstrumentationScope("prober", str(resource.attributes[SERVICE_VERSION]))
    metrics = [metric for family in families for metric in _metrics_of(family, times)]
    return sdk.MetricsData([sdk.ResourceMetrics(resource, [sdk.ScopeMetrics(scope, metrics, "")], "")])


@dataclass(frozen=True, slots=True)
class _Times:
    started_ns: int
    now_ns: int


def _metrics_of(family: Metric, times: _Times) -> Iterator[sdk.Metric]:
    cumulative = sdk.AggregationTemporality.CUMULATIVE
    if not family.samples:
        return
    if family.type == "histogram":
        points = [series.point(times) for series in _histograms(family.samples)]
        yield sdk.Metric(family.name, family.documentation, "", sdk.Histogram(points, cumulative))
        return
    by_name: dict[str, list[sdk.NumberDataPoint]] = {}
    for sample in family.samples:
        point = sdk.NumberDataPoint(sample.labels, times.started_ns, times.now_ns, float(sample.value))
        by_name.setdefault(sample.name, []).append(point)
    for name, values in by_name.items():
        is_counter = family.type == "counter"
        data = sdk.Sum(values, cumulative, is_monotonic=True) if is_counter else sdk.Gauge(values)
        yield sdk.Metric(name, family.documentation, "", data)


@dataclass(slots=True)
class _HistogramSeries:
    """One series of a histogram, with the cumulative buckets of a scrape."""

    labels: Mapping[str, str]
    bounds: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    exemplars: list[Exemplar] = field(default_factory=list)
    total: float = 0.0

    def add(self, sample: Sample) -> None:
        if sample.name.endswith("_bucket"):
            self.bounds.append(float(sample.labels["le"]))
            self.counts.append(int(sample.value))
            if sample.exemplar is not None:
                self.exemplars.append(
                    _exemplar(sample.exemplar.labels, sample.exemplar.value, float(sample.exemplar.timestamp or 0.0))
                )
        elif sample.name.endswith("_sum"):
            self.total = sample.value

    def point(self, times: _Times) -> sdk.HistogramDataPoint:
        """Return the series with separate buckets; the bound of the last bucket, infinity, is implied."""
        own = [count - below for below, count in zip([0, *self.counts], self.counts, strict=False)]
        return sdk.HistogramDataPoint(
            self.labels,
            times.started_ns,
            times.now_ns,
            count=self.counts[-1],
            sum=self.total,
            bucket_counts=own,
            explicit_bounds=self.bounds[:-1],
            min=None,  # type: ignore[arg-type]  # optional in the protocol, and unknown
            max=None,  # type: ignore[arg-type]
            exemplars=self.exemplars,
        )


def _histograms(samples: Iterable[Sample]) -> Iterable[_HistogramSeries]:
    found: dict[tuple[tuple[str, str], ...], _HistogramSeries] = {}
    for sample in samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        found.setdefault(tuple(labels.items()), _HistogramSeries(labels)).add(sample)
    return found.values()


def _exemplar(labels: Mapping[str, str], value: float, at: float) -> Exemplar:
    run_id = labels["run_id"]
    context = span_context_of(run_id)
    return Exemplar({"run_id": run_id}, value, round(at * 1e9), context.span_id, context.trace_id)
