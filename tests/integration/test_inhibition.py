"""The example for Alertmanager in the real one: what hides what, and how many messages somebody gets of one trouble."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import combinations, groupby
from pathlib import Path
from threading import Event
from urllib.request import Request, urlopen

import pytest
import yaml

from prober.alerting.rules import Severity
from prober.clock import wall_s
from tests.alerts.inhibition import Inhibition, Labels, everything, inhibition, rank, reported
from tests.alerts.stories import ALERTS, WRITTEN
from tests.integration.chain import Receiver, alertmanager_config, receiving
from tests.integration.daemons import daemon, free_port, written
from tests.integration.programs import eventually, get

pytestmark = pytest.mark.nightly

EVERY = everything(WRITTEN)
PACE = 30.0
ROUNDS, ROUND_S = 14, 1.0
"""How often Prometheus tells of alerts here, and after how many seconds again: in all, several intervals of the pagers' groups."""


@contextmanager
def alertmanager(config: Path, folder: Path) -> Iterator[str]:
    """The address of one with this configuration."""
    options = ("--cluster.listen-address=", f"--storage.path={folder / 'am'}")
    with daemon("prometheus-alertmanager", free_port(), folder / "am.log", f"--config.file={config}", *options) as url:
        yield url


def tell(url: str, alerts: Sequence[Labels], lasts_s: float = 300.0) -> None:
    """Tells of alerts as Prometheus does; with a time below 0 they are over."""
    now = datetime.fromtimestamp(wall_s(), UTC)
    times = {"startsAt": (now - timedelta(minutes=5)).isoformat(), "endsAt": (now + timedelta(seconds=lasts_s)).isoformat()}
    body = json.dumps([{"labels": labels, **times} for labels in alerts]).encode()
    with urlopen(Request(f"{url}/api/v2/alerts", body, {"Content-Type": "application/json"}), timeout=30) as answer:
        assert answer.status == 200


def suppressed(url: str) -> set[str]:
    """What tells the alerts apart that Alertmanager holds back."""
    alerts = json.loads(get(f"{url}/api/v2/alerts", 30.0))
    return {reported(alert["labels"]) for alert in alerts if alert["status"]["state"] == "suppressed"}


# --- every pair --------------------------------------------------------------------------------------------------------------


def mute(folder: Path) -> Path:
    """The example without anybody to tell."""
    config = yaml.safe_load((ALERTS / "alertmanager.example.yaml").read_text(encoding="utf-8"))
    return written(folder / "mute.yaml", config | {"receivers": [{"name": one["name"]} for one in config["receivers"]]})


def at(place: str, alert: Labels) -> Labels:
    """The alert at a place of its own, by every label that rules compare."""
    rest = {"subscription": "s", "probe": "p", "drill": f"drill of {place}", "pair": place}
    return {**rest, **alert, "target": place, "instance": place}


def telling(rules: Sequence[Inhibition]) -> list[tuple[Labels, Labels]]:
    """The pairs in which one hides the other, and those of the prober's trouble and a page about the service."""
    pairs = list(combinations(EVERY, 2))
    owners = ("prober", "service")
    return [
        (one, other)
        for one, other in pairs
        if hides(rules, one, other)
        or hides(rules, other, one)
        or ((one["owner"], other["owner"]) in (owners, owners[::-1]) and Severity.CRITICAL in (one["severity"], other["severity"]))
    ]


def hides(rules: Sequence[Inhibition], source: Labels, target: Labels) -> bool:
    """Whether an alert keeps another from being reported."""
    return any(rule.inhibits(source, target) for rule in rules)


def test_alertmanager_hides_what_the_tests_say_and_never_a_page_by_a_ticket(tmp_path: Path) -> None:
    config = yaml.safe_load((ALERTS / "alertmanager.example.yaml").read_text(encoding="utf-8"))
    rules = [inhibition(rule) for rule in config["inhibit_rules"]]
    pairs = [(at(f"p{number}", one), at(f"p{number}", other)) for number, (one, other) in enumerate(telling(rules))]
    both = [*pairs, *((other, one) for one, other in pairs)]
    expected = {reported(target): source for source, target in both if hides(rules, source, target)}
    assert len(pairs) > len(expected) > 200
    with alertmanager(mute(tmp_path), tmp_path) as url:
        tell(url, [alert for pair in pairs for alert in pair])
        eventually(lambda: suppressed(url) == expected.keys())
    assert not [(source, target) for source, target in both if reported(target) in expected and rank(source) < rank(target)]


# --- what somebody gets ------------------------------------------------------------------------------------------------------


def an_alert(name: str, target: str, **labels: str) -> Labels:
    """An alert of the rules at a target."""
    known = next(one for one in EVERY if one["alertname"] == name and labels.items() <= {**labels, **one}.items())
    return {**known, **labels, "target": target}


