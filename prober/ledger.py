"""What a run still waits for: confirmed and undelivered messages, and delivered and unacknowledged ones, by key.

It answers the questions that are asked while nothing happens: how old is the oldest unacknowledged message, how many are undelivered,
which keys stand still. It is told what the checker is told, and grows only with what is outstanding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prober.core.events import Acked, Delivered, Event, PublishAbandoned, Published, PublishFailed, PublishInvoked
from prober.core.findings import Finding

EARLY_KEPT_MAX = 100_000
"""Acknowledged messages remembered whose publish was not confirmed yet (or never will be)."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The state of one subscription at one moment; ages in seconds, 0 when nothing waits."""

    unacked: int = 0
    oldest_unacked_age_s: float = 0.0
    stalled_keys: int = 0


class Ledger:
    """What one subscription has not acknowledged yet. A message counts from its intended publish time on."""

    def __init__(self, stalled_after_s: float) -> None:
        self._stalled_after_s = stalled_after_s
        self._invoked: dict[tuple[str, str, int], float] = {}
        self._waiting: dict[str, dict[str, float]] = {}
        self._moved: dict[str, float] = {}
        self._acked_early: set[tuple[str, str]] = set()

    def listen(self, event: Event, _findings: Iterable[Finding] = ()) -> None:
        """Takes in one event of the run."""
        match event:
            case PublishInvoked():
                self._invoked.setdefault((event.key, event.epoch, event.seq), event.t)
            case Published():
                since = self._invoked.pop((event.key, event.epoch, event.seq), event.t)
                if (event.key, event.message_id) in self._acked_early:
                    self._acked_early.discard((event.key, event.message_id))
                    return
                waiting = self._waiting.setdefault(event.key, {})
                if not waiting:
                    self._moved[event.key] = event.t
                waiting[event.message_id] = since
            case PublishFailed() | PublishAbandoned():
                self._invoked.pop((event.key, event.epoch, event.seq), None)
            case Delivered() if event.key in self._moved:
                self._moved[event.key] = event.t
            case Acked():
                self._acked(event)
            case _:
                pass

    def unacked(self, key: str) -> int:
        """Confirmed messages of a key that were not acknowledged."""
        return len(self._waiting.get(key, ()))

    def backlog(self, now: float) -> Backlog:
        """What waits at `now`. Costs time in the number of keys with something outstanding."""
        if not self._waiting:
            return Backlog()
        oldest = min(min(waiting.values()) for waiting in self._waiting.values())
        stalled = sum(1 for key in self._waiting if now - self._moved.get(key, now) > self._stalled_after_s)
        return Backlog(sum(map(len, self._waiting.values())), max(0.0, now - oldest), stalled)

    def _acked(self, event: Acked) -> None:
        waiting = self._waiting.get(event.key, {})
        if waiting.pop(event.message_id, None) is None and len(self._acked_early) < EARLY_KEPT_MAX:
            self._acked_early.add((event.key, event.message_id))
        if not waiting and event.key in self._waiting:
            del self._waiting[event.key]
            self._moved.pop(event.key, None)
