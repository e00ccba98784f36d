"""PromQL text, made from the metric families: a metric or label that does not exist cannot be written down.

Every selector of a family is narrowed by the dashboard's variables: by each label of the family that has a variable, by the vantage, which
is also the end of the names of topics and subscriptions, and by the scrape's own labels `job` and `instance` (a task).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from prober.brokers.base import Vantage
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family, MetricType

RATE_WINDOW: Final = "$__rate_interval"
RANGE: Final = "$__range"
NARROWED: Final = ("environment", "region", "target", "topic", "subscription", "probe")
ENDS_WITH_VANTAGE: Final = ("topic", "subscription", "vantage")
SCRAPE_LABELS: Final = ("job", "instance")
BY: Final = "${by:csv}"

# What Prometheus says about its scrapes, by itself.
UP: Final = "up"
SCRAPE_DURATION: Final = "scrape_duration_seconds"
SCRAPE_SAMPLES: Final = "scrape_samples_scraped"

# And about alerts.
ALERTS: Final = "ALERTS"
FIRING_SINCE: Final = "ALERTS_FOR_STATE"


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel. `legend` names its series; empty lets Grafana show the labels that differ.

    instant    one value at the end of the time range.
    exemplars  whether single measurements, with their run and trace, are shown too.
    """

    expr: str
    legend: str = ""
    instant: bool = False
    exemplars: bool = False


def select(family: Family, suffix: str = "", /, **labels: object) -> str:
    """The series of a family that the variables let through, of these label values; of a tuple of values, any of them.

    Raises ValueError for a label that the family does not have, or that Prometheus replaces when it scrapes.
    """
    known = {*family.labels, *(("le",) if suffix == "_bucket" else ())} - {*SCRAPE_LABELS}
    if unknown := set(labels) - known:
        raise ValueError(f"{family.full_name} has no label {', '.join(sorted(unknown))}")
    if bool(suffix) != (family.kind is MetricType.HISTOGRAM):
        raise ValueError(f"{family.full_name} is a {family.kind}: suffix {suffix!r}")
    variables = [f'{label}=~"${label}"' for label in family.labels if label in NARROWED and label not in labels]
    vantages = [f'{label}=~".*$vantage"' for label in family.labels if label in ENDS_WITH_VANTAGE]
    return f"{family.full_name}{suffix}{{{','.join([*_scrape(), *variables, *vantages, *map(_matcher, labels, labels.values())])}}}"


def scraped(metric: str) -> str:
    """A series that Prometheus makes of each scrape of a prober: of those jobs only that had probers in the time range, also dead ones."""
    return f"({metric}{{{','.join(_scrape())}}} and on (job) last_over_time({select(families.BUILD)}[{RANGE}]))"


def recorded_series(name: str) -> str:
    """A series that the recording rules of `alerts/` make for each objective and target; the names are those of `prober.alerting`.

    It has the job only where the Helm chart limited the rules to a release.
    """
    matchers = [*(f'{label}=~"${label}"' for label in ("environment", "region", "target")), 'job=~"$job|"']
    return f"{name}{{{','.join(matchers)}}}"


def firing(metric: str, **labels: str) -> str:
    """A series that Prometheus makes of each of our alerts. Those about the prober itself have no target, and are always shown."""
    ours = ['alertname=~"Pubsub.+"', 'severity!="none"', 'job=~"($job)(-api)?|"']
    narrowed = (f'{label}=~"${label}|"' for label in ("environment", "region", "target"))
    return f"{metric}{{{','.join([*ours, *narrowed, *map(_matcher, labels, labels.values())])}}}"


def rate(selector: str) -> str:
    """Per second, over a window that fits the resolution."""
    return f"rate({selector}[{RATE_WINDOW}])"


def increase(selector: str, window: str = RATE_WINDOW) -> str:
    """How much a counter grew."""
    return f"increase({selector}[{window}])"


def total(expr: str, by: str = "", how: str = "sum") -> str:
    """Added up, or aggregated otherwise, for each combination of these labels."""
    return f"{how} by ({by}) ({expr})" if by else f"{how}({expr})"


def ratio(part: str, whole: str) -> str:
    """Part of a whole; nothing where the whole is nothing, since a share of nothing is not known."""
    return f"{part} / ({whole} > 0)"


def quantile(at: float, histogram: Family, by: str = "") -> str:
    """A quantile of the durations, estimated from the buckets."""
    buckets = rate(select(histogram, "_bucket"))
    return f"histogram_quantile({at:g}, {total(buckets, ', '.join(['le', *([by] if by else [])]))})"


def slower_share(histogram: Family, threshold_s: float, by: str = "") -> str:
    """The share of durations above a threshold, which must be a bound of the histogram. Exact, not estimated."""
    fast = total(rate(select(histogram, "_bucket", le=_bound(threshold_s))), by)
    whole = total(rate(select(histogram, "_count")), by)
    return f"1 - {ratio(fast, whole)}"


def vantage_of(expr: str) -> str:
    """With the vantage as a label: it is the end of a subscription's name."""
    return f'label_replace({expr}, "vantage", "$1", "subscription", ".*-({"|".join(Vantage)})")'


def _scrape() -> Iterable[str]:
    return (f'{label}=~"${label}"' for label in SCRAPE_LABELS)


def _matcher(label: str, value: object) -> str:
    return f'{label}=~"{"|".join(map(str, value))}"' if isinstance(value, tuple) else f'{label}="{value}"'


def _bound(threshold_s: float) -> tuple[str, ...]:
    """A bucket's bound as exporters write it: 1 or 1.0. Prometheus 3 always has the second."""
    return (f"{threshold_s:g}", f"{threshold_s:.1f}") if threshold_s.is_integer() else (f"{threshold_s:g}",)