def burning(indicator: str, target: str, severity: str = "critical") -> Labels:
    """An objective whose budget burns at a target."""
    return an_alert("PubsubErrorBudgetBurn", target, indicator=indicator, slo=indicator, severity=severity)


def lost(instance: str) -> Labels:
    """A prober is down, and others have taken over."""
    alert = an_alert("PubsubProberDown", "", severity="warning", instance=instance)
    return {name: value for name, value in alert.items() if name not in ("target", "environment", "region")}


DEAD = [
    *(an_alert("PubsubProberDown", target, severity="critical", job="okp", instance="i") for target in ("dead1", "dead2")),
    *(an_alert("PubsubProberSeriesVanished", target) for target in ("dead1", "dead2")),
    *(
        an_alert(name, "dead1", probe="ordering", vantage="wire", job="okp", instance="i")
        for name in ("PubsubProberStale", "PubsubProberCoverageLow")
    ),
]
OUTAGE = [
    an_alert("PubsubTargetUnreachable", "out"),
    *(an_alert(name, "out") for name in ("PubsubProberCoverageLow", "PubsubProberLagging", "PubsubProberClockWrong")),
    *(an_alert(name, "out", probe="ordering") for name in ("PubsubProberVerdictsUnknown", "PubsubProberStale")),
    burning("publish_availability", "out"),
    burning("publish_latency", "out"),
    burning("end_to_end_latency", "out"),
    burning("end_to_end_latency", "out", "warning"),
    burning("oldest_unacked_message_age", "out"),
    an_alert("PubsubKeysStalled", "out", subscription="s"),
    an_alert("PubsubPublishesUnknown", "out", topic="t"),
]
FOUND = [an_alert("PubsubOrderViolated", "found", subscription="s", kind="ORDER_GAP"), burning("order", "found")]
STALLED = [
    an_alert("PubsubDeliveryOverdue", "stalled", subscription="s", kind="STUCK"),
    an_alert("PubsubKeysStalled", "stalled", subscription="s"),
    an_alert("PubsubOldestUnackedAgeRising", "stalled", subscription="s"),
    *(
        burning(indicator, "stalled")
        for indicator in ("stalled_keys", "completeness", "oldest_unacked_message_age", "end_to_end_latency")
    ),
]
TAKEN_OVER = [lost("j")]


def messages(receiver: Receiver, name: str, target: str) -> list[tuple[str, set[str]]]:
    """What a receiver got about a target (or of no target), message by message: the status, and the alerts in it."""
    return [
        (message["status"], {alert["labels"]["alertname"] for alert in message["alerts"]})
        for message in list(receiver.messages)
        if message["receiver"] == name and any(alert["labels"].get("target", "") == target for alert in message["alerts"])
    ]


PAGES: Mapping[tuple[str, str], set[str]] = {
    ("prober-pager", "dead1"): {"PubsubProberDown"},
    ("prober-pager", "dead2"): {"PubsubProberDown"},
    ("service-pager", "out"): {"PubsubTargetUnreachable", "PubsubErrorBudgetBurn"},
    ("service-pager", "found"): {"PubsubOrderViolated"},
    ("service-pager", "stalled"): {"PubsubDeliveryOverdue"},
    ("prober-tickets", ""): {"PubsubProberDown"},
}


def what_somebody_gets(folder: Path) -> dict[tuple[str, str], list[tuple[str, set[str]]]]:
    """Of several troubles at once, that begin and end: the messages, each once.

    Alertmanager sends a message again whose receiver was too slow to answer: that is the same one.
    """
    folder.mkdir()
    troubles = [*DEAD, *OUTAGE, *FOUND, *STALLED, *TAKEN_OVER]
    with receiving() as receiver, alertmanager(alertmanager_config(receiver, folder, PACE), folder) as url:
        for _ in range(ROUNDS):
            tell(url, troubles)
            Event().wait(ROUND_S)
        tell(url, troubles, lasts_s=-1.0)
        eventually(lambda: all((reported := messages(receiver, *place)) and reported[-1][0] == "resolved" for place in PAGES))
        return {place: [message for message, _ in groupby(messages(receiver, *place))] for place in PAGES}


def test_one_trouble_is_one_page_and_one_message_that_it_is_over(tmp_path: Path) -> None:
    """Its groups wait a thirtieth of the time here: on a busy machine one may be sent before all that hides it has been read."""
    expected = {place: [("firing", pages), "resolved"] for place, pages in PAGES.items()}
    for attempt in range(3):
        got = what_somebody_gets(tmp_path / f"attempt-{attempt}")
        said = {place: [reported[0], *(status for status, _ in reported[1:])] for place, reported in got.items()}
        if said == expected:
            break
    assert said == expected
