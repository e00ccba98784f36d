"""Clients of google-cloud-pubsub on an embedded server that the tests of one worker share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.embedded import Clients, Running, running


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    with running(rest=True) as server:
        yield server


@pytest.fixture
def clients(server: Running) -> Iterator[Clients]:
    clients = Clients(server.address)
    yield clients
    clients.close()
