"""The example for Alertmanager: it is sound, every alert reaches who can do something, and inhibition holds back what it should."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from prober.alerting.rules import INTERVAL_S, AlertBasis, Severity
from prober.durations import duration_s
from prober.slo.indicators import Indicator
from tests.alerts.inhibition import Labels, everything, hidden, inhibition, matcher, rank, reported
from tests.alerts.stories import ALERTS, NAMES, WRITTEN
from tests.alerts.tools import said
from tests.helm.chart import CASES, of_kind

EXAMPLE = ALERTS / "alertmanager.example.yaml"
CONFIG: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
HERE = {"target": "t", "environment": "e", "region": "r"}
ELSEWHERE = {**HERE, "target": "u"}
SENT = [{**alert["labels"], "alertname": alert["alert"]} for alert in WRITTEN]
RESEND_S = 60.0
"""Prometheus tells again of an alert at the first evaluation after this time (`--rules.alert.resend-delay`)."""
PROVEN = (
    "PubsubOrderViolated",
    "PubsubRedeliveryViolated",
    "PubsubIntegrityViolated",
    "PubsubOverlapViolated",
    "PubsubDeliveryOverdue",
)


def receiver_of(labels: Mapping[str, str]) -> str:
    """Who is to get an alert, by the rule of the example."""
    if labels["severity"] == "none":
        return {"PubsubProberWatchdog": "dead-mans-switch", "PubsubProberDrillFinding": "fire-drill"}[labels["alertname"]]
    if labels["severity"] == "info":
        return "nobody"
    return f"{labels['owner']}-{'pager' if labels['severity'] == 'critical' else 'tickets'}"


def group_of(labels: Labels) -> tuple[str, ...]:
    """The group of notifications that an alert is in, by the example."""
    root = CONFIG["route"]
    route = next((one for one in root["routes"] if all(matcher(text).matches(labels) for text in one["matchers"])), root)
    grouped = route.get("group_by", root["group_by"])
    return (str(route["matchers"]), *(labels.get(label, "") for label in grouped))


def test_amtool_has_nothing_to_say() -> None:
    code, words = said("amtool", "check-config", EXAMPLE)
    assert code == 0, words
    assert "SUCCESS" in words


ROUTED = {(group_of(labels)[0], receiver_of(labels)): labels for labels in SENT}
"""One alert for each route and receiver: amtool takes the same way for all others."""


@pytest.mark.parametrize("labels", ROUTED.values(), ids=lambda labels: str(labels["alertname"]))
def test_every_alert_reaches_its_receiver(labels: dict[str, str]) -> None:
    given = [f"{name}={value}" for name, value in {**HERE, **labels}.items()]
    command = ["amtool", "config", "routes", "test", f"--config.file={EXAMPLE}"]
    code, words = said(*command, f"--verify.receivers={receiver_of(labels)}", *given)
    assert code == 0, words


def test_a_wrong_receiver_would_be_noticed() -> None:
    command = ["amtool", "config", "routes", "test", f"--config.file={EXAMPLE}"]
    assert said(*command, "--verify.receivers=service-pager", "owner=prober", "severity=critical")[0] != 0


def test_a_group_of_several_alerts_waits_for_all_that_prometheus_tells_again_of_those_that_are_over() -> None:
    routes = [route for route in CONFIG["route"]["routes"] if route["receiver"].endswith("-pager")]
    assert len(routes) == 3
    assert all(duration_s(route["group_interval"]) > RESEND_S + INTERVAL_S for route in routes)


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


# --- inhibition --------------------------------------------------------------------------------------------------------------

RULES = [inhibition(rule) for rule in CONFIG["inhibit_rules"]]
EVERY = everything(WRITTEN)


@cache
def shipped(name: str) -> list[Labels]:
    """The alerts of the repository, or those of a shipped combination of the chart's values, as they are sent; some have none."""
    if name == "alerts":
        return EVERY
    groups = [group for rules in of_kind(CASES[name], "PrometheusRule", "Rules") for group in rules["spec"]["groups"]]
    return everything([rule for group in groups for rule in group["rules"] if "severity" in rule.get("labels", ())])


def alert(name: str, where: Labels = HERE, **labels: str) -> Labels:
    """An alert as it is sent."""
    known = next(one for one in EVERY if one["alertname"] == name and labels.items() <= {**labels, **one}.items())
    return {**known, **where, **labels}


def burn(indicator: Indicator, severity: str = "critical") -> Labels:
    """The alert that the budget of an objective burns."""
    return alert("PubsubErrorBudgetBurn", slo=indicator, indicator=indicator, severity=severity)


def hides(source: Labels, target: Labels) -> bool:
    """Whether an alert keeps another from being reported, by the example."""
    return any(rule.inhibits(source, target) for rule in RULES)


