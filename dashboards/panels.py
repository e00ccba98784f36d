"""Panels of the dashboards: one function per type, with one style.

Good is green, bad is red, and unknown is grey. Sizes are in cells of Grafana's grid, 24 to a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from grafana_foundation_sdk.builders import common, heatmap, prometheus, stat, statetimeline, table, text, timeseries
from grafana_foundation_sdk.builders import dashboard as parts
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmaps
from grafana_foundation_sdk.models import prometheus as query_models
from grafana_foundation_sdk.models import text as texts

from dashboards.queries import Query
from dashboards.thresholds import BAD, GOOD, NO_VERDICT, UNKNOWN, WARNING, Steps

DATASOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")

Builder: TypeAlias = timeseries.Panel | stat.Panel | table.Panel | heatmap.Panel | statetimeline.Panel | text.Panel

# Overrides by the name of a series or column.
Properties: TypeAlias = Mapping[str, Mapping[str, Any]]

SECONDS: Final = "s"
SHARE: Final = "percentunit"
COUNT: Final = "locale"
BYTES_PER_SECOND: Final = "Bps"
PER_SECOND: Final = "cps"
PLAIN: Final = "none"

# The colours of series by name, where names mean something.
_MEANINGS: Final = {
    "good": GOOD,
    "confirmed": GOOD,
    "pass": GOOD,
    "bad": BAD,
    "violation": BAD,
    "fail": BAD,
    "rejected": BAD,
    "liveness": WARNING,
    "undecided": UNKNOWN,
    "indeterminate": UNKNOWN,
    "unknown": UNKNOWN,
}
NOT_KNOWN: Final = "not known"
_HEADINGS: Final = {
    "alertname": "Alert",
    "instance": "Prober",
    "job_name": "Job",
    "own_subscription": "Subscription",
    "slo": "SLO",
}
"""Headings of columns that are not the name of their label."""
_SOFT_MAXIMA: Final = {SHARE: 0.01, COUNT: 5.0, PER_SECOND: 0.1, SECONDS: 0.01}


@dataclass(frozen=True, slots=True)
class Words:
    """Title and description of a panel. `runbooks`: alerts whose runbooks explain bad values."""

    title: str
    description: str
    runbooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel without a position."""

    words: Words
    builder: Builder
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: one value per row. Counts are rounded, since Prometheus extrapolates them."""

    name: str
    expr: str
    unit: str
    steps: Steps = NO_VERDICT
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Appearance of values: bars are stacked, and limits are dashed lines."""

    unit: str
    steps: Steps = NO_VERDICT
    bars: bool = False
    minimum: float | None = 0.0
    maximum: float | None = None
    width: int = 12
    height: int = 8


def graph_panel(words: Words, look: Look, *asked: Query | str, address: str = "") -> Panel:
    """Return a panel of values over time. Gaps stay gaps. A click on a value opens `address`."""
    queries = [Query(one) if isinstance(one, str) else one for one in asked]
    panel = (
        timeseries.Panel()
        .unit(look.unit)
        .color_scheme(parts.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
        .thresholds(_thresholds(look.steps))
        .axis_soft_max(_soft_maximum(look))
        .line_width(1)
        .fill_opacity(80 if look.bars else 8)
        .draw_style(options.GraphDrawStyle.BARS if look.bars else options.GraphDrawStyle.LINE)
        .show_points(options.VisibilityMode.NEVER if look.bars else options.VisibilityMode.AUTO)
        .span_nulls(False)
        .legend(_legend())
        .tooltip(common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING))
    )
    _override(panel, _colours(queries))
    if look.bars:
        panel.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL).group("A"))
    if look.steps != NO_VERDICT:
        style = common.GraphThresholdsStyleConfig().mode(options.GraphThresholdsStyleMode.DASHED)
        panel.thresholds_style(style)
    if look.minimum is not None:
        panel.min(look.minimum)
    if look.maximum is not None:
        panel.max(look.maximum)
    if address:
        _leads(panel, address)
    return _panel(words, panel, look.width, look.height, queries)


