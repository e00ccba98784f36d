"""What a publication keeps beside its outcome: the attempts of the prober's own, and deliveries whose meaning is not known yet."""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.sessions import ANYWHERE, Arrival, Source

GENERATIONS_KEPT: Final = 64
"""Attempts before the record that are told apart from those on it; of the others it is not known either when they began."""


class Early(NamedTuple):
    """A delivery on the subscription of that index that was not (yet) known to be the primary. It came at `t`, at `source`.

    `position` is 0 when the delivery could no longer be placed.
    """

    subscription: int
    token: int
    position: int
    number: int
    t: float = inf
    source: Source = ANYWHERE

    @classmethod
    def of(cls, subscription: int, arrival: Arrival) -> Early:
        """A delivery."""
        return cls(subscription, arrival.token, arrival.position, arrival.number, arrival.t, arrival.track.session.source)


class PublishAttempts:
    """The prober's own attempts to publish one sequence number, where there was more than one or not all of them succeeded.

    invoked     when and in which region each generation was handed over.
    open        how many have no outcome yet.
    failed      how many certainly stored nothing.
    unknown     whether one ended without anybody knowing what it stored.
    """

    __slots__ = ("count", "failed", "invoked", "open", "unknown")

    def __init__(self, t: float, region: str) -> None:
        self.count = 1
        self.open = 1
        self.failed = 0
        self.unknown = False
        self.invoked: dict[int, tuple[float, str]] = {0: (t, region)}

    @property
    def records_max(self) -> int:
        """How many records they may have stored at most, where no client retries by itself."""
        return self.count - self.failed

    def begun_before(self, generation: int, t: float, region: str) -> None:
        """The first attempt on record is not the first: when the others were handed over, and what came of them, is not known."""
        self.count += generation
        self.unknown = True
        self.invoked = dict.fromkeys(range(min(generation, GENERATIONS_KEPT)), (LONG_AGO, region))
        self.invoked[generation] = (t, region)
