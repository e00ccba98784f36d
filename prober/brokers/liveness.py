"""The liveness check of a target: does its data plane answer?

Pub/Sub's data plane carries messages, its control plane administers. Connected clients do not need the control plane (Google, "Google Cloud
Pub/Sub: A Google-Scale Messaging Service"). So a slow administration call says nothing about messages, and none is made here.

Two requests ask the two halves of the data plane: a publish without messages and an acknowledgement without ids. Neither changes anything:
Pub/Sub, Google's emulator and the embedded server refuse both with INVALID_ARGUMENT ("You have not specified an ack ID in the request",
googleapis/nodejs-pubsub#1194). A liveness message would disturb the experiment, or need a topic of its own.

One answer suffices. If only one half fails, its missing confirmations or deliveries are findings about the service. If both are silent, the
network may be the cause, so the run is UNKNOWN. Messages that arrive are no substitute: the network may have held them for any time, while
an answer bounds that time. Confirmed publishes are not sent during a drain, nor to each endpoint.
"""

from __future__ import annotations

import asyncio
from typing import Final

import grpc
import grpc.aio

from prober.brokers.connection import Connection
from prober.brokers.grpc_errors import let_go, translated, was_cancelled_by_caller
from prober.brokers.wire_messages import ACKNOWLEDGE, PUBLISH, empty_acknowledgement, publish_request, routing
from prober.errors import BrokerUnavailable

TIMEOUT_S: Final = 10.0


async def check_liveness(connection: Connection, topic: str, subscription: str) -> None:
    """Returns when either half of the data plane has answered. An empty `topic` leaves the publishing half out.

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
