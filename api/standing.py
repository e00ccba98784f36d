"""How everything stands, by all probers of one store: asked once a moment, however many want to know."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from api.archive import Archive
from api.view import View
from prober.clock import monotonic_s
from prober.snapshot import Snapshot
from prober.status.database import StatusError
from prober.status.overview import Overview

FRESH_S: Final = 1.0
"""An answer that is younger is given again."""


class Standing:
    """The view's own snapshot together with what the store knows of the past and of other probers."""

    def __init__(self, view: View, archive: Archive) -> None:
        self._view = view
        self._overview = Overview(archive.queries, archive.objectives)
        self._lock = asyncio.Lock()
        self._answer: Snapshot | None = None
        self._answered_t = 0.0

    async def snapshot(self) -> Snapshot:
        """How everything stands. Never fails: while the store cannot be asked, it is what this process knows, and says so."""
        async with self._lock:
            if self._answer is None or monotonic_s() - self._answered_t >= FRESH_S:
                self._answer = await self._ask()
                self._answered_t = monotonic_s()
            return self._answer

    async def _ask(self) -> Snapshot:
        live = self._view.snapshot()
        try:
            return await asyncio.to_thread(self._overview.snapshot, live)
        except StatusError as error:
            return replace(live, troubles=(*live.troubles, f"only what this process knows is shown: {error}"))
