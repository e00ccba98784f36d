"""Alerts as data: `service.yaml` and `prober.yaml` beside this module. A new alert is a new entry.

An entry has the fields of `AlertingRule`: `expr`, `for`, `severity`, `owner`, `by`, `summary` (with `value` and `subject`),
`description`, `dashboard`, and where needed `evidence` and `page`. Every text may contain placeholders in << >>, for repeated parts and for
settings of an installation: label lists (`<< TARGET >>`), phrases (`<< on_target >>`), functions of `promql` (`<< news(...) >>`), the
`terms` and `limits` of the file. Prometheus' own templates, in {{ }}, stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml
from jinja2 import Environment, StrictUndefined

from prober.alerting import promql
from prober.alerting.findings import age_group, finding_group, late_kinds
from prober.alerting.objectives import objective_groups
from prober.alerting.options import Options
from prober.alerting.rules import (
    COUNT,
    DURATION,
    ON_TARGET,
    PROBE,
    SHARE,
    AlertingRule,
    Dashboard,
    Owner,
    RecordingRule,
    RuleGroup,
    Severity,
    as_yaml,
)
from prober.core.findings import Kind
from prober.durations import duration_s
from prober.sinks.metrics.scopes import OWN, PROBE_INSTANCE, SUBSCRIPTION, TARGET
from prober.slo.objectives import Objective

_FOLDER: Final = Path(__file__).parent
_TEXTS: Final = Environment(  # PromQL and Prometheus' templates, no HTML
    variable_start_string="<<", variable_end_string=">>", undefined=StrictUndefined, autoescape=False
)
_PHRASES: Final = {"on_target": ON_TARGET, "probe": PROBE, "count": COUNT, "duration": DURATION, "share": SHARE}
_LABELS: Final = {
    "TARGET": TARGET,
    "SUBSCRIPTION": SUBSCRIPTION,
    "OWN": OWN,
    "PROBE": PROBE_INSTANCE,
    "PROCESS": promql.PROCESS,
    "PROCESS_TARGET": (*promql.PROCESS, *TARGET),
    "RUN": promql.RUN_BY,
}


def limits(name: str) -> Mapping[str, float]:
    """Return the limits in a file, which dashboards draw as thresholds; `name` without the suffix."""
    return dict(_read(name)["limits"])


def groups_of(name: str, options: Options, late_kinds: Mapping[Severity, tuple[Kind, ...]]) -> tuple[RuleGroup, ...]:
    """Return the groups of a file. `late_kinds`: the kinds of findings by the severity of an alert about a late finding.

    Raises jinja2.UndefinedError for a placeholder without a meaning, and KeyError for an entry without a required field.
    """
    file = _read(name)
    known: dict[str, Any] = {
        **{label: ", ".join(names) for label, names in _LABELS.items()},
        **_PHRASES,
        "news": lambda labels, selected, window: promql.news(labels.split(", "), selected, duration_s(window)),
        "restarted": lambda window: promql.restarted(duration_s(window)),
        "outside": lambda window="": promql.outside_maintenance("", duration_s(window) if window else 0.0).strip(),
        "limits": file["limits"],
        "late_kinds": {str(severity): "|".join(sorted(kinds)) for severity, kinds in late_kinds.items()},
        "scrape_job": options.scrape_job,
    }
    for term, text in file["terms"].items():
        known[term] = _filled(text, known)
    return tuple(
        RuleGroup(group["name"], duration_s(group["interval"]), tuple(_rule(rule, known) for rule in group["rules"]))
        for group in file["groups"]
    )


@cache
def _read(name: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the loader in C is ten times as fast
    return yaml.load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=loader)


def _filled(text: str, known: Mapping[str, Any]) -> str:
    return _TEXTS.from_string(text).render(known)


def _rule(entry: Mapping[str, str], known: Mapping[str, Any]) -> RecordingRule | AlertingRule:
    filled = {name: _filled(text, known) for name, text in entry.items()}
    if "record" in filled:
        return RecordingRule(filled["record"], filled["expr"])
    return AlertingRule(
        filled["alert"],
        filled["expr"],
        Severity(filled["severity"]),
        Owner(filled["owner"]),
        filled["summary"],
        filled["description"],
        Dashboard(filled["dashboard"]),
        tuple(filter(None, filled["by"].split(", "))),
        duration_s(filled["for"]) if "for" in filled else 0.0,
        {"evidence": filled["evidence"]} if "evidence" in filled else {},
        filled.get("page", ""),
        filled.get("value", ""),
        filled.get("subject", ""),
    )


# --- the rule files of a configuration: what is in them, and whether what lies in a folder is that ----------------------------


OBJECTIVES: Final = "objectives.rules.yaml"
SERVICE: Final = "service.rules.yaml"
PROBER: Final = "prober.rules.yaml"
_NOTHING_WRITTEN: Final[Mapping[str, Any]] = MappingProxyType({})


def groups_by_file(objectives: Iterable[Objective], options: Options) -> Mapping[str, tuple[RuleGroup, ...]]:
    """Return all rules, by the name of their file."""
    declared, late = tuple(objectives), late_kinds()
    return {
        OBJECTIVES: (*objective_groups(declared), age_group(declared)),
        SERVICE: (finding_group(options), *groups_of("service", options, late)),
        PROBER: groups_of("prober", options, late),
    }


def rule_files(
    objectives: Iterable[Objective], options: Options | None = None, written: Mapping[str, Any] = _NOTHING_WRITTEN
) -> Mapping[str, str]:
    """Return the text of each file by its name; the same for equal arguments.

    `written` is the section `slos` of the configuration with the objectives. The one file that depends on objectives contains it
    at its head, so that the Helm chart, which cannot compute rules, can refuse rules of other objectives than those of the configuration.
    """
    chosen = options or Options()
    remarks = {OBJECTIVES: f"# slos: {json.dumps(dict(written), sort_keys=True, default=str)}\n"}
    return {name: as_yaml(groups, chosen, remarks.get(name, "")) for name, groups in groups_by_file(objectives, chosen).items()}
