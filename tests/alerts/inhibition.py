"""Inhibition as Alertmanager decides it, on labels alone, and the alerts that it decides about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from prober.alerting.rules import Severity
from prober.slo.indicators import Indicator

Labels: TypeAlias = dict[str, str]

SEVERITIES = (Severity.NONE, Severity.INFO, Severity.WARNING, Severity.CRITICAL)
WHERE = {"target": "t", "environment": "e", "region": "r"}
NOWHERE = frozenset(
    {"PubsubCandidateWorse", "PubsubProberAbsent", "PubsubProberDrillFailed", "PubsubProberDrillOverdue", "PubsubProberWatchdog"}
)
"""Alerts that are not about a target, or about two."""


@dataclass(frozen=True)
class Matcher:
    """One matcher of Alertmanager, such as `severity=~"warning|info"`; a label that is missing is empty."""

    name: str
    operator: str
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels match."""
        found = labels.get(self.name, "")
        equal = bool(re.fullmatch(self.value, found)) if self.operator.endswith("~") else found == self.value
        return equal != self.operator.startswith("!")


@dataclass(frozen=True)
class Inhibition:
    """One rule: what hides, what is hidden, and the labels that they must have in common."""

    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...]

    def inhibits(self, source: Labels, target: Labels) -> bool:
        """Whether one alert hides another by this rule."""
        alike = all(source.get(label, "") == target.get(label, "") for label in self.equal)
        both = _match(self.source, target) and _match(self.target, source)
        return alike and _match(self.source, source) and _match(self.target, target) and not both

    def among(self, alerts: Sequence[Labels]) -> tuple[list[Labels], list[Labels]]:
        """Those that may hide others by this rule, and those that may be hidden."""
        return [one for one in alerts if _match(self.source, one)], [one for one in alerts if _match(self.target, one)]

    def source_may_have(self, severity: Severity) -> bool:
        """Whether an alert of this severity may hide others."""
        return _allows(self.source, severity)

    def target_may_have(self, severity: Severity) -> bool:
        """Whether an alert of this severity may be hidden."""
        return _allows(self.target, severity)


def hidden(rules: Iterable[Inhibition], alerts: Sequence[Labels]) -> Iterator[tuple[Labels, Labels]]:
    """Which of these alerts hide which others by a rule. Only what its matchers match is looked at two by two."""
    for rule in rules:
        sources, targets = rule.among(alerts)
        yield from ((one, other) for one in sources for other in targets if rule.inhibits(one, other))


def inhibition(rule: Mapping[str, Any]) -> Inhibition:
    """A rule as it is written."""
    return Inhibition(_matchers(rule["source_matchers"]), _matchers(rule["target_matchers"]), tuple(rule["equal"]))


def everything(written: Iterable[Mapping[str, Any]]) -> list[Labels]:
    """Every alert of these rules as it is sent about one place; those about objectives once for each indicator that there is."""
    sent = [{**alert["labels"], "alertname": alert["alert"]} for alert in written]
    placed = [alert if alert["alertname"] in NOWHERE else {**alert, **WHERE} for alert in sent]
    budgets = {tuple({**alert, "slo": one, "indicator": one}.items()) for alert in placed if "slo" in alert for one in Indicator}
    return [alert for alert in placed if "slo" not in alert] + [dict(one) for one in sorted(budgets)]


def rank(labels: Mapping[str, str]) -> int:
    """The more severe, the higher."""
    return SEVERITIES.index(Severity(labels["severity"]))


def reported(labels: Mapping[str, str]) -> str:
    """What tells an alert from the others."""
    return " ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _match(matchers: Iterable[Matcher], labels: Labels) -> bool:
    return all(matcher.matches(labels) for matcher in matchers)


def _allows(matchers: Iterable[Matcher], severity: Severity) -> bool:
    return all(matcher.matches({"severity": severity}) for matcher in matchers if matcher.name == "severity")


def _matchers(written: Iterable[str]) -> tuple[Matcher, ...]:
    return tuple(matcher(text) for text in written)


def matcher(written: str) -> Matcher:
    """A matcher as it is written."""
    parsed = re.fullmatch(r'(\w+)(=~|!~|!=|=)"(.*)"', written)
    assert parsed is not None, written
    return Matcher(*parsed.groups())
