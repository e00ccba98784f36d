"""Cost of google-cloud-pubsub alone, without a checker.

The measurement is microseconds of CPU per message published, received and acknowledged.

Ordinary code of a user: a publisher with ordering keys and the client's own batches, a subscriber whose callback acknowledges. It is the
reference for the cost of a probed message.
"""

from __future__ import annotations

import os
import threading
import uuid
from concurrent.futures import wait
from itertools import count
from time import process_time

from google.cloud import pubsub_v1

KEYS = 100
TIMEOUT_S = 60.0
PROJECT = "projects/benchmark"
PAYLOAD = b"x" * 256


class PlainClient:
    """A publisher and a subscriber with a topic of their own, on the server at an address."""

    def __init__(self, address: str) -> None:
        os.environ["PUBSUB_EMULATOR_HOST"] = address
        name = uuid.uuid4().hex
        self._topic, self._subscription = f"{PROJECT}/topics/plain-{name}", f"{PROJECT}/subscriptions/plain-{name}"
        options = pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
        self._publisher = pubsub_v1.PublisherClient(publisher_options=options)
        self._subscriber = pubsub_v1.SubscriberClient()
        self._publisher.create_topic(request={"name": self._topic})
        self._subscriber.create_subscription(
            request={"name": self._subscription, "topic": self._topic, "enable_message_ordering": True}
        )
        self._wanted, self._received = 0, count(1)
        self._done = threading.Event()
        self._receiving = self._subscriber.subscribe(self._subscription, self._receive)

    def _receive(self, message: pubsub_v1.subscriber.message.Message) -> None:
        message.ack()
        if next(self._received) == self._wanted:  # a step that no other thread interrupts
            self._done.set()

    def one_round(self, messages: int) -> float:
        """Publish messages, wait for all of them, and return microseconds of CPU per message.

        Raises TimeoutError if they do not arrive.
        """
        self._wanted, self._received = messages, count(1)
        self._done.clear()
        began = process_time()
        wait([self._publisher.publish(self._topic, PAYLOAD, ordering_key=f"key-{number % KEYS}") for number in range(messages)])
        if not self._done.wait(TIMEOUT_S):
            raise TimeoutError(f"{messages:,} messages were published, and fewer came")
        return (process_time() - began) / messages * 1e6

    def close(self) -> None:
        """Close publisher and subscriber."""
        self._receiving.cancel()
        self._receiving.result()
        self._subscriber.close()
        self._publisher.stop()


def measure(address: str, messages: int, repeat: int) -> list[float]:
    """Return the microseconds of CPU per message, of each round after one to warm up."""
    client = PlainClient(address)
    try:
        return [client.one_round(messages) for _ in range(repeat + 1)][1:]
    finally:
        client.close()
