"""The headers of every response: nothing is loaded from elsewhere, nothing is framed, nothing is guessed, nothing is shown from a cache.

HEAD is answered like GET everywhere, without the body. Another method is refused with those that the path has, and a body that is not JSON
unread; that is done before the token is verified, which would not help.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import problem

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
DRAWING_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
"""For a drawing that is opened by itself: it has its style inside and may do nothing."""
JSON: Final = "application/json"
_METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")
_READING: Final = ("GET", "HEAD")


def link_next(request: Request, response: Response, cursor: str | None) -> None:
    """Links the next page of a list that goes on; relative, so that it is right behind every proxy."""
    if cursor is not None:
        query = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
        response.headers["Link"] = f'<?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'


class Headers:
    """Middleware: adds them to what the application says itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add)


class Heads:
    """Middleware: HEAD becomes GET, and of the answer only the headers are sent (RFC 9110, section 9.3.2).

    A route that streams sees `is_head` in the scope, and sends nothing.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""

        async def drop_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET", "is_head": True}, receive, drop_body)
        else:
            await self._app(scope, receive, send)


_Refusal = tuple[int, str, dict[str, str]]


class Methods:
    """Middleware: refuses what no path understands."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        refusal = None if scope["method"] in _READING else _no_such_method(scope) or _no_such_body(scope)
        if refusal is None:
            await self._app(scope, receive, _with_allow(scope, send))
        else:
            status, why, headers = refusal
            await problem(status, why, scope["path"], headers)(scope, receive, send)


def _with_allow(scope: Scope, send: Send) -> Send:
    """A path that cannot be read says what it can do: all of it, where the router knows that of one route."""

    async def complete(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 405:
            MutableHeaders(scope=message)["Allow"] = ", ".join(_allowed(scope))
        await send(message)

    return complete


def _allowed(scope: Scope) -> list[str]:
    """The methods that a path has; none: there is no such path. Where GET works HEAD does, too (`api.headers.Heads`)."""
    found = {one for one in _METHODS for route in scope["app"].router.routes if _takes(route, scope, one)}
    return sorted(found | {"HEAD"} if "GET" in found else found)


def _takes(route: BaseRoute, scope: Scope, method: str) -> bool:
    if isinstance(route, Mount) and method != "GET":  # files, which match whatever the method is
        return False
    return route.matches({**scope, "method": method})[0] is Match.FULL


def _no_such_method(scope: Scope) -> _Refusal | None:
    possible = _allowed(scope)
    if not possible or scope["method"] in possible:
        return None
    return 405, f"{scope['method'][:20]} is not possible at {scope['path'][:100]}", {"Allow": ", ".join(possible)}


def _no_such_body(scope: Scope) -> _Refusal | None:
    headers = {name: value.decode("latin-1").strip().lower() for name, value in scope["headers"]}
    if not _has_body(headers):
        return None
    if headers.get(b"content-encoding", "identity") != "identity":
        return 415, "a body is read as it is, not compressed", {"Accept-Encoding": "identity"}
    if headers.get(b"content-type", "").partition(";")[0].strip() != JSON:
        return 415, f"a body is read as JSON only; say `Content-Type: {JSON}`", {"Accept": JSON}
    return None


def _has_body(headers: dict[bytes, str]) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", "0").strip("0") != ""
