"""What commands of runbooks are tried on: a target behind a configured endpoint that violates a guarantee, and the prober that found it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prober.sinks.metrics.label_values import Job
from tests.alerts.tools import tool
from tests.commands import PROGRAM, ROOT
from tests.forking import called
from tests.integration.chain import chain, receiving
from tests.integration.daemons import written
from tests.integration.programs import eventually, get, program
from tests.unit.api.routes.test_keys_and_reports import spread
from tests.unit.reports.test_reader import key, put

TARGET = "under-test"
PROBES = ["ordering", "redelivery", "affinity"]


@dataclass(frozen=True)
class Surroundings:
    """Where commands are tried. `values` are those of the placeholders, `environ` the variables of the shell."""

    values: dict[str, str]
    environ: dict[str, str]
    folder: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """A command line, as a person enters it. The program is forked if the line has nothing for a shell."""
        program, *arguments = shlex.split(line)
        if program == "ordering-prober" and not set(line) & set("|&;<>$`*?"):
            return called(*arguments, environ=self.environ, cwd=self.folder)
        return subprocess.run(
            ["sh", "-c", line], cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False, timeout=120
        )


@contextmanager
def surroundings(folder: Path) -> Iterator[Surroundings]:
    """Everything runs, and the prober has found something."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("ORDERING_PROBER_", "PUBSUB_"))}
    with ExitStack() as running:
        faults = running.enter_context(program("embedded", "--port", "0", "--fault", "redeliver_single", environ=environ))
        config = _configuration(folder, faults.said(r"Pub/Sub on (\S+:\d+)"))
        prober = running.enter_context(program("run", "--config", str(config), environ=environ))
        url = prober.said(r"status page: (\S+)/")
        finding = _finding(url)
        chained = running.enter_context(chain([url], running.enter_context(receiving()), folder))
        values = _labels(finding) | {
            "ID": finding["finding_id"],
            "KEY": finding["key"],
            "INSTANCE": url.removeprefix("http://"),
            "FILE": str(config),
            "HISTORY": str(folder / "history"),
            "REPORTS": str(folder / "reports"),
            "SPOOL": str(folder),
            "ALERTMANAGER": chained.alertmanager.removeprefix("http://"),
            "PROMETHEUS": chained.prometheus.removeprefix("http://"),
            "PROMETHEUS_FILE": str(folder / "prometheus.yaml"),
            "POD": "okp-ordering-keys-prober-0",
            "RELEASE": "okp",
            "PID": str(prober.process.pid),
            "$PROBER": "$PROBER",
        }
        shell = environ | {
            "PATH": _path(folder / "bin", chained.alertmanager),
            "PROBER": url,
            "PYTHONPATH": str(ROOT),
            "ORDERING_PROBER_API__PORT": url.rpartition(":")[2],  # instead of 8080, the port in a pod
        }
        shutil.copytree(ROOT / "alerts", folder / "rules")
        yield Surroundings(values, shell, folder)


def _labels(finding: dict[str, Any]) -> dict[str, str]:
    """The labels of an alert."""
    return {
        "TARGET": TARGET,
        "JOB": "ordering-keys-prober",
        "PROBE": "redelivery",
        "KIND": finding["kind"],
        "SLO": "redelivery",
        "TOPIC": "okp-topic",
        "COMPONENT": "history",
        "DRILL": "redeliver_single",
        "JOB_NAME": "nightly",
        "ENVIRONMENT": "test",
        "RULE_GROUP": "objectives",
        "PROJECT": "projects/p",
        "LABEL": "topic",
        "OPERATION": "publish",
        "BASELINE": "production",
        "CANDIDATE": "canary",
        "OWN_SUBSCRIPTION": "projects/p/subscriptions/orders",
    }


def _configuration(folder: Path, address: str) -> Path:
    put(folder / "reports", Job.HOT_KEYS, tables={"keys": [{**key("k", 0.9), "target": TARGET}], "subscriptions": [spread("s")]})
    config = {
        "targets": [{"name": TARGET, "endpoint": address, "project": "my-project", "environment": "test", "probes": PROBES}],
        "history": {"location": str(folder / "history"), "reports": str(folder / "reports")},
        "status": {"url": f"sqlite:///{folder}/status.db"},
        "api": {"port": 0},
    }
    return written(folder / "prober.yaml", config)


def _finding(url: str) -> dict[str, Any]:
    """The newest violation, as soon as there is one, and when every probe has ended a run."""

    def listed(path: str) -> list[dict[str, Any]]:
        return list(json.loads(get(f"{url}/api/v1/{path}"))["items"])

    eventually(lambda: listed("findings?status=violation") and {run["probe"] for run in listed("runs")} == set(PROBES))
    return listed("findings?status=violation")[0]


def _path(folder: Path, alertmanager: str) -> str:
    """A PATH with the program, an amtool as README.md tells to make it, and a curl that fails where the answer is an error."""
    folder.mkdir()
    _script(folder / "ordering-prober", f'exec "{PROGRAM[0]}" -c \'{PROGRAM[2]}\' "$@"')
    _script(folder / "python", f'exec "{sys.executable}" "$@"')
    curl = shutil.which("curl")
    _script(folder / "curl", f'case "$1" in *f*) exec {curl} "$@" ;; *) exec {curl} --fail-with-body "$@" ;; esac')
    _script(folder / "promtool", f'exec "{tool("promtool")}" "$@"')
    _script(folder / "amtool", f'exec "{tool("amtool")}" --alertmanager.url={alertmanager} "$@"')
    return os.pathsep.join([str(folder), os.environ["PATH"]])


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
