"""How everything stands, by all probers of one store: asked once a second at most, however many want to know."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from math import inf
from typing import Final

from api.view import Archive, View
from prober.clock import monotonic_s
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.status.database import StatusError
from prober.sinks.status.overview import Overview

FRESH_S: Final = 1.0
"""An answer that is younger is given again."""
UNREACHABLE: Final = "the status store cannot be reached: only what this process knows by itself is shown"
UNWRITTEN: Final = "what the status store has is out of date: only what this process knows by itself is shown"


class CurrentStatus:
    """What the status store says; while it cannot be reached or written, what this process knows by itself, as such."""

    def __init__(self, view: View, archive: Archive) -> None:
        self._view, self._archive = view, archive
        self._asking = asyncio.Lock()
        self._answer: StatusSnapshot | None = None
        self._answered_t = -inf

    async def snapshot(self) -> StatusSnapshot:
        """How everything stands. Never fails: while the store cannot be asked, it is what this process knows, and says so."""
        async with self._asking:
            if self._answer is None or monotonic_s() - self._answered_t >= FRESH_S:
                self._answer = await self._ask()
                self._answered_t = monotonic_s()
            return self._answer

    async def _ask(self) -> StatusSnapshot:
        live = self._view.snapshot()
        if not self._view.is_stored():
            return replace(live, troubles=(*live.troubles, UNWRITTEN))
        try:
            return await asyncio.to_thread(Overview(self._archive.queries, self._archive.objectives).snapshot, live)
        except StatusError:  # whose text may name hosts and folders, which are nobody's business
            return replace(live, troubles=(*live.troubles, UNREACHABLE))
