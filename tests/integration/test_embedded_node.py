"""Clients that nobody here wrote work on the embedded server unchanged: @google-cloud/pubsub for Node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.embedded import running

SOURCES = Path(__file__).parent / "node"
INSTALL = ("npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error")


def missing(what: str) -> None:
    """In continuous integration a missing tool is a failure, elsewhere a reason to skip."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client script with the client library beside it, in the locked version."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        missing("needs Node and npm: install nodejs 18 or newer")
    folder = tmp_path_factory.mktemp("node")
    for source in SOURCES.iterdir():
        shutil.copy(source, folder)
    installed = subprocess.run(INSTALL, cwd=folder, capture_output=True, text=True, check=False)
    if installed.returncode:
        missing(f"npm could not install @google-cloud/pubsub: {installed.stderr.strip()[-300:]}")
    return folder / "client.js"


@pytest.fixture(scope="module")
def result(client: Path) -> Any:
    """What the client received."""
    with running() as server:
        here = {"PUBSUB_EMULATOR_HOST": server.address, "METADATA_SERVER_DETECTION": "none"}  # no look-up outside this machine
        environment = {**os.environ, **here}
        process = subprocess.run(["node", str(client)], env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_ordered_publish_and_subscribe(result: Any) -> None:
    assert result["ordered"]["distinct"] == 100
    assert result["ordered"]["received"] == {f"k{key}": [str(n) for n in range(key, 100, 5)] for key in range(5)}


def test_a_nack_brings_all_later_messages_again(result: Any) -> None:
    assert result["refused"] == ["1", "2", "3", "2", "3"]


def test_exactly_once_confirms_acknowledgements(result: Any) -> None:
    assert result["once"]["received"] == ["1", "2", "3"]
    assert result["once"]["answers"] == ["SUCCESS"] * 3
