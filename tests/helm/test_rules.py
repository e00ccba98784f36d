"""The rules in the words of the platform: alerts left out, other severities, labels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.helm.chart import Values, merged, of_kind
from tests.helm.test_refusals import RULES, at


def alerts(values: Values) -> Iterator[dict[str, Any]]:
    """Every alert of the rendering."""
    for document in of_kind(values, "PrometheusRule", "Rules"):
        for group in document["spec"]["groups"]:
            assert group["rules"], group["name"]
            yield from (rule for rule in group["rules"] if "alert" in rule)


def named(values: Values, name: str) -> dict[str, Any]:
    """The one alert of this name."""
    (found,) = (alert for alert in alerts(values) if alert["alert"] == name)
    return found


def recorded(values: Values) -> list[Any]:
    """Every recording rule."""
    return [
        rule
        for document in of_kind(values, "PrometheusRule", "Rules")
        for group in document["spec"]["groups"]
        for rule in group["rules"]
        if "record" in rule
    ]


def with_rules(values: Values) -> Values:
    """With rules of that kind."""
    return merged(RULES, {"rules": values})


def test_without_a_word_they_are_as_they_were() -> None:
    assert list(alerts(with_rules({"severities": {}, "alerts": {}, "alertLabels": {}}))) == list(alerts(RULES))


def test_a_single_alert_can_be_left_out() -> None:
    changed = with_rules({"alerts": {"PubsubProberJobLate": {"enabled": False}}})
    left_out = {alert["alert"] for alert in alerts(RULES)} - {alert["alert"] for alert in alerts(changed)}
    assert left_out == {"PubsubProberJobLate"}
    assert recorded(changed) == recorded(RULES)


def test_a_group_without_any_rule_left_is_left_out() -> None:
    own = (
        "# slos: {}\ngroups: [{name: a, rules: [{alert: One, expr: vector(1)}]}, {name: b, rules: [{alert: Two, expr: vector(1)}]}]"
    )
    changed = with_rules({"objectives": own, "alerts": {"One": {"enabled": False}}})
    names = {found["metadata"]["name"].removeprefix("okp-ordering-keys-prober-") for found in of_kind(changed, "PrometheusRule")}
    assert names == {"b", "service", "prober"}


def test_severities_have_the_words_of_the_platform() -> None:
    before = [alert["labels"]["severity"] for alert in alerts(RULES)]
    after = [alert["labels"]["severity"] for alert in alerts(with_rules({"severities": {"critical": "page", "warning": "ticket"}}))]
    assert after == [{"critical": "page", "warning": "ticket"}.get(severity, severity) for severity in before]


def test_one_alert_has_a_severity_of_its_own_as_it_is_written() -> None:
    changed = with_rules(
        {"severities": {"critical": "page"}, "alerts": {"PubsubProberDown": {"severity": "critical", "for": "10m"}}}
    )
    down = [alert for alert in alerts(changed) if alert["alert"] == "PubsubProberDown"]
    assert len(down) == 2  # of two severities, and both get what is said by their name
    assert {(alert["labels"]["severity"], alert["for"]) for alert in down} == {("critical", "10m")}
    assert named(changed, "PubsubProberAbsent")["labels"]["severity"] == "page"


def test_labels_go_to_all_alerts_and_those_of_one_win() -> None:
    changed = with_rules({"alertLabels": {"team": "messaging"}, "alerts": {"PubsubProberDown": {"labels": {"team": "core"}}}})
    for alert in alerts(changed):
        assert alert["labels"]["team"] == ("core" if alert["alert"] == "PubsubProberDown" else "messaging")
    assert {alert["labels"]["owner"] for alert in alerts(changed) if alert["alert"] == "PubsubProberDown"} == {"prober"}
    assert recorded(changed) == recorded(RULES)


def test_objectives_of_ones_own_and_google_s_rules_are_changed_too() -> None:
    own = "# slos: {}\ngroups: [{name: own, rules: [{alert: Own, expr: vector(1), labels: {severity: critical}}]}]"
    changed = merged(with_rules({"objectives": own, "kind": "Rules"}), at("rules.alerts", {"Own": {"severity": "page"}}))
    assert named(changed, "Own")["labels"]["severity"] == "page"
