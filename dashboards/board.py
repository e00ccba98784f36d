"""A dashboard and its JSON: rows of panels with positions, variables, links and annotations.

The JSON is valid against the schemas of Grafana 10.4, 11.6 and 12.4: schema version 39, with panel types and fields that Grafana 10 knows.
The ids of panels follow from their titles, so that links to a panel stay valid, and diffs stay small, when panels are added before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from zlib import crc32

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort

from dashboards.panels import DATASOURCE, Panel
from dashboards.queries import NARROWED, increase_of, select
from prober.alerting.promql import PROCESS, aggregate
from prober.brokers.base import Vantage
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family

SCHEMA_VERSION: Final = 39
COLUMNS: Final = 24
TAG: Final = "ordering-keys-prober"
NUMBERS: Final = 1_000_000
ANNOTATION_STEP: Final = "60s"
ANNOTATION_WINDOW: Final = "2m"

# Inputs of an import, by the name of their variable.
INPUTS: Final = {
    "runbooks": {
        "name": "VAR_RUNBOOKS",
        "label": "Runbooks",
        "description": "The address of the runbooks, such as https://prober.example.com/runbooks of the status page",
    },
    "status_page": {
        "name": "VAR_STATUS_PAGE",
        "label": "Status page",
        "description": "The address of the prober's status page, such as https://prober.example.com",
    },
}

# What the SDK writes for later versions of Grafana, or for variables of another type.
_LATER: Final = {
    "annotations": {"placement"},
    "links": {"placement"},
    "options": {"footer", "percentChangeColorMode", "perPage", "selectionMode", "showPercentChange", "showTypeIcons", "wideLayout"},
    "templating": {"auto", "auto_count", "auto_min", "allowCustomValue", "definition"},
}
EVERYTHING: Final = ".*"

Variable: TypeAlias = builders.DatasourceVariable | builders.QueryVariable | builders.CustomVariable | builders.TextBoxVariable

# Where the values of a label are looked up.
_SOURCES: Final[dict[str, Family]] = {
    "environment": families.TARGET_INFO,
    "region": families.TARGET_INFO,
    "target": families.TARGET_INFO,
    "topic": families.PUBLISHES,
    "subscription": families.DELIVERIES,
    "probe": families.PROBE_RUNS_EXPECTED,
    "job": families.BUILD,
    "instance": families.BUILD,
}


@dataclass(frozen=True, slots=True)
class PanelRow:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard. `by`: labels by which its panels can be broken down, the default first."""

    uid: str
    title: str
    description: str
    rows: tuple[PanelRow, ...]
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkTargets:
    """Addresses of links: the folder with a runbook per alert, and the status page.

    None: Grafana asks for the address at the import of the dashboard.
    """

    runbooks: str | None = None
    status_page: str | None = None

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Yield the initial values of the variables, by their names."""
        for name in INPUTS:
            yield name, getattr(self, name) or _placeholder(name)

    def inputs(self) -> list[dict[str, str]]:
        """Return the inputs that Grafana requests at the import, and inserts for the placeholders."""
        return [asked | {"type": "constant", "value": ""} for name, asked in INPUTS.items() if getattr(self, name) is None]


def dashboard_json(board: Board, places: LinkTargets) -> str:
    """Return the dashboard as JSON for Grafana's import. The same input returns the same text."""
    return json.dumps(_model(board, places), indent=2, sort_keys=True) + "\n"


def _model(board: Board, places: LinkTargets) -> Any:
    builder = (
        builders.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags([TAG])
        .editable()
        .timezone("utc")
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(_other_dashboards())
        .link(_status_page())
    )
    for annotation in _annotations():
        builder.annotation(annotation)
    panels = [_plain(panel) for panel in _placed(board.rows)]
    written = json.dumps(panels) + json.dumps(_plain(builder.build()))
    for variable in variables(_uses(written), board.by, places.addresses()):
        builder.with_variable(variable)
    model = _plain(builder.build()) | {"panels": panels, "schemaVersion": SCHEMA_VERSION, "version": 1}
    asked = [one for one in places.inputs() if f"${{{one['name']}}}" in json.dumps(model)]
    return _portable(model) | ({"__inputs": asked} if asked else {})


def _placeholder(name: str) -> str:
    """Return a placeholder that Grafana's import replaces."""
    return f"${{{INPUTS[name]['name']}}}"


def _uses(text: str) -> Callable[[str], bool]:
    return lambda name: re.search(rf"\$({name}\b|{{{name}[:}}])", text) is not None


def _placed(rows: Iterable[PanelRow]) -> Iterator[models.Panel | models.RowPanel]:
    """Yield rows and panels from left to right and top to bottom. Raises ValueError if two panels get the same id."""
    top, numbers = 0, set[int]()
    for row in rows:
        yield models.RowPanel(
            title=row.title,
            id_val=_number(f"row {row.title}", numbers),
            grid_pos=models.GridPos(h=1, w=COLUMNS, x=0, y=top),
            panels=[],
        )
        top, left, height = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, height = top + height, 0, 0
            place = models.GridPos(h=panel.height, w=panel.width, x=left, y=top)
            panel.builder.id(_number(panel.words.title, numbers)).grid_pos(place).links(list(map(_runbook, panel.words.runbooks)))
            yield panel.builder.build()
            left, height = left + panel.width, max(height, panel.height)
        top += height


