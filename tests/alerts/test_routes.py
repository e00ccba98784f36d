"""The example for Alertmanager: it is sound, every alert reaches who can do something, and inhibition holds back what it should."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import yaml

from tests.alerts.stories import ALERTS, NAMES, WRITTEN, told_apart
from tests.alerts.tools import said

EXAMPLE = ALERTS / "alertmanager.example.yaml"
CONFIG: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
HERE = {"target": "t", "environment": "e", "region": "r"}
ELSEWHERE = {**HERE, "target": "u"}
SENT = [{**alert["labels"], "alertname": alert["alert"]} for alert in WRITTEN]


def receiver_of(labels: Mapping[str, str]) -> str:
    """Who is to get an alert, by the rule of the example."""
    if labels["severity"] == "none":
        return {"PubsubProberWatchdog": "dead-mans-switch", "PubsubProberDrillFinding": "fire-drill"}[labels["alertname"]]
    if labels["severity"] == "info":
        return "nobody"
    return f"{labels['owner']}-{'pager' if labels['severity'] == 'critical' else 'tickets'}"


def test_amtool_has_nothing_to_say() -> None:
    code, words = said("amtool", "check-config", EXAMPLE)
    assert code == 0, words
    assert "SUCCESS" in words


@pytest.mark.parametrize("labels", SENT, ids=map(told_apart, WRITTEN))
def test_every_alert_reaches_its_receiver(labels: dict[str, str]) -> None:
    given = [f"{name}={value}" for name, value in {**HERE, **labels}.items()]
    command = ["amtool", "config", "routes", "test", f"--config.file={EXAMPLE}"]
    code, words = said(*command, f"--verify.receivers={receiver_of(labels)}", *given)
    assert code == 0, words


def test_a_wrong_receiver_would_be_noticed() -> None:
    command = ["amtool", "config", "routes", "test", f"--config.file={EXAMPLE}"]
    assert said(*command, "--verify.receivers=service-pager", "owner=prober", "severity=critical")[0] != 0


def test_nothing_is_grouped_by_key() -> None:
    routes = [CONFIG["route"], *CONFIG["route"]["routes"]]
    grouped = {label for route in routes for label in route.get("group_by", ())}
    assert grouped
    assert not grouped & {"key", "ordering_key", "message_id", "..."}


def test_it_names_alerts_that_exist() -> None:
    named = set(re.findall(r"\bPubsub\w+", EXAMPLE.read_text(encoding="utf-8")))
    assert named <= NAMES


def test_it_names_nobody() -> None:
    assert set(re.findall(r"https?://([\w.-]+)", EXAMPLE.read_text(encoding="utf-8"))) == {
        "pager.example.com",
        "tickets.example.com",
        "watchdog.example.com",
        "ordering-prober.example.com",
    }


# --- inhibition: as Alertmanager decides it, on labels alone -----------------------------------------------------------------


def matches(labels: Mapping[str, str], matchers: Iterable[str]) -> bool:
    """Whether labels match, a label that is missing being empty."""
    for matcher in matchers:
        parsed = re.fullmatch(r'(\w+)(=~|!~|!=|=)"(.*)"', matcher)
        assert parsed is not None, matcher
        name, operator, value = parsed.groups()
        equal = labels.get(name, "") == value if operator in ("=", "!=") else bool(re.fullmatch(value, labels.get(name, "")))
        if equal != (operator in ("=", "=~")):
            return False
    return True


def inhibits(source: Mapping[str, str], target: Mapping[str, str]) -> bool:
    """Whether one alert holds back another."""
    return any(
        matches(source, rule["source_matchers"])
        and matches(target, rule["target_matchers"])
        and all(source.get(label, "") == target.get(label, "") for label in rule["equal"])
        for rule in CONFIG["inhibit_rules"]
    )


def alert(name: str, where: Mapping[str, str] = HERE, **labels: str) -> dict[str, str]:
    """An alert as it is sent."""
    known = next(one for one in SENT if one["alertname"] == name and labels.items() <= {**labels, **one}.items())
    return {**known, **where, **labels}


BURN = alert("PubsubErrorBudgetBurn", slo="order", indicator="order", severity="critical")
UNANSWERED = alert("PubsubErrorBudgetBurn", slo="publish_availability", indicator="publish_availability", severity="critical")
MEASURED = [BURN, UNANSWERED, alert("PubsubKeysStalled"), alert("PubsubPublishesUnknown"), alert("PubsubOldestUnackedAgeRising")]
PROVEN = [
    alert(name) for name in ("PubsubOrderViolated", "PubsubRedeliveryViolated", "PubsubIntegrityViolated", "PubsubDeliveryOverdue")
]
BLIND = [
    "PubsubProberDown",
    "PubsubProberRunsMissing",
    "PubsubProberSeriesVanished",
    "PubsubProberCoverageLow",
    "PubsubProberLagging",
]


@pytest.mark.parametrize("name", BLIND)
def test_a_prober_that_sees_little_holds_back_what_it_measures_at_that_target(name: str) -> None:
    assert all(inhibits(alert(name), one) for one in MEASURED)
    assert not any(inhibits(alert(name, ELSEWHERE), one) for one in MEASURED)


@pytest.mark.parametrize("name", [*BLIND, "PubsubProberVerdictsUnknown"])
def test_nothing_holds_back_what_is_proven(name: str) -> None:
    assert not any(inhibits(alert(name), one) for one in PROVEN)


def test_a_service_that_does_not_answer_still_pages() -> None:
    unknown = alert("PubsubProberVerdictsUnknown")
    assert not inhibits(unknown, UNANSWERED)
    assert not inhibits(unknown, alert("PubsubPublishesUnknown"))
    assert inhibits(unknown, BURN)


def test_a_page_holds_back_the_ticket_of_its_objective_only() -> None:
    ticket = {**BURN, "severity": "warning", "long": "3d"}
    assert inhibits(BURN, ticket)
    assert inhibits(BURN, alert("PubsubErrorBudgetExhausted", slo="order", indicator="order"))
    assert not inhibits(BURN, {**ticket, "slo": "affinity"})
    assert not inhibits(ticket, BURN)


def test_nobody_holds_back_himself() -> None:
    assert not any(inhibits({**one, **HERE}, {**one, **HERE}) for one in SENT)
