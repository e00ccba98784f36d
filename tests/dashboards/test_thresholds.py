"""A panel turns red where its alert fires: every threshold is a limit of an alert that the panel links to, or of an objective."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from prober.config.loading import load
from prober.slo.objectives import Objective
from tests.alerts.stories import RULES
from tests.dashboards.committed import NAMES, Json, dashboard, panels

OBJECTIVES: tuple[Objective, ...] = load(None, {}).objectives
EXPRESSIONS = [(rule["alert"], rule["expr"]) for rule in RULES if "alert" in rule]
HELD = {rule["record"]: rule["expr"] for rule in RULES if rule.get("record", "").endswith(":held")}
"""Series that decide for an alert, which then only says how long."""

# Panels without a runbook that have thresholds, and why: what they count is bad by definition, or unknown.
WITHOUT_ALERT = {
    ("okp-overview", "Firing alerts"): "counts alerts",
    ("okp-overview", "Targets"): "counts failed and unknown runs, findings, stalled keys",
    ("okp-ordering", "Subscriptions"): "objectives of all kinds, each column with its own",
    ("okp-keys", "Backlog of each subscription"): "the alerts of the panels above",
    ("okp-publisher", "Topics"): "objectives of all kinds, each column with its own",
    ("okp-publisher", "Publishes rejected"): "a part of what the panel on the left shows, by the same objective",
}


def runbooks(panel: Json) -> set[str]:
    """The alerts that a panel links to."""
    return {link["url"].rpartition("/")[2].removesuffix(".md") for link in panel.get("links", [])}


def thresholds(panel: Json) -> Iterator[float]:
    """Every value at which something in a panel changes its colour."""
    found = [panel["fieldConfig"]["defaults"].get("thresholds", {})] if "fieldConfig" in panel else []
    for override in panel.get("fieldConfig", {}).get("overrides", []):
        found += [one["value"] for one in override["properties"] if one["id"] == "thresholds"]
    for one in found:
        yield from (step["value"] for step in one.get("steps", []) if step["value"] is not None)


def limits(alerts: set[str]) -> set[float]:
    """What the expressions of alerts compare with, and those of the series that decide for them."""
    texts = [expression for name, expression in EXPRESSIONS if name in alerts]
    texts += [expression for name, expression in HELD.items() if any(name in text for text in texts)]
    return {float(number) for text in texts for number in re.findall(r"(?:[<>]=?|==) ([0-9.]+)", text)}


def of_objectives() -> set[float]:
    """What the objectives allow: shares and durations."""
    numbers = {number for one in OBJECTIVES for number in (one.budget, one.target, one.threshold_s)}
    return {number for number in numbers if number is not None}


def agrees(value: float, compared: set[float]) -> bool:
    """Whether a panel and an alert mean the same: more than 0 of a count is 1 or more, and a share of one thing is one minus the rest."""
    meant = {value, 1 - value} | ({0.0} if value == 1.0 else set())
    return any(abs(one - other) < 1e-9 for one in meant for other in compared | of_objectives())


@pytest.mark.parametrize("name", NAMES)
def test_every_threshold_is_that_of_an_alert_or_an_objective(name: str) -> None:
    board = dashboard(name)
    for panel in panels(board):
        compared = limits(runbooks(panel))
        wrong = [value for value in thresholds(panel) if not agrees(value, compared)]
        if (board["uid"], panel["title"]) in WITHOUT_ALERT:
            wrong = [value for value in wrong if value != 1.0]
        assert wrong == [], (panel["title"], compared)


@pytest.mark.parametrize("name", NAMES)
def test_a_panel_with_thresholds_links_to_the_alert_or_it_is_said_why_not(name: str) -> None:
    board = dashboard(name)
    for panel in panels(board):
        if list(thresholds(panel)) and (board["uid"], panel["title"]) not in WITHOUT_ALERT:
            silent = re.fullmatch(r"(99 % latency by operation|Operations)", panel["title"])  # no default objective is about them
            assert runbooks(panel) or silent, panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_that_a_panel_names_exists(name: str) -> None:
    for panel in panels(dashboard(name)):
        assert runbooks(panel) <= {alert for alert, _ in EXPRESSIONS}, panel["title"]


def test_another_limit_would_be_noticed() -> None:
    assert not agrees(0.4, limits({"PubsubProberLagging"}))
    assert agrees(0.9, limits({"PubsubProberCoverageLow"}))
