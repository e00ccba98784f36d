"""Who takes what each target pushes: one endpoint for all, opened when the first target needs it, and whom it lets in.

The server in this process signs its tokens with a key of its own, Google with Google's. Whoever else is on a plain connection, such as
Google's emulator, signs none: there everybody is let in who knows the name of a subscription, which has a random part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, Self

from prober.brokers.base import PushOutcome, PushReceiver
from prober.brokers.endpoint import Endpoint
from prober.brokers.push.endpoint import PushEndpoint
from prober.brokers.push.keys import Keys, KeySet, read_keys, require_keys
from prober.brokers.push.nowhere import Nowhere
from prober.brokers.push.tokens import TokenVerifier
from prober.config.models import TargetSettings
from prober.config.push import Push
from prober.embedded.signing import Signer

EMBEDDED_ACCOUNT: Final = "prober@embedded.invalid"
NO_ADDRESS: Final = "push.address is not set, so the target does not know by which URL to reach this prober (docs/probes/push.md)"

NO_ACCOUNT: Final = "push.service_account is not set: without its tokens anybody could push what was never published"


class PushReceivers:
    """Those of one prober; closes the endpoint when it is left. `counted` is told what became of each request."""

    def __init__(self, settings: Push, instance: str, counted: Callable[[PushOutcome], None] = lambda _outcome: None) -> None:
        self._settings = settings
        self._endpoint = PushEndpoint(settings.host, settings.port, instance, counted)
        self._open = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open:
            await self._endpoint.__aexit__(kind, error, trace)

    async def of(self, target: TargetSettings, endpoint: Endpoint, signer: Signer | None) -> PushReceiver:
        """Who takes what a target pushes that is reached at an endpoint; `signer`: of the server in this process, if it is that.

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
            return self._verified(target, address, Keys(lambda: keys), EMBEDDED_ACCOUNT, address)
        if endpoint.secure and settings.service_account is not None:
            require_keys(settings.keys)
            keys_of_google = Keys(partial(read_keys, settings.keys))
            return self._verified(target, address, keys_of_google, settings.service_account, settings.audience or address)
        return Nowhere(NO_ACCOUNT) if endpoint.secure else self._endpoint.target(target.name, address, None)

    def _verified(self, target: TargetSettings, address: str, keys: Keys, account: str, audience: str) -> PushReceiver:
        return self._endpoint.target(target.name, address, TokenVerifier(keys, audience, account), account, audience)
