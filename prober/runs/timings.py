"""How long things took in a run, remembered for its quantiles."""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import Final

from prober.runs.classification import Latency
from prober.runs.result import Durations
from prober.slo.indicators import DISTURBED, Indicator

DURATIONS_KEPT_MAX: Final = 100_000
"""Durations remembered per run and indicator; those that come later are only counted in the metrics."""


class Timings:
    """What one run took, by indicator."""

    def __init__(self) -> None:
        self._taken: defaultdict[Indicator, array[float]] = defaultdict(lambda: array("d"))

    def took(self, latency: Latency) -> None:
        """Something took so long, or is so old."""
        taken = self._taken[latency.indicator]
        if len(taken) < DURATIONS_KEPT_MAX:
            taken.append(latency.seconds)

    def durations(self, probe: str) -> dict[Indicator, Durations]:
        """How long things took so far, without what the probe disturbs itself (`slo.indicators.DISTURBED`)."""
        return {
            indicator: Durations.of(taken)
            for indicator, taken in self._taken.items()
            if probe not in DISTURBED.get(indicator, frozenset())
        }
