"""docs/metrics.md: every metric family, with the alerts, recorded series and dashboards that read it.

python -m dashboards.metrics_page > docs/metrics.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dashboards.board import LinkTargets
from dashboards.boards import files
from prober.alerting.catalogue import groups_by_file
from prober.alerting.options import Options
from prober.alerting.rules import AlertingRule
from prober.config.loading import load
from prober.sinks.metrics.families import FAMILIES, FIGURES
from prober.sinks.metrics.family import PREFIX, Family
from prober.sinks.metrics.scopes import TARGET

_BY_SLO: Final = ("slo:pubsub_prober_bad:increase", "slo:pubsub_prober_decided:increase")
HEAD: Final = f"""# Metrics

All metric families for queries and rules of your own. All names begin with `{PREFIX}_`. `TARGET` stands for the labels
`{"`, `".join(TARGET)}`. The last column names the alerts, recorded series and dashboards that read a family; `slo:*` stands for the series
`{"`, `".join(_BY_SLO)}`. Timestamps are in seconds since 1970.

Over OTLP ([service.md](service.md#traces-metrics-and-logs)) each family has the same name, labels and values, without a unit. Counters
are monotonic cumulative sums since the start of the prober, histograms are cumulative with the same bounds, other families are gauges.

| metric | type and labels | meaning | readers |
|---|---|---|---|
"""
MEASUREMENTS: Final = """
## Measurements of probes

Gauges of the last run of a probe, with the labels TARGET and `subscription`, for the dashboard `keys`. `_low` and `_high` before the unit
name the ends of the 95 % confidence interval.

| metric | meaning |
|---|---|
"""
_BOUND: Final = re.compile(r"_(?:low|high)_")
_WINDOW: Final = re.compile(r"\d+[smhdwy]$")


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of one family: names of alerts, of recorded series without their window, and of dashboards."""

    alerts: set[str] = field(default_factory=set)
    recorded: set[str] = field(default_factory=set)
    dashboards: set[str] = field(default_factory=set)


def readers() -> Mapping[Family, Readers]:
    """Return the readers of each family, for the default objectives."""
    objectives = load(None, {}).objectives
    found = {family: Readers() for family in FAMILIES}
    for groups in groups_by_file(objectives, Options()).values():
        for rule in (rule for group in groups for rule in group.rules):
            for family in _read_by(rule.expression):
                if isinstance(rule, AlertingRule):
                    found[family].alerts.add(rule.name)
                else:
                    found[family].recorded.add(_WINDOW.sub("", rule.name))
    for name, text in files(objectives, LinkTargets("", "")).items():
        asked = (target["expr"] for panel in json.loads(text)["panels"] for target in panel.get("targets", ()))
        for family in _read_by("\n".join(asked)):
            found[family].dashboards.add(name.removesuffix(".json"))
    return found


def _read_by(text: str) -> Iterator[Family]:
    return (family for family in FAMILIES if re.search(rf"\b{family.full_name}(_bucket|_count|_sum)?\b", text))


def metrics_page() -> str:
    """Return the text of the page."""
    figures = {family.name: family for family in FIGURES.values()}
    general = (_row(family, by) for family, by in readers().items() if family.name not in figures)
    return "".join([HEAD, *general, MEASUREMENTS, *_rows_of_measurements(figures)])


def _rows_of_measurements(figures: Mapping[str, Family]) -> Iterator[str]:
    for name, family in figures.items():
        if _BOUND.sub("_", name) != name:
            continue
        stem, _, unit = name.rpartition("_")
        bounds = ", `_low`, `_high`" if f"{stem}_low_{unit}" in figures else ""
        meaning = family.help.replace(", in the last run", "").replace(" in the last run", "")
        yield f"| `{name}`{bounds} | {meaning} |\n"


def _row(family: Family, by: Readers) -> str:
    name = family.full_name.removeprefix(f"{PREFIX}_")
    alerts = [f"[{one}](runbooks/{one}.md)" for one in sorted(by.alerts)]
    recorded = [f"`{one}`" for one in sorted(by.recorded) if one not in _BY_SLO]
    slo = ["`slo:*`"] if by.recorded & set(_BY_SLO) else []
    by_all = ", ".join([*alerts, *slo, *recorded, *sorted(by.dashboards)])
    cells = (
        f"`{name}`",
        f"{family.kind}: {_labels(family)}".removesuffix(": "),
        family.help.replace(", seconds since 1970", ""),
        by_all,
    )
    return f"| {' | '.join(cells)} |\n"


def _labels(family: Family) -> str:
    is_of_target = family.labels[: len(TARGET)] == TARGET
    own = family.labels[len(TARGET) :] if is_of_target else family.labels
    return ", ".join([*(["TARGET"] if is_of_target else []), *(f"`{label}`" for label in own)])
