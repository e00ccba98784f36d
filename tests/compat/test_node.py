"""@google-cloud/pubsub for Node on the embedded server: the tests in `node`, which run in Node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.compat.installing import OFFLINE, install_node
from tests.integration.embedded import Running

SOURCES = Path(__file__).parent / "node"
RUN_TIMEOUT_S = 180


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    install_node(SOURCES, folder)
    return folder


@pytest.mark.parametrize("script", sorted(path.name for path in SOURCES.glob("*.test.js")))
def test_the_client_for_node(folder: Path, server: Running, script: str) -> None:
    environment = {**os.environ, **OFFLINE, "PUBSUB_EMULATOR_HOST": server.address}
    command = ["node", "--test", "--test-reporter=spec", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout
