"""The embedded server in a thread of its own, for clients that block, and what these clients need on loopback."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from google.cloud import pubsub_v1
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from prober.embedded.faults import Fault
from prober.embedded.server import LOOPBACK, EmbeddedServer

WAIT_S = 20.0


@dataclass
class Running:
    """A server that runs in another thread."""

    server: EmbeddedServer
    loop: asyncio.AbstractEventLoop

    @property
    def address(self) -> str:
        return self.server.address

    def call(self, function: Callable[[], Any]) -> Any:
        """Call something in the server's loop and wait for it."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(WAIT_S)


@contextmanager
def running(
    faults: Iterable[Fault] = (),
    *,
    admin: bool = False,
    rest: bool = False,
    host: str = LOOPBACK,
    now: Callable[[], float] | None = None,
) -> Iterator[Running]:
    """Start a server on free ports; it is stopped and joined at the end."""
    started = threading.Event()
    box: list[Running] = []
    stop: list[asyncio.Event] = []

    async def run() -> None:
        admin_port, rest_port = (0 if admin else None), (0 if rest else None)
        async with EmbeddedServer(0, faults, admin_port, host=host, rest_port=rest_port, now=now) as server:
            stop.append(asyncio.Event())
            box.append(Running(server, asyncio.get_running_loop()))
            started.set()
            await stop[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert started.wait(WAIT_S), "the server did not start"
        yield box[0]
    finally:
        if box:
            box[0].loop.call_soon_threadsafe(stop[0].set)
        thread.join(WAIT_S)


class Clients:
    """Ordinary clients of google-cloud-pubsub on one server, and names that nobody else uses."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._closing: list[Callable[[], object]] = []
        suffix = uuid.uuid4().hex[:8]
        self.topic = f"projects/test/topics/topic-{suffix}"
        self.subscription = f"projects/test/subscriptions/sub-{suffix}"
        self.publisher = self.new_publisher()
        self.subscriber = self.new_subscriber()

    def new_publisher(self, **settings: Any) -> Any:
        """A PublisherClient with ordering and other settings of PublisherOptions."""
        options = pubsub_v1.types.PublisherOptions(enable_message_ordering=True, **settings)
        channel = self._channel()
        client = pubsub_v1.PublisherClient(publisher_options=options, transport=PublisherGrpcTransport(channel=channel))
        self._closing += [client.stop, channel.close]
        return client

    def new_subscriber(self) -> Any:
        """A SubscriberClient."""
        client = pubsub_v1.SubscriberClient(transport=SubscriberGrpcTransport(channel=self._channel()))
        self._closing.append(client.close)
        return client

    @contextmanager
    def subscribed(self, receive: Callable[[Any], object], **settings: Any) -> Iterator[None]:
        """A subscriber with this callback, closed at the end of the block."""
        future = self.new_subscriber().subscribe(self.subscription, receive, **settings)
        try:
            yield
        finally:
            future.cancel()
            future.result(WAIT_S)

    def _channel(self) -> Any:
        return grpc.insecure_channel(self._address, options=[("grpc.max_receive_message_length", -1)])  # as for the real service

    def create(self, **settings: object) -> None:
        """The topic and an ordered subscription with these settings."""
        self.publisher.create_topic(request={"name": self.topic})
        self.create_subscription(**settings)

    def create_subscription(self, **settings: object) -> Any:
        request = {"name": self.subscription, "topic": self.topic, "enable_message_ordering": True, **settings}
        return self.subscriber.create_subscription(request=request)

    def publish(self, *texts: str, key: str = "k", **attributes: str) -> list[str]:
        """Publish in order; the message ids."""
        futures = [self.publisher.publish(self.topic, text.encode(), ordering_key=key, **attributes) for text in texts]
        return [future.result(WAIT_S) for future in futures]

    def publish_request(self, *messages: dict[str, object]) -> list[str]:
        """One publish request as it is, without the client's batches and retries; the message ids."""
        request = {"topic": self.topic, "messages": messages}
        return list(self.publisher._gapic_publish(request=request, retry=None).message_ids)

    def pull(self, limit: int = 100) -> list[Any]:
        """One unary pull."""
        request = {"subscription": self.subscription, "max_messages": limit}
        return list(self.subscriber.pull(request=request, timeout=WAIT_S).received_messages)

    def pull_now(self) -> list[Any]:
        """One unary pull that does not wait; the client warns about it, so it goes below the client."""
        request = pubsub_v1.types.PullRequest(subscription=self.subscription, max_messages=100, return_immediately=True)
        return list(self.subscriber.transport.pull(request, timeout=WAIT_S).received_messages)

    def texts(self) -> list[str]:
        """The data of one unary pull."""
        return [received.message.data.decode() for received in self.pull()]

    def ack(self, *received: Any) -> None:
        self.subscriber.acknowledge(request={"subscription": self.subscription, "ack_ids": [one.ack_id for one in received]})

    def nack(self, *received: Any) -> None:
        ids = [one.ack_id for one in received]
        request = {"subscription": self.subscription, "ack_ids": ids, "ack_deadline_seconds": 0}
        self.subscriber.modify_ack_deadline(request=request)

    def close(self) -> None:
        for close in self._closing:
            close()


class Collected:
    """What a subscriber got, in order, with a way to wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.items: list[Any] = []

    def add(self, item: Any) -> int:
        """Note something; how many there are."""
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()
            return len(self.items)

    def wait(self, count: int, wait_s: float = WAIT_S) -> list[Any]:
        """At least so many, or fail."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.items) >= count, wait_s), f"only {self.items} of {count}"
            return list(self.items)


@contextmanager
def endpoint(answer: Callable[[dict[str, str], bytes], int]) -> Iterator[str]:
    """An HTTP endpoint on loopback that answers each POST with a status; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(answer(dict(self.headers), body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/push"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