def stat_panel(
    words: Words,
    expr: str,
    unit: str,
    steps: Steps = NO_VERDICT,
    *,
    width: int = 6,
    height: int = 4,
    none: str = NOT_KNOWN,
    address: str = "",
) -> Panel:
    """Return a panel of one number, the present value, that links to `address`; `none` is its text without a value.

    Counts are rounded, since Prometheus extrapolates them.
    """
    panel = (
        stat.Panel()
        .unit(unit)
        .color_scheme(parts.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .thresholds(_thresholds(steps))
        .no_value(none)
        .mappings([_unknown(none)])
        .color_mode(options.BigValueColorMode.VALUE)
        .graph_mode(options.BigValueGraphMode.NONE)
        .text_mode(options.BigValueTextMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    )
    if unit == COUNT:
        panel.decimals(0)
    if address:
        _leads(panel, address)
    return _panel(words, panel, width, height, [Query(expr, instant=True)])


def heatmap_panel(words: Words, look: Look, asked: Query) -> Panel:
    """Return a panel of the distribution of durations over time: the buckets of a histogram."""
    panel = (
        heatmap.Panel()
        .calculate(False)
        .color(heatmap.HeatmapColorOptions().mode(heatmaps.HeatmapColorMode.SCHEME).scheme("Turbo").steps(64).exponent(0.5))
        .y_axis(heatmap.YAxisConfig().unit(look.unit).axis_placement(options.AxisPlacement.LEFT))
        .cell_gap(1)
        .tooltip(heatmap.HeatmapTooltip().mode(options.TooltipDisplayMode.SINGLE).y_histogram(True))
        .exemplars_color("rgba(255,0,255,0.7)")
    )
    return _panel(words, panel, look.width, look.height, [asked], query_models.PromQueryFormat.HEATMAP)


def state_timeline_panel(words: Words, look: Look, names: Mapping[int, tuple[str, str]], asked: Query) -> Panel:
    """Return a panel of states over time, one line per series: `names` maps values to words and colours."""
    mapping = models.ValueMap(
        options={
            str(value): models.ValueMappingResult(text=word, color=colour, index=place)
            for place, (value, (word, colour)) in enumerate(names.items())
        }
    )
    panel = (
        statetimeline.Panel()
        .unit(look.unit)
        .thresholds(_thresholds(look.steps))
        .mappings([mapping])
        .color_scheme(parts.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .row_height(0.8)
        .merge_values(True)
        .show_value(options.VisibilityMode.NEVER)
        .fill_opacity(80)
        .interval("1m")
        .legend(_legend())
    )
    return _panel(words, panel, look.width, look.height, [asked])


def table_panel(
    words: Words, look: Look, labels: tuple[str, ...], columns: Iterable[TableColumn], address: str = "", sort: str = ""
) -> Panel:
    """Return a table: one row per combination of labels, one value per column.

    The cells of the first label link to `address`. Rows are sorted by the column `sort`, ascending, if it is given.
    """
    listed = tuple(columns)
    panel = (
        table.Panel()
        .unit(look.unit)
        .color_scheme(parts.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .thresholds(_thresholds(NO_VERDICT))
        .no_value(NOT_KNOWN)
        .mappings([_unknown(NOT_KNOWN)])
        .cell_height(options.TableCellHeight.SM)
        .cell_options(options.TableAutoCellOptions())
        .transformations(_joined(labels, listed))
    )
    if sort:
        panel.sort_by([common.TableSortByFieldState().display_name(sort).desc(False)])
    _override(panel, {column.name: _column(column) for column in listed})
    if address:
        _override(panel, {_heading(labels[0]): {"links": _links(address)}})
    asked = [Query(column.expr, instant=True) for column in listed]
    return _panel(words, panel, look.width, look.height, asked, query_models.PromQueryFormat.TABLE)


def text_panel(words: Words, markdown: str, width: int = 24, height: int = 3) -> Panel:
    """Return a panel of a few sentences."""
    return _panel(words, text.Panel().mode(texts.TextMode.MARKDOWN).content(markdown), width, height, ())


def _panel(
    words: Words,
    builder: Any,
    width: int,
    height: int,
    asked: Iterable[Query],
    form: query_models.PromQueryFormat = query_models.PromQueryFormat.TIME_SERIES,
) -> Panel:
    builder.title(words.title).description(words.description).datasource(DATASOURCE)
    for place, query in enumerate(asked):
        builder.with_target(_target(chr(ord("A") + place), query, form))
    return Panel(words, builder, width, height)


def _leads(panel: timeseries.Panel | stat.Panel, address: str) -> None:
    panel.override_by_regexp("/.*/", [models.DynamicConfigValue(id_val="links", value=_links(address))])


def _links(address: str) -> list[dict[str, Any]]:
    return [{"title": "Show", "url": address, "targetBlank": True}]


def _target(ref_id: str, query: Query, form: query_models.PromQueryFormat) -> prometheus.Dataquery:
    target = (
        prometheus.Dataquery()
        .ref_id(ref_id)
        .datasource(DATASOURCE)
        .expr(query.expr)
        .format(form)
        .legend_format(query.legend or "__auto")
        .editor_mode(query_models.QueryEditorMode.CODE)
        .exemplar(query.exemplars)
    )
    return target.instant() if query.instant else target.range()


def _thresholds(steps: Steps) -> parts.ThresholdsConfig:
    return (
        parts.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value=value, color=colour) for value, colour in steps])
    )


def _soft_maximum(look: Look) -> float:
    """Return the minimum upper end of the axis. Without it Grafana shows zeros on an axis up to 100, shares up to 10,000 %."""
    thresholds = [value for value, _ in look.steps if value is not None]
    return 2 * max(thresholds) if thresholds and look.unit == SHARE else _SOFT_MAXIMA.get(look.unit, 1.0)


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .display_mode(options.LegendDisplayMode.LIST)
        .placement(options.LegendPlacement.BOTTOM)
        .show_legend(True)
    )


