"""The whole chain with its real parts: a fault at the target, the prober, Prometheus with the rules, Alertmanager with the example's
routes, a receiver. The page comes soon, leads to the finding, and is taken back when the fault is over.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import yaml

from prober.alerting.files import rule_files
from prober.alerting.rules import RUNBOOKS, SCRAPE_JOB, Options
from prober.clock import monotonic_s
from prober.config.loading import load
from prober.sinks.metrics import families
from prober.sinks.metrics.families import FAMILIES
from tests.alerts.reading import selectors
from tests.alerts.stories import ALERTS, PATHS
from tests.commands import ROOT
from tests.integration.daemons import daemon, free_port, written
from tests.integration.pace import quicken_rules, quickened
from tests.integration.programs import eventually, get, program, series, service

NEWS_S = 30.0
"""How long a finding keeps its alert firing here, so that its end can be waited for."""
PAGE_S = 60.0
"""Within this time of the fault the page should come."""
END_S = 200.0
START_S = 90.0
OF_REPORTS = (families.HOT_KEYS, families.REVERIFIED_FINDINGS)
PROBES = ("ordering", "redelivery", "affinity", "isolation")
"""Together they measure everything that an alert reads."""
ABSENT = {
    family.full_name
    for family in FAMILIES
    if family in OF_REPORTS or {"drill", "own_subscription", "candidate"} & set(family.labels)
}
"""There are none without a nightly report, drills, own subscriptions and comparisons."""


@dataclass
class Receiver:
    """What the receivers of the example got: messages of Alertmanager by the name of the receiver."""

    port: int = 0
    messages: list[dict[str, Any]] = field(default_factory=list)

    def alerts(self, receiver: str, status: str, name: str = "") -> list[dict[str, Any]]:
        """The alerts of a status that a receiver was told of."""
        return [
            alert
            for message in list(self.messages)
            if message["receiver"] == receiver
            for alert in message["alerts"]
            if alert["status"] == status and alert["labels"]["alertname"].startswith(name)
        ]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on loopback."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def alertmanager_config(receiver: Receiver, folder: Path, pace: float) -> Path:
    """The example at that pace, with this receiver in the place of its own."""
    config = quickened(yaml.safe_load((ALERTS / "alertmanager.example.yaml").read_text(encoding="utf-8")), pace)
    for one in config["receivers"]:
        for webhook in one.get("webhook_configs", ()):
            webhook["url"] = f"http://127.0.0.1:{receiver.port}/{one['name']}"
    return written(folder / "alertmanager.yaml", config)


def prometheus_config(page_url: str, own_url: str, alertmanager_url: str, folder: Path, pace: float) -> Path:
    """The example at that pace, with these addresses in the place of its own, and the rules beside it."""
    config = quickened(yaml.safe_load((ALERTS / "prometheus.example.yaml").read_text(encoding="utf-8")), pace)
    config["scrape_configs"] = [one for one in config["scrape_configs"] if one["job_name"] != f"{SCRAPE_JOB}-api"]
    places = [*config["scrape_configs"], *config["alerting"]["alertmanagers"]]
    for resources, url in zip(places, (page_url, own_url, alertmanager_url), strict=True):
        resources["static_configs"] = [{"targets": [url.removeprefix("http://")]}]
    for name, text in rule_files(load(None, {}).objectives, Options(pages=page_url, news_s=NEWS_S)).items():
        (folder / name).write_text(text if pace == 1.0 else quicken_rules(text, pace), encoding="utf-8")
    return written(folder / "prometheus.yaml", config)


@contextmanager
def chain(page_url: str, receiver: Receiver, folder: Path, pace: float = 1.0) -> Iterator[tuple[str, str]]:
    """Prometheus and Alertmanager, in this order of their addresses; `pace` divides all their durations."""
    options = ("--cluster.listen-address=", f"--storage.path={folder / 'am'}")
    config = f"--config.file={alertmanager_config(receiver, folder, pace)}"
    with daemon("prometheus-alertmanager", free_port(), folder / "am.log", config, *options) as alertmanager_url:
        port = free_port()
        config = f"--config.file={prometheus_config(page_url, f'http://127.0.0.1:{port}', alertmanager_url, folder, pace)}"
        # What it sends before it has found Alertmanager is lost, and by default sent again after a minute.
        options = (f"--storage.tsdb.path={folder / 'tsdb'}", "--rules.alert.resend-delay=10s")
        with daemon("prometheus", port, folder / "prometheus.log", config, *options) as prometheus_url:
            yield prometheus_url, alertmanager_url


def firing(prometheus_url: str) -> set[str]:
    """The alerts that fire in Prometheus."""
    alerts = json.loads(get(f"{prometheus_url}/api/v1/alerts"))["data"]["alerts"]
    return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}


def held(alertmanager_url: str) -> set[str]:
    """The alerts that Alertmanager has."""
    return {one["labels"]["alertname"] for one in json.loads(get(f"{alertmanager_url}/api/v2/alerts"))}


def unhealthy(prometheus_url: str) -> list[str]:
    """The rules that could not be evaluated, and why."""
    groups = json.loads(get(f"{prometheus_url}/api/v1/rules"))["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 300
    return [f"{rule['name']}: {rule.get('lastError')}" for rule in rules if rule["health"] == "err"]


def missing(prometheus_url: str) -> list[str]:
    """What the rules read from scrapes and Prometheus does not have: a metric, or a label of it."""
    read: dict[str, set[str]] = {}
    for path in PATHS:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for name, labels in (one for rule in group["rules"] for one in selectors(rule["expr"])):
                read.setdefault(name, set()).update(labels)
    scraped = {name: labels for name, labels in read.items() if ":" not in name and name not in ABSENT}
    assert len(scraped) > 20
    return [name for name, labels in scraped.items() if not has(prometheus_url, name, labels)]


def has(prometheus_url: str, name: str, labels: Iterable[str]) -> bool:
    """Whether there is a series of that name with all these labels."""
    query = quote("count({" + ", ".join([f'__name__="{name}"', *(f'{label}!=""' for label in labels)]) + "})")
    return bool(json.loads(get(f"{prometheus_url}/api/v1/query?query={query}"))["data"]["result"])


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


def arm(admin_url: str, fault: str) -> None:
    """Lets a fault loose."""
    body = json.dumps({"fault": fault}).encode()
    with urlopen(Request(admin_url, body, {"Content-Type": "application/json"}), timeout=5) as answer:
        assert answer.status == 201


def disarm_all(admin_url: str) -> None:
    """Takes all faults back."""
    with urlopen(Request(admin_url, method="DELETE"), timeout=5) as answer:
        assert answer.status == 204


def test_from_a_fault_to_a_page_and_back(tmp_path: Path) -> None:
    start = Stopwatch("everything starts")
    settings = {
        "ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path / 'status.db'}",
        "ORDERING_PROBER_TARGETS__0__PROBES": json.dumps(PROBES),
    }
    with program("embedded", "--port", "0", "--admin-port", "0") as target, receiving() as receiver:
        address, admin_url = target.said(r"Pub/Sub on (\S+:\d+)"), target.said(r"Fault injection on (\S+)")
        with service(PUBSUB_EMULATOR_HOST=address, **settings) as (_, url), chain(url, receiver, tmp_path) as (prometheus, manager):
            start.step("the first runs passed", lambda: sum(series(url, 'probe_runs_total verdict="pass"')) >= 3, START_S)
            start.step("the dead man's switch hears", lambda: receiver.alerts("dead-mans-switch", "firing"), START_S)
            start.step("nothing else fires", lambda: firing(prometheus) == {"PubsubProberWatchdog"}, START_S)
            follow_up(receiver, admin_url, url, prometheus, manager)
            assert not receiver.alerts("prober-pager", "firing")
            assert unhealthy(prometheus) == []
            assert missing(prometheus) == []


def follow_up(receiver: Receiver, admin_url: str, url: str, prometheus: str, manager: str) -> None:
    """From the fault to the page, from its end to the message that it is over."""
    page = "PubsubOrderViolated"
    begun = Stopwatch("the fault begins")
    arm(admin_url, "swap_in_batch:p=0.1")
    begun.step("the prober has found it", lambda: sum(series(url, 'findings_total kind="ORDER status="violation"')), PAGE_S)
    begun.step("Prometheus has an alert", lambda: page in firing(prometheus), PAGE_S)
    begun.step("Alertmanager has it", lambda: page in held(manager), PAGE_S)
    took_s = begun.step("the page is there", lambda: receiver.alerts("service-pager", "firing", page), PAGE_S)
    assert took_s <= PAGE_S
    look_into(receiver.alerts("service-pager", "firing", page)[0], url, begun)
    ended = Stopwatch("the fault ends")
    disarm_all(admin_url)
    ended.step("Prometheus has no alert any more", lambda: page not in firing(prometheus), END_S)
    ended.step("the receiver knows that it is over", lambda: receiver.alerts("service-pager", "resolved", page), END_S)
    assert told_again(receiver) == []


def told_again(receiver: Receiver) -> list[dict[str, str]]:
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
        "target": "embedded",
        "environment": "test",
        "region": "local",
        "severity": "critical",
        "owner": "service",
        "evidence": "proof",
    }
    assert labels["kind"] in annotations["description"]
    assert (ROOT / RUNBOOKS / Path(annotations["runbook_url"]).name).is_file()
    assert annotations["status_url"].startswith(f"{url}/findings?")
    begun.step("its link leads to the finding", lambda: labels["kind"] in get(annotations["status_url"]), START_S)
