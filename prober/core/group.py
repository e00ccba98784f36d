"""One key of the topic: what was published under it, and its checker on each subscription."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from prober.core.divergence import DivergenceCheck
from prober.core.publications import Epoch, Ledger, Publication

if TYPE_CHECKING:
    from prober.core.accepted import AcceptedDeliveries
    from prober.core.facts import Delivery, Grace
    from prober.core.idle import IdleKey
    from prober.core.key import KeyChecker


class KeyGroup(Ledger):
    """A key; `checkers` are in the order of the subscriptions' indices; if there are several, they are compared.

    resting     what is kept in place of the checkers while the key rests.
    """

    __slots__ = ("_divergence", "checkers", "everybody", "key", "resting")

    def __init__(self, key: str, *, may_be_known: bool = False) -> None:
        """`may_be_known`: it may have been there before, and have been forgotten."""
        super().__init__()
        self.key = key
        self.forgotten += may_be_known
        self.resting: tuple[IdleKey, ...] = ()
        self.checkers: tuple[KeyChecker, ...] = ()
        self._divergence: DivergenceCheck | None = None
        self.everybody = 0

    def add(self, checker: KeyChecker) -> None:
        """A subscription of the key. Messages that were confirmed before its first event are pending on it, unless they are forgotten."""
        self.checkers += (checker,)
        checker.collector.epochs = len(self.epochs)
        if len(self.checkers) == 2 and self.key:
            self._divergence = DivergenceCheck()
            first = self.checkers[0]
            for lane in first.lanes.values():
                if lane.log.frontier:
                    self._divergence.lose_order(first, lane)
        self.everybody = (1 << len(self.checkers)) - 1
        for epoch in self.epochs.values():
            for publication in list(epoch.open.values()):
                if publication.token is not None:
                    checker.confirmed(publication, publication.confirmed_t)

    def rest(self, idle: tuple[IdleKey, ...]) -> None:
        """Nothing of the key is pending. A pair of subscriptions that differed is not compared again."""
        self.resting, self.checkers = idle, ()
        if self._divergence is not None:
            self._divergence.rest()
        for epoch in self.epochs.values():
            epoch.open = dict(epoch.open)  # which takes less memory than one that was longer

    def control(self, index: int, grace: Grace) -> None:
        """A control operation on a subscription, or a hole in the record, while the key rests."""
        self.resting = tuple(one.excused(grace) if at == index else one for at, one in enumerate(self.resting))

    def _begin(self, name: str, seq: int, t: float, generation: int) -> Epoch:
        epoch = super()._begin(name, seq, t, generation)
        for checker in self.checkers:
            checker.collector.epochs = len(self.epochs)
        return epoch

    def evict(self, epoch: Epoch) -> None:
        """An epoch is forgotten: its messages are no longer pending."""
        super().evict(epoch)
        for checker in self.checkers:
            checker.evict(epoch)

    def prove(self, publication: Publication, one: Delivery, receiver: KeyChecker) -> None:
        """A record of a publish came that is not known to be confirmed: it was stored, so it is pending on the other subscriptions."""
        if publication.token is None:
            for checker in self.checkers:
                if checker is not receiver and not checker.rules.excludes(publication.seq):
                    checker.liveness.proven(publication, one.token, one.t)

    @property
    def is_excerpt(self) -> bool:
        """Whether the record begins in the middle of an epoch, or may do so, so that what came first is not known."""
        if any(checker.numbers is not None for checker in self.checkers):
            return True
        return any(epoch.began > 1 or not epoch.complete for epoch in self.epochs.values())

    def compare(self, checker: KeyChecker) -> float:
        """Compares a subscription with the others, as far as it is final; when more is. Without an ordering key there is no order."""
        if self._divergence is not None and self._divergence.go_on(checker):
            return min((lane.final_t for lane in checker.lanes.values()), default=inf)
        return inf

    def unplaced(self, checker: KeyChecker, epoch: str) -> None:
        """Something could not be placed on a subscription. What is of another run has no place on any of them."""
        if self._divergence is not None and (epoch in self.epochs or self.forgotten):
            self._divergence.lose_track(checker)

    def lose_order(self, checker: KeyChecker, lane: AcceptedDeliveries) -> None:
        """The order of what a subscription received last is not known."""
        if self._divergence is not None:
            self._divergence.lose_order(checker, lane)

    def drop(self, publication: Publication) -> None:
        """A publication is forgotten: it is pending no more."""
        super().drop(publication)
        for checker in self.checkers:
            for lane in checker.lanes.values():
                lane.pending.pop(publication, None)
