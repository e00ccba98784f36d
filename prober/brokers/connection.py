"""One connection to a target: its gRPC channels, with credentials where, and only where, the endpoint is Google's.

To Google's service, the library's channel has the options that Google's clients give theirs. The wire's has more: a keepalive that is
not answered ends the connection after 10 s, so that a half-open one is noticed within 40 s; and gRPC itself repeats nothing, because one
publish has to be one attempt.

No two channels share a connection, as they would by default: it carries a limited number of streams, and while it waits before it
connects again, for up to two minutes, a new channel would wait with it. A customer's client has a process of its own.

A broker lives for months, what it makes for minutes. So publishers, subscribers and pullers are noted here from when they have
something to close until they are closed, and then forgotten; what is open is closed with the connection.
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
"""The text of Google's library that adds nothing to ours."""

LOOK_AGAIN_S: Final = 0.02

Options: TypeAlias = tuple[tuple[str, int], ...]

_EVERY: Final[Options] = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_metadata_size", 4 * 1024 * 1024),
)

_GOOGLE_KEEPALIVE: Final[Options] = (("grpc.keepalive_time_ms", 30_000),)

# Other servers end a connection whose client pings more often than every five minutes, unless they are configured otherwise; Google's
# emulator does so after a minute. On a plain connection the network is short, and a connection that breaks is noticed without pings.
_PLAIN_KEEPALIVE: Final[Options] = (("grpc.keepalive_time_ms", 330_000),)

_WIRE: Final[Options] = (
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),
    # A target that restarts should be found again soon; the default waits up to two minutes between attempts to connect.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 5000),
)


def session_name(owner: str) -> str:
    """A name that no other session of this process has."""
    return f"{owner}#{next_number()}"


async def credentials_for(endpoint: Endpoint) -> grpc.ChannelCredentials | None:
    """Application default credentials for a channel to Google, None for an endpoint without encryption.

    They are looked up in a thread, because that may ask a metadata server. Raises PermissionRefused if there are none.
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
    """A channel for the event loop; it connects when it is first used."""
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint.address, options=_EVERY + _PLAIN_KEEPALIVE + _WIRE)
    return grpc.aio.secure_channel(endpoint.address, credentials, options=_EVERY + _GOOGLE_KEEPALIVE + _WIRE)


async def wait_until_connected(channel: grpc.aio.Channel) -> None:
    """Waits until there is a connection, for as long as it takes; asks for one if none is being made.

    Raises ConnectionGivenUp if the channel is closed. Looks again and again, because gRPC's own wait cannot be given up: it goes on in
    the background when its task is cancelled.
    """
    while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
        if state is grpc.ChannelConnectivity.SHUTDOWN:
            raise let_go("connecting")
        await asyncio.sleep(LOOK_AGAIN_S)


def _open_threaded_channel(endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """A channel for Google's client library, which uses threads."""
    if credentials is None:
        return grpc.insecure_channel(endpoint.address, options=_EVERY + _PLAIN_KEEPALIVE)
    return grpc.secure_channel(endpoint.address, credentials, options=_EVERY + _GOOGLE_KEEPALIVE)


OpenChannel: TypeAlias = Callable[[Endpoint, grpc.ChannelCredentials | None], grpc.aio.Channel]


class Closable(Protocol):
    """A publisher, subscriber or puller."""

    async def close(self) -> None:
        """Closes everything; calling it again does nothing."""


class Connection:
    """One connection to a target for the event loop that runs. `channel` connects when it is first used.

    Who calls through `channel` tells `watch` how that ended.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: grpc.ChannelCredentials | None,
        failed: CallFailed = nobody_asks,
        open_channel: OpenChannel = open_async_channel,
    ) -> None:
        """`failed` is called for every call that ends with an error."""
        self._endpoint, self._credentials = endpoint, credentials
        self.watch = CallWatch(failed)
        self.channel = open_channel(endpoint, credentials)
        self._open: set[Closable] = set()

    def open_threaded_channel(self) -> grpc.Channel:
        """A connection to the same target for Google's client library, watched as it is; the caller closes it."""
        channel = _open_threaded_channel(self._endpoint, self._credentials)
        return grpc.intercept_channel(channel, ThreadedCallWatch(self.watch))

    def opened(self, one: Closable) -> None:
        """Notes what has to be closed with the connection."""
        self._open.add(one)

    def closed(self, one: Closable) -> None:
        """Forgets what has nothing left to close."""
        self._open.discard(one)

    async def close(self) -> None:
        """Closes everything that is open, then the connection. Calling it again does nothing."""
        closings = await asyncio.gather(*(one.close() for one in self._open), return_exceptions=True)
        await self.channel.close()
        for result in closings:
            if isinstance(result, BaseException):
                raise result


# --- the liveness check of a target: does its data plane answer? --------------------------------------------------------------


TIMEOUT_S: Final = 10.0


async def check_liveness(connection: Connection, topic: str, subscription: str) -> None:
    """Returns when either half of the data plane has answered. An empty `topic` leaves the publishing half out.

    Pub/Sub's data plane carries messages, its control plane administers. Connected clients do not need the control plane (Google, "Google
    Cloud Pub/Sub: A Google-Scale Messaging Service"). So a slow administration call says nothing about messages, and none is made here.

    Two requests ask the two halves of the data plane: a publish without messages and an acknowledgement without ids. Neither changes
    anything: Pub/Sub, Google's emulator and the embedded server refuse both with INVALID_ARGUMENT ("You have not specified an ack ID in the
    request", googleapis/nodejs-pubsub#1194). A liveness message would disturb the experiment, or need a topic of its own.

    One answer suffices. If only one half fails, its missing confirmations or deliveries are findings about the service. If both are silent,
    the network may be the cause, so the run is UNKNOWN. Messages that arrive are no substitute: the network may have held them for any
    time, while an answer bounds that time. Confirmed publishes are not sent during a drain, nor to each endpoint.

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
    """Sends one request and waits for its answer. INVALID_ARGUMENT is expected, so it is not counted as an error of the target."""
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
