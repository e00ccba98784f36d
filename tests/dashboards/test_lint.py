"""The dashboards keep the rules of Grafana's dashboard-linter, and every exception from one is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.dashboards import linter
from tests.dashboards.committed import FOLDER, NAMES, Json, dashboard, panels

EXCLUDED = {
    (rule, entry["dashboard"], entry.get("panel", ""))
    for rule, exclusion in yaml.safe_load((FOLDER / ".lint").read_text(encoding="utf-8"))["exclusions"].items()
    for entry in exclusion["entries"]
}


def complaints(name: str, rule: str) -> set[tuple[str, str, str, str]]:
    """Rule, dashboard, panel, what is wrong."""
    board = dashboard(name)
    return {(rule, board["title"], panel, wrong) for panel, wrong in linter.RULES[rule](board)}


@pytest.mark.parametrize("rule", linter.RULES)
@pytest.mark.parametrize("name", NAMES)
def test_the_rules_are_kept(name: str, rule: str) -> None:
    assert [one for one in complaints(name, rule) if one[:3] not in EXCLUDED] == []


def test_every_exception_is_needed() -> None:
    needed = {one[:3] for name in NAMES for rule in linter.RULES for one in complaints(name, rule)}
    assert EXCLUDED - needed == set()


def _first_query(board: Json, expr: str) -> None:
    panels(board)[0]["targets"][0]["expr"] = expr


SCOPE = 'job=~"$job",instance=~"$instance"'

BROKEN: dict[str, Callable[[Json], Any]] = {
    "template-datasource-rule": lambda board: linter.variable(board, "datasource").update(label="Source"),  # type: ignore[union-attr]
    "template-job-rule": lambda board: linter.variable(board, "job").update(multi=False),  # type: ignore[union-attr]
    "template-instance-rule": lambda board: linter.variable(board, "instance").update(allValue=".*"),  # type: ignore[union-attr]
    "template-on-time-change-reload-rule": lambda board: linter.variable(board, "target").update(refresh=1),  # type: ignore[union-attr]
    "panel-datasource-rule": lambda board: panels(board)[0]["datasource"].update(uid="mine"),
    "panel-title-description-rule": lambda board: panels(board)[0].update(description=""),
    "panel-units-rule": lambda board: panels(board)[0]["fieldConfig"]["defaults"].update(unit="secs"),
    "panel-no-targets-rule": lambda board: panels(board)[0].update(targets=[]),
    "target-promql-rule": lambda board: _first_query(board, f"sum(up{{{SCOPE}}}"),
    "target-rate-interval-rule": lambda board: _first_query(board, f"rate(a_total{{{SCOPE}}}[1m])"),
    "target-counter-agg-rule": lambda board: _first_query(board, f"sum(a_total{{{SCOPE}}})"),
    "target-job-rule": lambda board: _first_query(board, 'up{instance=~"$instance"}'),
    "target-instance-rule": lambda board: _first_query(board, 'up{job=~"$job"}'),
    "uneditable-dashboard": lambda board: board.update(editable=True),
}


@pytest.mark.parametrize("rule", linter.RULES)
def test_a_broken_rule_is_noticed(rule: str) -> None:
    board = dashboard("keys") | {"editable": False}
    assert list(linter.RULES[rule](board)) == []
    BROKEN[rule](board)
    assert list(linter.RULES[rule](board))
