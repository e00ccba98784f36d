"""Limits of a request: its size, and the time that its body takes. An ingress limits the rate of requests."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import problem

TARGET_BYTES_MAX: Final = 8 << 10
"""Path and query of a request."""
BODY_BYTES_MAX: Final = 64 << 10
BODY_WAIT_MAX_S: Final = 10.0
"""For all of a body, however its parts come."""


class RequestLimits:
    """Middleware: refuses a request that is too large, and stops reading a body that becomes too large or takes too long."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > TARGET_BYTES_MAX:
            refusal = problem(414, f"path and query may have {TARGET_BYTES_MAX:,} bytes", scope["path"][:100])
            await refusal(scope, receive, send)
        elif not length.isdigit() or int(length[:20]) > BODY_BYTES_MAX:
            refused = _too_long()
            await problem(refused.status_code, refused.detail, scope["path"], refused.headers)(scope, receive, send)
        else:
            await self._app(scope, _bounded(receive), send)


def _too_long() -> HTTPException:
    return HTTPException(413, f"a body may have {BODY_BYTES_MAX:,} bytes", {"Connection": "close"})


def _bounded(receive: Receive) -> Receive:
    """The same body; reading it raises `HTTPException` where it becomes too long or takes too long."""
    size, complete = 0, False
    deadline = asyncio.get_running_loop().time() + BODY_WAIT_MAX_S

    async def read() -> Message:
        nonlocal size, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {BODY_WAIT_MAX_S:g} s", {"Connection": "close"}) from None
        complete = not message.get("more_body", False)
        size += len(message.get("body", b""))
        if size > BODY_BYTES_MAX:
            raise _too_long()
        return message

    return read
