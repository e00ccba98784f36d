"""How an answer is made: by a thread, since the store is asked and long lists are written; never more than a few at a time.

The event loop, on which a prober measures time, only hands work out and passes bytes on. The same question is answered once a moment,
however many ask it. Every answer carries a weak ETag, a digest of what it says, so that a client that has it already is told so in a few
bytes (RFC 9110, section 13.1.2).
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from math import inf
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from fastapi import Request, Response

from api.models.base import Answer, Listed
from api.threads import SLOW_S, Threads
from prober.clock import monotonic_s

FRESH_S: Final = 1.0
"""An answer that is younger is given again."""
REMEMBERED_MAX: Final = 64
REMEMBERED_BYTES_MAX: Final = 256 << 10
"""Longer answers are made each time they are asked for."""
JSON: Final = "application/json"

_Result = TypeVar("_Result")
_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


class ResponseCache:
    """A few threads, who waits for them, and what they answered last. Belongs to one event loop."""

    def __init__(self, *, store_is_server: bool = False) -> None:
        self._threads = Threads(0.0 if store_is_server else SLOW_S)
        self._under_way: dict[str, asyncio.Task[EncodedAnswer]] = {}
        self._remembered: OrderedDict[str, tuple[float, EncodedAnswer]] = OrderedDict()

    async def ask(self, work: Callable[[], _Result]) -> _Result:
        """What `work` returns in a thread, or raises there. Raises `Busy`."""
        return await self._threads.ask(work)

    async def answer(self, request: Request, make: Callable[[], Answer]) -> Response:
        """The response for a model that is made, and written as JSON, in a thread. A list that goes on links to its next page.

        `make` may depend on nothing but path and query, and on what is stored.
        """
        return await self.encoded(request, lambda: encode_answer(make()))

    async def encoded(self, request: Request, make: Callable[[], EncodedAnswer], media_type: str = JSON) -> Response:
        """The same for what is written in another way."""
        question = f"{request.scope['path']}?{request.scope['query_string'].decode('latin-1')}"
        answered_t, known = self._remembered.get(question, (-inf, None))
        if known is not None and monotonic_s() - answered_t < FRESH_S:
            return response_of(request, known, media_type)
        making = self._under_way.get(question)
        if making is None:
            making = self._under_way[question] = asyncio.create_task(self._make(question, make))
            making.add_done_callback(lambda made: made.cancelled() or made.exception())  # which nobody may be left to be told
        return response_of(request, await asyncio.shield(making), media_type)

    async def _make(self, question: str, make: Callable[[], EncodedAnswer]) -> EncodedAnswer:
        try:
            made = await self.ask(make)
        finally:
            del self._under_way[question]
        if len(made.body) <= REMEMBERED_BYTES_MAX:
            self._remembered[question] = monotonic_s(), made
            self._remembered.move_to_end(question)
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return made


class EncodedAnswer(NamedTuple):
    """An answer as it is sent, its weak ETag, and the cursor of the next page."""

    body: bytes
    tag: str
    next_cursor: str | None


def encode_answer(answer: Answer) -> EncodedAnswer:
    """An answer as JSON. Two that say the same but for the time have the same tag."""
    body = answer.model_dump_json().encode()
    timeless = answer.timeless()
    said = body if timeless is answer else timeless.model_dump_json().encode()
    return EncodedAnswer(body, tag_of(said), answer.next_cursor if isinstance(answer, Listed) else None)


def tag_of(said: bytes) -> str:
    """The weak ETag of an answer that says this."""
    return f'W/"{blake2b(said, digest_size=12).hexdigest()}"'


def response_of(request: Request, answer: EncodedAnswer, media_type: str = JSON) -> Response:
    """The response that has an answer in it, or says that the client knows it already."""
    headers = {"ETag": answer.tag}
    if answer.next_cursor is not None:
        query = request.query_params.multi_items()
        following = [*((name, value) for name, value in query if name != "cursor"), ("cursor", answer.next_cursor)]
        headers["Link"] = f'<?{urlencode(following)}>; rel="next"'  # relative, so that it is right behind every proxy
    if _is_known(request.headers.get("if-none-match", ""), answer.tag):
        return Response(status_code=304, headers=headers)
    return Response(answer.body, headers=headers, media_type=media_type)


def _is_known(known: str, tag: str) -> bool:
    """Whether an If-None-Match header has a tag, by the weak comparison."""
    return known.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(known)
