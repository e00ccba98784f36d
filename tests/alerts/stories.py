"""Stories that rules have to tell right: what is scraped, and how many alerts fire when. promtool plays them on the real rule engine.

promtool's clock starts in 1970, where a timestamp of 0 is recent. So a story starts at `EPOCH`: timestamps count from there (`at`), and the
rules that promtool gets add it to their clock (`in_story_time`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import yaml

from prober.alerting.catalogue import groups_by_file, rule_files
from prober.alerting.options import SCRAPE_JOB, Options
from prober.alerting.rules import AlertingRule
from prober.config.loading import load
from prober.sinks.metrics.family import Family, MetricType
from prober.slo.objectives import Objective
from tests.alerts.tools import said
from tests.commands import ROOT

ALERTS = ROOT / "alerts"
EPOCH = 1_800_000_000
HERE = {"target": "t", "environment": "e", "region": "r"}
PROBE = {**HERE, "probe": "ordering", "vantage": "wire"}
PROCESS = {"job": SCRAPE_JOB, "instance": "i"}
ALERTING = tuple(
    rule
    for groups in groups_by_file(load(None, {}).objectives, Options()).values()
    for group in groups
    for rule in group.rules
    if isinstance(rule, AlertingRule)
)
NAMES = frozenset(alert.name for alert in ALERTING)


@dataclass(frozen=True)
class Story:
    """One story about one alert.

    series   what is scraped, one value per `every`, as promtool writes it: `0x3` is four zeros, `_` nothing, `stale` the end.
    firing   how many of the alert fire at a time after the start.
    among    labels that the alerts that are counted must have.
    reads    the description of the alert that fires at that time, with the labels that its expression gives it.
    summary  the summary that it has then; without it that is not compared.
    objectives the objectives that the rules are made for; without them they are the committed ones.
    """

    alert: str
    says: str
    series: Mapping[str, str]
    firing: Mapping[str, int]
    every: str = "15s"
    among: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, Mapping[str, str], str] | None = None
    summary: str = ""
    objectives: tuple[Objective, ...] = ()

    def __str__(self) -> str:
        return f"{self.alert}-{self.says.replace(' ', '-')}"


def of(family: Family, suffix: str = "", **labels: str) -> str:
    """A series of a family as it is scraped: on the target and by the process of all stories, unless stated otherwise."""
    given = {name.rstrip("_"): value for name, value in labels.items()}
    wanted = {*family.labels, *({"le"} if suffix == "_bucket" else ())}
    complete = {name: value for name, value in {**PROBE, "part": "", **given}.items() if name in wanted}
    assert complete.keys() == wanted, (family.name, complete.keys() ^ wanted)
    assert (family.kind is MetricType.HISTOGRAM) == bool(suffix)
    return named(family.full_name + suffix, **{**PROCESS, **given} | complete)


def at(values: str) -> str:
    """Timestamps in seconds after the start of a story, in promtool's notation; `never` is the timestamp 0: `neverx20 -60x40`."""
    return " ".join(
        re.sub(r"^-?\d+", lambda found: str(EPOCH + int(found.group())), one).replace("never", "0") for one in values.split()
    )


def named(name: str, **labels: str) -> str:
    """Any series."""
    written = (f'{label}="{value}"' for label, value in labels.items() if value)
    return f"{name}{{{', '.join(written)}}}"


@cache
def file_of(alert: str) -> str:
    """The name of the file that an alert stands in."""
    by_file = groups_by_file(load(None, {}).objectives, Options())
    (name,) = (
        name
        for name, groups in by_file.items()
        if any(isinstance(rule, AlertingRule) and rule.name == alert for group in groups for rule in group.rules)
    )
    return name


@cache
def _groups(name: str, objectives: tuple[Objective, ...]) -> str:
    """The groups of a rule file, made for these objectives or else as it is committed; as JSON, which is read in no time."""
    text = rule_files(objectives)[name] if objectives else (ALERTS / name).read_text(encoding="utf-8")
    return json.dumps(yaml.load(text, Loader=yaml.CSafeLoader)["groups"])


