"""The whole chain with its real parts: a fault at the target, the prober, Prometheus with the rules, Alertmanager with the example's
routes, a receiver. The page comes soon, leads to the finding, and is taken back when the fault is over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml

from prober.clock import monotonic_s
from prober.sinks.metrics import families
from prober.sinks.metrics.families import FAMILIES
from tests.alerts.reading import selectors
from tests.alerts.stories import PATHS
from tests.commands import RUNBOOKS
from tests.integration.chain import Chain, Receiver, arm, chain, disarm_all, receiving
from tests.integration.programs import eventually, get, program, series, service

pytestmark = pytest.mark.nightly

NEWS_S = 30.0
"""How long a finding keeps its alert firing here, so that its end can be waited for."""
PAGE_S = 60.0
"""Within this time of the fault the page should come."""
END_S = 200.0
START_S = 90.0
OF_REPORTS = (families.HOT_KEYS, families.REVERIFIED_FINDINGS)
OF_LIBRARY = (families.LIBRARY_ANOMALIES,)
PROBES = ("ordering", "redelivery", "affinity", "isolation")
"""Together they measure everything that an alert reads."""
ABSENT = {
    family.full_name
    for family in FAMILIES
    if family in (*OF_REPORTS, *OF_LIBRARY) or {"drill", "own_subscription", "candidate", "rank"} & set(family.labels)
}
"""There are none without a nightly report, the library vantage, drills, own subscriptions, comparisons and observed streams."""


def missing(running: Chain) -> list[str]:
    """What the rules read from scrapes and Prometheus does not have: a metric, or a label of it."""
    read: dict[str, set[str]] = {}
    for path in PATHS:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for name, labels in (one for rule in group["rules"] for one in selectors(rule["expr"])):
                read.setdefault(name, set()).update(labels)
    scraped = {name: labels for name, labels in read.items() if ":" not in name and name not in ABSENT}
    assert len(scraped) > 20
    return [name for name, labels in scraped.items() if not has(running, name, labels)]


def has(running: Chain, name: str, labels: Iterable[str]) -> bool:
    """Whether there is a series of that name with all these labels."""
    return bool(running.query("count({" + ", ".join([f'__name__="{name}"', *(f'{label}!=""' for label in labels)]) + "})"))


class Stopwatch:
    """Says how many seconds after the start each step was done."""

    def __init__(self, start: str) -> None:
        self._start_t = monotonic_s()
        print(f"\n  0.0 s  {start}")

    def step(self, name: str, done: Callable[[], object], patience_s: float) -> float:
        """Waits for a step; its seconds since the start."""
        eventually(done, patience_s)
        elapsed_s = monotonic_s() - self._start_t
        print(f"{elapsed_s:5.1f} s  {name}")
        return elapsed_s


def test_from_a_fault_to_a_page_and_back(tmp_path: Path) -> None:
    start = Stopwatch("everything starts")
    settings = {
        "ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path / 'status.db'}",
        "ORDERING_PROBER_TARGETS__0__PROBES": json.dumps(PROBES),
    }
    with program("embedded", "--port", "0", "--admin-port", "0") as target, receiving() as receiver:
        address, admin_url = target.said(r"Pub/Sub on (\S+:\d+)"), target.said(r"Fault injection on (\S+)")
        with (
            service(PUBSUB_EMULATOR_HOST=address, **settings) as (_, url),
            chain([url], receiver, tmp_path, news_s=NEWS_S) as running,
        ):
            start.step("the first runs passed", lambda: sum(series(url, 'probe_runs_total verdict="pass"')) >= 3, START_S)
            start.step("the dead man's switch hears", lambda: receiver.alerts("dead-mans-switch", "firing"), START_S)
            start.step("nothing else fires", lambda: not running.firing(), START_S)
            follow_up(receiver, admin_url, url, running)
            assert not receiver.alerts("prober-pager", "firing")
            assert running.unhealthy() == []
            assert missing(running) == []


def fires(running: Chain, page: str) -> bool:
    """Whether an alert of this name fires."""
    return any(labels["alertname"] == page for labels in running.firing())


def follow_up(receiver: Receiver, admin_url: str, url: str, running: Chain) -> None:
    """From the fault to the page, from its end to the message that it is over."""
    page = "PubsubOrderViolated"
    begun = Stopwatch("the fault begins")
    arm(admin_url, "swap_in_batch:p=0.1")
    begun.step("the prober has found it", lambda: sum(series(url, 'findings_total kind="ORDER status="violation"')), PAGE_S)
    begun.step("Prometheus has an alert", lambda: fires(running, page), PAGE_S)
    took_s = begun.step("the page is there", lambda: receiver.alerts("service-pager", "firing", page), PAGE_S)
    assert took_s <= PAGE_S
    look_into(receiver.alerts("service-pager", "firing", page)[0], url, begun)
    ended = Stopwatch("the fault ends")
    disarm_all(admin_url)
    ended.step("Prometheus has no alert any more", lambda: not fires(running, page), END_S)
    ended.step("the receiver knows that it is over", lambda: receiver.alerts("service-pager", "resolved", page), END_S)
    assert reported_again(receiver) == []


def reported_again(receiver: Receiver) -> list[dict[str, str]]:
    """What paged although the message that it is over had been sent."""
    alerts = [alert for message in receiver.messages if message["receiver"] == "service-pager" for alert in message["alerts"]]
    over: list[dict[str, str]] = []
    again = []
    for alert in alerts:
        if alert["status"] == "resolved":
            over.append(alert["labels"])
        elif alert["labels"] in over:
            again.append(alert["labels"])
    return again


def look_into(alert: dict[str, Any], url: str, begun: Stopwatch) -> None:
    """What somebody gets who is woken up: who, what, and links that lead somewhere."""
    labels, annotations = alert["labels"], alert["annotations"]
    assert {name: labels[name] for name in ("target", "environment", "region", "severity", "owner", "evidence")} == {
        "target": "emulator",
        "environment": "test",
        "region": "local",
        "severity": "critical",
        "owner": "service",
        "evidence": "proof",
    }
    assert labels["kind"] in annotations["description"]
    runbook, _, query = annotations["runbook_url"].partition("?")
    assert (RUNBOOKS / Path(runbook).name).is_file()
    assert dict(parse_qsl(query))["kind"] == labels["kind"]
    assert annotations["status_url"].startswith(f"{url}/findings?")
    begun.step("its link leads to the finding", lambda: labels["kind"] in get(annotations["status_url"]), START_S)