@pytest.mark.parametrize("name", ["alerts", *CASES])
def test_an_alert_hides_only_what_is_at_most_as_severe(name: str) -> None:
    assert [(one, other) for one, other in hidden(RULES, shipped(name)) if rank(one) < rank(other)] == []


def test_values_with_rules_are_shipped_whose_alerts_hide_others() -> None:
    assert all(any(hidden(RULES, shipped(name))) for name in ("alerts", "gke", "production"))


def test_no_rule_could_hide_a_page_by_a_ticket_whatever_severities_an_installation_gives() -> None:
    for rule in RULES:
        least = min(rank({"severity": severity}) for severity in Severity if rule.source_may_have(severity))
        most = max(rank({"severity": severity}) for severity in Severity if rule.target_may_have(severity))
        assert least >= most, rule


def test_alerts_that_hide_each_other_do_not_exist_so_the_cause_is_reported() -> None:
    hidden_by: dict[str, set[str]] = {reported(one): set() for one in EVERY}
    for cause, consequence in hidden(RULES, EVERY):
        hidden_by[reported(consequence)].add(reported(cause))
    while causes := {name for name, others in hidden_by.items() if not others}:
        hidden_by = {name: others - causes for name, others in hidden_by.items() if name not in causes}
    assert hidden_by == {}, "each of these is hidden by another of these"


def test_nothing_hides_what_is_proven() -> None:
    assert not [(one, other) for one in EVERY for other in EVERY if other.get("evidence") == AlertBasis.PROOF and hides(one, other)]


def test_the_probers_own_trouble_hides_latencies_of_that_target_and_nothing_else_of_the_service() -> None:
    hidden = [
        (one, other)
        for one in EVERY
        for other in EVERY
        if (one["owner"], other["owner"]) == ("prober", "service") and hides(one, other)
    ]
    assert {other["indicator"] for _, other in hidden} == {
        Indicator.PUBLISH_LATENCY,
        Indicator.END_TO_END_LATENCY,
        Indicator.PULL_LATENCY,
        Indicator.PUSH_LATENCY,
        Indicator.REDELIVERY_LATENCY,
        Indicator.CONTROL_PLANE_LATENCY,
        Indicator.CREATION_TO_RECEIPT_LATENCY,
        Indicator.HEAD_OF_LINE_DELAY,
    }
    assert not any(hides(one, {**other, "target": "elsewhere"}) for one, other in hidden)


@pytest.mark.parametrize("name", ["PubsubProberLagging", "PubsubProberClockWrong", "PubsubProberCoverageLow"])
def test_a_ticket_about_the_prober_explains_a_ticket_about_latencies_away_and_no_page(name: str) -> None:
    assert hides(alert(name), burn(Indicator.END_TO_END_LATENCY, "warning"))
    assert not hides(alert(name), burn(Indicator.END_TO_END_LATENCY))


WITHIN = {
    ("PubsubOrderViolated", "order"),
    ("PubsubRedeliveryViolated", "redelivery"),
    ("PubsubProberDown", "PubsubProberSeriesVanished"),
    ("PubsubProberSeriesVanished", "PubsubProberRunsMissing"),
}
"""Pages of different groups of which the second fires only while the first does.

A violation is reported at once and for an hour, its budget when the run has ended and for half an hour. Both others begin with the same
scrape.
"""


def test_nobody_is_left_with_a_page_whose_end_was_hidden() -> None:
    """Alertmanager drops the word that an alert is over while another one hides it; a group is over when all of it is."""
    paging = [one for one in EVERY if one["severity"] == Severity.CRITICAL]
    pairs = [(one, other) for one in paging for other in paging if hides(one, other) and group_of(one) != group_of(other)]
    assert {(one["alertname"], other.get("slo", other["alertname"])) for one, other in pairs} <= WITHIN


def test_in_an_outage_every_page_gets_through_all_tickets_about_the_prober() -> None:
    tickets = [one for one in EVERY if (one["owner"], one["severity"]) == ("prober", "warning")]
    assert len(tickets) > 10
    pages = [
        alert("PubsubTargetUnreachable"),
        burn(Indicator.PUBLISH_AVAILABILITY),
        alert("PubsubKeysStalled"),
        burn(Indicator.OLDEST_UNACKED_MESSAGE_AGE),
        *map(alert, PROVEN),
    ]
    assert not [(one, page) for one in tickets for page in pages if hides(one, page)]


def test_one_dead_prober_is_one_page() -> None:
    down = alert("PubsubProberDown", severity="critical")
    others = ["PubsubProberSeriesVanished", "PubsubProberStale", "PubsubProberCoverageLow"]
    assert all(hides(down, alert(name)) for name in others)
    assert not any(hides(down, alert(name, ELSEWHERE)) for name in others)


