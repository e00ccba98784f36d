"""Queries of panels, restricted by the variables of a dashboard.

Every selector of a family is restricted by each of its labels that has a variable, by the vantage, which is also the end of the names of
topics and subscriptions, and by the scrape's own labels `job` and `instance` (a task).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from prober.alerting import promql
from prober.alerting.objectives import BY as OF_OBJECTIVES
from prober.alerting.promql import PROCESS, Labels, Matcher, aggregate, bound, ratio, selector, series
from prober.brokers.base import Vantage
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from prober.sinks.metrics.scopes import TARGET

RATE_WINDOW: Final = "$__rate_interval"
RANGE: Final = "$__range"
NARROWED: Final = ("environment", "region", "target", "topic", "subscription", "probe")
ENDS_WITH_VANTAGE: Final = ("topic", "subscription", "vantage")
BY: Final = "${by:csv}"

# Series that Prometheus adds for its scrapes.
UP: Final = "up"
SCRAPE_DURATION: Final = "scrape_duration_seconds"
SCRAPE_SAMPLES: Final = "scrape_samples_scraped"

# And about alerts.
ALERTS: Final = "ALERTS"
FIRING_SINCE: Final = "ALERTS_FOR_STATE"


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel. `legend` names its series; empty: Grafana shows the labels that differ.

    instant    one value at the end of the time range.
    exemplars  whether to show single measurements, with their run and trace, too.
    """

    expr: str
    legend: str = ""
    instant: bool = False
    exemplars: bool = False


_SCRAPE: Final = tuple(f'{label}=~"${label}"' for label in PROCESS)


def select(family: Family, suffix: str = "", /, **labels: Matcher) -> str:
    """Return the selector of a family with these label values and the variables. ValueError as of `promql.series`."""
    variables = (f'{label}=~"${label}"' for label in family.labels if label in NARROWED and label not in labels)
    vantages = (f'{label}=~".*$vantage"' for label in family.labels if label in ENDS_WITH_VANTAGE)
    return series(family, suffix, *_SCRAPE, *variables, *vantages, **labels)


def scraped(metric: str) -> str:
    """Return the selector of a series that Prometheus adds to each scrape of a prober.

    It contains only jobs that had probers in the time range, including dead ones.
    """
    return f"({selector(metric, PROCESS, *_SCRAPE)} and on (job) last_over_time({select(families.BUILD)}[{RANGE}]))"


def recorded_series(name: str) -> str:
    """Return the selector of a series that the recording rules of `alerts/` compute for each objective and target.

    It has the job only where the Helm chart limited the rules to a release.
    """
    narrowed = (f'{label}=~"${label}"' for label in ("environment", "region", "target"))
    return selector(name, OF_OBJECTIVES, *narrowed, 'job=~"$job|"')


def firing(metric: str, **labels: Matcher) -> str:
    """Return the selector of a series that Prometheus adds for each of our alerts.

    Alerts about the prober itself have no target, and are always shown.
    """
    ours = ('alertname=~"Pubsub.+"', 'severity!="none"', 'job=~"($job)(-api)?|"')
    narrowed = (f'{label}=~"${label}|"' for label in ("environment", "region", "target"))
    return selector(metric, (*TARGET, "alertstate"), *ours, *narrowed, **labels)


def rate(selected: str) -> str:
    """Return the rate per second, over a window that fits the resolution."""
    return promql.rate(selected, RATE_WINDOW)


def increase(selected: str, window: str = RATE_WINDOW) -> str:
    """Return the increase of a counter."""
    return promql.increase(selected, window)


def rate_of(family: Family, by: Labels = "", **labels: Matcher) -> str:
    """Return the summed rate per second of the counters of a family."""
    return aggregate(rate(select(family, **labels)), by)


def increase_of(family: Family, by: Labels = "", window: str = RATE_WINDOW, **labels: Matcher) -> str:
    """Return the summed increase of the counters of a family within a window."""
    return aggregate(increase(select(family, **labels), window), by)


def quantile(at: float, histogram: Family, by: str = "") -> str:
    """Return a quantile of the durations, estimated from the buckets."""
    buckets = rate(select(histogram, "_bucket"))
    return f"histogram_quantile({at:g}, {aggregate(buckets, ['le', *([by] if by else [])])})"


def slower_share(histogram: Family, threshold_s: float, by: str = "") -> str:
    """Return the share of durations above a threshold, which must be a bound of the histogram. Exact, not estimated."""
    fast = aggregate(rate(select(histogram, "_bucket", le=bound(threshold_s))), by)
    whole = aggregate(rate(select(histogram, "_count")), by)
    return f"1 - {ratio(fast, whole)}"


def vantage_of(expr: str) -> str:
    """Return a query with the vantage as a label, taken from the end of a subscription's name."""
    return f'label_replace({expr}, "vantage", "$1", "subscription", ".*-({"|".join(Vantage)})")'
