"""The endpoint to which Pub/Sub pushes: an app and a port of its own, on loopback unless configured otherwise.

    POST /.../{instance}/{target}/{subscription}    one message; the running experiment decides the answer
    GET  /healthz                                   200 while it runs, for load balancers

The token is verified before the body is read: without a valid token the answer is an empty 401. Requests that are open when their run ends
are answered with 503, and redelivered. Messages between two runs are left over from an ended run, perhaps of an ended process, since no
other prober uses this instance's subscriptions. They are acknowledged: a nack would block their key for longer and longer, and the next run
would miss its own messages. Bodies are limited in size, in time, and in concurrent reads. Every outcome of a request is counted.

A request is wrapped (a JSON document with the data in base64) or unwrapped (the data alone, with all other fields in headers;
documentation, "Payload unwrapping"). Attributes of an unwrapped message are headers among others, so all headers count as attributes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect

from prober.brokers.base import PushConfig, PushOutcome, Received, Tap
from prober.brokers.connection import session_name
from prober.brokers.push.tokens import NoKeys, TokenVerifier
from prober.serving.server import listen, serve

BODY_BYTES_MAX: Final = 16 << 20
"""Largest body in bytes: a message of the maximum size, 10 MB, in base64, with its envelope."""
BODIES_AT_ONCE: Final = 8
ADMITTED_WITHIN_S: Final = 2.0
"""Longest time from the head of a request to its message, in seconds.

A slower request is refused: it would be recorded later than the checker allows.
"""
HELD_MAX_S: Final = 660.0
"""Longest time for which a request without an answer stays open, in seconds, unless the service gives up.

It exceeds any acknowledgement deadline.
"""

TAKEN: Final = 204
_STATUSES: Final = {
    PushOutcome.NO_KEYS: 503,
    PushOutcome.NOBODY: 503,
    PushOutcome.LEFT_OVER: TAKEN,
    PushOutcome.TOO_LARGE: 413,
    PushOutcome.TOO_SLOW: 503,
    PushOutcome.UNREADABLE: 400,
}
_UNAUTHORIZED: Final = 401
REFUSED: Final = 500
GIVEN_UP: Final = 503
_UNWRAPPED: Final = "x-goog-pubsub-"
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")


class _Refused(Exception):  # by this endpoint: no run receives it
    def __init__(self, outcome: PushOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(slots=True)
class _Reception:
    """A run that receives the messages of a subscription, and its open requests."""

    subscription: str
    tap: Tap
    open: set[PushedSession]


class TargetPushes:
    """Receives the pushes of one target. `base`: URL of the target's part of the endpoint, as the target calls it."""

    def __init__(self, base: str, verifier: TokenVerifier | None, service_account: str, audience: str) -> None:
        self._base, self._verifier = base, verifier
        self._service_account, self._audience = service_account, audience
        self._receptions: dict[str, _Reception] = {}

    def config_of(self, subscription: str) -> PushConfig:
        """Return the push configuration for a subscription; see the port."""
        return PushConfig(f"{self._base}/{_short(subscription)}", self._service_account, self._audience)

    def receive(self, subscription: str, tap: Tap) -> Callable[[], None]:
        """Receive requests from now on; see the port."""
        reception = self._receptions[_short(subscription)] = _Reception(subscription, tap, set())

        def stop() -> None:
            if self._receptions.get(_short(subscription)) is reception:
                del self._receptions[_short(subscription)]
            for session in reception.open:
                session.end(GIVEN_UP)
            reception.open.clear()

        return stop

    async def check(self, authorization: str) -> None:
        """Raise _Refused unless a request with this header comes from the target."""
        if self._verifier is None:
            return
        try:
            refusal = await self._verifier.refusal(authorization)
        except NoKeys:
            refusal = PushOutcome.NO_KEYS
        if refusal is not None:
            raise _Refused(refusal)

    def reception(self, short_name: str) -> _Reception:
        """Return the receiver of requests for a subscription; raise _Refused without one."""
        if short_name not in self._receptions:
            raise _Refused(PushOutcome.LEFT_OVER)
        return self._receptions[short_name]