@pytest.mark.parametrize(
    "cause", ["PubsubProberDown", "PubsubProberRunsMissing", "PubsubProberLagging", "PubsubProberVerdictsUnknown"]
)
def test_the_trouble_of_one_prober_hides_no_ticket_about_the_runs_of_another(cause: str) -> None:
    run = {**HERE, "probe": "ordering", "vantage": "wire", "job": "j", "instance": "i"}
    severity = "warning" if cause in {"PubsubProberLagging", "PubsubProberVerdictsUnknown"} else "critical"
    source = alert(cause, run, severity=severity)
    assert hides(source, alert("PubsubProberStale", run))
    assert not hides(source, alert("PubsubProberStale", {**run, "instance": "other"}))


def test_where_every_run_is_unknown_one_page_hides_the_tickets_about_single_probes() -> None:
    assert hides(alert("PubsubTargetBlind"), alert("PubsubProberVerdictsUnknown"))
    assert not hides(alert("PubsubTargetBlind"), alert("PubsubProberNotPermitted"))


def test_a_prober_whose_work_others_have_taken_over_hides_nothing_of_theirs() -> None:
    lost = {name: value for name, value in alert("PubsubProberDown", severity="warning").items() if name not in HERE}
    assert not any(hides(lost, one) for one in EVERY)


@pytest.mark.parametrize(
    ("cause", "consequence"),
    [
        (Indicator.PUBLISH_AVAILABILITY, Indicator.PUBLISH_LATENCY),
        (Indicator.PUBLISH_AVAILABILITY, Indicator.END_TO_END_LATENCY),
        (Indicator.PUBLISH_AVAILABILITY, Indicator.STALLED_KEYS),
        (Indicator.PUBLISH_LATENCY, Indicator.END_TO_END_LATENCY),
        (Indicator.STALLED_KEYS, Indicator.COMPLETENESS),
        (Indicator.STALLED_KEYS, Indicator.END_TO_END_LATENCY),
        (Indicator.COMPLETENESS, Indicator.OLDEST_UNACKED_MESSAGE_AGE),
        (Indicator.OLDEST_UNACKED_MESSAGE_AGE, Indicator.END_TO_END_LATENCY),
    ],
)
def test_the_cause_hides_its_consequence_if_it_is_as_severe(cause: Indicator, consequence: Indicator) -> None:
    assert hides(burn(cause), burn(consequence))
    assert hides(burn(cause), burn(consequence, "warning"))
    assert hides(burn(cause, "warning"), burn(consequence, "warning"))
    assert not hides(burn(cause, "warning"), burn(consequence))
    assert not hides(burn(consequence), burn(cause))


def test_where_nothing_can_be_reached_only_that_is_reported_and_what_it_costs() -> None:
    unreachable = alert("PubsubTargetUnreachable")
    assert hides(unreachable, alert("PubsubKeysStalled"))
    assert hides(unreachable, burn(Indicator.OLDEST_UNACKED_MESSAGE_AGE))
    assert hides(unreachable, alert("PubsubProberVerdictsUnknown"))
    assert not hides(unreachable, burn(Indicator.PUBLISH_AVAILABILITY))
    assert not hides(unreachable, burn(Indicator.ORDER))


def test_publishes_that_fail_do_not_hide_keys_that_stand_still() -> None:
    assert not hides(burn(Indicator.PUBLISH_AVAILABILITY), alert("PubsubKeysStalled"))


def test_what_is_proven_hides_what_burns_because_of_it() -> None:
    assert hides(alert("PubsubOrderViolated"), burn(Indicator.ORDER))
    assert hides(alert("PubsubRedeliveryViolated"), burn(Indicator.REDELIVERY))
    assert hides(alert("PubsubDeliveryOverdue"), burn(Indicator.COMPLETENESS))
    assert not hides(alert("PubsubOrderViolated"), burn(Indicator.COMPLETENESS))
    stalled = alert("PubsubKeysStalled", subscription="s")
    assert hides(alert("PubsubDeliveryOverdue", subscription="s"), stalled)
    assert not hides(alert("PubsubDeliveryOverdue", subscription="other"), stalled)


def test_a_page_hides_the_ticket_of_its_objective_only() -> None:
    ticket = burn(Indicator.ORDER, "warning")
    assert hides(burn(Indicator.ORDER), ticket)
    assert hides(ticket, alert("PubsubErrorBudgetExhausted", slo="order", indicator="order"))
    assert not hides(burn(Indicator.ORDER), {**ticket, "slo": "affinity"})
    assert not hides(ticket, burn(Indicator.ORDER))


def test_what_the_service_does_not_guarantee_pages_nobody() -> None:
    about = [one for one in SENT if one["alertname"] == "PubsubAffinityViolated" or one.get("slo") == "affinity"]
    assert len(about) == 4
    assert {receiver_of(one) for one in about} == {"service-tickets", "nobody"}
