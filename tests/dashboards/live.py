"""A real service with faults, scraped by a real Prometheus on this machine; and what Prometheus answers."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.commands import ROOT
from tests.integration.programs import eventually, get, program

SCRAPE_S = 1
JOB = "ordering-keys-prober"

# Every probe, one target for each vantage, enough faults that every kind of panel has something to show, a target under maintenance, and
# a candidate that is compared with its baseline.
CONFIGURATION = """
instance: demo
targets:
  - {name: europe, endpoint: embedded, environment: staging, region: europe-west1}
  - name: america
    endpoint: embedded
    environment: staging
    region: us-east1
    probes:
      ordering: {schedule: {interval: 20s}, keys: 5, messages: 4, vantages: [library]}
      redelivery: {schedule: {interval: 60s}, vantages: [library]}
      affinity: {schedule: {interval: 30s}, keys: 5, messages: 4, vantages: [library]}
  - {name: paused, endpoint: embedded, environment: test, region: us-east1, probes: [ordering]}
  - {name: canary, endpoint: embedded, environment: staging, region: europe-west1, probes: [ordering]}
comparisons:
  - {baseline: europe, candidate: canary, window: 10m}
probes:
  ordering: {schedule: {interval: 10s}, rate: 400, jitter: 0}
  redelivery: {schedule: {interval: 15s}, jitter: 0}
  affinity: {schedule: {interval: 15s}, jitter: 0}
maintenance:
  - {target: paused, cron: "0 0 * * *", duration: 1439m, reason: shown on dashboards}
embedded:
  faults:
    - swap_in_batch:p=0.005
    - redeliver_single:p=0.02
    - split_holder:p=0.01
    - publish_unavailable:p=0.002
    - partial_batch:p=0.002
    - stream_break:p=0.0005
    - slow_delivery:p=0.001
    - jitter:p=0.02
    - drop:p=0.00002
"""


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str

    def instant(self, expr: str, at: float | None = None) -> list[Any]:
        """The series of an instant query."""
        return self._ask("query", {"query": expr} | ({"time": f"{at:.3f}"} if at else {}))

    def over(self, expr: str, start: float, end: float, step_s: float) -> list[Any]:
        """The series of a range query."""
        return self._ask("query_range", {"query": expr, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:g}"})

    def exemplars(self, expr: str, start: float, end: float) -> list[Any]:
        """The exemplars of the series that a query selects."""
        return self._ask("query_exemplars", {"query": expr, "start": f"{start:.3f}", "end": f"{end:.3f}"})

    def _ask(self, what: str, parameters: dict[str, str]) -> list[Any]:
        data = json.loads(get(f"{self.url}/api/v1/{what}?{urlencode(parameters)}"))["data"]
        return list(data["result"] if isinstance(data, dict) else data)


def history_of(folder: Path) -> Path:
    """Where the service keeps its history."""
    return folder / "history"


def reports_of(folder: Path) -> Path:
    """Where the service looks for the reports of the nightly jobs."""
    return folder / "reports"


def prometheus_command() -> str | None:
    """Prometheus on the path or in the virtual environment; None if there is none."""
    return shutil.which("prometheus") or shutil.which("prometheus", path=str(Path(sys.executable).parent))


@contextmanager
def service_and_prometheus(folder: Path) -> Iterator[Prometheus]:
    """The service with its faults and a Prometheus with the rules of `alerts/`, both on free ports."""
    (folder / "prober.yaml").write_text(CONFIGURATION)
    settings = {
        "ORDERING_PROBER_API__PORT": "0",
        "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db",
        "ORDERING_PROBER_HISTORY__LOCATION": str(history_of(folder)),
        "ORDERING_PROBER_HISTORY__REPORTS": str(reports_of(folder)),
    }
    with ExitStack() as stack:
        running = stack.enter_context(program("run", "--config", str(folder / "prober.yaml"), environ=settings))
        address = running.said(r"status page: (\S+)/")
        yield stack.enter_context(prometheus(folder, address))


@contextmanager
def prometheus(folder: Path, scraped: str) -> Iterator[Prometheus]:
    """A Prometheus that scrapes one address, its data in a folder."""
    command = prometheus_command()
    assert command is not None
    (folder / "prometheus.json").write_text(json.dumps(_scraping(scraped)))  # JSON is YAML
    listen = f"127.0.0.1:{_free_port()}"
    arguments = [
        f"--config.file={folder / 'prometheus.json'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={listen}",
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
    ]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen([command, *arguments], stdout=log, stderr=subprocess.STDOUT)
        try:
            eventually(lambda: process.poll() is not None or _answers(f"http://{listen}/-/ready"))
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            yield Prometheus(f"http://{listen}")
        finally:
            process.kill()
            process.wait()


def _scraping(address: str) -> dict[str, Any]:
    target = address.removeprefix("http://")
    return {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": "5s"},
        "rule_files": [str(ROOT / "alerts" / "*.rules.yaml")],
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [target]}]}],
    }


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        return bool(get(url, 1.0))
    except OSError:
        return False
