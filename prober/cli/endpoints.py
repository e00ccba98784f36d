"""Where a target is, for commands that probe it once: what is `embedded` is started for as long as it takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from prober.brokers.endpoint import Endpoint, local_endpoint, resolve_endpoint
from prober.config.models import Config, TargetSettings
from prober.embedded.faults import parse_fault
from prober.embedded.server import EmbeddedServer
from prober.embedded.signing import Signer
from prober.schedule.instances import is_embedded


@asynccontextmanager
async def endpoint_of(
    config: Config, settings: TargetSettings, environ: Mapping[str, str], override: str = ""
) -> AsyncIterator[tuple[Endpoint, Signer | None]]:
    """Where the target is: what the caller names, or an emulator's variable, or what is configured; `embedded` is started.

    With what it signs tokens, if it is that one.
    """
    if is_embedded(settings, environ, override):
        async with EmbeddedServer(config.embedded.port, map(parse_fault, config.embedded.faults)) as server:
            yield local_endpoint(server.address, paired=settings.peer is not None), server.signer
    else:
        yield resolve_endpoint(settings.endpoint, environ, override, settings.peer or ""), None
