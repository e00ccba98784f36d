"""How many series the pods of the chart export: real scrapes of the program with the rendered configuration, on the embedded server.

python -m tests.helm.scrapes
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from prober.brokers.endpoint import EMULATOR_VARIABLE
from prober.probes.catalogue import PROBES
from tests.helm.chart import CASES, configuration
from tests.integration.embedded import running
from tests.integration.programs import eventually, get, program, status

PATIENCE_S = 240.0


def scraped(case: str, *, targets: int | None = None) -> Mapping[str, int]:
    """Series of a prober that runs everything alone, once each probe has run, and of an API beside it; and what the prober runs."""
    document = yaml.safe_load(configuration(CASES[case]))
    document["targets"] = document["targets"][:targets]
    with TemporaryDirectory() as folder, running() as server:
        path, environ = Path(folder, "prober.yaml"), {**os.environ, EMULATOR_VARIABLE: server.address}
        path.write_text(yaml.safe_dump(_here(document, folder)), encoding="utf-8")
        with program("run", "--config", str(path), environ=environ) as prober:
            url = prober.said(r"status page: (\S+)/")
            eventually(lambda: all(instance["verdict"] is not None for instance in status(url)["probe_instances"]), PATIENCE_S)
            instances = status(url)["probe_instances"]
            with program("api", "--config", str(path), environ=environ) as api:
                of_api = series_on(get(api.said(r"status page: (\S+)/") + "/metrics"))
            return {
                "prober": series_on(get(f"{url}/metrics")),
                "api": of_api,
                "probe_instances": len(instances),
                "subscriptions": sum(plan.ordering for instance in instances for plan in PROBES[instance["probe"]].subscriptions),
                "targets": len(document["targets"]),
            }


def _here(document: dict[str, Any], folder: str) -> dict[str, Any]:
    """The same configuration with its files and its ports on this machine."""
    if document.get("history", {}).get("location"):
        document["history"] |= {"location": f"{folder}/history", "reports": f"{folder}/reports", "spool": f"{folder}/spool"}
    own: dict[str, Any] = {"status": {"url": f"sqlite:///{folder}/status.db"}, "api": {"host": "127.0.0.1", "port": 0}}
    return {key: value for key, value in document.items() if key != "sharding"} | own


def series_on(page: str) -> int:
    """How many series a page of metrics has."""
    return sum(not line.startswith("#") for line in page.splitlines() if line)


if __name__ == "__main__":
    for case, targets in (("test", None), ("production", 1), ("production", 2), ("production", None)):
        print(case, dict(scraped(case, targets=targets)))
