"""Makes a broker: one vantage on one target."""

from __future__ import annotations

from prober.brokers.base import Broker, Vantage
from prober.brokers.call_errors import CallFailed, nobody_asks
from prober.brokers.connection import credentials_for
from prober.brokers.endpoint import Endpoint
from prober.brokers.library import LibraryBroker
from prober.brokers.wire import WireBroker


async def connect(endpoint: Endpoint, vantage: Vantage, failed: CallFailed = nobody_asks) -> Broker:
    """A broker for the running event loop; the caller closes it. `failed` is told of every call that ends with an error.

    No connection is made yet: that nobody answers is told by what is asked first. Raises PermissionRefused where Google's service
    needs credentials and there are none; for other endpoints they are not even looked for.
    """
    credentials = await credentials_for(endpoint)
    match vantage:
        case Vantage.WIRE:
            return WireBroker(endpoint, credentials, failed)
        case Vantage.LIBRARY:
            return LibraryBroker(endpoint, credentials, failed)
