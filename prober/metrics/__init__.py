"""The metrics: `Metrics` is the door, the other names are what its methods take."""

from prober.metrics.backlog import Backlog, Snapshot
from prober.metrics.drills import DrillMetrics
from prober.metrics.health import Health
from prober.metrics.labels import (
    Check,
    Component,
    DeliveryKind,
    Job,
    Operation,
    Outstanding,
    Result,
    Skip,
)
from prober.metrics.scrapes import Scrapes
from prober.metrics.service import Metrics
from prober.metrics.store import Exemplar, exemplar_of
from prober.metrics.targets import SubscriptionMetrics, TargetMetrics, TopicMetrics

__all__ = [
    "Backlog",
    "Check",
    "Component",
    "DeliveryKind",
    "DrillMetrics",
    "Exemplar",
    "Health",
    "Job",
    "Metrics",
    "Operation",
    "Outstanding",
    "Result",
    "Scrapes",
    "Skip",
    "Snapshot",
    "SubscriptionMetrics",
    "TargetMetrics",
    "TopicMetrics",
    "exemplar_of",
]
