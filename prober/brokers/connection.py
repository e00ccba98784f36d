"""One connection to a target: its gRPC channels, with credentials if, and only if, the endpoint is Google's.

To Google's service, the library's channel has the options of Google's clients. The wire's channel has more: an unanswered keepalive ends
the connection after 10 s, so that a half-open connection is noticed within 40 s. Retries of gRPC are off, because one publish has to be one
attempt.

Channels do not share a connection, as they would by default: a connection carries a limited number of streams, and while it waits up to two
minutes before a reconnect, a new channel would wait with it. A customer's client has a process of its own.

A broker lives for months, its publishers, subscribers and pullers for minutes. The connection keeps a reference to each while it has
something to close, and closes the open ones with itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, cast

import google.auth
import google.auth.exceptions
import google.auth.transport.grpc
import google.auth.transport.requests
import grpc
import grpc.aio

from prober.brokers.call_errors import CallFailed, CallWatch, ThreadedCallWatch, nobody_asks
from prober.brokers.endpoint import Endpoint
from prober.brokers.grpc_errors import let_go, translated, was_cancelled_by_caller
from prober.brokers.wire_messages import ACKNOWLEDGE, PUBLISH, empty_acknowledgement, publish_request, routing
from prober.clock import next_number
from prober.errors import BrokerUnavailable, PermissionRefused

SCOPE: Final = "https://www.googleapis.com/auth/pubsub"
DEFAULT_HOST: Final = "pubsub.googleapis.com"
_NONE_FOUND: Final = "Your default credentials were not found"
"""Message of Google's library that adds no information to the prober's error."""

LOOK_AGAIN_S: Final = 0.02

Options: TypeAlias = tuple[tuple[str, int], ...]

_EVERY: Final[Options] = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_metadata_size", 4 * 1024 * 1024),
)

_GOOGLE_KEEPALIVE: Final[Options] = (("grpc.keepalive_time_ms", 30_000),)

# Other servers end a connection whose client pings more often than every five minutes, unless configured otherwise; Google's emulator does
# so after a minute. A plain connection is usually local, and its end is noticed without pings.
_PLAIN_KEEPALIVE: Final[Options] = (("grpc.keepalive_time_ms", 330_000),)

_WIRE: Final[Options] = (
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),
    # A restarted target should be reconnected soon; by default gRPC waits up to two minutes between attempts.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 5000),
)


def session_name(owner: str) -> str:
    """Return a session name that is unique in this process."""
    return f"{owner}#{next_number()}"


async def credentials_for(endpoint: Endpoint) -> grpc.ChannelCredentials | None:
    """Return default credentials for a channel to Google; None for an endpoint without encryption.

    They are looked up in a thread, because that may query a metadata server. Raises PermissionRefused if there are none.
    """
    return await asyncio.to_thread(_application_default) if endpoint.secure else None


def _application_default() -> grpc.ChannelCredentials:
    # google-auth is typed in part; these calls are not.
    auth = cast(Any, google.auth)
    transport = cast(Any, google.auth.transport)
    try:
        credentials, _ = auth.default(default_scopes=[SCOPE])
        request = transport.requests.Request()
    except google.auth.exceptions.GoogleAuthError as error:
        text = " ".join(str(error).split())
        reason = "" if text.startswith(_NONE_FOUND) else f" ({text})"
        raise PermissionRefused(
            f"no credentials for Google Cloud: run `gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENTIALS{reason}"
        ) from error
    plugin = transport.grpc.AuthMetadataPlugin(credentials, request, default_host=DEFAULT_HOST)
    return grpc.composite_channel_credentials(grpc.ssl_channel_credentials(), grpc.metadata_call_credentials(plugin))


def open_async_channel(endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    """Return a channel for the event loop; it connects at its first use."""
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint.address, options=_EVERY + _PLAIN_KEEPALIVE + _WIRE)
    return grpc.aio.secure_channel(endpoint.address, credentials, options=_EVERY + _GOOGLE_KEEPALIVE + _WIRE)


async def wait_until_connected(channel: grpc.aio.Channel) -> None:
    """Wait without a limit until the channel is connected; request a connection if none is being made.

    Raises ConnectionGivenUp if the channel is closed. The state is polled, because gRPC's own wait cannot be cancelled: it continues in the
    background.
    """
    while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
        if state is grpc.ChannelConnectivity.SHUTDOWN:
            raise let_go("connecting")
        await asyncio.sleep(LOOK_AGAIN_S)


def _open_threaded_channel(endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """Return a channel for Google's client library, which uses threads."""
    if credentials is None:
        return grpc.insecure_channel(endpoint.address, options=_EVERY + _PLAIN_KEEPALIVE)
    return grpc.secure_channel(endpoint.address, credentials, options=_EVERY + _GOOGLE_KEEPALIVE)


