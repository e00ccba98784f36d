"""Ordering keys that Google's client library stops publishing on, although no publish of theirs has failed.

The library pauses a key when a publish on it fails for good, and cancels the publishes behind it until the key is resumed. Their futures
fail before the future of the failed publish. So a stop is verified when no publish of its key is under way: by then a publish that
explains it has failed.

A publish that stays without an answer stays under way, and stops of its key stay unverified: its outcome is unknown, and counted as such.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from prober.brokers.library_client import is_stop


@dataclass(slots=True)
class _Key:
    """One key of a publisher: publishes under way, whether one failed since the key was resumed, and whether one was stopped."""

    under_way: int = 0
    failed: bool = False
    stopped: bool = False


class KeyStops:
    """Counts the unexplained stops of the keys of one client. For use in any thread; calls nothing of the client.

    unexplained   stops that no failed publish explains, since the client was made; also a key that stays stopped after it was resumed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, _Key] = {}
        self.unexplained = 0

    def handed_over(self, ordering_key: str) -> None:
        """Notes that the client is about to get a publish."""
        with self._lock:
            self._keys.setdefault(ordering_key, _Key()).under_way += 1

    def answered(self, ordering_key: str, error: BaseException | None) -> None:
        """Notes that a publish ended: confirmed, or with this error of the client."""
        with self._lock:
            key = self._keys[ordering_key]
            key.under_way -= 1
            key.stopped |= error is not None and is_stop(error)
            key.failed |= error is not None and not is_stop(error)
            if not key.under_way:
                self.unexplained += key.stopped and not key.failed
                key.stopped = False
            self._forget_idle(ordering_key)

    def resumed(self, ordering_key: str) -> None:
        """Notes that the client was asked to go on. Failures before that explain nothing after it, unless publishes are under way."""
        with self._lock:
            key = self._keys.get(ordering_key)
            if key is not None and not key.under_way:
                key.failed = False
                self._forget_idle(ordering_key)

    def _forget_idle(self, ordering_key: str) -> None:
        if self._keys[ordering_key] == _Key():
            del self._keys[ordering_key]
