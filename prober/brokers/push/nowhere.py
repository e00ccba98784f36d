"""A push receiver for targets that cannot push."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from prober.brokers.base import PushConfig, Tap
from prober.errors import NotSupported


class Nowhere:
    """A receiver that refuses, with a reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def config_of(self, _subscription: str) -> PushConfig:
        """Raise NotSupported."""
        self._refuse()

    def receive(self, _subscription: str, _tap: Tap) -> Callable[[], None]:
        """Raise NotSupported."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotSupported(self._reason)


NOWHERE: Final = Nowhere("nothing can be pushed here: there is no endpoint for it")