OpenChannel: TypeAlias = Callable[[Endpoint, grpc.ChannelCredentials | None], grpc.aio.Channel]


class Closable(Protocol):
    """A publisher, subscriber or puller."""

    async def close(self) -> None:
        """Close all resources; further calls do nothing."""


class Connection:
    """One connection to a target, for the running event loop. `channel` connects at its first use.

    Callers on `channel` report the end of each call to `watch`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: grpc.ChannelCredentials | None,
        failed: CallFailed = nobody_asks,
        open_channel: OpenChannel = open_async_channel,
    ) -> None:
        """Create the connection. `failed` is called for every call that ends with an error."""
        self._endpoint, self._credentials = endpoint, credentials
        self.watch = CallWatch(failed)
        self.channel = open_channel(endpoint, credentials)
        self._open: set[Closable] = set()

    def open_threaded_channel(self) -> grpc.Channel:
        """Return a watched channel to the same target for Google's client library; the caller closes it."""
        channel = _open_threaded_channel(self._endpoint, self._credentials)
        return grpc.intercept_channel(channel, ThreadedCallWatch(self.watch))

    def opened(self, one: Closable) -> None:
        """Register an object to close with the connection."""
        self._open.add(one)

    def closed(self, one: Closable) -> None:
        """Unregister an object that has nothing left to close."""
        self._open.discard(one)

    async def close(self) -> None:
        """Close all registered objects, then the connection. Further calls do nothing."""
        closings = await asyncio.gather(*(one.close() for one in self._open), return_exceptions=True)
        await self.channel.close()
        for result in closings:
            if isinstance(result, BaseException):
                raise result


# --- the liveness check of a target: does its data plane answer? --------------------------------------------------------------


TIMEOUT_S: Final = 10.0


async def check_liveness(connection: Connection, topic: str, subscription: str) -> None:
    """Wait until either half of the data plane has answered. Without a `topic` only the acknowledging half is checked.

    Pub/Sub's data plane carries messages, its control plane administers. Connected clients do not need the control plane (Google, "Google
    Cloud Pub/Sub: A Google-Scale Messaging Service"). So a slow administration call proves nothing about messages, and none is made here.

    Two requests check the two halves of the data plane: a publish without messages and an acknowledgement without ids. Neither changes
    anything: Pub/Sub, Google's emulator and the embedded server refuse both with INVALID_ARGUMENT ("You have not specified an ack ID in the
    request", googleapis/nodejs-pubsub#1194). A liveness message would disturb the experiment, or need a topic of its own.

    One answer suffices. If only one half fails, its missing confirmations or deliveries are findings about the service. If both are silent,
    the network may be the cause, so the run is UNKNOWN. Received messages are no substitute: the network may have delayed them for any
    time, while an answer bounds that time. Neither are confirmed publishes: none are sent during a drain, nor to each endpoint.

    Raises BrokerUnavailable, or ConnectionGivenUp if the connection was closed.
    """
    asking = [_ask(connection, ACKNOWLEDGE, empty_acknowledgement(subscription), routing("subscription", subscription))]
    if topic:
        asking.append(_ask(connection, PUBLISH, publish_request(topic, ()), routing("topic", topic)))
    tasks = [asyncio.create_task(one, name=f"liveness check of {subscription}") for one in asking]
    failures: list[BrokerUnavailable] = []
    try:
        for answer in asyncio.as_completed(tasks):
            try:
                return await answer
            except BrokerUnavailable as failure:
                failures.append(failure)
        raise failures[-1]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask(connection: Connection, method: str, request: bytes, metadata: tuple[tuple[str, str], ...]) -> None:
    """Send a request and wait for its answer. The expected INVALID_ARGUMENT is not counted as an error of the target."""
    doing = "checking the liveness of the target"
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = connection.channel.unary_unary(method)
    try:
        await call(request, timeout=TIMEOUT_S, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
            return
        connection.watch.ended(method, error.code())
        failure = translated(error, doing)
        if isinstance(failure, BrokerUnavailable):
            raise failure from error
    except grpc.aio.UsageError:  # the channel was closed before
        raise let_go(doing) from None
    except asyncio.CancelledError:
        if was_cancelled_by_caller():
            raise
        raise let_go(doing) from None
