"""The dashboards as they are committed, and their queries as Prometheus gets them from Grafana."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

FOLDER = Path(__file__).parents[2] / "dashboards"
FILES = sorted(FOLDER.glob("*.json"))
NAMES = [path.stem for path in FILES]

Json: TypeAlias = dict[str, Any]

# What Grafana puts in the place of its own variables.
WINDOWS = {"__rate_interval": "5m", "__range": "6h", "__interval": "1m"}


@dataclass(frozen=True)
class Asked:
    """One query of a panel."""

    board: str
    panel: Json
    target: Json

    @property
    def where(self) -> tuple[str, str]:
        """The dashboard's uid and the panel's title."""
        return self.board, str(self.panel["title"])

    @property
    def expr(self) -> str:
        """As it is written in the dashboard."""
        return str(self.target["expr"])


def dashboard(name: str) -> Json:
    """A dashboard by the name of its file."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def panels(board: Json) -> list[Json]:
    """Its panels, without the rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries(board: Json) -> Iterator[Asked]:
    """Its queries, those of annotations included."""
    for panel in panels(board):
        for target in panel.get("targets", []):
            yield Asked(board["uid"], panel, target)
    for annotation in board["annotations"]["list"]:
        yield Asked(board["uid"], {"title": f"annotation {annotation['name']}", "type": "annotation"}, annotation)


def breakdowns(board: Json) -> list[str]:
    """What its panels can be broken down by."""
    return [one for variable in board["templating"]["list"] if variable["name"] == "by" for one in variable["query"].split(",")]


def choices(board: Json) -> Iterator[tuple[str, str]]:
    """The variables whose values are looked up: selector and label."""
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
            assert found is not None, variable["query"]
            yield found[1], found[2]


def interpolated(text: str, by: str = "", windows: Mapping[str, str] = WINDOWS) -> str:
    """A query with everything chosen, broken down by `by`."""
    values = {"by": by, **windows}
    return re.sub(r"\$(?:{([a-z_]+)(?::\w+)?}|([a-z_]+))", lambda found: values.get(found[1] or found[2], ".*"), text)
