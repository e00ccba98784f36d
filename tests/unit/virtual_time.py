"""An event loop for tests of what waits: hours pass in no time, and always in the same order."""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta

STARTED_AT = datetime(2026, 12, 19, 23, 59, 30, tzinfo=UTC)  # a Saturday


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while there is something to do, and then jumps to the next timer."""

    def __init__(self) -> None:
        self.t = 0.0
        self.set_forward = timedelta()
        super().__init__(_Leaping(self))

    def time(self) -> float:
        return self.t

    def wall(self) -> datetime:
        """What the system's clock says."""
        return STARTED_AT + timedelta(seconds=self.t) + self.set_forward


class _Leaping(selectors.SelectSelector):
    def __init__(self, loop: VirtualTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing will ever happen again"
        self._loop.t += timeout
        return super().select(0.0)
