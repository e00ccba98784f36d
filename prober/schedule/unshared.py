"""The part of a prober that shares its sites with nobody: it works at all of them, and follows what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from prober.schedule.assignments import Assignments

CLOSE_TIMEOUT_S: Final = 5.0


class Unshared:
    """Takes every site. `renew` ends work at one that is outdated, and begins at what it has become; `failed` hears of faults of ours."""

    def __init__(
        self, assignments: Assignments, renew: Callable[[str], Coroutine[Any, Any, None]], failed: Callable[[Exception], None]
    ) -> None:
        self._assignments, self._renew_site, self._failed = assignments, renew, failed
        self._renewing: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    def follow(self) -> None:
        """Takes what is new at once, and ends what is outdated, each site when its run has ended."""
        for name in self._assignments.outdated - self._renewing.keys():
            self._renewing[name] = asyncio.create_task(self._renew(name), name=f"renew {name}")
        for name in self._assignments.sites:
            if name not in self._assignments.taken and name not in self._renewing:
                self._assignments.take(name)

    async def close(self) -> None:
        """Waits a moment for what is being given up; to be called when no run is under way any more."""
        self._closing = True
        if self._renewing:
            _, late = await asyncio.wait(self._renewing.values(), timeout=CLOSE_TIMEOUT_S)
            for task in late:
                task.cancel()

    async def _renew(self, name: str) -> None:
        try:
            await self._renew_site(name)
        except Exception as fault:
            self._failed(fault)
        finally:
            del self._renewing[name]
        if not self._closing and name not in self._assignments.taken:
            self.follow()  # it came back while it was given up
