"""What a push request says, and the answer to it.

A request is wrapped, a JSON document with the data in base64, or unwrapped: the data alone, and everything else in headers
(documentation, "Payload unwrapping"). Attributes of an unwrapped message are headers among others, so all headers count as attributes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from prober.brokers.base import Received
from prober.brokers.connection import session_name

TAKEN: Final = 204
REFUSED: Final = 500
GIVEN_UP: Final = 503

_UNWRAPPED: Final = "x-goog-pubsub-"
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")


class PushedSession:
    """One push request. `answer` is the status that it is answered with, once that is decided."""

    def __init__(self) -> None:
        self._name = session_name("push")
        self.answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def name(self) -> str:
        """Unique in this process."""
        return self._name

    @property
    def subscriber(self) -> str:
        """Each request is a subscriber of its own."""
        return self._name

    @property
    def flow(self) -> None:
        """The service decides how many requests it sends at a time."""
        return None

    def ack(self, _received: Received) -> None:
        """Answers with success."""
        self.end(TAKEN)

    def nack(self, _received: Received) -> None:
        """Answers with an error."""
        self.end(REFUSED)

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Does nothing: how long a request may take is a setting of its subscription."""

    def let_expire(self, received: Received) -> None:
        """Does nothing: without an answer the request stays open until the service gives it up."""

    def end(self, status: int) -> None:
        """Decides the answer; only the first decision counts."""
        if not self.answer.done():
            self.answer.set_result(status)


def read_request(headers: Mapping[str, str], body: bytes, subscription: str) -> Received | None:
    """The message of a request for a subscription, by its full name; None if it is of no known form, or for another."""
    try:
        if f"{_UNWRAPPED}message-id" in headers:
            return _unwrapped(headers, body, subscription)
        return _wrapped(json.loads(body), subscription)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _wrapped(document: Any, subscription: str) -> Received:
    if document["subscription"] != subscription:
        raise ValueError("for another subscription")
    message = document["message"]
    attributes = message.get("attributes") or {}
    attempt = document.get("deliveryAttempt", 0)
    texts = (message["messageId"], message.get("orderingKey", ""), *dict(attributes).values())
    if not all(isinstance(text, str) for text in texts) or not isinstance(attempt, int):
        raise TypeError("not a message")
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
