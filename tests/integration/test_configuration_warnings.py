"""The service tells in its log what is worth a second look in its configuration, and runs all the same."""

from __future__ import annotations

from pathlib import Path

from tests.integration.daemons import written
from tests.integration.programs import program, server


def test_the_log_warns_of_a_region_that_nobody_knows(tmp_path: Path) -> None:
    target = {"name": "eu", "endpoint": "europe-wset1", "project": "my-project", "environment": "test"}
    store = {"url": f"sqlite:///{tmp_path}/status.db"}
    config = written(tmp_path / "prober.yaml", {"targets": [target], "api": {"port": 0}, "status": store})
    with server() as (_, address), program("run", "--config", str(config), environ={"PUBSUB_EMULATOR_HOST": address}) as running:
        assert "did you mean europe-west1?" in running.said(r"(?i)warning.*prober\.yaml: targets\[0\]\.endpoint \(line \d+\): (.*)")
        assert running.said(r"status page: (\S+)/")
