"""What Cloud Monitoring answers, through Google's client library against a stand-in."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from prober.brokers.endpoint import Endpoint
from prober.clock import wall_s
from prober.monitoring.cloud import CloudMonitoring, MonitoringError
from prober.monitoring.comparison import ReadFailure, Reading
from tests.cloud_monitoring import ACKED, AGE, EXPIRED, UNDELIVERED, Recorded, cloud_monitoring

MINE, OTHER = "projects/p/subscriptions/mine", "projects/p/subscriptions/other"


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def cloud(recorded: Recorded) -> Iterator[CloudMonitoring]:
    with cloud_monitoring(recorded) as address:
        connected = CloudMonitoring(Endpoint(address, secure=False))
        yield connected
        connected.close()


def test_the_newest_point_of_each_metric(recorded: Recorded, cloud: CloudMonitoring) -> None:
    recorded.values = {(AGE, "mine"): [7, 5], (UNDELIVERED, "mine"): [3], (ACKED, "mine"): [40, 60], (EXPIRED, "mine"): [0]}
    now = wall_s()
    reading = cloud.read([MINE], now)[MINE]
    values = [point and point.value for point in (reading.oldest_unacked_age, reading.undelivered, reading.acked, reading.expired)]
    assert values == [7.0, 3.0, 40.0, 0.0]
    assert reading.oldest_unacked_age is not None
    assert reading.oldest_unacked_age.at == pytest.approx(now - recorded.newest_s, abs=60.0)
    assert reading.gap_s == pytest.approx(60.0, abs=0.01)


def test_a_gap_is_reported(recorded: Recorded, cloud: CloudMonitoring) -> None:
    recorded.values = {(AGE, "mine"): [7, None, None, 5, 5]}
    assert cloud.read([MINE], wall_s())[MINE].gap_s == pytest.approx(180.0, abs=0.01)


def test_one_request_for_all_subscriptions(recorded: Recorded, cloud: CloudMonitoring) -> None:
    recorded.values = {(AGE, "mine"): [7]}
    readings = cloud.read([MINE, OTHER], wall_s())
    assert readings[OTHER] == Reading()
    assert len(recorded.asked) == 4
    assert recorded.asked[0] == (
        'metric.type = "pubsub.googleapis.com/subscription/oldest_unacked_message_age" '
        'AND resource.labels.subscription_id = one_of("mine", "other")'
    )


@pytest.mark.parametrize(
    ("code", "failure", "said"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, ReadFailure.PERMISSION, "it takes roles/monitoring.viewer on projects/p"),
        (grpc.StatusCode.UNAVAILABLE, ReadFailure.UNAVAILABLE, "does not answer"),
        (grpc.StatusCode.INVALID_ARGUMENT, ReadFailure.REFUSED, "refuses what was asked"),
    ],
)
def test_a_refusal_is_one_line(
    code: grpc.StatusCode, failure: ReadFailure, said: str, recorded: Recorded, cloud: CloudMonitoring
) -> None:
    recorded.refusal = code
    with pytest.raises(MonitoringError, match=said) as caught:
        cloud.read([MINE], wall_s())
    assert caught.value.failure is failure
    assert "\n" not in str(caught.value)


def test_a_metric_that_nobody_ever_wrote_has_no_point(recorded: Recorded, cloud: CloudMonitoring) -> None:
    recorded.refusal = grpc.StatusCode.NOT_FOUND
    assert cloud.read([MINE], wall_s()) == {MINE: Reading()}
