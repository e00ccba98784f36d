"""Who takes pushes where nothing can be pushed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from prober.brokers.base import PushConfig, Tap
from prober.errors import NotSupported


class Nowhere:
    """Takes nothing, and says why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def config_of(self, _subscription: str) -> PushConfig:
        """There is none."""
        self._refuse()

    def receive(self, _subscription: str, _tap: Tap) -> Callable[[], None]:
        """Nothing will come."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotSupported(self._reason)


NOWHERE: Final = Nowhere("nothing can be pushed here: there is no endpoint for it")
