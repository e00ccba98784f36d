"""Metrics of the prober: `Metrics` is the entry point, `families` declares them, the other names are types of its methods."""

from prober.sinks.metrics.health import DrillMetrics, ProberHealth
from prober.sinks.metrics.label_values import CheckResult, Component, Job, Outstanding, SkipReason
from prober.sinks.metrics.service import BacklogSource, Metrics, Scrapes
from prober.sinks.metrics.store import Exemplar, Series, exemplar_of
from prober.sinks.metrics.targets import SubscriptionMetrics, TargetMetrics

__all__ = [
    "BacklogSource",
    "CheckResult",
    "Component",
    "DrillMetrics",
    "Exemplar",
    "Job",
    "Metrics",
    "Outstanding",
    "ProberHealth",
    "Scrapes",
    "Series",
    "SkipReason",
    "SubscriptionMetrics",
    "TargetMetrics",
    "exemplar_of",
]
