"""Panels and metrics cannot drift: every metric and label of every query exists, in the families or in the recording rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import promql_parser as promql
import pytest

from dashboards.queries import ALERTS, FIRING_SINCE, RATE_WINDOW, SCRAPE_DURATION, SCRAPE_SAMPLES, UP, rate, slower_share
from prober.sinks.metrics import families
from tests.alerts.reading import nodes, recorded, scraped, selectors_in
from tests.alerts.stories import WRITTEN
from tests.dashboards.committed import NAMES, Json, breakdowns, choices, dashboard, interpolated, queries

OF_SCRAPES = {"job", "instance"}


def known() -> dict[str, set[str]]:
    """Every series that there may be, with its labels; the recorded ones of the Helm chart have the job, too."""
    written = {label for alert in WRITTEN for label in alert["labels"]}
    of_alerts = {"alertname", "alertstate", "target", "environment", "region", "job", *written}
    return {
        **dict.fromkeys((UP, SCRAPE_DURATION, SCRAPE_SAMPLES), OF_SCRAPES),
        **dict.fromkeys((ALERTS, FIRING_SINCE), of_alerts),
        **scraped(),
        families.BUILD.full_name: {"version", *OF_SCRAPES},
        **{name: {"job", *labels} for name, labels in recorded().items()},
    }


def labels_of(node: Any) -> Iterator[str]:
    """The labels that a query groups, joins or filters by."""
    if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
        yield from node.modifier.labels
    if isinstance(node, promql.VectorSelector):
        yield from (one.name for one in node.matchers.matchers)


def strangers(expr: str, series: dict[str, set[str]]) -> list[str]:
    """Metrics that do not exist, labels that a metric does not have, and labels of groups that no metric below has."""
    found = []
    for selector in selectors_in(promql.parse(expr)):
        if selector.name not in series:
            found.append(f"metric {selector.name}")
        else:
            found += [f"{selector.name}: {label}" for label in set(labels_of(selector)) - series[selector.name]]
    for node in nodes(promql.parse(expr)):
        if isinstance(node, promql.AggregateExpr):
            below = set().union(*(series.get(one.name, set()) for one in selectors_in(node.expr)))
            made = {"vantage"} if "label_replace" in expr else set()
            found += [f"by {label}" for label in set(labels_of(node)) - below - made]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_and_label_exists(name: str) -> None:
    series, board = known(), dashboard(name)
    for by in breakdowns(board) or [""]:
        wrong = {asked.where: strangers(interpolated(asked.expr, by), series) for asked in queries(board)}
        assert {where: what for where, what in wrong.items() if what} == {}, by


@pytest.mark.parametrize("name", NAMES)
def test_values_to_choose_from_are_looked_up_where_they_are(name: str) -> None:
    for selector, label in choices(dashboard(name)):
        assert strangers(f"count by ({label}) ({interpolated(selector)})", known()) == []


@pytest.mark.parametrize(
    ("expr", "wrong"),
    [
        ("up", []),
        ("pubsub_prober_nothing", ["metric pubsub_prober_nothing"]),
        ('pubsub_prober_stalled_keys{key="a"}', ["pubsub_prober_stalled_keys: key"]),
        ("sum by (operation) (pubsub_prober_stalled_keys)", ["by operation"]),
        ("max by (slo) (slo:pubsub_prober_budget_remaining:ratio)", []),
        ("max by (subscription) (slo:pubsub_prober_budget_remaining:ratio)", ["by subscription"]),
    ],
)
def test_what_does_not_exist_is_noticed(expr: str, wrong: list[str]) -> None:
    assert strangers(expr, known()) == wrong


@pytest.mark.parametrize("name", NAMES)
def test_labels_in_legends_are_labels_of_the_answer(name: str) -> None:
    for asked in queries(dashboard(name)):
        named = set(re.findall(r"{{(\w+)}}", str(asked.target.get("legendFormat", asked.target.get("textFormat")))))
        grouped = {label for labels in re.findall(r"by \(([^)]*)\)", asked.expr) for label in labels.split(", ")}
        assert named <= grouped, asked.where


def uses(text: str, name: str) -> bool:
    """Whether a variable occurs."""
    return re.search(rf"\$(?:{name}\b|{{{name}(?::\w+)?}})", text) is not None


def texts_that_use(board: Json) -> str:
    """Where a dashboard's variables may stand."""
    return str([board["panels"], board["links"], board["annotations"]])


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_is_used_and_every_used_one_is_there(name: str) -> None:
    board = dashboard(name)
    names = [one["name"] for one in board["templating"]["list"]]
    assert len(names) == len(set(names))
    assert [one for one in names if not uses(texts_that_use(board), one)] == []
    written = set(re.findall(r"\$\{?(?!__)([a-z_]+)", texts_that_use(board)))
    assert written <= set(names)


@pytest.mark.parametrize("name", NAMES)
def test_variables_that_narrow_come_before_those_that_they_narrow(name: str) -> None:
    variables = dashboard(name)["templating"]["list"]
    seen: set[str] = set()
    for one in variables:
        assert set(re.findall(r"\$([a-z]+)", str(one["query"]))) <= seen
        seen.add(one["name"])


def test_rates_fit_the_resolution() -> None:
    assert rate("a_total") == f"rate(a_total[{RATE_WINDOW}])"


def test_a_threshold_finds_its_bucket_however_the_exporter_writes_it() -> None:
    assert 'le=~"1|1.0"' in slower_share(families.END_TO_END_LATENCY, 1.0)
    assert 'le="0.5"' in slower_share(families.END_TO_END_LATENCY, 0.5)
