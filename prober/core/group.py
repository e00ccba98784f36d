"""One key of the topic: what its publisher recorded, and its checker on each subscription, which tells it what it learned."""

from __future__ import annotations

from math import inf

from prober.core.divergence import DivergenceCheck
from prober.core.events import PublishInvoked
from prober.core.key import KeyChecker
from prober.core.publications import EpochRecord, Publications
from prober.core.sessions import Arrival
from prober.core.unrecorded import UNRECORDED, unrecorded_epoch


class KeyGroup(Publications):
    """A key; `checkers` are in the order of the subscriptions' indices.

    compared_t  when something that they learned is to be compared, `inf` if nothing is.
    may_be_known    the key may have been there before, and have been forgotten: what comes first may have come in another order.
    """

    __slots__ = ("checkers", "compared_t", "divergence", "key", "may_be_known")

    def __init__(self, key: str, *, may_be_known: bool = False) -> None:
        super().__init__()
        self.key = key
        self.may_be_known = may_be_known
        self.checkers: tuple[KeyChecker, ...] = ()
        self.divergence: DivergenceCheck | None = None
        self.compared_t = inf

    def invoked(self, event: PublishInvoked, number: int) -> None:
        """A publish was handed over; see `Publications.invoke`."""
        size, region = event.size, event.region
        crowded = self.invoke(event.epoch, event.seq, event.generation, event.t, number, len(self.checkers), region, size)
        if crowded is not None:
            for checker in self.checkers:
                checker.given_up(crowded)

    def unrecorded(self) -> EpochRecord:
        """What stands for the record of those publishers that nobody recorded."""
        known = self.epochs.get(UNRECORDED)
        if known is None:
            known = self.epochs[UNRECORDED] = unrecorded_epoch()
            self.largest = inf
        return known

    @property
    def at_rest(self) -> bool:
        """Whether nothing about the key can be decided before its next event; see `KeyChecker.at_rest`."""
        return self.compared_t == inf and all(checker.at_rest for checker in self.checkers)

    @property
    def idle(self) -> bool:
        """Whether the key is at rest and has no window to give up any more."""
        return self.at_rest and all(checker.due_t == inf for checker in self.checkers)

    # --- what its subscriptions learned --------------------------------------------------------------------------------------

    def learned(self, checker: KeyChecker, arrival: Arrival) -> None:
        """A checker learned a position: all subscriptions must learn the same log."""
        if len(self.checkers) > 1:
            self.divergence = self.divergence or DivergenceCheck()
            self.divergence.judge(checker, arrival, self.checkers)
            self.compared_t = self.divergence.due_t

    def lost_track(self, checker: KeyChecker) -> None:
        """A checker could not place a record, or has forgotten what it learned."""
        if len(self.checkers) > 1:
            self.divergence = self.divergence or DivergenceCheck()
            self.divergence.lost_track(checker)

    def compare(self, now: float) -> None:
        """Compares what was due before `now`, all of it at the end of the history."""
        if self.divergence is not None and self.compared_t < inf:
            self.divergence.settle(now)
            self.compared_t = self.divergence.due_t
