"""A NestJS microservice with the transport nestjs-google-pubsub-microservice, which runs in Node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.installing import install_node, run_node_tests
from tests.integration.embedded import Running


@pytest.mark.nightly
def test_requests_events_and_a_refused_event(server: Running, tmp_path: Path) -> None:
    install_node(Path(__file__).parent / "nestjs", tmp_path)
    run_node_tests(tmp_path, "microservice.test.js", server.address)
