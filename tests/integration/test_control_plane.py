"""What an administrator would feel shows in the indicator: calls that come late, that fail, or that cannot be made."""

from __future__ import annotations

import json

import pytest

from tests.integration.programs import eventually, get, series, service

OFTEN = {
    "ORDERING_PROBER_TARGETS__0__PROBES": '["control_plane"]',
    "ORDERING_PROBER_PROBES__CONTROL_PLANE__SCHEDULE": '{"interval": "1s"}',
    "ORDERING_PROBER_PROBES__CONTROL_PLANE__JITTER": "0s",
}
OPERATIONS = {"create_topic", "create_subscription", "get", "list", "update", "seek", "delete"}


def environ(*faults: str) -> dict[str, str]:
    return {
        **OFTEN,
        "ORDERING_PROBER_TARGETS__0__PROBES": '["control_plane"]',
        "ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps(faults),
    }


def calls(url: str, operation: str, what: str) -> float:
    return sum(series(url, f'control_plane_{what} operation="{operation}"'))


def bad(url: str) -> int:
    (objective,) = (one for one in json.loads(get(f"{url}/api/v1/slos"))["items"] if one["name"] == "control_plane_latency")
    return int(objective["bad"])


@pytest.mark.nightly  # by day the probe passes in virtual time, see `test_forecast`
def test_every_call_of_a_right_service_is_in_time() -> None:
    with service(**environ()) as (_, url):
        eventually(lambda: all(calls(url, operation, "latency_seconds_count") >= 2 for operation in OPERATIONS))
        assert all(calls(url, operation, "failures_total") == 0 for operation in OPERATIONS)
        assert bad(url) == 0


def test_calls_that_come_late_are_bad() -> None:
    with service(**environ("admin_slow:count=2")) as (_, url):  # the sweep may meet one of them
        eventually(lambda: bad(url) >= 1)
        count, in_time = (sum(series(url, f"control_plane_latency_seconds_{what}")) for what in ("count", 'bucket le="5.0"'))
        assert count > in_time


def test_calls_that_fail_and_those_that_cannot_be_made_are_bad() -> None:
    with service(**environ("admin_error:count=3")) as (_, url):  # the sweep may meet one of them
        eventually(lambda: calls(url, "create_topic", "latency_seconds_count") >= 1)
        assert calls(url, "create_topic", "failures_total") == 1
        assert {calls(url, operation, "failures_total") for operation in ("get", "list", "update", "seek")} == {2, 1}
        eventually(lambda: bad(url) >= 8)
