"""The panels about a histogram of durations, the same for every kind of duration."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.limits import Limits
from dashboards.panels import SECONDS, SHARE, Look, Panel, Words, buckets, graph
from dashboards.promql import BY, Query, increase, quantile, select, slower_share, total
from prober.sinks.metrics.families import Family
from prober.slo.indicators import Indicator


@dataclass(frozen=True, slots=True)
class Durations:
    """What is known of a kind of duration: its histogram, its name in titles, what it counts, and the alerts about it."""

    name: str
    family: Family
    indicator: Indicator
    meaning: str
    runbooks: tuple[str, ...] = ()


def quantiles(durations: Durations, limits: Limits, width: int) -> Panel:
    """Median, 95 % and 99 %, with single runs as dots."""
    words = Words(
        f"{durations.name}: quantiles",
        f"{durations.meaning} Estimated from buckets{_line(durations, limits)}. Dots are single messages or calls: "
        "they name the run and, if traces are collected, lead to its trace.",
        _runbooks(durations, limits),
    )
    asked = [
        Query(quantile(at, durations.family), name, exemplars=at == 0.99)
        for at, name in ((0.5, "50 %"), (0.95, "95 %"), (0.99, "99 %"))
    ]
    return graph(words, Look(SECONDS, limits.duration(durations.indicator), width=width), *asked)


def distribution(durations: Durations, limits: Limits, width: int) -> Panel:
    """The heatmap."""
    words = Words(
        f"{durations.name}: distribution",
        f"{durations.meaning} How many fell into each bucket. Two bands mean that two different things happen.",
        _runbooks(durations, limits),
    )
    asked = Query(total(increase(select(durations.family, "_bucket")), "le"), "{{le}}", exemplars=True)
    return buckets(words, Look(SECONDS, width=width), asked)


def broken_down(durations: Durations, limits: Limits, width: int) -> Panel:
    """99 % by whatever is chosen."""
    words = Words(
        f"{durations.name}: 99 % by choice",
        f"{durations.meaning} The 99 % quantile, broken down by what is chosen above.",
        _runbooks(durations, limits),
    )
    return graph(
        words, Look(SECONDS, limits.duration(durations.indicator), width=width), Query(quantile(0.99, durations.family, BY))
    )


def too_slow(durations: Durations, limits: Limits) -> tuple[Panel, ...]:
    """The share that took longer than the objective allows, by whatever is chosen; nothing without an objective."""
    threshold_s = limits.threshold_s(durations.indicator)
    if threshold_s is None:
        return ()
    words = Words(
        f"{durations.name}: share above {threshold_s:g} s",
        f"{durations.meaning} The share that took longer than the objective's threshold, exact, broken down by what is chosen above. "
        "Above the dashed line the error budget burns faster than it lasts.",
        durations.runbooks,
    )
    look = Look(SHARE, limits.bad_share(durations.indicator))
    return (graph(words, look, Query(slower_share(durations.family, threshold_s, BY))),)


def everything(durations: Durations, limits: Limits) -> tuple[Panel, ...]:
    """All of the above: two lines of two, or without an objective one of three."""
    slow = too_slow(durations, limits)
    width = 12 if slow else 8
    return (
        quantiles(durations, limits, width),
        distribution(durations, limits, width),
        broken_down(durations, limits, width),
        *slow,
    )


def _line(durations: Durations, limits: Limits) -> str:
    return "" if limits.threshold_s(durations.indicator) is None else "; the dashed line is the objective's threshold"


def _runbooks(durations: Durations, limits: Limits) -> tuple[str, ...]:
    """Those about the objective, if there is one."""
    return () if limits.threshold_s(durations.indicator) is None else durations.runbooks
