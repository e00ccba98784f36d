"""What one client may ask for: so many requests in a time, an address line and a body of so many bytes.

The rate is a token bucket per client address: a full bucket lets a page load all its parts at once, and it fills up again with a steady
rate. Whoever is behind the same proxy shares one, so the rate is generous; it stops a loop that went wrong, not an attacker with many
addresses. What an orchestrator asks is exempt, since it must not fail because of others; scrapes have buckets of their own for the same
reason.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import HEALTH_PATHS, METRICS_PATH
from api.problems import problem
from prober.clock import monotonic_s

ADDRESSES_MAX: Final = 10_000
TARGET_BYTES_MAX: Final = 8 << 10
"""Path and query of a request."""
BODY_BYTES_MAX: Final = 64 << 10
BODY_WAIT_MAX_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests a second in the long run, and so many at once."""

    per_s: float
    burst: int


RATE: Final = Rate(per_s=50.0, burst=100)


class Buckets:
    """A token bucket for each of the `ADDRESSES_MAX` addresses that were seen last; one that was forgotten begins with a full bucket."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = monotonic_s) -> None:
        self._rate, self._clock = rate, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Takes a token; 0.0, or in how many seconds there will be one."""
        now = self._clock()
        left, at = self._left.pop(address, (float(self._rate.burst), now))
        left = min(float(self._rate.burst), left + (now - at) * self._rate.per_s)
        has_one = left >= 1.0
        self._left[address] = left - 1.0 if has_one else left, now
        if len(self._left) > ADDRESSES_MAX:
            self._left.popitem(last=False)
        return 0.0 if has_one else (1.0 - left) / self._rate.per_s

    def __len__(self) -> int:
        return len(self._left)


class RequestLimits:
    """Middleware: refuses what is too much before anything is done for it."""

    def __init__(self, app: ASGIApp, rate: Rate) -> None:
        self._app = app
        self._buckets, self._scrapes = Buckets(rate), Buckets(rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, _bounded(receive), send)
            return
        status, why, headers = refusal
        await problem(status, why, scope["path"][:100], headers)(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str, dict[str, str]] | None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > TARGET_BYTES_MAX:
            return 414, f"path and query may have {TARGET_BYTES_MAX:,} bytes", {}
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > BODY_BYTES_MAX:
            return 413, f"a body may have {BODY_BYTES_MAX:,} bytes", {"Connection": "close"}
        wait_s = self._wait_s(scope)
        if wait_s > 0.0:
            return 429, "too many requests; ask less often", {"Retry-After": str(ceil(wait_s))}
        return None

    def _wait_s(self, scope: Scope) -> float:
        if scope["path"] in HEALTH_PATHS:
            return 0.0
        buckets = self._scrapes if scope["path"] == METRICS_PATH else self._buckets
        return buckets.wait_s(_client(scope))


def _bounded(receive: Receive) -> Receive:
    """The same body, refused where it becomes too long or takes too long."""
    size, complete = 0, False

    async def read() -> Message:
        nonlocal size, complete
        try:
            async with asyncio.timeout(None if complete else BODY_WAIT_MAX_S):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {BODY_WAIT_MAX_S:g} s", {"Connection": "close"}) from None
        complete = not message.get("more_body", False)
        size += len(message.get("body", b""))
        if size > BODY_BYTES_MAX:
            raise HTTPException(413, f"a body may have {BODY_BYTES_MAX:,} bytes", {"Connection": "close"})
        return message

    return read


def _client(scope: Scope) -> str:
    """Who asks: an address, or for IPv6 the network that one household has."""
    host = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return str(host)
    return str(ip_network((address, 64), strict=False)) if isinstance(address, IPv6Address) else host
