"""What a key on one subscription has to know of the same key on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prober.core.publications import EpochRecord, Publication
from prober.core.sessions import Arrival

if TYPE_CHECKING:
    from prober.core.key import KeyChecker


class TopicKey(Protocol):
    """The key as all subscriptions of the topic see it.

    epochs      what its publisher recorded.
    largest     the largest size of the data of a message in bytes, `inf` if a size is not known.
    compared_t  when something that its subscriptions learned is to be compared, `inf` if nothing is.
    """

    epochs: dict[str, EpochRecord]
    largest: float
    compared_t: float

    def learned(self, checker: KeyChecker, arrival: Arrival) -> None:
        """A subscription learned a position of the key's log."""

    def lost_track(self, checker: KeyChecker) -> None:
        """A subscription could not place a record, or has forgotten what it learned."""

    def compare(self, now: float) -> None:
        """Compares what was due before `now`."""

    def primary(self, token: int) -> Publication | None:
        """The unsettled publication that was confirmed with this token."""
