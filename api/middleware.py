"""Middleware between the server and the routes: headers, methods, limits, ETags, access.

HEAD is answered like GET everywhere, without the body. Any other method is rejected with the methods of the path, and a body that is not
JSON is rejected unread; both happen before the token is verified, which would not help. An ingress limits the rate of requests.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import re
from hashlib import blake2b
from typing import Final
from urllib.parse import urlencode

from starlette.datastructures import Headers as RequestHeaders
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.models.base import API
from api.problems import problem
from prober.config.models import Api, Reads

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
"""Policy for a diagram that is opened as a document: it contains its style and may do nothing."""
JSON: Final = "application/json"
_METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")
_READING: Final = ("GET", "HEAD")


def link_next(request: Request, response: Response, cursor: str | None) -> None:
    """Link the next page of a list; relative, so that the link is valid behind every proxy."""
    if cursor is not None:
        query = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
        response.headers["Link"] = f'<?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'


class Headers:
    """Headers of every response: no content from elsewhere, no framing, no guessed types, no caching."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add)


class Heads:
    """HEAD as GET with only the headers of the response (RFC 9110, section 9.3.2).

    A route that streams reads `is_head` in the scope, and sends nothing.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def drop_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET", "is_head": True}, receive, drop_body)
        else:
            await self._app(scope, receive, send)


_Refusal = tuple[int, str, dict[str, str]]


class Methods:
    """Rejection of methods that no path supports."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
        refusal = None if scope["method"] in _READING else _no_such_method(scope) or _no_such_body(scope)
        if refusal is None:
            await self._app(scope, receive, _with_allow(scope, send))
        else:
            status, why, headers = refusal
            await problem(status, why, scope["path"], headers)(scope, receive, send)


def _with_allow(scope: Scope, send: Send) -> Send:
    """Add all methods of a path to a 405 response, since the router lists only those of one route."""

    async def complete(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 405:
            MutableHeaders(scope=message)["Allow"] = ", ".join(_allowed(scope))
        await send(message)

    return complete


def _allowed(scope: Scope) -> list[str]:
    """Return the methods of a path; none: the path does not exist. HEAD is supported like GET (`api.middleware.Heads`)."""
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


TARGET_BYTES_MAX: Final = 8 << 10
"""Maximum size of path and query of a request."""
BODY_BYTES_MAX: Final = 64 << 10
BODY_WAIT_MAX_S: Final = 10.0
"""Maximum time to receive a complete body."""


class RequestLimits:
    """Limits of size and time of requests: rejects large requests, and stops reading large or slow bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
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
    """Return the same body with limits; reading it raises `HTTPException` above them."""
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


HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})
METRICS_PATH: Final = "/metrics"
OPEN_PATHS: Final = HEALTH_PATHS | {METRICS_PATH}
VARIABLE: Final = "ORDERING_PROBER_API__TOKEN"
BEARER: Final = 'Bearer realm="ordering-prober"'
BASIC: Final = 'Basic realm="ordering-prober", charset="UTF-8"'

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Access:
    """Access control of the API.

    Health and metrics are open to every client. Requests with changes need the token, as a bearer token (RFC 6750). Reads need it if
    `api.reads` requires it. Browsers cannot send a bearer token, so reads also accept HTTP Basic (RFC 7617), with the token as the password
    and any user name. Changes do not accept it: a browser adds such a password to the requests of any page, also of other sites.
    """

    def __init__(self, app: ASGIApp, settings: Api) -> None:
        self._app = app
        self._token = None if settings.token is None else settings.token.get_secret_value().encode()
        self._reads_are_open = settings.reads is Reads.OPEN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
        reading = scope["method"] in _SAFE
        if scope["path"] in OPEN_PATHS or (reading and self._reads_are_open):
            await self._app(scope, receive, send)
            return
        if self._token is None:
            what = "read here" if reading else "changed over HTTP"
            why = f"nothing can be {what}, since no token is configured; set {VARIABLE} where the service runs"
            await problem(403, why, scope["path"])(scope, receive, send)
        elif any(hmac.compare_digest(secret, self._token) for secret in _presented(scope, basic=reading)):
            await self._app(scope, receive, send)
        else:
            refusal = problem(401, "this needs the token: send `Authorization: Bearer TOKEN`", scope["path"])
            for challenge in (BEARER, BASIC) if reading else (BEARER,):
                refusal.headers.append("WWW-Authenticate", challenge)
            await refusal(scope, receive, send)


def _presented(scope: Scope, *, basic: bool) -> list[bytes]:
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    secrets = [_secret(value, basic=basic) for value in given]
    return [secret for secret in secrets if secret is not None]


def _secret(value: bytes, *, basic: bool) -> bytes | None:
    scheme, _, credentials = value.partition(b" ")
    if scheme.lower() == b"bearer":
        return credentials.strip()
    if scheme.lower() == b"basic" and basic:
        try:
            return base64.b64decode(credentials.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return None
    return None


_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


class ETags:
    """Weak ETag for every response of the API without one, and 304 for a client that sends it (RFC 9110, section 13.1.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["method"] != "GET" or not scope["path"].startswith(f"{API}/"):
            await self._app(scope, receive, send)
            return
        known = RequestHeaders(scope=scope).get("if-none-match", "")
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
    """Return the weak ETag of a response with this content."""
    return f'W/"{blake2b(content, digest_size=12).hexdigest()}"'


def _is_known(known: str, tag: str) -> bool:
    return known.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(known)
