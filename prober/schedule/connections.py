"""The connections to the targets: one for each target and vantage that is probed, and the embedded server if a target is that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self, TypeAlias

from prober.brokers.base import Broker, Vantage
from prober.brokers.call_errors import CallFailed
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint, local_endpoint, resolve_endpoint
from prober.brokers.push.nowhere import NOWHERE
from prober.config.models import Embedded, TargetSettings
from prober.embedded.faults import parse_fault
from prober.embedded.server import EmbeddedServer
from prober.errors import ConfigError
from prober.schedule.instances import PlannedSite, is_embedded
from prober.schedule.probe_loop import ProbeInstance
from prober.schedule.pushing import PushReceivers

_Key: TypeAlias = tuple[tuple[str, str, str], Endpoint, Vantage, bool]

_log: Final = logging.getLogger(__name__)


class Connections:
    """Makes probe instances of sites. What it opened is open until it is closed, or nobody uses it any more."""

    def __init__(
        self,
        environ: Mapping[str, str],
        embedded: Embedded,
        instance: str,
        failed_at: Callable[[TargetSettings], CallFailed],
        pushes: PushReceivers,
    ) -> None:
        """`failed_at`: who is told of the calls to a target that end with an error."""
        self._environ, self._embedded, self._instance, self._failed_at = environ, embedded, instance, failed_at
        self._pushes = pushes
        self._resources = AsyncExitStack()
        self._server: EmbeddedServer | None = None
        self._brokers: dict[_Key, Broker] = {}

    async def __aenter__(self) -> Self:
        await self._resources.enter_async_context(self._pushes)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close_unused(())
        await self._resources.aclose()

    async def open(self, site: PlannedSite) -> ProbeInstance:
        """The site with what it takes to work there. Raises ConfigError if the server in this process or the endpoint for pushes cannot
        be started, and PermissionRefused if the target needs credentials and there are none.
        """
        endpoint = await self._endpoint(site.target)
        key = site.target.series, endpoint, site.vantage, site.is_pushed
        if key not in self._brokers:
            signer = self._server.signer if self._server is not None and is_embedded(site.target, self._environ) else None
            pushes = await self._pushes.of(site.target, endpoint, signer) if site.is_pushed else NOWHERE
            self._brokers[key] = await connect(endpoint, site.vantage, self._failed_at(site.target), pushes)
        return ProbeInstance(site, endpoint, self._brokers[key], self._instance)

    async def close_unused(self, used: Collection[Broker]) -> None:
        """Closes all connections but these."""
        kept = {id(broker) for broker in used}
        for key in [key for key, broker in self._brokers.items() if id(broker) not in kept]:
            await self._brokers.pop(key).close()

    async def _endpoint(self, target: TargetSettings) -> Endpoint:
        if not is_embedded(target, self._environ):
            return resolve_endpoint(target.endpoint, self._environ, peer=target.peer or "")
        if self._server is None:
            server = EmbeddedServer(self._embedded.port, map(parse_fault, self._embedded.faults))
            try:
                self._server = await self._resources.enter_async_context(server)
            except OSError as error:
                raise ConfigError(f"{error}; name another port with embedded.port, or 0 for any") from error
            _log.info("embedded Pub/Sub server on %s", self._server.address)
        return local_endpoint(self._server.address, paired=target.peer is not None)
