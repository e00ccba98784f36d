"""Execution of the effects in an asyncio loop.

After a request, or when its time has come, the pump advances the state, and then sends on streams, answers pulls and pushes.

All calls run in one loop, so the state needs no lock. A request only schedules a tick, and all requests that arrive within a millisecond
share it: a response costs as much as the handling of fifty messages, so a few large responses are worth the wait.

A push is one POST to the subscription's endpoint (documentation, "Push subscriptions"). The body is `{"message": {...}, "subscription":
"..."}` with the data in base64, or the bare data if the subscription is unwrapped; with a signed token if the subscription has a service
account for it. Status 102, 200, 201, 202 or 204 is an acknowledgement; any other status or a failed connection is a nack. The state decides
timeouts, the number of concurrent requests and the times of retries.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, Protocol

import aiohttp

from prober.embedded.errors import Code, ServiceError
from prober.embedded.messages import (
    AnswerPull,
    CancelPush,
    Confirm,
    Delivery,
    Effect,
    EndStream,
    ForwardedToDeadLetter,
    HalfOpen,
    LostDeliveries,
    Push,
    Send,
    rfc3339,
)
from prober.embedded.signing import Signer
from prober.embedded.state import State

_OUTLET_MAX: Final = 10_000  # responses waiting for a client that does not read
_GATHER_S: Final = 0.001
_SLEEP_MAX_S: Final = 60.0  # maximum time between ticks, for housekeeping of the state
_ACCEPTED: Final = frozenset({102, 200, 201, 202, 204})
_CONNECTIONS_MAX: Final = 100


class Outlet:
    """Bounded queue of responses to write on one stream: a client that does not read loses its stream."""

    def __init__(self) -> None:
        self._waiting: deque[Send | Confirm] = deque()
        self._wake = asyncio.Event()
        self._over = False
        self.error: ServiceError | None = None

    def put(self, effect: Send | Confirm) -> None:
        """Append a response."""
        if len(self._waiting) >= _OUTLET_MAX:
            self.end(ServiceError(Code.UNAVAILABLE, "The client does not read what it is sent."))
        elif not self._over:
            self._waiting.append(effect)
            self._wake.set()

    def end(self, error: ServiceError | None = None) -> None:
        """End the stream with this error once the waiting responses are written."""
        if not self._over:
            self._over, self.error = True, error
            self._wake.set()

    async def take(self, idle_s: float | None) -> AsyncIterator[Send | Confirm | None]:
        """Yield the responses in order, until the end; yield None whenever none arrived for `idle_s` seconds."""
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._over:
                return
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), idle_s)
            except TimeoutError:
                yield None


class Pump:
    """Driver of one state. `now` returns seconds since the epoch and never goes back."""

    def __init__(self, state: State, now: Callable[[], float], signer: Signer, posts: Posts | None = None) -> None:
        """Create a pump. `posts`: client for push endpoints; by default HTTP."""
        self.state = state
        self.now = now
        self._pusher = Pusher(self._pushed, signer, now, posts or HttpPosts())
        self._outlets: dict[str, Outlet] = {}
        self._pulls: dict[str, asyncio.Future[list[Delivery]]] = {}
        self._loop = asyncio.get_running_loop()
        self._asked = False
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def ask(self) -> None:
        """Schedule a tick soon, after a change of the state."""
        if not self._asked:
            self._asked = True
            self._loop.call_later(_GATHER_S, self._tick)

    def open_outlet(self, stream: str) -> Outlet:
        """Open and return the outlet of a stream."""
        outlet = self._outlets[stream] = Outlet()
        return outlet

    def close_outlet(self, stream: str) -> None:
        """Forget the outlet of a stream that has ended."""
        self._outlets.pop(stream, None)

    def await_pull(self, pull: str) -> asyncio.Future[list[Delivery]]:
        """Return the future of the answer to a pull; it is forgotten when it is done or cancelled."""
        answer: asyncio.Future[list[Delivery]] = self._loop.create_future()
        self._pulls[pull] = answer
        answer.add_done_callback(lambda _: self._pulls.pop(pull, None))
        return answer

    def stop(self) -> None:
        """Stop ticking, end all streams with UNAVAILABLE and cancel waiting pulls."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        gone = ServiceError(Code.UNAVAILABLE, "The service is shutting down.")
        for outlet in self._outlets.values():
            outlet.end(gone)
        for answer in list(self._pulls.values()):
            answer.cancel()

    async def close(self) -> None:
        """Cancel running pushes; call it after `stop`."""
        await self._pusher.close()

    def _tick(self) -> None:
        self._asked = False
        if self._stopped:
            return
        now = self.now()
        for effect in self.state.advance(now):
            self._carry_out(effect)
        self._sleep(now)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(stream) | Confirm(stream):
                if stream in self._outlets:
                    self._outlets[stream].put(effect)
            case AnswerPull(pull, deliveries, error):
                self._answer(pull, deliveries, error)
            case EndStream(stream, error):
                if stream in self._outlets:
                    self._outlets[stream].end(error)
            case Push() | CancelPush():
                self._pusher.handle(effect)
            case HalfOpen() | LostDeliveries() | ForwardedToDeadLetter():
                pass

    def _answer(self, pull: str, deliveries: list[Delivery], error: ServiceError | None) -> None:
        answer = self._pulls.get(pull)
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(deliveries)
        else:
            answer.set_exception(error)

    def _pushed(self, push: Push, accepted: bool) -> None:
        self.state.push_answered(push.subscription, push.push, self.now(), accepted=accepted)
        self.ask()

    def _sleep(self, now: float) -> None:
        at = min(self.state.next_wakeup(now), now + _SLEEP_MAX_S)
        if self._timer is not None:
            if self._timer_at <= at and not self._timer.cancelled() and self._timer_at > now:
                return  # the timer is early enough; its tick sets the next one
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(max(at - now, 0.0), self.ask)


