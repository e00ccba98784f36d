"""Answers in a tenth of their bytes, for clients that take gzip (RFC 9110, section 12.5.3).

Compressing takes longer than everything else about a long answer, so it is done by a thread, and once for all who get the same bytes.
"""

from __future__ import annotations

import asyncio
import gzip
from collections import OrderedDict
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BYTES_MIN: Final = 1024
"""Shorter answers are sent as they are: they fit into one packet."""
LEVEL: Final = 5
REMEMBERED_MAX: Final = 32
REMEMBERED_BYTES_MAX: Final = 1 << 20
"""Longer answers are compressed each time they are sent."""
_CONTENT: Final = (
    "text/",
    "application/atom+xml",
    "application/json",
    "application/jsonl",
    "application/problem+json",
    "application/openmetrics-text",
    "image/svg+xml",
)


class Compression:
    """Middleware: compresses what comes in one piece, as all but large files do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._remembered: OrderedDict[bytes, bytes] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        accepted = takes_gzip(", ".join(Headers(scope=scope).getlist("accept-encoding")))
        start: Message = {}

        async def compress(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start:
                start, first = {}, start
                message = await self._compressed(first, message, accepted=accepted)
                await send(first)
            await send(message)

        await self._app(scope, receive, compress)

    async def _compressed(self, start: Message, body: Message, *, accepted: bool) -> Message:
        """The body to send; changes the headers accordingly."""
        headers = MutableHeaders(scope=start)
        if start["status"] != 304 and not headers.get("content-type", "").startswith(_CONTENT):
            return body
        headers.add_vary_header("Accept-Encoding")
        text = body.get("body", b"")
        whole = not body.get("more_body", False) and "content-range" not in headers and "content-encoding" not in headers
        if not accepted or not whole or len(text) < BYTES_MIN:
            return body
        packed = await self._packed(text)
        headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(packed))
        tag = headers.get("etag", "")
        if tag.startswith('"'):  # other bytes of the same answer
            headers["ETag"] = f"W/{tag}"
        return {**body, "body": packed}

    async def _packed(self, text: bytes) -> bytes:
        packed = self._remembered.get(text)
        if packed is not None:
            return packed
        packed = await asyncio.to_thread(gzip.compress, text, LEVEL, mtime=0)
        if len(text) <= REMEMBERED_BYTES_MAX:
            self._remembered[text] = packed
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return packed


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header has gzip. What it says of an encoding by name counts more than what it says of all."""
    weights = dict(_weighted(option) for option in accepted.lower().split(","))
    return weights.get("gzip", weights.get("*", False))


def _weighted(option: str) -> tuple[str, bool]:
    """An encoding, and whether it may be used: whether its weight is more than nothing."""
    name, _, weight = (part.strip() for part in option.partition(";"))
    return name, weight.removeprefix("q=").strip("0.") != "" if weight else True
