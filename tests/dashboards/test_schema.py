"""The dashboards are valid against the schemas of Grafana 10.4, 11.6 and 12.4, and the SDK reads back what it wrote."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from jsonschema import Draft7Validator

from tests.dashboards.committed import NAMES, Json, dashboard, panels

SCHEMAS = {path.stem: json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "schemas").glob("*.json"))}
PANEL_TYPES = {"timeseries", "stat", "table", "heatmap", "state-timeline", "text", "row"}

# What the Prometheus data source adds to an annotation; the types know the keys of all data sources only.
OF_PROMETHEUS = {"expr", "step", "titleFormat", "textFormat"}


def violations(board: Json, schema: Json) -> Iterator[str]:
    """Where a dashboard is not what a version of Grafana expects."""
    common = imported(board)
    for annotation in common["annotations"]["list"]:
        for key in OF_PROMETHEUS:
            annotation.pop(key)
    yield from _complaints(schema["dashboard"], common, "dashboard")
    for panel in panels(board):
        known = schema["panels"][panel["type"]]
        parts = {"options": panel["options"], "custom": panel.get("fieldConfig", {}).get("defaults", {}).get("custom")}
        for part, value in parts.items():
            if part in known and value is not None:
                yield from _complaints(known[part], value, f"{panel['title']}: {part}")


def imported(board: Json) -> Json:
    """A dashboard as an import leaves it: the questions are answered and gone."""
    return {key: value for key, value in copy.deepcopy(board).items() if key != "__inputs"}


def _complaints(schema: Json, value: Any, where: str) -> Iterator[str]:
    for error in Draft7Validator(schema).iter_errors(value):
        yield f"{where} {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"


def lost(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """The keys of one value that another does not have."""
    if isinstance(before, dict):
        for key, value in before.items():
            if not isinstance(after, dict) or key not in after:
                yield f"{where}.{key}"
            else:
                yield from lost(value, after[key], f"{where}.{key}")
    elif isinstance(before, list):
        for place, value in enumerate(before):
            yield from lost(value, after[place] if isinstance(after, list) and place < len(after) else None, f"{where}[{place}]")


def read_back(board: Json) -> Json:
    """A dashboard as the SDK understands it, with the panels and queries that it has types for."""
    from grafana_foundation_sdk.cog.plugins import register_default_plugins  # every worker collects this; it takes seconds

    register_default_plugins()
    return dict(json.loads(json.dumps(Dashboard.from_json(copy.deepcopy(board)), cls=JSONEncoder)))


@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize("name", NAMES)
def test_grafana_allows_every_key_and_value(name: str, version: str) -> None:
    assert list(violations(dashboard(name), SCHEMAS[version])) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_sdk_reads_back_what_it_wrote(name: str) -> None:
    assert list(lost(imported(dashboard(name)), read_back(imported(dashboard(name))))) == []


@pytest.mark.parametrize("name", NAMES)
def test_only_panel_types_of_grafana_10_are_used(name: str) -> None:
    board = dashboard(name)
    assert {panel["type"] for panel in board["panels"]} <= PANEL_TYPES
    assert board["schemaVersion"] == 39


@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("panels", 1, "titel"), "x"),
        (("panels", 1, "gridPos", "h"), "four"),
        (("panels", 1, "options", "reduceOption"), {}),
        (("panels", 1, "fieldConfig", "defaults", "unti"), "s"),
        (("schemaVersion",), "39"),
        (("colour",), "red"),
    ],
)
def test_a_mistake_is_noticed(version: str, path: tuple[str | int, ...], value: object) -> None:
    board = dashboard("overview")
    node: Any = board
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    assert list(violations(board, SCHEMAS[version]))


def test_a_key_that_the_sdk_does_not_know_is_noticed() -> None:
    board = dashboard("overview")
    board["panels"][1]["targets"][0]["exp"] = "up"
    assert list(lost(imported(board), read_back(board))) == [".panels[1].targets[0].exp"]
