"""Publishing and pulling with google-cloud-pubsub over REST."""

from __future__ import annotations

from typing import Any

from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import pubsub_v1

from tests.integration.embedded import WAIT_S, Running


def test_publish_pull_and_acknowledge(server: Running) -> None:
    options = ClientOptions(api_endpoint=f"http://{server.server.rest_address}")
    nobody = AnonymousCredentials()  # type: ignore[no-untyped-call]
    ordered = pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
    publisher = pubsub_v1.PublisherClient(publisher_options=ordered, transport="rest", client_options=options, credentials=nobody)
    subscriber = pubsub_v1.SubscriberClient(transport="rest", client_options=options, credentials=nobody)
    topic, subscription = "projects/p/topics/orders", "projects/p/subscriptions/orders"
    publisher.create_topic(name=topic)
    subscriber.create_subscription(request={"name": subscription, "topic": topic, "enable_message_ordering": True})
    limits = {"retry": None, "timeout": WAIT_S}  # with a retry the client sets a timeout of 2**32 s, which sockets take for 0
    futures = [publisher.publish(topic, b"%d" % number, ordering_key="k", **limits) for number in range(20)]
    ids = [future.result(WAIT_S) for future in futures]
    received: list[Any] = []
    while len(received) < len(ids):
        pulled = subscriber.pull(subscription=subscription, max_messages=7, timeout=WAIT_S).received_messages
        subscriber.acknowledge(subscription=subscription, ack_ids=[one.ack_id for one in pulled])
        received += pulled
    assert [(one.message.message_id, int(one.message.data)) for one in received] == list(zip(ids, range(20), strict=True))
    publisher.stop()
    publisher.transport.close()
    subscriber.transport.close()  # `subscriber.close()` of 2.44.0 closes a gRPC channel that it does not have
