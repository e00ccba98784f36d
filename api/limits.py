"""What one client may ask for: so many requests in a time, an address line and a body of so many bytes. And all of them at a time.

The rate is a token bucket per client address: a full bucket lets a page load all its parts at once, and it fills up again with a steady
rate. Whoever is behind the same proxy shares one, so the rate is generous; it stops a loop that went wrong, not an attacker with many
addresses. What an orchestrator asks is exempt, since it must not fail because of others; scrapes have limits of their own for the same
reason. How much a client has left it is told as draft-ietf-httpapi-ratelimit-headers-10 says.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil, floor
from typing import Final, NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import HEALTH_PATHS, METRICS_PATH
from api.problems import RETRY_AFTER_S, problem
from prober.clock import monotonic_s

ADDRESSES_MAX: Final = 10_000
TARGET_BYTES_MAX: Final = 8 << 10
"""Path and query of a request."""
BODY_BYTES_MAX: Final = 64 << 10
BODY_WAIT_MAX_S: Final = 10.0
"""For all of a body, however its parts come."""
REQUESTS_MAX: Final = 256
"""So many are answered at a time."""
SCRAPES_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests a second in the long run, and so many at once."""

    per_s: float
    burst: int


RATE: Final = Rate(per_s=50.0, burst=100)


class Share(NamedTuple):
    """What a client has of its rate: in how many seconds it may ask (0.0: now), and then how often at once, and when once more."""

    wait_s: float
    left: int
    more_in_s: float


class Buckets:
    """A token bucket for each of the `ADDRESSES_MAX` addresses that were seen last; one that was forgotten begins with a full bucket."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = monotonic_s) -> None:
        self._rate, self._clock = rate, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> Share:
        """Takes a token, if there is one; what is left then."""
        now = self._clock()
        left, at = self._left.pop(address, (float(self._rate.burst), now))
        left = min(float(self._rate.burst), left + (now - at) * self._rate.per_s)
        has_one = left >= 1.0
        left = left - 1.0 if has_one else left
        self._left[address] = left, now
        if len(self._left) > ADDRESSES_MAX:
            self._left.popitem(last=False)
        more_in_s = (floor(left) + 1.0 - left) / self._rate.per_s
        return Share(0.0 if has_one else more_in_s, floor(left), more_in_s)

    def __len__(self) -> int:
        return len(self._left)


class _Limit:
    """How often one may ask, by a name, and how many are answered at a time."""

    def __init__(self, name: str, rate: Rate, most: int) -> None:
        self.buckets, self.most, self.under_way = Buckets(rate), most, 0
        self._name = name
        self._policy = f'"{name}";q={rate.burst};w={max(1, ceil(rate.burst / rate.per_s))}'

    def told(self, share: Share) -> dict[str, str]:
        """The header fields that say so."""
        return {"RateLimit-Policy": self._policy, "RateLimit": f'"{self._name}";r={share.left};t={ceil(share.more_in_s)}'}

    @contextmanager
    def counted(self, change: int) -> Iterator[None]:
        """So many more, or fewer, are answered inside of this."""
        self.under_way += change
        try:
            yield
        finally:
            self.under_way -= change


class RequestLimits:
    """Middleware: refuses what is too much before anything is done for it."""

    def __init__(self, app: ASGIApp, rate: Rate) -> None:
        self._app = app
        self._requests = _Limit("requests", rate, REQUESTS_MAX)
        self._scrapes = _Limit("scrapes", rate, SCRAPES_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        limit = self._limit(scope["path"])
        share = None if limit is None else limit.buckets.take(_client(scope))
        if limit is not None and share is not None:
            send = _telling(send, limit.told(share))
        refusal = _too_large(scope) or _too_much(limit, share)
        if refusal is not None:
            status, why, headers = refusal
            await problem(status, why, scope["path"][:100], headers)(scope, receive, send)
        elif limit is None:
            await self._app(scope, _bounded(receive, None), send)
        else:
            with limit.counted(1):
                await self._app(scope, _bounded(receive, limit), send)

    def _limit(self, path: str) -> _Limit | None:
        if path in HEALTH_PATHS:
            return None
        return self._scrapes if path == METRICS_PATH else self._requests


_Refusal = tuple[int, str, dict[str, str]]


def _too_large(scope: Scope) -> _Refusal | None:
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > TARGET_BYTES_MAX:
        return 414, f"path and query may have {TARGET_BYTES_MAX:,} bytes", {}
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > BODY_BYTES_MAX:
        return 413, f"a body may have {BODY_BYTES_MAX:,} bytes", {"Connection": "close"}
    return None


def _too_much(limit: _Limit | None, share: Share | None) -> _Refusal | None:
    if share is not None and share.wait_s > 0.0:
        return 429, "too many requests; ask less often", {"Retry-After": str(ceil(share.wait_s))}
    if limit is not None and limit.under_way >= limit.most:
        return 503, "too many requests are being answered; ask again later", {"Retry-After": str(RETRY_AFTER_S)}
    return None


def _telling(send: Send, told: dict[str, str]) -> Send:
    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(told)
        await send(message)

    return tell


def _bounded(receive: Receive, limit: _Limit | None) -> Receive:
    """The same body, refused where it becomes too long or takes too long. Who waits for it does not count for the limit meanwhile."""
    size, complete = 0, False
    deadline = asyncio.get_running_loop().time() + BODY_WAIT_MAX_S

    async def read() -> Message:
        nonlocal size, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                with nullcontext() if limit is None else limit.counted(-1):
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
