"""Hot keys now: a skewed stream of another publisher, as page, API and metrics of the service show it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError

import pytest

from prober.config.sections import Observe
from prober.probes.observe import KeysKept, observed_key
from tests.integration.embedded import Clients, running
from tests.integration.programs import eventually, get, series, service

pytestmark = pytest.mark.timeout(240)

HOT = "acct-7"
SIZE, PAUSE_S, OTHERS = 40_000, 0.05, 50


@contextmanager
def published(clients: Clients) -> Iterator[None]:
    """Somebody else publishes meanwhile: most data, and a third of the messages, on one key."""
    over = threading.Event()

    def publish() -> None:
        number = 0
        while not over.wait(PAUSE_S):
            clients.publish("x" * SIZE, key=HOT)
            for _ in range(2):
                number += 1
                clients.publish("x" * 100, key=f"acct-{100 + number % OTHERS}")

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        yield
    finally:
        over.set()
        publisher.join()


def top(url: str) -> list[Any]:
    """The keys of the observed stream, once there are any."""
    try:
        streams = json.loads(get(f"{url}/api/v1/hot-keys"))["streams"]
    except HTTPError:  # 404: no stream has been observed yet
        return []
    return [key for stream in streams for key in stream["top"]]


def test_a_hot_key_of_another_publisher_is_shown_while_it_is_hot() -> None:
    observe = {"topic": "", "keys_kept": "hashed", "duration": "200s"}
    with running() as server:
        clients = Clients(server.address)
        clients.create()
        observe["topic"] = clients.topic
        environ = {
            "ORDERING_PROBER_TARGETS__0__NAME": "shop",
            "ORDERING_PROBER_TARGETS__0__PROJECT": "test",
            "ORDERING_PROBER_TARGETS__0__ENVIRONMENT": "test",
            "ORDERING_PROBER_TARGETS__0__ENDPOINT": server.address,
            "ORDERING_PROBER_TARGETS__0__PROBES": json.dumps({"observe": {"schedule": {"interval": "5m"}, "observe": observe}}),
        }
        with service(**environ) as (process, url):
            assert series(url, "top_key_bytes_per_second") == []
            with published(clients):
                eventually(lambda: len(top(url)) == 10 and top(url)[0]["age_s"] is not None, 90.0)
                first, second = top(url)[:2]
                kept = observed_key(HOT, Observe(topic=clients.topic, keys_kept=KeysKept.HASHED).plan)
                assert (first["key"], first["heat"]) in {(kept, "skewed"), (kept, "throughput-bound")}
                assert first["minute"]["share"]["low"] == pytest.approx(1 / 3, abs=0.05)
                assert first["minute"]["bytes_per_s"]["low"] > 100 * second["minute"]["bytes_per_s"]["low"] > 0.0
                [load] = series(url, 'top_key_bytes_per_second rank="1"')
                assert load > 10_000.0
                [share] = series(url, 'top_key_share_ratio rank="1"')
                assert share == pytest.approx(1 / 3, abs=0.05)
                assert len(series(url, "top_key_age_seconds")) == 5
                for page in (get(f"{url}/"), get(f"{url}/hot-keys")):
                    assert "Hot keys now" in page
                    assert kept in page
                    assert HOT not in page
                assert kept not in get(f"{url}/metrics")
            assert process.stop() == 0
        clients.close()
