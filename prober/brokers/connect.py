"""Creation of a broker: one vantage on one target."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from prober.brokers.base import Broker, PushReceiver, Vantage
from prober.brokers.call_errors import CallFailed, nobody_asks
from prober.brokers.connection import credentials_for
from prober.brokers.endpoint import Endpoint
from prober.brokers.external import ExternalBroker
from prober.brokers.library import LibraryBroker
from prober.brokers.push.nowhere import NOWHERE
from prober.brokers.wire import WireBroker


async def connect(
    endpoint: Endpoint,
    vantage: Vantage,
    failed: CallFailed = nobody_asks,
    pushes: PushReceiver = NOWHERE,
    client: Sequence[str] = (),
) -> Broker:
    """Return a broker for the running event loop; the caller closes it.

    `failed` is called for every call that ends with an error; `pushes` receives the messages that the target pushes. `client` is the
    command of the program at the external vantage.

    The broker connects at its first call, which reports an unreachable target. Raises PermissionRefused if Google's service needs
    credentials and there are none; for other endpoints credentials are not looked up.
    """
    return _broker(endpoint, vantage, await credentials_for(endpoint), failed, pushes, client)


def _broker(
    endpoint: Endpoint,
    vantage: Vantage,
    credentials: grpc.ChannelCredentials | None,
    failed: CallFailed,
    pushes: PushReceiver = NOWHERE,
    client: Sequence[str] = (),
) -> Broker:
    """Return a broker with its peer, which is encrypted if the broker is."""
    peer = None if endpoint.peer is None else _broker(endpoint.peer, vantage, credentials, failed, client=client)
    match vantage:
        case Vantage.WIRE:
            return WireBroker(endpoint, credentials, failed, peer, pushes)
        case Vantage.LIBRARY:
            return LibraryBroker(endpoint, credentials, failed, peer)
        case Vantage.EXTERNAL:
            return ExternalBroker(endpoint, credentials, client, failed, peer)
