"""What scrapes get, made beside the event loop.

A page of a hundred subscriptions takes a third of a second, and latency is measured on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Final, TypeAlias

from prober.clock import monotonic_s
from prober.sinks.metrics.exposition import content_type_for
from prober.sinks.metrics.service import Metrics

FRESH_S: Final = 1.0
"""A page that is younger is given again, so that whoever asks without a pause does not keep the thread busy."""

Page: TypeAlias = tuple[str, bytes]
"""Content type and body."""


class Scrapes:
    """Renders metrics in one thread, one page at a time; who asks for one that is being made, or was just made, gets the same.

    Belongs to one event loop, on which the metrics are counted.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = monotonic_s) -> None:
        self._metrics, self._clock = metrics, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._under_way: dict[str, asyncio.Task[Page]] = {}
        self._made: dict[str, tuple[float, Page]] = {}

    async def page(self, accept: str) -> Page:
        """What a scrape with this Accept header gets."""
        content_type = content_type_for(accept)
        made_t, page = self._made.get(content_type, (-inf, None))
        if page is not None and self._clock() - made_t < FRESH_S:
            return page
        making = self._under_way.get(content_type)
        if making is None:
            making = self._under_way[content_type] = asyncio.create_task(self._make(content_type))
            making.add_done_callback(lambda made: made.cancelled() or made.exception())  # which nobody may be left to be told
        return await asyncio.shield(making)

    async def _make(self, content_type: str) -> Page:
        try:
            self._metrics.look()
            body = await asyncio.get_running_loop().run_in_executor(self._thread, self._metrics.render, content_type)
        finally:
            del self._under_way[content_type]
        page = content_type, body
        self._made[content_type] = self._clock(), page
        return page
