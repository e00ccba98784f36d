"""What is compared by `order`: primaries that were received, what they overtook, and the latest of all invocations."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.publications import Publication


class RealTime:
    """The latest publish invocation among the records learned so far in one region: when, whose, and which event delivered it."""

    __slots__ = ("epoch", "invoked_number", "number", "raced", "region", "seq", "t")

    def __init__(self, region: str) -> None:
        self.region = region
        self.raced = False
        self.t = LONG_AGO
        self.seq = 0
        self.epoch = ""
        self.number = 0
        self.invoked_number = 0

    def learn(self, publication: Publication, invoked_t: float, epoch: str, number: int, *, raced: bool) -> None:
        """A record of that publication, invoked later than all before, at `invoked_t`, was delivered by event `number`.

        `raced`: perhaps out of order.
        """
        self.t = invoked_t
        self.raced = raced
        self.seq = publication.seq
        self.epoch = epoch
        self.number = number
        self.invoked_number = publication.invoked_number


class Primary(NamedTuple):
    """A primary that was received: where in the log, delivered and confirmed by which events, when handed over, of which epoch."""

    position: int
    seq: int
    number: int
    confirmed_number: int
    ordered_t: float
    epoch: str

    def inverts(self, other: Primary) -> bool:
        """Whether the two, of one epoch, break session order: the lower was handed over first, yet stands later in the log."""
        lower, higher = (self, other) if self.seq < other.seq else (other, self)
        return lower.position > higher.position and lower.ordered_t <= higher.ordered_t


BEFORE_ALL: Final = Primary(0, 0, 0, 0, inf, "")


@dataclass(slots=True)
class Overtaken:
    """A sequence number that had not been received when `by` was, at `t`.

    `bound`: it was confirmed and had to come first. Otherwise its outcome was open then, or it was republished later.
    """

    publication: Publication
    by: Primary
    t: float
    bound: bool
    reported_lost: bool = False