def _unknown(word: str) -> models.SpecialValueMap:
    """Return the mapping of missing values to a grey word; without it they have the colour of 0."""
    result = models.ValueMappingResult(text=word, color=UNKNOWN, index=0)
    nothing = models.DashboardSpecialValueMapOptions(match=models.SpecialValueMatch.NULL_AND_NAN, result=result)
    return models.SpecialValueMap(options=nothing)


def _colours(asked: Iterable[Query]) -> Properties:
    """Return fixed colours for series with meaningful names, if a query breaks down by their label or has their name."""
    if not any(query.legend in _MEANINGS or query.legend.startswith("{{") for query in asked):
        return {}
    return {name: {"color": {"mode": "fixed", "fixedColor": colour}} for name, colour in _MEANINGS.items()}


def _column(column: TableColumn) -> dict[str, Any]:
    properties: dict[str, Any] = {"unit": column.unit, "custom.align": "right"}
    decimals = 0 if column.unit == COUNT else column.decimals
    if decimals is not None:
        properties["decimals"] = decimals
    if column.steps != NO_VERDICT:
        steps = [{"value": value, "color": colour} for value, colour in column.steps]
        properties |= {"thresholds": {"mode": "absolute", "steps": steps}, "custom.cellOptions": {"type": "color-text"}}
    return properties


def _override(panel: timeseries.Panel | table.Panel, properties: Properties) -> None:
    for name, changes in properties.items():
        panel.override_by_name(name, [models.DynamicConfigValue(id_val=key, value=value) for key, value in changes.items()])


def _heading(label: str) -> str:
    return _HEADINGS.get(label, label.capitalize())


def _joined(labels: tuple[str, ...], columns: tuple[TableColumn, ...]) -> list[models.DataTransformerConfig]:
    """Return the transformations to one table of all results.

    Rows with the same labels are merged, columns get their headings, times are removed.
    """
    values = {f"Value #{chr(ord('A') + place)}" if len(columns) > 1 else "Value": one.name for place, one in enumerate(columns)}
    order = {name: place for place, name in enumerate([*labels, *values])}
    organized = {
        "excludeByName": {"Time": True},
        "indexByName": order,
        "renameByName": {label: _heading(label) for label in labels} | values,
    }
    return [
        models.DataTransformerConfig(id_val="merge", options={}),
        models.DataTransformerConfig(id_val="organize", options=organized),
    ]
