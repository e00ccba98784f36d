"""The rules of Grafana's dashboard-linter that are about Prometheus dashboards, under the names that it has for them.

Each takes a dashboard and yields complaints. What a rule lets pass on purpose is in `dashboards/.lint`, which the linter reads, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import promql_parser as promql

from tests.alerts.reading import nodes, selectors_in
from tests.dashboards.committed import Asked, Json, breakdowns, interpolated, panels, queries

Complaints = Iterator[tuple[str, str]]  # panel's title or "", what is wrong

DATASOURCES: Final = ("$datasource", "${datasource}")
WITH_QUERIES: Final = {"timeseries", "stat", "table", "heatmap", "state-timeline"}
WITH_UNITS: Final = {"timeseries", "stat", "table"}
UNITS: Final = {"s", "percentunit", "locale", "cps", "Bps", "none", "bool_yes_no", "dateTimeAsIso"}
RATES: Final = {"rate", "irate"}
OF_COUNTERS: Final = {*RATES, "increase"}


def variable(board: Json, name: str) -> Json | None:
    """A variable by name."""
    return next((one for one in board["templating"]["list"] if one["name"] == name), None)


def template_datasource(board: Json) -> Complaints:
    """One data source variable, named and labelled as everybody does."""
    found = [one for one in board["templating"]["list"] if one["type"] == "datasource"]
    if [(one["name"], one["label"], one["query"]) for one in found] != [("datasource", "Data source", "prometheus")]:
        yield "", "needs one variable `datasource`, labelled `Data source`"


def template_job(board: Json) -> Complaints:
    """The scrape job can be chosen."""
    yield from _template(board, "job")


def template_instance(board: Json) -> Complaints:
    """So can the task."""
    yield from _template(board, "instance")


def _template(board: Json, name: str) -> Complaints:
    found = variable(board, name)
    if found is None:
        yield "", f"needs a variable `{name}`"
    elif (found["type"], found["label"], found["multi"], found["allValue"]) != ("query", name.capitalize(), True, ".+"):
        yield "", f"variable `{name}` is not as it should be"


def template_on_time_change_reload(board: Json) -> Complaints:
    """Values are looked up again when the time range changes."""
    for one in board["templating"]["list"]:
        if one["type"] == "query" and one.get("refresh") != 2:
            yield "", f"variable `{one['name']}` is not refreshed when the time range changes"


def panel_datasource(board: Json) -> Complaints:
    """Panels ask the chosen data source."""
    for panel in panels(board):
        for asked in (panel, *panel.get("targets", [])):
            if asked["datasource"]["uid"] not in DATASOURCES:
                yield panel["title"], "does not ask $datasource"


def panel_title_description(board: Json) -> Complaints:
    """Every panel says what it shows."""
    for panel in panels(board):
        if not panel.get("title") or not panel.get("description"):
            yield panel.get("title", ""), "has no title or no description"


def panel_units(board: Json) -> Complaints:
    """Numbers have units."""
    for panel in panels(board):
        if panel["type"] in WITH_UNITS and panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
            yield panel["title"], "has no unit, or one that nobody knows"


def panel_no_targets(board: Json) -> Complaints:
    """A panel that shows values asks for some."""
    for panel in panels(board):
        if panel["type"] in WITH_QUERIES and not panel.get("targets"):
            yield panel["title"], "asks nothing"


def target_promql(board: Json) -> Complaints:
    """Every query parses, however it is broken down."""
    for asked in queries(board):
        for by in breakdowns(board) or [""]:
            try:
                promql.parse(interpolated(asked.expr, by))
            except ValueError as error:
                yield asked.where[1], f"{error}: {asked.expr}"


def target_rate_interval(board: Json) -> Complaints:
    """Rates are taken over a window that fits the resolution."""
    for asked, call in _calls(board):
        if call.func.name in RATES and call.args[0].range != _parsed("up[5m]").range:
            yield asked.where[1], f"{call.func.name} over something else than $__rate_interval"


def target_counter_agg(board: Json) -> Complaints:
    """A counter stands in rate or increase, and nowhere else."""
    for asked in queries(board):
        used = re.findall(r"(?:(\w+)\()?\b(\w+_total)\b", asked.expr)
        for function, counter in used:
            if function not in OF_COUNTERS:
                yield asked.where[1], f"{counter} without rate or increase"


def target_job(board: Json) -> Complaints:
    """Every selector asks for the chosen job."""
    yield from _matched(board, "job")


def target_instance(board: Json) -> Complaints:
    """And for the chosen tasks."""
    yield from _matched(board, "instance")


def uneditable_dashboard(board: Json) -> Complaints:
    """What is generated is not edited."""
    if board["editable"]:
        yield "", "is editable"


RULES: Final[dict[str, Callable[[Json], Complaints]]] = {
    "template-datasource-rule": template_datasource,
    "template-job-rule": template_job,
    "template-instance-rule": template_instance,
    "template-on-time-change-reload-rule": template_on_time_change_reload,
    "panel-datasource-rule": panel_datasource,
    "panel-title-description-rule": panel_title_description,
    "panel-units-rule": panel_units,
    "panel-no-targets-rule": panel_no_targets,
    "target-promql-rule": target_promql,
    "target-rate-interval-rule": target_rate_interval,
    "target-counter-agg-rule": target_counter_agg,
    "target-job-rule": target_job,
    "target-instance-rule": target_instance,
    "uneditable-dashboard": uneditable_dashboard,
}


def _matched(board: Json, label: str) -> Complaints:
    for asked in queries(board):
        written = re.sub(r"\$\{by:csv\}", "x", asked.expr).replace("$__rate_interval", "5m").replace("$__range", "6h")
        for selector in selectors_in(_parsed(written)):
            values = [one.value for one in selector.matchers.matchers if one.name == label]
            if values != [f"${label}"]:
                yield asked.where[1], f"{selector.name} is not narrowed by ${label}"


def _calls(board: Json) -> Iterator[tuple[Asked, Any]]:
    for asked in queries(board):
        if asked.panel["type"] == "annotation":
            continue
        for node in nodes(_parsed(interpolated(asked.expr, "x"))):
            if isinstance(node, promql.Call):
                yield asked, node


def _parsed(expr: str) -> Any:
    return promql.parse(expr)