class Posts(Protocol):
    """Port: client for POST requests."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int | None:
        """Return the status of the response, without a timeout; None if there is no response."""

    async def close(self) -> None:
        """Close all connections."""


class HttpPosts:
    """Client for POST requests over HTTP."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int | None:
        """Post as in `Posts`; redirections are not followed."""
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=_CONNECTIONS_MAX)
            timeout = aiohttp.ClientTimeout(total=None)  # the state cancels slow pushes
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                return response.status
        except (aiohttp.ClientError, OSError):
            return None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


class Pusher:
    """Executor of pushes. It reports each outcome once, unless the push was cancelled."""

    def __init__(self, report: Callable[[Push, bool], None], signer: Signer, now: Callable[[], float], posts: Posts) -> None:
        self._signer, self._now = signer, now
        self._report = report
        self._posts = posts
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def handle(self, effect: Push | CancelPush) -> None:
        """Start or cancel a push."""
        if isinstance(effect, Push):
            task = asyncio.create_task(self._push(effect))
            self._tasks[effect.push] = task
            task.add_done_callback(lambda _: self._tasks.pop(effect.push, None))
        elif effect.push in self._tasks:
            self._tasks[effect.push].cancel()

    async def close(self) -> None:
        """Cancel all pushes."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._posts.close()

    async def _push(self, push: Push) -> None:
        config = push.config
        headers, body = _bare(push) if config.unwrapped else _wrapped(push)
        if config.oidc_email:
            audience = config.oidc_audience or config.push_endpoint
            token = await self._signer.token(config.oidc_email, audience, self._now())
            headers["Authorization"] = f"Bearer {token}"
        status = await self._posts.post(config.push_endpoint, headers, body)
        self._report(push, status in _ACCEPTED)


def _wrapped(push: Push) -> tuple[dict[str, str], bytes]:
    """Return headers and JSON body; as in the service, with the old names of two fields beside the new ones."""
    message = push.delivery.message
    published = rfc3339(message.publish_time)
    inner: dict[str, Any] = {
        "data": base64.b64encode(message.data).decode(),
        "messageId": message.id,
        "message_id": message.id,
        "publishTime": published,
        "publish_time": published,
    }
    if message.attributes:
        inner["attributes"] = dict(message.attributes)
    if message.ordering_key:
        inner["orderingKey"] = message.ordering_key
    document: dict[str, Any] = {"message": inner, "subscription": push.subscription}
    if push.delivery.delivery_attempt:
        document["deliveryAttempt"] = push.delivery.delivery_attempt
    return {"Content-Type": "application/json"}, json.dumps(document).encode()


def _bare(push: Push) -> tuple[dict[str, str], bytes]:
    """Return headers and the data alone; metadata of the message as headers if the subscription wants them."""
    message = push.delivery.message
    headers = {"Content-Type": "application/octet-stream"}
    if push.config.write_metadata:
        headers["x-goog-pubsub-subscription-name"] = push.subscription
        headers["x-goog-pubsub-message-id"] = message.id
        headers["x-goog-pubsub-publish-time"] = rfc3339(message.publish_time)
        if message.ordering_key:
            headers["x-goog-pubsub-ordering-key"] = message.ordering_key
        headers.update(message.attributes)
    return headers, message.data
