"""Handover from a run of a long-lived probe to the next: messages published at its end and received by the next.

So a key lives for days, across restarts of the prober, and messages published before a restart are still verified after it. The messages
wait on the subscription, and their publishes are stored separately (`prober.runs.handover`), under the epoch of the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from prober.core.events import PublishEvent


class Handover(Protocol):
    """Handover of one run."""

    @property
    def lasts(self) -> bool:
        """Whether a next run receives the messages that this run leaves."""

    @property
    def epoch(self) -> str:
        """Epoch of the messages that wait for this run; empty without waiting messages."""

    @property
    def waited_s(self) -> float:
        """Waiting time of the messages by the wall clock, in seconds; NaN without waiting messages."""

    @property
    def age_s(self) -> float:
        """Age of the topic by the wall clock, in seconds; NaN if it belongs to this run only."""

    async def take(self) -> Sequence[PublishEvent]:
        """Return the waiting publishes; no later run gets them.

        Raises BrokerError, or CheckpointUnavailable: the messages then keep waiting.
        """

    async def leave(self, epoch: str, publishes: Sequence[PublishEvent]) -> None:
        """Leave the publishes of an epoch for the next run. Raises CheckpointUnavailable."""


class NoHandover:
    """Handover of a run without predecessor and successor on its topic."""

    lasts: Final = False
    epoch: Final = ""
    waited_s: Final = float("nan")
    age_s: Final = float("nan")

    async def take(self) -> Sequence[PublishEvent]:
        """Return no publishes: none wait."""
        return ()

    async def leave(self, epoch: str, publishes: Sequence[PublishEvent]) -> None:
        """Do nothing: no run takes over."""


ALONE: Final = NoHandover()
