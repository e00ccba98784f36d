"""One key of the topic: what was published under it, and its checker on each subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prober.checker.publications import Epoch, Ledger, Publication

if TYPE_CHECKING:
    from prober.checker.facts import Delivery
    from prober.checker.key import KeyChecker


class KeyGroup(Ledger):
    """A key; `checkers` are in the order of the subscriptions' indices."""

    __slots__ = ("checkers", "everybody", "key")

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.checkers: tuple[KeyChecker, ...] = ()
        self.everybody = 0

    def add(self, checker: KeyChecker) -> None:
        """A subscription of the key. What was published before it was known is not settled by it."""
        self.checkers += (checker,)
        self.everybody = (1 << len(self.checkers)) - 1

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
