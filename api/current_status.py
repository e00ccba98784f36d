"""How everything stands, by all probers of one store: asked once a moment, however many want to know."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from api.view import Archive, View
from prober.clock import monotonic_s
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.status.database import StatusError, StoreIncompatible, StoreUnavailable
from prober.sinks.status.overview import Overview

FRESH_S: Final = 1.0
"""An answer that is younger is given again."""
STALE_S: Final = 3.0
"""So is one younger than this while a new one is made: requests do not wait."""
UNREACHABLE: Final = "the status store cannot be reached: only what this process knows by itself is shown"
UNWRITTEN: Final = "what the status store has is out of date: only what this process knows by itself is shown"


class CurrentStatus:
    """The content of the status store; while it cannot be reached or written, the state of this process alone, marked so."""

    def __init__(self, view: View, archive: Archive) -> None:
        self._view, self._archive = view, archive
        self._asking: asyncio.Task[StatusSnapshot] | None = None
        self._answer: StatusSnapshot | None = None
        self._answered_t = 0.0
        self._failure: StatusError | None = None

    async def snapshot(self) -> StatusSnapshot:
        """How everything stands. Never fails: while the store cannot be asked, it is what this process knows, and says so."""
        age_s = monotonic_s() - self._answered_t
        if self._answer is not None and age_s < FRESH_S:
            return self._answer
        if self._asking is None:
            self._asking = asyncio.create_task(self._renew())
        if self._answer is not None and age_s < STALE_S:
            return self._answer
        return await asyncio.shield(self._asking)

    async def stored_snapshot(self) -> StatusSnapshot:
        """The same, but raises the `StatusError` for which the store cannot be asked."""
        snapshot = await self.snapshot()
        if not snapshot.stored:
            raise self._failure or StoreUnavailable(UNWRITTEN)
        return snapshot

    async def _renew(self) -> StatusSnapshot:
        try:
            self._answer = await self._ask()
            self._answered_t = monotonic_s()
            return self._answer
        finally:
            self._asking = None

    async def _ask(self) -> StatusSnapshot:
        live = self._view.snapshot()
        self._failure = None
        if not self._view.is_stored():
            return replace(live, troubles=(*live.troubles, UNWRITTEN))
        try:
            return await asyncio.to_thread(Overview(self._archive.queries, self._archive.objectives).snapshot, live)
        except StatusError as error:  # whose text may name hosts and folders, which must not be exposed
            self._failure = error
            return replace(live, troubles=(*live.troubles, str(error) if isinstance(error, StoreIncompatible) else UNREACHABLE))