def rules_of(story: Story, folder: Path) -> Path:
    """A rule file for a story: the alerts that it counts, and the records that they read. All rules would take ten times as long."""
    name = file_of(story.alert)
    groups = json.loads(_groups(name, story.objectives))
    for group in groups:
        group["rules"] = _needed(group["rules"], story)
    for rule in (rule for group in groups for rule in group["rules"]):
        rule["expr"] = in_story_time(rule["expr"])
        if "alert" in rule:
            rule["annotations"] |= {} if story.summary else {"summary": ""}
    path = folder / name
    path.write_text(json.dumps({"groups": [group for group in groups if group["rules"]]}), encoding="utf-8")  # JSON is YAML
    return path


def _needed(rules: Sequence[dict[str, Any]], story: Story) -> list[dict[str, Any]]:
    needed: list[dict[str, Any]] = []
    for rule in reversed(rules):
        is_read = "record" in rule and any(rule["record"] in other["expr"] for other in needed)
        if is_read or _may_make(rule, story):
            needed.insert(0, rule)
    return needed


def in_story_time(expression: str) -> str:
    """An expression whose clock is that of the stories. Rules call no other function that reads a clock (`test_rules`)."""
    return re.sub(r"\b(time\(\)|timestamp\([^()]*\))", rf"(\1 + {EPOCH})", expression)


def _may_make(rule: Mapping[str, Any], story: Story) -> bool:
    return rule.get("alert") == story.alert and all(rule["labels"].get(name, value) == value for name, value in story.among.items())


def play(story: Story, folder: Path) -> tuple[int, str]:
    """What promtool says about a story; 0 if it goes as reported."""
    rules = rules_of(story, folder)
    document = {
        "rule_files": [str(rules)],
        "evaluation_interval": story.every,
        "tests": [
            {
                "name": str(story),
                "interval": story.every,
                "input_series": [{"series": series, "values": values} for series, values in story.series.items()],
                "promql_expr_test": [_counted(story, time, count) for time, count in story.firing.items()],
                "alert_rule_test": [_read(story, rules)] if story.reads else [],
            }
        ],
    }
    path = folder / "story.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return said("promtool", "test", "rules", path)


def _counted(story: Story, time: str, count: int) -> dict[str, Any]:
    among = {"alertname": story.alert, "alertstate": "firing", **story.among}
    return {
        "expr": f"count({named('ALERTS', **among)}) or vector(0)",
        "eval_time": time,
        "exp_samples": [{"labels": "{}", "value": count}],
    }


def _read(story: Story, rules: Path) -> dict[str, Any]:
    assert story.reads is not None
    time, labels, description = story.reads
    (rule,) = (rule for rule in alerts_in(rules_in(rules)) if _may_make(rule, story))
    link = {name: _filled(text, labels) for name, text in rule["annotations"].items() if name.endswith("_url")}
    annotations = {"summary": story.summary, "description": description, **link}
    return {
        "alertname": story.alert,
        "eval_time": time,
        "exp_alerts": [{"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": annotations}],
    }


def _filled(template: str, labels: Mapping[str, str]) -> str:
    """An address with its labels, as Prometheus fills it in: escaped, and empty where the alert lacks the label."""
    return re.sub(r"\{\{ \$labels\.(\w+) \| urlquery \}\}", lambda found: quote_plus(labels.get(found[1], "")), template)


def rules_in(path: Path) -> list[dict[str, Any]]:
    """The rules of a file, as they are written."""
    document = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return [rule for group in document["groups"] for rule in group["rules"]]


def alerts_in(rules: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of them that alert."""
    return [rule for rule in rules if "alert" in rule]


def distinguished(alert: Mapping[str, Any]) -> str:
    """What tells an alert from all others: its name, and labels where several have that name."""
    labels = alert["labels"]
    return "-".join([alert["alert"], *(labels[name] for name in ("slo", "severity") if name in labels)])


PATHS = tuple(ALERTS / name for name in sorted(rule_files(load(None, {}).objectives)))
RULES = tuple(rule for path in PATHS for rule in rules_in(path))
WRITTEN = tuple(alerts_in(RULES))
