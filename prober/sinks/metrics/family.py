"""The declaration of a metric family: name, type, labels and help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PREFIX: Final = "pubsub_prober"


class MetricType(StrEnum):
    """The metric types of Prometheus that are in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `name` is without the prefix, and without the `_total` or `_info` that its kind adds."""

    name: str
    kind: MetricType
    labels: tuple[str, ...]
    help: str

    @property
    def full_name(self) -> str:
        """The name as it is scraped; of a histogram without `_bucket`, `_sum` and `_count`."""
        suffix = {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}.get(self.kind, "")
        return f"{PREFIX}_{self.name}{suffix}"