def _number(title: str, taken: set[int]) -> int:
    number = crc32(title.encode()) % NUMBERS + 1
    if number in taken:
        raise ValueError(f"two panels are called {title!r}, or their numbers are the same by coincidence: choose another title")
    taken.add(number)
    return number


def _runbook(alert: str) -> builders.DashboardLink:
    return (
        builders.DashboardLink(f"Runbook: {alert}")
        .type(models.DashboardLinkType.LINK)
        .url(f"${{runbooks:raw}}/{alert}.md")
        .target_blank(True)
    )


def _other_dashboards() -> builders.DashboardLink:
    return (
        builders.DashboardLink("Ordering keys")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )


def _status_page() -> builders.DashboardLink:
    return (
        builders.DashboardLink("Status page")
        .type(models.DashboardLinkType.LINK)
        .icon("external link")
        .url("${status_page:raw}/")
        .target_blank(True)
    )


def _annotations() -> Iterable[builders.AnnotationQuery]:
    now, before = (aggregate(f"{select(families.BUILD)}{offset}", "version", "count") for offset in ("", " offset 5m"))
    yield _annotation("Deployments", f"{now} unless on (version) {before}", "blue", "Deployed", "{{version}}")
    drills = increase_of(families.DRILL_RUNS, "drill, verdict", ANNOTATION_WINDOW)
    yield _annotation("Drills", f"{drills} > 0", "purple", "Drill ended", "{{drill}}: {{verdict}}")
    maintained = aggregate(select(families.UNDER_MAINTENANCE), "target", "max")
    yield _annotation("Maintenance", f"{maintained} > 0", "yellow", "Maintenance", "{{target}}")


def _annotation(name: str, expr: str, colour: str, title: str, text: str) -> builders.AnnotationQuery:
    return (
        builders.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color(colour)
        .expr(expr)
        .step(ANNOTATION_STEP)
        .title_format(title)
        .text_format(text)
    )


def _plain(built: object) -> Any:
    return json.loads(json.dumps(built, cls=JSONEncoder))


def _portable(node: Any, inside: str = "") -> Any:
    """Return a node without the fields that Grafana 10 does not know, and without directions of missing repetitions."""
    if isinstance(node, list):
        return [_portable(one, inside) for one in node]
    if not isinstance(node, dict):
        return node
    dropped = _LATER.get(inside, set()) | (set() if "repeat" in node else {"repeatDirection"})
    return {key: _portable(value, inside if key == "list" else key) for key, value in node.items() if key not in dropped}


# --- variables ---------------------------------------------------------------------------------------------------------------


def variables(used: Callable[[str], bool], by: Iterable[str], pages: Iterable[tuple[str, str]]) -> Iterable[Variable]:
    """Yield the used variables in their order: data source, filters, breakdown, addresses of pages."""
    yield builders.DatasourceVariable("datasource").label("Data source").type("prometheus")
    labels = [label for label in (*NARROWED, *PROCESS) if used(label)]
    for label in (one for one in labels if one not in PROCESS):
        yield _narrowing(label, labels)
    if used("vantage"):
        yield _vantage()
    for label in (one for one in labels if one in PROCESS):
        yield _narrowing(label, labels)
    if used("by"):
        yield _by(tuple(by))
    for name, address in pages:
        if used(name):
            yield _page(name, address)


def _narrowing(label: str, labels: list[str]) -> builders.QueryVariable:
    """Return a filter for any number of values of a label; filters on the left restrict those on the right."""
    family = _SOURCES[label]
    left = [other for other in labels[: labels.index(label)] if other in family.labels]
    matchers = ",".join(f'{other}=~"${other}"' for other in left)
    query = f"label_values({family.full_name}{{{matchers}}}, {label})"
    return (
        builders.QueryVariable(label)
        .label(label.capitalize())
        .datasource(DATASOURCE)
        .query(query)
        .include_all(True)
        .multi(True)
        .all_value(".+" if label in PROCESS else EVERYTHING)
        .current(_everything())
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def _vantage() -> builders.CustomVariable:
    return (
        builders.CustomVariable("vantage")
        .label("Vantage")
        .values(",".join(Vantage))
        .include_all(True)
        .multi(True)
        .all_value(EVERYTHING)
        .current(_everything())
    )


def _by(labels: tuple[str, ...]) -> builders.CustomVariable:
    first = labels[0]
    return (
        builders.CustomVariable("by")
        .label("Break down by")
        .values(",".join(labels))
        .multi(True)
        .current(VariableOption(selected=True, text=[first], value=[first]))
    )


def _page(name: str, address: str) -> builders.TextBoxVariable:
    return builders.TextBoxVariable(name).label(name.replace("_", " ").capitalize()).default_value(address)


def _everything() -> VariableOption:
    return VariableOption(selected=True, text=["All"], value=["$__all"])
