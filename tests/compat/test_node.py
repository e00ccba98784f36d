"""@google-cloud/pubsub for Node on the embedded server: the tests in `node`, which run in Node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.installing import install_node, run_node_tests
from tests.integration.embedded import Running

SOURCES = Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    install_node(SOURCES, folder)
    return folder


@pytest.mark.parametrize("script", sorted(path.name for path in SOURCES.glob("*.test.js")))
def test_the_client_for_node(folder: Path, server: Running, script: str) -> None:
    run_node_tests(folder, script, server.address)
