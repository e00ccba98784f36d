"""The API in a process of its own: what it answers from the store alone, when it is ready, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from api.standalone import Alone
from api.view import Archive
from prober.clock import wall_s
from prober.config.following import ConfigurationFile
from prober.config.loading import load
from prober.core.findings import Kind
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.integration.programs import program
from tests.unit.sinks.status.examples import entry, snapshot

WAIT_S = 30.0


@contextmanager
def alone(url: str, **environ: str) -> Iterator[httpx.Client]:
    """`ordering-prober api` on a free port; it must end cleanly when it is asked to."""
    variables = {"ORDERING_PROBER_STATUS__URL": url, "ORDERING_PROBER_API__PORT": "0", **environ}
    with program("api", environ=variables) as running:
        with httpx.Client(base_url=running.said(r"status page: (\S+)/"), timeout=WAIT_S) as client:
            yield client
        running.send(signal.SIGTERM)
        assert running.process.wait(WAIT_S) == 0, running.lines


def test_it_tells_what_is_stored_and_begins_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/status.db"
    database = Database(url)
    store = StatusStore(database)
    store.prepare()
    store.record([entry("run-1", Kind.ORDER_GAP, at=wall_s())])  # an older finding would be closed by the heartbeat
    store.heartbeat(ProberRecord("prober-0", "1.2.3", wall_s(), wall_s()), snapshot().probe_instances)
    database.close()
    with alone(url, ORDERING_PROBER_API__TOKEN="t") as client:
        assert client.get("/readyz").json() == {"ready": True, "problems": []}
        status = client.get("/api/v1/status").json()
        assert [(instance["target"], instance["verdict"]) for instance in status["probe_instances"]] == [("europe", "FAIL")]
        assert status["probe_instances"][0]["findings"][0]["finding_id"] == "run-1-1"
        assert client.get("/api/v1/findings/run-1-1").json()["kind"] == "ORDER_GAP"
        assert client.get("/").status_code == 200
        begun = client.post("/api/v1/probes/ordering/runs", headers={"Authorization": "Bearer t"})
        assert (begun.status_code, begun.json()["detail"].partition(";")[0]) == (409, "this process does not probe there")
        metrics = client.get("/metrics").text
        assert "pubsub_prober_status_store_up 1.0" in metrics
        assert "pubsub_prober_build_info" in metrics


def test_it_imports_nothing_that_probes(tmp_path: Path) -> None:
    """It may run where only the store can be reached, and in many replicas: neither gRPC nor a server nor a schedule is for it."""
    script = """
import sys
import api.standalone
from prober.cli import main

async def served(*_arguments, **_named):
    print(*sys.modules)

api.standalone.serve_until = served
sys.exit(main(["api"]))
"""
    variables = os.environ | {"ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db", "ORDERING_PROBER_API__PORT": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", script], env=variables, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    imported = set(ended.stdout.split())
    assert {"prober.sinks.status.queries", "api.app"} <= imported
    assert not imported & {"grpc", "prober.embedded", "prober.schedule.scheduler", "prober.service"}


def test_it_is_ready_while_the_store_answers(tmp_path: Path) -> None:
    async def looking() -> None:
        folder = tmp_path / "later"
        config = load(None, {})
        archive = Archive.of(config, StatusQueries(Database(f"sqlite:///{folder}/status.db")))
        async with Alone(ConfigurationFile(config), archive, "1") as view:
            assert view.readiness().problems == ("the status store cannot be reached",)
            assert b"pubsub_prober_status_store_up 0.0" in (await view.metrics(""))[1]
            folder.mkdir()
            await view._ask()
            assert view.readiness().ready
            async with asyncio.timeout(WAIT_S):  # the page from before is given again for a moment
                while b"pubsub_prober_status_store_up 1.0" not in (await view.metrics(""))[1]:
                    await asyncio.sleep(0.05)
            assert view.alive()

    asyncio.run(looking())
