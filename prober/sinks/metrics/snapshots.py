"""Gauges that are computed for each scrape: pending messages by subscription, and the top keys of observed streams by rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Final, TypeAlias

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from prober.monitoring.top_keys import StreamKeys
from prober.runs.backlog import Backlog
from prober.sinks.metrics import families
from prober.sinks.metrics.family import PREFIX, Family
from prober.sinks.metrics.targets import OTHER, TargetMetrics
from prober.slo.indicators import Indicator

RANKS: Final = 5
"""Ranks of top keys that have series: no series carries a key."""

BacklogSource: TypeAlias = Callable[[], Mapping[str, Backlog]]
"""Pending messages by subscription. Called for each scrape, on the event loop: it must be quick, and need no answer of the service."""
KeysSource: TypeAlias = Callable[[], Sequence[StreamKeys]]
"""The streams that are observed; called like a `BacklogSource`."""
Values: TypeAlias = Iterable[tuple[Family, tuple[str, ...], float]]
"""Family, label values, value."""


class SnapshotCollector(Collector):
    """Computes the gauges. `look` is for the event loop, `collect` for any thread."""

    def __init__(self, failed: Callable[[], None]) -> None:
        """`failed` is called if some of them cannot be computed."""
        self._failed: Final = failed
        self._sources: Final[dict[object, Callable[[], Values]]] = {}
        self._seen: tuple[GaugeMetricFamily, ...] = tuple(self.describe())  # replaced as a whole, never changed

    def watch(self, owner: object, source: Callable[[], Values]) -> None:
        """Asks a source with each `look` from now on, instead of the one that its owner had before."""
        self._sources[owner] = source

    def forget(self, owner: object) -> None:
        """Asks the source of an owner no more."""
        self._sources.pop(owner, None)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The families, without asking any source."""
        return _empty().values()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges as they were at the last `look`."""
        return iter(self._seen)

    def look(self) -> None:
        """Asks all sources. The series of one that fails are absent, since 0 would say that all is well, and the failure is counted."""
        gauges = _empty()
        for source in tuple(self._sources.values()):
            try:
                found = list(source())
            except Exception:
                self._failed()
                continue
            for family, labels, value in found:
                gauges[family].add_metric(labels, value)
        self._seen = tuple(gauges.values())


def _empty() -> dict[Family, GaugeMetricFamily]:
    return {
        family: GaugeMetricFamily(f"{PREFIX}_{family.name}", family.help, labels=family.labels)
        for family in families.FAMILIES
        if family.scraped
    }


def backlog_values(target: TargetMetrics, source: BacklogSource) -> Values:
    """The pending messages of every subscription of a target that has series: nothing where the source has none."""
    known: dict[str, Backlog] = {}
    for subscription, backlog in source().items():
        target.subscription(subscription)
        name = subscription if subscription in target.subscriptions else OTHER
        known[name] = known[name].joined(backlog) if name in known else backlog
    for subscription, backlog in (dict.fromkeys(target.subscriptions, Backlog()) | known).items():
        labels = (*target.labels, subscription)
        if backlog.oldest_unacked_age_s < 0.0:
            target.count(families.NEGATIVE_DURATIONS, Indicator.OLDEST_UNACKED_MESSAGE_AGE)
        yield families.OLDEST_UNACKED_AGE, labels, max(0.0, backlog.oldest_unacked_age_s)
        yield families.UNDELIVERED, labels, backlog.undelivered
        yield families.STALLED_KEYS, labels, backlog.stalled_keys


def top_key_values(source: KeysSource) -> Values:
    """The values of every rank of each stream, at least; without so many keys there is no load on a rank."""
    for stream in source():
        known = [(one.minute, one.age_s) for one in stream.top if one.minute is not None]
        for rank in range(1, RANKS + 1):
            load, share, age_s = (0.0, 0.0, None) if known else (nan, nan, None)
            if rank <= len(known):
                minute, age_s = known[rank - 1]
                load, share = minute.bytes_per_s.low, minute.share.low
            labels = (stream.target, stream.environment, stream.region, stream.subscription, str(rank))
            yield families.TOP_KEY_BYTES, labels, load
            yield families.TOP_KEY_SHARE, labels, share
            yield families.TOP_KEY_AGE, labels, nan if age_s is None else age_s
