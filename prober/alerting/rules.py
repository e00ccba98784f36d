"""The content of a rule file: groups of recording rules and alerts, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

import yaml

from prober.alerting.options import Options
from prober.alerting.promql import PROCESS, prom_duration
from prober.sinks.metrics.scopes import TARGET

Document: TypeAlias = dict[str, Any]

HEADER: Final = (
    "# Written by `ordering-prober alerts` from the objectives of the configuration; docs/alerts.md says how to change it.\n"
)
FINDINGS_INTERVAL_S: Final = 10.0
"""Interval of the rules about proven findings: these page, so it is the shortest usual scrape interval."""
INTERVAL_S: Final = 30.0
LINE_WIDTH: Final = 4096  # no folded strings: a diff shows the changed text


# The subject of an alert in descriptions.
ON_TARGET: Final = "{{ $labels.target }} ({{ $labels.environment }}, {{ $labels.region }})"
PROBE: Final = "{{ $labels.probe }} ({{ $labels.vantage }}{{ with $labels.part }}, part {{ . }}{{ end }})"

# How summaries write a value.
COUNT: Final = '{{ $value | printf "%.0f" }}'
DURATION: Final = "{{ $value | humanizeDuration }}"
SHARE: Final = "{{ $value | humanizePercentage }}"


class Severity(StrEnum):
    """The response that an alert demands: now, on a working day, none.

    NONE is for the alert that always fires.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"
    NONE = "none"


class Owner(StrEnum):
    """The team that can act.

    SERVICE      the owners of the probed service.
    SUBSCRIBER   the owners of the subscribers of an own subscription.
    PROBER       the operators of the prober.
    """

    SERVICE = "service"
    SUBSCRIBER = "subscriber"
    PROBER = "prober"


class AlertBasis(StrEnum):
    """The basis of an alert about a service.

    PROOF        findings of the checker, each with the events that prove it: true whatever else the prober fails to see.
    MEASUREMENT  rates and ages. Of these the prober's own trouble can fake latencies, so its alerts inhibit those.
    """

    PROOF = "proof"
    MEASUREMENT = "measurement"


class Dashboard(StrEnum):
    """The dashboards, by uid."""

    OVERVIEW = "okp-overview"
    ORDERING = "okp-ordering"
    LATENCY = "okp-latency"
    CONTROL_PLANE = "okp-control-plane"
    KEYS = "okp-keys"
    PUBLISHER = "okp-publisher"
    PROBER = "okp-prober"
    JOBS = "okp-jobs"


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """A recording rule."""

    name: str
    expression: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlertingRule:
    """An alerting rule.

    sentence      the same for every occurrence; with subject and value it is the summary.
    description   a template; may name the labels in `by`, and `$value`.
    by            the labels of the expression's result that links and the description use.
    for_s         how long the expression must hold before it fires.
    labels        further labels, beside severity and owner.
    page          the prober's page about it: a path with templates, without the leading slash.
    value         a template of the value, empty if the value has no meaning.
    subject       a template of the labels, if some series of the rule lack some of them; by default derived from `by`.
    """

    name: str
    expression: str
    severity: Severity
    owner: Owner
    sentence: str
    description: str
    dashboard: Dashboard
    by: tuple[str, ...] = ()
    for_s: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    value: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are evaluated in sequence, every `interval_s`."""

    name: str
    interval_s: float
    rules: tuple[RecordingRule | AlertingRule, ...]


def as_yaml(groups: tuple[RuleGroup, ...], options: Options, remark: str = "") -> str:
    """Return a rule file, with one more line of comment at its head. Equal arguments return the same text."""
    document = {"groups": [_group(group, options) for group in groups]}
    return HEADER + remark + yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=LINE_WIDTH)


def _group(group: RuleGroup, options: Options) -> Document:
    rules = [_alert(rule, options) if isinstance(rule, AlertingRule) else _recording(rule) for rule in group.rules]
    return {"name": group.name, "interval": prom_duration(group.interval_s), "rules": rules}


def _recording(rule: RecordingRule) -> Document:
    document: Document = {"record": rule.name, "expr": rule.expression}
    return document | ({"labels": dict(rule.labels)} if rule.labels else {})


def _alert(rule: AlertingRule, options: Options) -> Document:
    document: Document = {"alert": rule.name, "expr": rule.expression}
    if rule.for_s:
        document["for"] = prom_duration(rule.for_s)
    document["labels"] = dict(rule.labels) | {"severity": str(rule.severity), "owner": str(rule.owner)}
    document["annotations"] = {
        "summary": _summary(rule),
        "description": rule.description,
        "runbook_url": f"{options.runbooks_url}/{rule.name}.md{_query(rule.by)}",
        "dashboard_url": _dashboard_url(rule, options),
    }
    if rule.page:
        document["annotations"]["status_url"] = f"{options.pages}/{rule.page}"
    return document


def _summary(rule: AlertingRule) -> str:
    """Return `target/probe/vantage, part 1/2 (environment, region), job/instance: sentence (value)`, with the labels that the rule has."""
    subject = rule.subject or subject_of(rule.by)
    value = f" ({rule.value})" if rule.value else ""
    return f"{subject}{': ' if subject else ''}{rule.sentence.removesuffix('.')}{value}."


def subject_of(by: Iterable[str]) -> str:
    """Return the template of every label in `by`, without the indicator: the objective's name implies it."""
    labels = [label for label in by if label != "indicator"]
    place = [label for label in labels if label in TARGET and label != "target"]
    process = [label for label in labels if label in PROCESS]
    named = [label for label in labels if label not in {*place, *process, "part"}]
    part = "{{ with $labels.part }}, part {{ . }}{{ end }}" if "part" in labels else ""
    where = f" ({', '.join(map(_label, place))})" if place else ""
    return ", ".join(filter(None, ("/".join(map(_label, named)) + part + where, "/".join(map(_label, process)))))


def _label(name: str) -> str:
    return f"{{{{ $labels.{name} }}}}"


def _dashboard_url(rule: AlertingRule, options: Options) -> str:
    variables = [label for label in ("target", "subscription", "topic", "probe") if label in rule.by]
    return f"{options.dashboards}/d/{rule.dashboard}{_query(variables, 'var-')}"


def _query(labels: Iterable[str], prefix: str = "") -> str:
    query = "&".join(f"{prefix}{label}={value_of(label)}" for label in labels)
    return f"?{query}" if query else ""


def value_of(label: str) -> str:
    """Return the template of a label's value for an address."""
    return f"{{{{ $labels.{label} | urlquery }}}}"


class _Dumper(yaml.CSafeDumper):
    """A YAML dumper that writes expressions of several lines as blocks."""


def _represent(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent)
