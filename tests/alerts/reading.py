"""What rules read: metrics with their labels, as expressions name them and as a scrape or a recording has them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import promql_parser

from prober.sinks.metrics.families import FAMILIES, MetricType
from tests.alerts.stories import RULES

FROM_PROMETHEUS = {
    "up": {"job", "instance"},
    "prometheus_rule_evaluation_failures_total": {"rule_group"},
    "ALERTS": {"alertname"},
    "process_cpu_seconds_total": {"job", "instance"},
}


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Every metric that an expression reads, with the labels that it matches."""
    found: list[Any] = [promql_parser.parse(expression)]
    while found:
        node = found.pop()
        if isinstance(node, promql_parser.VectorSelector):
            yield str(node.name), {matcher.name for matcher in node.matchers.matchers}
        for name in ("expr", "lhs", "rhs", "vector_selector", "args", "param"):
            child = getattr(node, name, None)
            found += child if isinstance(child, list) else [child] if child is not None else []


@cache
def scraped() -> dict[str, set[str]]:
    """Every series of the prober by name, with its labels, and those that a scrape adds."""
    added = {"job", "instance", "exported_job"}
    known: dict[str, set[str]] = {}
    for family in FAMILIES:
        labels = {*family.labels, *added}
        if family.kind is MetricType.HISTOGRAM:
            known |= {f"{family.full_name}_bucket": {*labels, "le"}, f"{family.full_name}_count": labels}
        else:
            known[family.full_name] = labels
    return known


@cache
def recorded() -> dict[str, set[str]]:
    """Every recorded series, with the labels of its expression and of the rule."""
    known: dict[str, set[str]] = {}
    for rule in RULES:
        if "record" in rule:
            labels = {"target", "environment", "region", "subscription", "kind", "status", *rule.get("labels", {})}
            known.setdefault(rule["record"], set()).update(labels)
    return known
