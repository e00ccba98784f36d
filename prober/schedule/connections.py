"""Connections to the targets: one for each target and vantage, and the embedded server if it is a target.

One endpoint receives the pushes of all targets; it is opened for the first target that pushes. The accepted tokens depend on the target:
the server in this process signs its tokens with a key of its own, Google with Google's. Other servers on a plain connection, such as
Google's emulator, send no tokens: their requests are accepted if they contain the name of a subscription, which has a random part.

`connected` is for commands that probe a target once: it starts an `embedded` server for the duration of its context.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias

from prober.brokers.base import Broker, PushOutcome, PushReceiver, Vantage
from prober.brokers.call_errors import CallFailed
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint, local_endpoint, named_by, resolve_endpoint
from prober.brokers.push.endpoint import PushEndpoint
from prober.brokers.push.nowhere import NOWHERE, Nowhere
from prober.brokers.push.tokens import KeySet, SigningKeys, TokenVerifier, read_keys, require_keys
from prober.config.models import Config, Embedded, TargetSettings
from prober.config.sections import PushSettings
from prober.embedded.faults import parse_fault
from prober.embedded.server import EmbeddedServer
from prober.embedded.signing import Signer
from prober.errors import ConfigError
from prober.schedule.instances import PlannedInstance, is_embedded
from prober.schedule.probe_loop import OpenProbe

_Key: TypeAlias = tuple[tuple[str, str, str], Endpoint, Vantage, bool]

_log: Final = logging.getLogger(__name__)
EMBEDDED_ACCOUNT: Final = "prober@embedded.invalid"
NO_ADDRESS: Final = "push.address is not set, so the target does not know by which URL to reach this prober (docs/probes/push.md)"
NO_ACCOUNT: Final = "push.service_account is not set: without its tokens anybody could push what was never published"


class Connections:
    """Opens probe instances.

    Its connections stay open until it is closed, or their last user has gone.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        embedded: Embedded,
        instance: str,
        failed_at: Callable[[TargetSettings], CallFailed],
        pushes: PushReceivers,
    ) -> None:
        """Create the connections. `failed_at`: returns the callback for failed calls to a target."""
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

    async def open(self, instance: PlannedInstance) -> OpenProbe:
        """Return the probe instance with its connections.

        Raises ConfigError if the server in this process or the endpoint for pushes cannot be started, and PermissionRefused if the target
        needs credentials and there are none.
        """
        endpoint = await self._endpoint(instance.target)
        key = instance.target.series, endpoint, instance.vantage, instance.is_pushed
        if key not in self._brokers:
            self._log_address(instance.target, endpoint)
            signer = self._server.signer if self._server is not None and is_embedded(instance.target, self._environ) else None
            pushes = await self._pushes.of(instance.target, endpoint, signer) if instance.is_pushed else NOWHERE
            self._brokers[key] = await connect(endpoint, instance.vantage, self._failed_at(instance.target), pushes)
        return OpenProbe(instance, endpoint, self._brokers[key], self._instance)

    def _log_address(self, target: TargetSettings, endpoint: Endpoint) -> None:
        """Log the address of a target and the setting that names it, once for all vantages."""
        if not any(known[:2] == (target.series, endpoint) for known in self._brokers):
            setting = named_by(self._environ) or f"endpoint: {target.endpoint}"
            _log.info("probing %s at %s, named by %s", target.name, endpoint, setting)

    async def close_unused(self, used: Collection[Broker]) -> None:
        """Close all connections except the used ones."""
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
        return local_endpoint(self._server.address, paired=target.peer is not None)


class PushReceivers:
    """Receivers of pushes of one prober; closes the endpoint at the end of its context.

    `counted` is called with the outcome of each request.
    """

    def __init__(
        self, settings: PushSettings, instance: str, counted: Callable[[PushOutcome], None] = lambda _outcome: None
    ) -> None:
        self._settings = settings
        self._endpoint = PushEndpoint(settings.host, settings.port, instance, counted)
        self._open = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open:
            await self._endpoint.__aexit__(kind, error, trace)

    async def of(self, target: TargetSettings, endpoint: Endpoint, signer: Signer | None) -> PushReceiver:
        """Return the receiver of the pushes of a target at an endpoint; `signer`: of the server in this process, if it is the target.

        Raises ConfigError if the endpoint cannot be opened, or the keys of Google's tokens cannot be read from their file.
        """
        settings, here = self._settings, signer is not None or endpoint.is_here
        if not here and settings.address is None:
            return Nowhere(NO_ADDRESS)
        if not self._open:
            await self._endpoint.__aenter__()
            self._open = True
        address = self._endpoint.url if here else settings.address or ""
        if signer is not None:
            keys = KeySet(await signer.keys())
            return self._verified(target, address, SigningKeys(lambda: keys), EMBEDDED_ACCOUNT, address)
        if endpoint.secure and settings.service_account is not None:
            require_keys(settings.keys)
            keys_of_google = SigningKeys(partial(read_keys, settings.keys))
            return self._verified(target, address, keys_of_google, settings.service_account, settings.audience or address)
        return Nowhere(NO_ACCOUNT) if endpoint.secure else self._endpoint.target(target.name, address, None)

    def _verified(self, target: TargetSettings, address: str, keys: SigningKeys, account: str, audience: str) -> PushReceiver:
        return self._endpoint.target(target.name, address, TokenVerifier(keys, audience, account), account, audience)


@asynccontextmanager
async def connected(
    config: Config,
    settings: TargetSettings,
    instances: Collection[PlannedInstance],
    environ: Mapping[str, str],
    receivers: PushReceivers,
    override: str = "",
    client: Sequence[str] = (),
) -> AsyncIterator[tuple[Endpoint, Mapping[Vantage, Broker]]]:
    """Yield the endpoint of a target, and a broker for each vantage of its probe instances, for commands that probe it once.

    The endpoint is the caller's (`override`), an emulator variable's or the configured one. An `embedded` target is started. `client`:
    command of the external vantage. Raises ConfigError for an invalid endpoint, and BrokerError if the target cannot be used.
    """
    async with AsyncExitStack() as resources:
        if is_embedded(settings, environ, override):
            server = EmbeddedServer(config.embedded.port, map(parse_fault, config.embedded.faults))
            await resources.enter_async_context(server)
            endpoint, signer = local_endpoint(server.address, paired=settings.peer is not None), server.signer
        else:
            endpoint, signer = resolve_endpoint(settings.endpoint, environ, override, settings.peer or ""), None
        is_pushed = any(instance.is_pushed for instance in instances)
        pushes = await receivers.of(settings, endpoint, signer) if is_pushed else NOWHERE
        brokers: dict[Vantage, Broker] = {}
        for vantage in sorted({instance.vantage for instance in instances}):
            brokers[vantage] = broker = await connect(endpoint, vantage, pushes=pushes, client=client)
            resources.push_async_callback(broker.close)
        yield endpoint, brokers
