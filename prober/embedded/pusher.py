"""HTTP push: each message is one POST to the subscription's endpoint (documentation, "Push subscriptions").

The body is `{"message": {...}, "subscription": "..."}` with the data in base64, or the bare data when the subscription is unwrapped.
Status 102, 200, 201, 202 or 204 is an acknowledgement, everything else, no connection included, a refusal. How long to wait, how many
requests at a time and when to try again is decided by the state.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any, Final

import aiohttp

from prober.embedded.messages import CancelPush, Push, rfc3339

ACCEPTED: Final = frozenset({102, 200, 201, 202, 204})
_CONNECTIONS_MAX: Final = 100

Report = Callable[[Push, bool], None]


class Pusher:
    """Carries out pushes and reports each outcome, once, unless the push was cancelled."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._session: aiohttp.ClientSession | None = None

    def handle(self, effect: Push | CancelPush) -> None:
        """Start a push, or give one up."""
        if isinstance(effect, Push):
            task = asyncio.create_task(self._push(effect))
            self._tasks[effect.push] = task
            task.add_done_callback(lambda _: self._tasks.pop(effect.push, None))
        elif effect.push in self._tasks:
            self._tasks[effect.push].cancel()

    async def close(self) -> None:
        """Give everything up."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _push(self, push: Push) -> None:
        accepted = False
        try:
            body = _bare(push) if push.config.unwrapped else _wrapped(push)
            async with self._opened().post(push.config.push_endpoint, allow_redirects=False, **body) as response:
                accepted = response.status in ACCEPTED
        except (aiohttp.ClientError, OSError):
            pass  # could not be delivered: a refusal
        self._report(push, accepted)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=_CONNECTIONS_MAX)
            timeout = aiohttp.ClientTimeout(total=None)  # the state cancels what takes too long
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._session


def _wrapped(push: Push) -> dict[str, Any]:
    """The JSON body, with the old names of two fields beside the new ones, as the service sends it."""
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
    return {"json": document}


def _bare(push: Push) -> dict[str, Any]:
    """The data alone, with what is known about it as headers if that is wanted."""
    message = push.delivery.message
    headers = {"Content-Type": "application/octet-stream"}
    if push.config.write_metadata:
        headers["x-goog-pubsub-subscription-name"] = push.subscription
        headers["x-goog-pubsub-message-id"] = message.id
        headers["x-goog-pubsub-publish-time"] = rfc3339(message.publish_time)
        if message.ordering_key:
            headers["x-goog-pubsub-ordering-key"] = message.ordering_key
        headers.update(message.attributes)
    return {"data": message.data, "headers": headers}
