"""The top keys of observed streams as gauges, by rank: no series carries a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import nan
from typing import Final, TypeAlias

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from prober.monitoring.top_keys import StreamKeys
from prober.sinks.metrics.store import TOP_KEY_FAMILIES, gauge_of

RANKS: Final = 5
"""Ranks that have series."""

KeysSource: TypeAlias = Callable[[], Sequence[StreamKeys]]
"""The streams that are observed; called for each scrape, on the event loop."""


class TopKeysCollector(Collector):
    """Computes the gauges. `look` is for the event loop, `collect` for any thread."""

    def __init__(self, failed: Callable[[], None]) -> None:
        """`failed` is called if the top keys cannot be computed."""
        self._failed: Final = failed
        self._source: KeysSource = tuple
        self._seen: tuple[GaugeMetricFamily, ...] = tuple(self.describe())  # replaced as a whole, never changed

    def watch(self, source: KeysSource) -> None:
        """Asks a source with each `look` from now on."""
        self._source = source

    def describe(self) -> list[GaugeMetricFamily]:
        """The families, without asking anybody."""
        return [gauge_of(family) for family in TOP_KEY_FAMILIES]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges as they were at the last `look`."""
        return iter(self._seen)

    def look(self) -> None:
        """Computes the gauges. Where that fails there are none, and the failure is counted."""
        gauges = self.describe()
        try:
            streams = self._source()
        except Exception:
            self._failed()
            streams = ()
        for stream in streams:
            for rank in range(1, RANKS + 1):
                labels = (stream.target, stream.environment, stream.region, stream.subscription, str(rank))
                for gauge, value in zip(gauges, _values(stream, rank), strict=True):
                    gauge.add_metric(labels, value)
        self._seen = tuple(gauges)


def _values(stream: StreamKeys, rank: int) -> tuple[float, float, float]:
    """Bytes per second, share and age; without so many keys there is no load on that rank."""
    known = [(one.minute, one.age_s) for one in stream.top if one.minute is not None]
    if not known:
        return nan, nan, nan
    if rank > len(known):
        return 0.0, 0.0, nan
    load, age_s = known[rank - 1]
    return load.bytes_per_s.low, load.share.low, nan if age_s is None else age_s
