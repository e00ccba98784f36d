"""Speed of the embedded server and of Google's emulator, measured by a client with ordering keys.

Each server runs in a process of its own. One client publishes, receives and acknowledges the same messages over gRPC on both alternately.
It uses the generated clients of google-cloud-pubsub, since the subscriber of that package would be the slowest part, at 100 messages a
second on one key. A figure is the time of the emulator divided by the time of the embedded server.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Final

import grpc
from google.pubsub_v1 import types
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber import SubscriberClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from benchmarks.figures import CannotMeasureError, Figure, in_turn
from benchmarks.processes import embedded_server
from tests.contract.emulator import find_emulator, running_emulator

MESSAGES: Final = 10_000
BATCH: Final = 100
PAYLOAD: Final = b"x" * 256
TIMEOUT_S: Final = 60.0


class Client:
    """A client of the server at an address, with a topic and an ordered subscription for each round."""

    def __init__(self, address: str) -> None:
        channel = grpc.insecure_channel(address)
        self._publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        self._subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))

    def seconds(self, way: Callable[[Client, str, str], float]) -> float:
        """Return the seconds that a way of use takes on new resources, which are deleted afterwards."""
        name = f"speed-{uuid.uuid4().hex}"
        topic, subscription = f"projects/benchmark/topics/{name}", f"projects/benchmark/subscriptions/{name}"
        self._publisher.create_topic(request={"name": topic})
        self._subscriber.create_subscription(
            request={"name": subscription, "topic": topic, "enable_message_ordering": True, "ack_deadline_seconds": 600}
        )
        try:
            return way(self, topic, subscription)
        finally:
            self._subscriber.delete_subscription(request={"subscription": subscription})
            self._publisher.delete_topic(request={"topic": topic})

    def publish(self, topic: str, keys: int, together: int = BATCH, messages: int = MESSAGES) -> None:
        """Publish messages in requests of `together`, each request on one key."""
        for first in range(0, messages, together):
            one = types.PubsubMessage(data=PAYLOAD, ordering_key=f"key-{first // together % keys}")
            self._publisher.publish(request={"topic": topic, "messages": [one] * together})

    def stream(self, subscription: str, messages: int = MESSAGES) -> None:
        """Receive and acknowledge messages on one stream."""
        requests: SimpleQueue[types.StreamingPullRequest | None] = SimpleQueue()
        requests.put(types.StreamingPullRequest(subscription=subscription, stream_ack_deadline_seconds=60))
        responses = self._subscriber.streaming_pull(iter(requests.get, None), timeout=TIMEOUT_S)
        received = 0
        for response in responses:
            ids = [one.ack_id for one in response.received_messages]
            requests.put(types.StreamingPullRequest(ack_ids=ids))
            received += len(ids)
            if received >= messages:
                break
        requests.put(None)

    def pull(self, subscription: str) -> None:
        """Receive and acknowledge messages by unary calls."""
        received = 0
        while received < MESSAGES:
            response = self._subscriber.pull(request={"subscription": subscription, "max_messages": BATCH}, timeout=TIMEOUT_S)
            ids = [one.ack_id for one in response.received_messages]
            if ids:
                self._subscriber.acknowledge(request={"subscription": subscription, "ack_ids": ids})
            received += len(ids)


def publishing(client: Client, topic: str, _subscription: str, *, together: int, messages: int) -> float:
    """Return the seconds of publishing on 100 keys."""
    return _timed(partial(client.publish, topic, 100, together, messages))


def streaming(client: Client, topic: str, subscription: str, *, keys: int) -> float:
    """Return the seconds of receiving previously published messages on a stream."""
    client.publish(topic, keys)
    return _timed(partial(client.stream, subscription))


def pulling(client: Client, topic: str, subscription: str) -> float:
    """Return the seconds of receiving previously published messages by pull."""
    client.publish(topic, 100)
    return _timed(partial(client.pull, subscription))


WAYS: Final[dict[str, Callable[[Client, str, str], float]]] = {
    "publish, 100 messages a request": partial(publishing, together=BATCH, messages=MESSAGES),
    "publish, one message a request": partial(publishing, together=1, messages=1_000),
    "streaming pull, 100 keys": partial(streaming, keys=100),
    "streaming pull, one key": partial(streaming, keys=1),
    "pull, 100 keys": pulling,
}


def figures(repeat: int = 3) -> Iterator[Figure]:
    """Yield the figure of each way of use, measured alternately on both servers, after one round to warm up.

    Raises CannotMeasureError without Google's emulator.
    """
    command = find_emulator()
    if command is None:
        raise CannotMeasureError("Google's emulator is missing: gcloud components install pubsub-emulator, and Java 11 or newer")
    with running_emulator(command) as google, embedded_server() as ours:
        theirs, embedded = Client(google), Client(ours)
        for name, way in WAYS.items():
            rounds = list(in_turn(repeat + 1, partial(theirs.seconds, way), partial(embedded.seconds, way)))[1:]
            ratios = tuple(slow / fast for slow, fast in rounds)
            yield Figure(name, "times as fast as Google's emulator", ratios, more=True)


def _timed(action: Callable[[], None]) -> float:
    began = perf_counter()
    action()
    return perf_counter() - began
