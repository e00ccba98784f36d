"""One key of the topic: what was published under it, and its checker on each subscription."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from prober.checker.divergence import DivergenceCheck
from prober.checker.publications import Epoch, Ledger, Publication

if TYPE_CHECKING:
    from prober.checker.facts import Delivery
    from prober.checker.key import KeyChecker


class KeyGroup(Ledger):
    """A key; `checkers` are in the order of the subscriptions' indices, and `divergence` compares them."""

    __slots__ = ("checkers", "divergence", "everybody", "key")

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.checkers: tuple[KeyChecker, ...] = ()
        self.divergence = DivergenceCheck()
        self.everybody = 0

    def add(self, checker: KeyChecker) -> None:
        """A subscription of the key. What was confirmed before it showed itself is owed to it, as far as that is not forgotten."""
        self.checkers += (checker,)
        self.everybody = (1 << len(self.checkers)) - 1
        for epoch in self.epochs.values():
            for publication in list(epoch.open.values()):
                if publication.token is not None:
                    checker.confirmed(publication, publication.confirmed_t)

    def evict(self, epoch: Epoch) -> None:
        """An epoch is forgotten: nothing of it is owed any more."""
        super().evict(epoch)
        for checker in self.checkers:
            checker.evict(epoch)

    def prove(self, publication: Publication, one: Delivery, receiver: KeyChecker) -> None:
        """A record of a publish came that is not known to be confirmed: it was stored, so the other subscriptions are owed it too."""
        if publication.token is None:
            for checker in self.checkers:
                if checker is not receiver:
                    checker.liveness.proven(publication, one.token, one.t)

    @property
    def is_excerpt(self) -> bool:
        """Whether the record begins in the middle of an epoch, or may do so, so that what came first is not known."""
        if any(checker.numbers is not None for checker in self.checkers):
            return True
        return any(epoch.began > 1 or not epoch.complete for epoch in self.epochs.values())

    def compare(self, checker: KeyChecker) -> float:
        """Compares a subscription with the others, as far as it is final; when more is. Without an ordering key there is no order."""
        if len(self.checkers) > 1 and self.key and self.divergence.go_on(checker):
            return min((lane.final_t for lane in checker.lanes.values()), default=inf)
        return inf

    def unplaced(self, checker: KeyChecker, epoch: str) -> None:
        """Something could not be placed on a subscription. What is of another run has no place on any of them."""
        if epoch in self.epochs or self.forgotten:
            self.divergence.lose_track(checker)
