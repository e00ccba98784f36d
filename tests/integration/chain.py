"""The paging chain with its real parts: Prometheus with the rules, Alertmanager with the example's routes, a receiver for its messages."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import yaml

from prober.alerting.catalogue import rule_files
from prober.alerting.options import SCRAPE_JOB, Options
from prober.clock import wall_s
from prober.config.loading import load
from prober.slo.objectives import HOUR_S
from tests.alerts.stories import ALERTS
from tests.integration.daemons import daemon, free_port, written
from tests.integration.pace import quicken_rules, quickened
from tests.integration.programs import PATIENCE_S, get

WATCHDOG = "PubsubProberWatchdog"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of Alertmanager: when it arrived, in seconds since 1970, and its content."""

    at: float
    content: Mapping[str, Any]

    @property
    def receiver(self) -> str:
        """The receiver of the routing tree that it was sent to."""
        return str(self.content["receiver"])


@dataclass
class Receiver:
    """A webhook on loopback that takes the messages for all receivers of the example."""

    port: int = 0
    received: list[Message] = field(default_factory=list)

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The content of all messages so far."""
        return [message.content for message in list(self.received)]

    def alerts(self, receiver: str, status: str, name: str = "") -> list[dict[str, Any]]:
        """The alerts of a status in the messages for a receiver."""
        return [
            alert
            for message in self.messages
            if message["receiver"] == receiver
            for alert in message["alerts"]
            if alert["status"] == status and alert["labels"]["alertname"].startswith(name)
        ]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve a receiver until the end of the `with` statement."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.received.append(Message(wall_s(), content))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

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
    """Write the example with its durations divided by `pace` and its receivers replaced by this one."""
    config = quickened(yaml.safe_load((ALERTS / "alertmanager.example.yaml").read_text(encoding="utf-8")), pace)
    for one in config["receivers"]:
        for webhook in one.get("webhook_configs", ()):
            webhook["url"] = f"http://127.0.0.1:{receiver.port}/{one['name']}"
    return written(folder / "alertmanager.yaml", config)


@dataclass(frozen=True, slots=True)
class Chain:
    """The addresses of a running Prometheus and Alertmanager."""

    prometheus: str
    alertmanager: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query."""
        answer = json.loads(get(f"{self.prometheus}/api/v1/query?{urlencode({'query': expression})}"))
        return list(answer["data"]["result"])

    def firing(self) -> list[dict[str, str]]:
        """The labels of the alerts that fire now, without the watchdog."""
        alerts = json.loads(get(f"{self.prometheus}/api/v1/alerts"))["data"]["alerts"]
        return [one["labels"] for one in alerts if one["state"] == "firing" and one["labels"]["alertname"] != WATCHDOG]

    def unhealthy(self) -> list[str]:
        """The rules that Prometheus could not evaluate, with the reason."""
        groups = json.loads(get(f"{self.prometheus}/api/v1/rules"))["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) > 300
        return [f"{rule['name']}: {rule.get('lastError')}" for rule in rules if rule["health"] == "err"]


@contextmanager
def chain(
    page_urls: Sequence[str], receiver: Receiver, folder: Path, *, pace: float = 1.0, news_s: float = HOUR_S
) -> Iterator[Chain]:
    """Run Prometheus, which scrapes these probers, and Alertmanager.

    `pace` divides every duration of the rules and of both configurations; `news_s` is the time for which a finding keeps its alert firing.
    """
    options = ("--cluster.listen-address=", f"--storage.path={folder / 'am'}")
    config = f"--config.file={alertmanager_config(receiver, folder, pace)}"
    with daemon("prometheus-alertmanager", free_port(), folder / "am.log", config, *options) as alertmanager_url:
        port = free_port()
        own_url = f"http://127.0.0.1:{port}"
        config = f"--config.file={_prometheus_config(page_urls, own_url, alertmanager_url, folder, pace, news_s)}"
        # Prometheus drops an alert that it sends before it has found Alertmanager, and by default sends it again after a minute.
        options = (f"--storage.tsdb.path={folder / 'tsdb'}", "--rules.alert.resend-delay=10s")
        with daemon("prometheus", port, folder / "prometheus.log", config, *options) as prometheus_url:
            yield Chain(prometheus_url, alertmanager_url)


def _prometheus_config(
    page_urls: Sequence[str], own_url: str, alertmanager_url: str, folder: Path, pace: float, news_s: float
) -> Path:
    """Write the example with its durations divided by `pace` and these addresses in place of its own, and the rules beside it."""
    config = quickened(yaml.safe_load((ALERTS / "prometheus.example.yaml").read_text(encoding="utf-8")), pace)
    config["scrape_configs"] = [one for one in config["scrape_configs"] if one["job_name"] != f"{SCRAPE_JOB}-api"]
    places = [*config["scrape_configs"], *config["alerting"]["alertmanagers"]]
    for place, urls in zip(places, (page_urls, [own_url], [alertmanager_url]), strict=True):
        place["static_configs"] = [{"targets": [url.removeprefix("http://") for url in urls]}]
    options = Options(pages=page_urls[0], news_s=news_s)
    for name, text in rule_files(load(None, {}).objectives, options).items():
        (folder / name).write_text(text if pace == 1.0 else quicken_rules(text, pace), encoding="utf-8")
    return written(folder / "prometheus.yaml", config)


def arm(admin_url: str, fault: str) -> None:
    """Inject a fault into an embedded server."""
    body = json.dumps({"fault": fault}).encode()
    with urlopen(Request(admin_url, body, {"Content-Type": "application/json"}), timeout=PATIENCE_S) as answer:
        assert answer.status == 201


def disarm_all(admin_url: str) -> None:
    """Remove all faults from an embedded server."""
    with urlopen(Request(admin_url, method="DELETE"), timeout=PATIENCE_S) as answer:
        assert answer.status == 204
