"""ETags of the API: a client that has an answer does not get it again (RFC 9110, section 13.1.2)."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.models.base import API

_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


class ETags:
    """Middleware: a weak ETag for every answer of the API that has none, and 304 for a client that knows it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["method"] != "GET" or not scope["path"].startswith(f"{API}/"):
            await self._app(scope, receive, send)
            return
        known = Headers(scope=scope).get("if-none-match", "")
        start: Message = {}
        body = b""

        async def tag(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if message.get("more_body", False):
                return
            if start["status"] == 200:
                headers = MutableHeaders(scope=start)
                if _is_known(known, headers.setdefault("ETag", tag_of(body))):
                    start, body = {**start, "status": 304}, b""
                    del headers["Content-Length"]
            await send(start)
            await send({"type": "http.response.body", "body": body})

        await self._app(scope, receive, tag)


def tag_of(content: bytes) -> str:
    """The weak ETag of an answer with this content."""
    return f'W/"{blake2b(content, digest_size=12).hexdigest()}"'


def _is_known(known: str, tag: str) -> bool:
    """Whether an If-None-Match header has a tag, by the weak comparison."""
    return known.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(known)