class PushEndpoint:
    """The endpoint of this prober; it serves while the context is entered. `url` is its address on this machine.

    instance   part of every path, so that a proxy can distinguish the endpoints of several probers.
    counted    called with the outcome of each request.
    """

    def __init__(self, host: str, port: int, instance: str, counted: Callable[[PushOutcome], None] = lambda _outcome: None) -> None:
        self._host, self._port, self._instance, self._counted = host, port, instance, counted
        self._targets: dict[str, TargetPushes] = {}
        self._bodies = asyncio.Semaphore(BODIES_AT_ONCE)
        self.url = ""

    async def __aenter__(self) -> Self:
        listening = await listen(self._host, self._port, "push")
        up: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(serve(self.app(), listening, announce=up.set_result), name="push endpoint")
        await asyncio.wait((self._serving, up), return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            await self._serving
        self.url = up.result().rstrip("/")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._serving.cancel()
        with suppress(asyncio.CancelledError):
            await self._serving

    def target(
        self, name: str, address: str, verifier: TokenVerifier | None, service_account: str = "", audience: str = ""
    ) -> TargetPushes:
        """Receive the pushes of a target from now on.

        The target calls the endpoint by `address`, a URL. Without a verifier every request is accepted.
        """
        base = f"{address.rstrip('/')}/{self._instance}/{name}"
        pushes = self._targets[name] = TargetPushes(base, verifier, service_account, audience)
        return pushes

    def app(self) -> FastAPI:
        """Return the app of the endpoint."""
        app = FastAPI(openapi_url=None)
        app.add_api_route("/healthz", lambda: Response("ok"), methods=["GET"])
        app.add_api_route("/{place:path}/{target}/{subscription}", self._push, methods=["POST"])
        return app

    async def _push(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(ADMITTED_WITHIN_S):
                reception, received = await self._admitted(request)
        except (_Refused, TimeoutError, ClientDisconnect) as refusal:
            outcome = refusal.outcome if isinstance(refusal, _Refused) else PushOutcome.TOO_SLOW
            self._counted(outcome)
            status = _STATUSES.get(outcome, _UNAUTHORIZED)
            return Response(status_code=status, headers={"WWW-Authenticate": "Bearer"} if status == _UNAUTHORIZED else None)
        self._counted(PushOutcome.TAKEN)
        return Response(status_code=await _answered(request, reception, received))

    async def _admitted(self, request: Request) -> tuple[_Reception, Received]:
        pushes = self._targets.get(request.path_params["target"])
        if pushes is None:
            raise _Refused(PushOutcome.NOBODY)
        await pushes.check(request.headers.get("authorization", ""))
        reception = pushes.reception(request.path_params["subscription"])
        async with self._bodies:
            body = await _body(request)
        received = read_request(request.headers, body, reception.subscription)
        if received is None:
            raise _Refused(PushOutcome.UNREADABLE)
        return pushes.reception(request.path_params["subscription"]), received  # unless its run has ended meanwhile


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise _Refused(PushOutcome.TOO_LARGE)
    return bytes(body)


async def _answered(request: Request, reception: _Reception, received: Received) -> int:
    """Report the request to the tap, and wait for its answer or its end. Return the HTTP status."""
    session, tap = PushedSession(), reception.tap
    reception.open.add(session)
    tap.opened(session, None)
    tap.received(session, received)
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((session.answer, gone), timeout=HELD_MAX_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        answered = session.answer.done()
        if session in reception.open:
            reception.open.discard(session)
            if not answered:
                tap.unanswered(session, received)
            tap.closed(session, "answered" if answered else "not answered")
    return session.answer.result() if answered else GIVEN_UP


def _short(subscription: str) -> str:
    return subscription.rpartition("/")[2]


class PushedSession:
    """One push request, a subscriber of its own. `answer`: the HTTP status of its answer, once decided."""

    flow = None
    """The service decides how many requests it sends at a time."""

    def __init__(self) -> None:
        self.name = self.subscriber = session_name("push")
        self.answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        """Whether it is answered, or was given up."""
        return self.answer.done()

    def ack(self, _received: Received) -> None:
        """Answer with success."""
        self.end(TAKEN)

    def nack(self, _received: Received) -> None:
        """Answer with an error."""
        self.end(REFUSED)

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Do nothing: the longest duration of a request is a setting of its subscription."""

    def let_expire(self, received: Received) -> None:
        """Do nothing: without an answer the request stays open until the service gives it up."""

    def end(self, status: int) -> None:
        """Decide the answer; only the first decision counts."""
        if not self.answer.done():
            self.answer.set_result(status)


def read_request(headers: Mapping[str, str], body: bytes, subscription: str) -> Received | None:
    """Return the message of a request for a subscription, given by its full name.

    None if the request has no known form, or is for another subscription.
    """
    try:
        if f"{_UNWRAPPED}message-id" in headers:
            return _unwrapped(headers, body, subscription)
        return _wrapped(json.loads(body), subscription)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _wrapped(document: Any, subscription: str) -> Received:
    if document["subscription"] != subscription:
        raise ValueError("for another subscription")
    message, attempt = document["message"], document.get("deliveryAttempt", 0)
    attributes = message.get("attributes") or {}
    for text in (message["messageId"], message.get("orderingKey", ""), *attributes, *attributes.values()):
        text.encode()  # raises for half of a surrogate pair, which no message has
    if not isinstance(attempt, int):
        raise TypeError("not a number of an attempt")
    data = base64.b64decode(message.get("data") or "", validate=True)
    return _received(message["messageId"], message.get("orderingKey", ""), data, attributes, attempt, message["publishTime"])


def _unwrapped(headers: Mapping[str, str], body: bytes, subscription: str) -> Received:
    if headers[f"{_UNWRAPPED}subscription-name"] != subscription:
        raise ValueError("for another subscription")
    key, published = headers.get(f"{_UNWRAPPED}ordering-key", ""), headers[f"{_UNWRAPPED}publish-time"]
    return _received(headers[f"{_UNWRAPPED}message-id"], key, body, headers, 0, published)


def _received(message_id: str, key: str, data: bytes, attributes: Mapping[str, str], attempt: int, published: str) -> Received:
    return Received(message_id, "", key, data, dict(attributes), attempt, _nanoseconds(published))


def _nanoseconds(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("not a time")
    whole = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    return int(whole.timestamp()) * 1_000_000_000 + int((found[2] or "0").ljust(9, "0"))
