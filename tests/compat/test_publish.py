"""Publishing with google-cloud-pubsub: attributes, batches, flow control, paused keys, trace context."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.publisher.exceptions import (  # type: ignore[import-untyped]
    PublishToPausedOrderingKeyException,
)
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from tests.integration.embedded import WAIT_S, Clients


def test_attributes_and_a_message_without_data(clients: Clients) -> None:
    clients.create()
    (first,) = clients.publish("text", color="red", empty="")
    clients.publish("", only="attributes")
    received = [one.message for one in clients.pull()]
    assert (received[0].message_id, dict(received[0].attributes)) == (first, {"color": "red", "empty": ""})
    assert (received[1].data, dict(received[1].attributes)) == (b"", {"only": "attributes"})
    assert received[0].publish_time <= received[1].publish_time


def test_a_publisher_that_waits_for_its_own_flow_control_loses_nothing(clients: Clients) -> None:
    clients.create()
    limit = pubsub_v1.types.PublishFlowControl(message_limit=3, limit_exceeded_behavior=pubsub_v1.types.LimitExceededBehavior.BLOCK)
    publisher = clients.new_publisher(flow_control=limit)
    futures = [publisher.publish(clients.topic, b"%d" % number, ordering_key="k") for number in range(50)]
    assert len({future.result(WAIT_S) for future in futures}) == 50
    assert clients.texts() == [str(number) for number in range(50)]


def test_a_refused_message_pauses_its_key_until_the_publisher_resumes_it(clients: Clients) -> None:
    clients.create()
    clients.publish("1")
    with pytest.raises(exceptions.InvalidArgument):
        clients.publish("2", attribute="x" * 1025)
    with pytest.raises(PublishToPausedOrderingKeyException):
        clients.publish("3")
    clients.publish("other", key="other")
    clients.publisher.resume_publish(clients.topic, "k")
    clients.publish("4")
    assert sorted(clients.texts()) == ["1", "4", "other"]


def test_the_trace_context_of_a_publisher_reaches_the_subscriber(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    clients.create()
    publisher = clients.new_publisher(enable_open_telemetry_tracing=True)
    with provider.get_tracer("test").start_as_current_span("order") as span:
        publisher.publish(clients.topic, b"1", ordering_key="k").result(WAIT_S)
    (received,) = clients.pull()
    version, trace_id, _, _ = received.message.attributes["googclient_traceparent"].split("-")
    assert (version, int(trace_id, 16)) == ("00", span.get_span_context().trace_id)
