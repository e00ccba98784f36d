"""The variables of dashboards, each of which narrows the selectors of `promql`; a dashboard has those that its queries use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableOption, VariableRefresh, VariableSort

from dashboards.promql import NARROWED, SCRAPE_LABELS
from prober.brokers.base import Vantage
from prober.sinks.metrics import families
from prober.sinks.metrics.families import Family

DATASOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
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


def variables(used: Callable[[str], bool], by: Iterable[str], pages: Iterable[tuple[str, str]]) -> Iterable[Variable]:
    """The variables that are used, in their order: the data source, what narrows, how to break down, where pages are."""
    yield builders.DatasourceVariable("datasource").label("Data source").type("prometheus")
    labels = [label for label in (*NARROWED, *SCRAPE_LABELS) if used(label)]
    for label in (one for one in labels if one not in SCRAPE_LABELS):
        yield _narrowing(label, labels)
    if used("vantage"):
        yield _vantage()
    for label in (one for one in labels if one in SCRAPE_LABELS):
        yield _narrowing(label, labels)
    if used("by"):
        yield _by(tuple(by))
    for name, address in pages:
        if used(name):
            yield _page(name, address)


def _narrowing(label: str, labels: list[str]) -> builders.QueryVariable:
    """Any number of a label's values; those on the left narrow those on the right."""
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
        .all_value(".+" if label in SCRAPE_LABELS else EVERYTHING)
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
