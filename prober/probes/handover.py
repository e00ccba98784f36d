"""What one run of a long-lived probe hands over to the next: messages that it publishes at its end and the next one receives.

So a key lives for days, across restarts of the prober, and what was published before a restart is still verified after it. The messages
wait on the subscription, and their publishes are kept apart (`prober.runs.handover`), under the epoch of the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from prober.core.events import PublishEvent


class Handover(Protocol):
    """For one run.

    lasts  whether there is a next run that receives what this one leaves.
    epoch  that of the messages that wait for this run; empty if none do.
    """

    @property
    def lasts(self) -> bool:
        """See above."""

    @property
    def epoch(self) -> str:
        """See above."""

    @property
    def waited_s(self) -> float:
        """For how long they have waited, by the wall clock; NaN if none do."""

    @property
    def age_s(self) -> float:
        """How old the topic is, by the wall clock; NaN if it is of this run only."""

    async def take(self) -> Sequence[PublishEvent]:
        """The publishes that wait, which no later run gets. Raises CheckpointUnavailable, and then they wait on, or BrokerError."""

    async def leave(self, epoch: str, publishes: Sequence[PublishEvent]) -> None:
        """Leaves the publishes of an epoch for the next run. Raises CheckpointUnavailable."""


class NoHandover:
    """Of a run without predecessor and successor on its topic."""

    lasts: Final = False
    epoch: Final = ""
    waited_s: Final = float("nan")
    age_s: Final = float("nan")

    async def take(self) -> Sequence[PublishEvent]:
        """Nothing waits."""
        return ()

    async def leave(self, epoch: str, publishes: Sequence[PublishEvent]) -> None:
        """Does nothing: no run takes over."""


ALONE: Final = NoHandover()
