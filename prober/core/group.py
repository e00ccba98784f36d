"""A key of the topic: its publishes, and its checker on each subscription."""

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
    """A key; `checkers` are in the order of the subscriptions' indices; several are compared with each other.

    resting     the state kept in place of the checkers while the key is idle.
    """

    __slots__ = ("_divergence", "checkers", "everybody", "key", "resting")

    def __init__(self, key: str, *, may_be_known: bool = False) -> None:
        """Create a key; `may_be_known`: it may have existed before and have been forgotten."""
        super().__init__()
        self.key = key
        self.forgotten += may_be_known
        self.resting: tuple[IdleKey, ...] = ()
        self.checkers: tuple[KeyChecker, ...] = ()
        self._divergence: DivergenceCheck | None = None
        self.everybody = 0

    def add(self, checker: KeyChecker) -> None:
        """Add the checker of a subscription. Remembered messages confirmed before its first event are pending on it."""
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
        """Replace the checkers of a key without pending messages. A pair of subscriptions that differed is not compared again."""
        self.resting, self.checkers = idle, ()
        if self._divergence is not None:
            self._divergence.rest()
        for epoch in self.epochs.values():
            epoch.open = dict(epoch.open)  # which takes less memory than one that was longer

    def control(self, index: int, grace: Grace) -> None:
        """Note a control operation on a subscription, or a hole in the record, while the key is idle."""
        self.resting = tuple(one.excused(grace) if at == index else one for at, one in enumerate(self.resting))

    def _begin(self, name: str, seq: int, t: float, generation: int) -> Epoch:
        epoch = super()._begin(name, seq, t, generation)
        for checker in self.checkers:
            checker.collector.epochs = len(self.epochs)
        return epoch

    def evict(self, epoch: Epoch) -> None:
        """Forget an epoch: its messages are no longer pending."""
        super().evict(epoch)
        for checker in self.checkers:
            checker.evict(epoch)

    def prove(self, publication: Publication, one: Delivery, receiver: KeyChecker) -> None:
        """Make a delivered publish without a known confirmation pending on the other subscriptions: it was stored."""
        if publication.token is None:
            for checker in self.checkers:
                if checker is not receiver and not checker.rules.excludes(publication.seq):
                    checker.liveness.proven(publication, one.token, one.t)

    @property
    def is_excerpt(self) -> bool:
        """Whether the record starts, or may start, in the middle of an epoch, so that the first messages are unknown."""
        if any(checker.numbers is not None for checker in self.checkers):
            return True
        return any(epoch.began > 1 or not epoch.complete for epoch in self.epochs.values())

    def compare(self, checker: KeyChecker) -> float:
        """Compare the final part of a subscription with the others; return when more is final. Without an ordering key: never."""
        if self._divergence is not None and self._divergence.go_on(checker):
            return min((lane.final_t for lane in checker.lanes.values()), default=inf)
        return inf

    def unplaced(self, checker: KeyChecker, epoch: str) -> None:
        """Note a delivery without a place on a subscription. Records of other epochs have no place on any subscription."""
        if self._divergence is not None and (epoch in self.epochs or self.forgotten):
            self._divergence.lose_track(checker)

    def lose_order(self, checker: KeyChecker, lane: AcceptedDeliveries) -> None:
        """Note that the order of the last deliveries of a subscription is unknown."""
        if self._divergence is not None:
            self._divergence.lose_order(checker, lane)

    def drop(self, publication: Publication) -> None:
        """Forget a publication: it is no longer pending."""
        super().drop(publication)
        for checker in self.checkers:
            for lane in checker.lanes.values():
                lane.pending.pop(publication, None)
