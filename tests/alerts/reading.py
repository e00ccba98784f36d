"""What rules read: metrics with their labels, as expressions name them and as a scrape or a recording has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import promql_parser

from prober.sinks.metrics.families import FAMILIES
from prober.sinks.metrics.family import MetricType
from tests.alerts.stories import RULES

FROM_PROMETHEUS = {
    "up": {"job", "instance"},
    "prometheus_rule_evaluation_failures_total": {"rule_group"},
    "ALERTS": {"alertname"},
    "process_cpu_seconds_total": {"job", "instance"},
}


def nodes(node: Any) -> Iterator[Any]:
    """The tree of an expression, from the top down."""
    yield node
    for name in ("expr", "lhs", "rhs", "vector_selector", "args", "param"):
        child = getattr(node, name, None)
        for one in child if isinstance(child, list) else [] if child is None else [child]:
            yield from nodes(one)


def selectors_in(node: Any) -> Iterator[Any]:
    """Every vector selector of a tree."""
    return (one for one in nodes(node) if isinstance(one, promql_parser.VectorSelector))


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Every metric that an expression reads, with the labels that it matches."""
    for selector in selectors_in(promql_parser.parse(expression)):
        yield str(selector.name), {matcher.name for matcher in selector.matchers.matchers}


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
            labels = _labels(promql_parser.parse(rule["expr"]), known) | rule.get("labels", {}).keys()
            known.setdefault(rule["record"], set()).update(labels)
    return known


def labels_of(expression: str) -> set[str]:
    """The labels that tell the series of an expression apart: those that it keeps, without those that it matches with one value."""
    return _labels(promql_parser.parse(expression), recorded())


def _labels(node: Any, known: Mapping[str, set[str]]) -> set[str]:
    match node:
        case promql_parser.VectorSelector():
            fixed = {
                matcher.name for matcher in node.matchers.matchers if matcher.op == promql_parser.MatchOp.Equal and matcher.value
            }
            return {**scraped(), **FROM_PROMETHEUS, **known}.get(str(node.name), set()) - fixed
        case promql_parser.AggregateExpr():
            return set(node.modifier.labels) if node.modifier else set()
        case promql_parser.BinaryExpr():
            left, right = _labels(node.lhs, known), _labels(node.rhs, known)
            if "group_right" in str(node.modifier):
                return right
            if str(node.op) in {"and", "unless"}:
                return left
            return left | right if str(node.op) == "or" or not left else left
        case promql_parser.Call():
            gone = {"absent": {"instance"}, "histogram_quantile": {"le"}}.get(node.func.name, set())
            return set().union(*(_labels(one, known) for one in node.args)) - gone
        case promql_parser.MatrixSelector():
            return _labels(node.vector_selector, known)
        case _:
            return _labels(node.expr, known) if hasattr(node, "expr") else set()
