"""The user's own subscriptions as the service shows them, with a stand-in for Cloud Monitoring."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from tests.cloud_monitoring import ACKED, AGE, EXPIRED, UNDELIVERED, Recorded, cloud_monitoring
from tests.integration.programs import eventually, get, series, service, status

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.nightly,
]  # Cloud Monitoring has a point each minute, and is asked twice a minute

NAMES = [f"projects/shop/subscriptions/{name}" for name in ("invoices", "orders")]


def own(url: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in status(url)["own_subscriptions"]}


def late(url: str) -> list[str]:
    return [own(url)[name]["late"] for name in NAMES]


def test_yours_stands_beside_the_prober_s() -> None:
    minute = {UNDELIVERED: 1234, ACKED: 60, EXPIRED: 12}
    recorded = Recorded({(metric, "orders"): [value] for metric, value in minute.items()}, newest_s=1.0)
    recorded.values |= {(AGE, "orders"): [301, 240], (AGE, "invoices"): [3, None, 2]}
    with cloud_monitoring(recorded) as address:
        environ = {
            "ORDERING_PROBER_MONITORING__ENDPOINT": address,
            "ORDERING_PROBER_MONITORING__EVERY": "30s",
            "ORDERING_PROBER_MONITORING__SUBSCRIPTIONS": json.dumps([{"name": name} for name in NAMES]),
        }
        with service(**environ) as (running, url):
            eventually(lambda: late(url) == ["nobody", "only_yours"], 180.0)
            page = get(f"{url}/")
            assert "Only yours is late: its oldest message waits for 5m1s" in page
            assert "1,234 undelivered" in page
            assert "a gap of 2 min before" in page
            assert series(url, 'own_late orders who="only_yours"') == [1.0]
            recorded.refusal = grpc.StatusCode.PERMISSION_DENIED
            eventually(lambda: late(url) == ["unknown", "unknown"], 120.0)
            assert "it takes roles/monitoring.viewer on projects/shop" in get(f"{url}/")
            assert running.stop() == 0
