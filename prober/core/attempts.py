"""What a publication keeps beside its outcome: the attempts of the prober's own, and deliveries whose meaning is not known yet."""

from __future__ import annotations

from typing import NamedTuple


class Early(NamedTuple):
    """A delivery on the subscription of that index that was not (yet) known to be the primary.

    `position` is 0 when the delivery could no longer be placed.
    """

    subscription: int
    token: int
    position: int
    number: int


class Attempts:
    """The prober's own attempts to publish one sequence number, where there was more than one or not all of them succeeded.

    invoked     when and in which region each generation was handed over.
    open        how many have no outcome yet.
    unknown     whether one ended without anybody knowing what it stored.
    """

    __slots__ = ("count", "invoked", "open", "unknown")

    def __init__(self, t: float, region: str) -> None:
        self.count = 1
        self.open = 1
        self.unknown = False
        self.invoked: dict[int, tuple[float, str]] = {0: (t, region)}
