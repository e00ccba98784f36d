"""PromQL from the metric families, for rules and dashboards: it cannot name a metric or a label that does not exist.

Every function returns a part of an expression. Layout is part of the result: an operator between several operands is on a separate line.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Final, TypeAlias

from prober.durations import write_duration
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family, MetricType
from prober.sinks.metrics.scopes import PROBE_INSTANCE, TARGET

Matcher: TypeAlias = str | Iterable[str]
"""One value, or several alternatives."""
Labels: TypeAlias = str | Iterable[str]
"""Names of labels, or a list of them as PromQL writes it."""

PROCESS: Final = ("job", "instance")
"""The labels that Prometheus itself adds: they identify a process."""
RUN_BY: Final = (*PROCESS, *PROBE_INSTANCE)
"""The labels of a probe instance and of its prober. Sums over fewer labels hide a failing prober, vantage or part."""
KNOWN_FOR: Final = "1h"
"""A series that was scraped within this time before is not new."""


def series(family: Family, suffix: str = "", /, *narrowed: str, **matchers: Matcher) -> str:
    """Return a selector of a family. `suffix` is a histogram's `_bucket` or `_count`.

    Raises ValueError for a label that the family does not have, or that Prometheus replaces at the scrape.
    """
    if (family.kind is MetricType.HISTOGRAM) != bool(suffix):
        raise ValueError(f"{family.full_name} is {'a' if family.kind is MetricType.HISTOGRAM else 'no'} histogram")
    labels = {*family.labels, *(("le",) if suffix == "_bucket" else ())}.difference(PROCESS)
    return selector(f"{family.full_name}{suffix}", labels, *narrowed, **matchers)


def selector(name: str, labels: Iterable[str], /, *narrowed: str, **matchers: Matcher) -> str:
    """Return a selector of any series with these `labels`; `narrowed`: matchers that are already formatted.

    Raises ValueError for a matcher of another label.
    """
    names = {label.rstrip("_"): matcher for label, matcher in matchers.items()}  # `class_` for a reserved word of Python
    if unknown := names.keys() - set(labels):
        raise ValueError(f"{name} has no label {', '.join(sorted(unknown))}")
    written = ",".join([*narrowed, *(_matcher(label, matcher) for label, matcher in names.items())])
    return f"{name}{{{written}}}" if written else name


def _matcher(label: str, matcher: Matcher) -> str:
    if isinstance(matcher, str):
        return f'{label}="{matcher}"'
    values = sorted(matcher)
    return f'{label}="{values[0]}"' if len(values) == 1 else f'{label}=~"{"|".join(values)}"'


def bound(threshold_s: float) -> set[str]:
    """Return the bound of a histogram's bucket, as exporters write it: `1.0` or, by some, `1`."""
    return {repr(float(threshold_s)), prom_number(threshold_s)}


def aggregate(expression: str, by: Labels = (), how: str = "sum") -> str:
    """Aggregate series for each combination of these labels, by a sum by default; without labels, all of them."""
    labels = by if isinstance(by, str) else ", ".join(by)
    return f"{how} by ({labels}) ({expression})" if labels else f"{how}({expression})"


def on(labels: Iterable[str]) -> str:
    """Return the clause after an operator that matches series by these labels alone; by none, each matches any."""
    return f"on ({', '.join(labels)})"


def increase(selected: str, window: str) -> str:
    """Return the growth of each counter within a window."""
    return f"increase({selected}[{window}])"


def rate(selected: str, window: str) -> str:
    """Return the growth of each counter per second within a window."""
    return f"rate({selected}[{window}])"


def ratio(part: str, whole: str) -> str:
    """Return a part of a whole; no value if the whole is 0, since that share is unknown."""
    return f"{part} / ({whole} > 0)"


def binary(operator: str, *operands: str) -> str:
    """Join operands with an operator, which is on a separate line."""
    return f"\n{operator}\n".join(operands)


def bracketed(expression: str) -> str:
    """Return an expression of several lines in parentheses."""
    return "(\n" + "\n".join(f"  {line}" for line in expression.splitlines()) + "\n)"


def prom_duration(seconds: float) -> str:
    """Format a duration like Prometheus: `5m`, `3d`."""
    return write_duration(timedelta(seconds=seconds))


def prom_number(value: float) -> str:
    """Format a whole number exactly, any other with at most six digits, without the noise of binary fractions."""
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"


def percent(share: float) -> str:
    """Format a share as it was written: `99.95 %`."""
    return f"{(Decimal(repr(share)) * 100).normalize():f} %"


def news(labels: Iterable[str], selected: str, window_s: float) -> str:
    """Return the increase of counters within the last `window_s` seconds: above 0 after any event, however it was observed.

    `increase` alone compares scrapes only. It misses the counts of a process before its first scrape, a counter that returns to its
    former value after a restart, and events while Prometheus did not scrape. So:

    * a new series counts as a whole,
    * so does a series of a process that restarted within the window,
    * otherwise the result of `increase` counts, resets included,
    * otherwise the difference to the last value older than the window, as after a gap between scrapes,
    * otherwise 0.
    """
    window = prom_duration(window_s)
    earlier = f"last_over_time({selected}[{KNOWN_FOR}] offset {window})"
    parts = (
        f"({selected} unless {earlier})",
        f"({selected} and {on(PROCESS)} {restarted(window_s)})",
        f"({increase(selected, window)} > 0)",
        f"({selected} - {earlier} > 0)",
        f"{selected} * 0",
    )
    return f"sum by ({', '.join(labels)}) {bracketed(binary('or', *parts))}"


def restarted(window_s: float) -> str:
    """Return the processes whose start timestamp was different, or absent, `window_s` seconds ago.

    The timestamp is never compared with Prometheus's clock, so a prober with a wrong clock is no exception.
    """
    start = series(families.START)
    return f"({start} unless {start} == last_over_time({start}[{KNOWN_FOR}] offset {prom_duration(window_s)}))"


def outside_maintenance(selected: str, window_s: float = 0.0) -> str:
    """Return the series of probers whose target is not under maintenance, now or within the last `window_s` seconds.

    For series with the labels of a process, before they are aggregated: the maintenance of one prober hides no series of another.
    """
    under = series(families.UNDER_MAINTENANCE)
    during = f"max_over_time({under}[{prom_duration(window_s)}])" if window_s else under
    return f"{selected} unless {on((*PROCESS, *TARGET))} {during} == 1"
