"""The metrics: `Metrics` is the door, the other names are what its methods take."""

from prober.sinks.metrics.drills import DrillMetrics
from prober.sinks.metrics.families import Component, Job, Outstanding, Result, Skip
from prober.sinks.metrics.health import Health
from prober.sinks.metrics.service import Metrics, Scrapes, Snapshot
from prober.sinks.metrics.store import Exemplar, exemplar_of
from prober.sinks.metrics.targets import SubscriptionMetrics, TargetMetrics, TopicMetrics

__all__ = [
    "Component",
    "DrillMetrics",
    "Exemplar",
    "Health",
    "Job",
    "Metrics",
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
