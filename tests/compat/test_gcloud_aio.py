"""gcloud-aio-pubsub, a client for asyncio over REST."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.compat.installing import OFFLINE, install_python
from tests.integration.embedded import Running

SOURCES = Path(__file__).parent / "gcloud_aio"
RUN_TIMEOUT_S = 120


@pytest.mark.nightly
def test_500_messages_with_keys_arrive_in_order(server: Running, tmp_path: Path) -> None:
    python = install_python(SOURCES / "requirements.txt", tmp_path)
    environment = {**os.environ, **OFFLINE, "PUBSUB_EMULATOR_HOST": server.server.rest_address}
    command = [str(python), str(SOURCES / "orders.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {f"k{key}": list(range(key, 500, 10)) for key in range(10)}
