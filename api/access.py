"""Access control of the API.

Health and metrics are open to every client. Requests that change something need the token, as a bearer token (RFC 6750). Reads need it if
`api.reads` says so. Browsers cannot send a bearer token, so reads also accept HTTP Basic (RFC 7617), with the token as the password and any
user name. Changes do not accept it: a browser adds such a password to the requests of any page, also of other sites.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import problem
from prober.config.models import Api, Reads

HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})
METRICS_PATH: Final = "/metrics"
OPEN_PATHS: Final = HEALTH_PATHS | {METRICS_PATH}
VARIABLE: Final = "ORDERING_PROBER_API__TOKEN"
BEARER: Final = 'Bearer realm="ordering-prober"'
BASIC: Final = 'Basic realm="ordering-prober", charset="UTF-8"'

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Access:
    """Middleware: lets through who may."""

    def __init__(self, app: ASGIApp, settings: Api) -> None:
        self._app = app
        self._token = None if settings.token is None else settings.token.get_secret_value().encode()
        self._reads_are_open = settings.reads is Reads.OPEN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        reading = scope["method"] in _READING
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
    """The secrets that a request presents."""
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
