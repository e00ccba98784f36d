"""The buckets of the histograms: where a duration may be told apart from a longer one."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from prober.sinks.metrics import families
from prober.sinks.metrics.families import Family
from prober.slo.objectives import Objective, bucket_bounds

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


def bounds_of(family: Family, objectives: Iterable[Objective]) -> tuple[float, ...]:
    """The bucket bounds of a histogram in seconds, ascending: the threshold of every objective about it is one of them."""
    thresholds = [
        one.threshold_s for one in objectives if families.LATENCIES.get(one.indicator) == family and one.threshold_s is not None
    ]
    return tuple(bucket_bounds(_DEFAULT_BOUNDS[family], thresholds))
