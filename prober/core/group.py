"""A key of the topic: its publishes by epoch, and its checker on each subscription; while it is idle, a few numbers in place of these.

A key rests when all its published messages were delivered and acknowledged, and no event occurred for `Rules.idle_after_s`. The checker
then forgets its deliveries, like those that leave the window. It cannot recognise their redeliveries: they count as unplaced.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.divergence import DivergenceCheck
from prober.core.events import LONG_AGO
from prober.core.publications import Epoch, Publication

if TYPE_CHECKING:
    from collections.abc import Callable

    from prober.core.accepted import AcceptedDeliveries
    from prober.core.facts import Delivery, Grace
    from prober.core.integrity import Confirmation
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane
    from prober.core.unrecorded import NumbersCheck

EPOCHS_KEPT: Final = 64
"""Number of epochs per key; beyond that the one idle longest is forgotten, and its messages count as foreign."""
OPEN_KEPT: Final = 65_536
"""Number of unsettled publications per epoch; beyond that the oldest are forgotten and no longer verified."""
UNLIMITED: Final = 1 << 62
"""The size of a message whose size was not recorded, in bytes: it uses up any flow control."""


NO_EXCUSE: Final = (LONG_AGO, "")


class IdleLane(NamedTuple):
    """A region: the number of learned positions, the last invocation among them, and the highest number of each epoch."""

    region: str
    frontier: int
    latest_invoked_t: float
    highest: tuple[tuple[str, int], ...]


class IdleKey(NamedTuple):
    """An idle key on a subscription. `excuse`: until when a control operation is not settled, and its name."""

    lanes: tuple[IdleLane, ...]
    last_t: float
    baseline_t: float
    excuse: tuple[float, str]
    adopts: bool
    confirmations: dict[int, Confirmation] | None
    numbers: NumbersCheck | None

    def excused(self, grace: Grace) -> IdleKey:
        """Return the key after a control operation, or a hole in the record."""
        if self.numbers is not None:
            self.numbers.forget()
        return self._replace(excuse=max(self.excuse, (grace.until_t, grace.cause)), confirmations=None)


class KeyGroup:
    """A key; `checkers` are in the order of the subscriptions' indices; several are compared with each other.

    resting     the state kept in place of the checkers while the key is idle.
    everybody   all subscriptions, as bits.
    holed       whether publishes may be missing from the record so far.
    forgotten   the number of forgotten epochs and publications, and the key itself if it may have existed before.
    largest     the size of the largest message, in bytes; `UNLIMITED` once a size was not recorded.
    """

    __slots__ = (
        "_divergence",
        "_ended",
        "_latest",
        "checkers",
        "epochs",
        "everybody",
        "forgotten",
        "holed",
        "key",
        "largest",
        "rank",
        "resting",
    )

    def __init__(self, key: str, *, may_be_known: bool = False) -> None:
        """Create a key; `may_be_known`: it may have existed before and have been forgotten."""
        self.key = key
        self.epochs: dict[str, Epoch] = {}
        self.rank = self.largest = self.everybody = 0
        self.forgotten = int(may_be_known)
        self.holed = False
        self._latest = ""
        self._ended: dict[str, int] | None = None
        self.resting: tuple[IdleKey, ...] = ()
        self.checkers: tuple[KeyChecker, ...] = ()
        self._divergence: DivergenceCheck | None = None

    # --- publishes -----------------------------------------------------------------------------------------------------------

    def invoke(self, name: str, seq: int, generation: int, t: float, number: int, region: str, size: int) -> Publication | None:
        """Note an invoked publish; return its publication, None if that was settled before."""
        largest = size or UNLIMITED
        if largest > self.largest:
            self.largest = largest
        epoch = self.epochs.get(name)
        if epoch is None:
            epoch = self._begin(name, seq, t, generation)
        elif name != self._latest:
            self.epochs[name] = self.epochs.pop(name)
        self._latest = name
        if region not in epoch.regions:
            epoch.regions += (region,)
        publication = epoch.open.get(seq)
        if publication is not None:
            publication.repeat(generation, t, region, size)
            return publication
        if seq == epoch.last + 1 and epoch.last:
            epoch.last = seq
        elif epoch.note(seq):
            return None
        self.rank += 1
        publication = epoch.open[seq] = Publication(epoch, seq, self.rank, t, number, region, size)
        if generation > 0:
            publication.begun_before(generation)
        if len(epoch.open) > OPEN_KEPT:
            self._drop(next(iter(epoch.open.values())))
        return publication

    def _drop(self, publication: Publication) -> None:
        """Forget a publication: it is no longer pending."""
        del publication.epoch.open[publication.seq]
        publication.epoch.complete = False
        self.forgotten += 1
        for checker in self.checkers:
            for lane in checker.lanes.values():
                lane.pending.pop(publication, None)

    def _begin(self, name: str, seq: int, t: float, generation: int) -> Epoch:
        if len(self.epochs) >= EPOCHS_KEPT:
            evicted = self.epochs.pop(next(iter(self.epochs)))
            self.forgotten += 1
            for checker in self.checkers:
                checker.evict(evicted)
        epoch = self.epochs[name] = Epoch(name, complete=(seq == 1 or not self.holed) and generation == 0)
        epoch.began_t = t
        if self._ended:
            epoch.ended_unseen = self._ended.pop(name, 0)
        for checker in self.checkers:
            checker.collector.epochs = len(self.epochs)
        return epoch

    def ended(self, name: str, seq: int) -> Publication | None:
        """Return the publication of an attempt that ended, if it is not settled."""
        epoch = self.epochs.get(name)
        if epoch is not None:
            return epoch.open.get(seq)
        ended = self._ended = self._ended or {}  # the start of the epoch is not recorded
        ended[name] = max(seq, ended.pop(name, 0))
        if len(ended) > EPOCHS_KEPT:
            del ended[next(iter(ended))]
        return None

    def find(self, name: str, seq: int) -> Publication | None:
        """Return the publication of a sequence number, if it is not settled."""
        epoch = self.epochs.get(name)
        return None if epoch is None else epoch.open.get(seq)

    def primary(self, token: int) -> Publication | None:
        """Return the unsettled publication that was confirmed with this token."""
        unsettled = (publication for epoch in self.epochs.values() for publication in epoch.open.values())
        return next((publication for publication in unsettled if publication.token == token), None)

    def interrupt(self) -> None:
        """Note a hole in the record."""
        self.holed = True
        for epoch in self.epochs.values():
            epoch.complete = False
            for publication in epoch.open.values():
                publication.unknown, publication.failed = True, False

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

    # --- checkers ------------------------------------------------------------------------------------------------------------

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

    # --- idle ----------------------------------------------------------------------------------------------------------------

    def rest(self, now: float, idle_s: float) -> bool:
        """Replace the checkers of a key without pending messages by a few numbers if it was idle for `idle_s`; return whether it rests.

        A pair of subscriptions that differed is not compared again.
        """
        if not all(_is_idle(checker, now, idle_s) for checker in self.checkers):
            return False
        for checker in self.checkers:
            checker.queued_t = inf
            checker.subscription.clocks.forget(checker.liveness.clock.holds)
        self.resting, self.checkers = tuple(_idle(checker) for checker in self.checkers), ()
        if self._divergence is not None:
            self._divergence.rest()
        for epoch in self.epochs.values():
            epoch.open = dict(epoch.open)  # which takes less memory than one that was longer
        return True

    def wake(self, new: Callable[[int], KeyChecker]) -> None:
        """Wake the idle key; `new` makes a checker for the subscription of an index."""
        idle, self.resting = self.resting, ()
        self.checkers = tuple(_woken(new(index), one) for index, one in enumerate(idle))
        for checker in self.checkers:
            checker.collector.epochs = len(self.epochs)

    def control(self, index: int, grace: Grace) -> None:
        """Note a control operation on a subscription, or a hole in the record, while the key is idle."""
        self.resting = tuple(one.excused(grace) if at == index else one for at, one in enumerate(self.resting))


def _is_idle(checker: KeyChecker, now: float, idle_s: float) -> bool:
    if now - checker.last_t <= idle_s or checker.due_t < inf or not checker.liveness.is_idle(now):
        return False
    return all(_is_settled(lane, now) for lane in checker.lanes.values())


def _is_settled(lane: Lane, now: float) -> bool:
    lane.commit(now)
    return not (lane.waiting or lane.window or lane.pending or lane.deferred or lane.now.outstanding())


def _idle(checker: KeyChecker) -> IdleKey:
    collector = checker.collector
    return IdleKey(
        lanes=tuple(lane.idle for lane in checker.lanes.values()),
        last_t=checker.last_t,
        baseline_t=checker.baseline_t,
        excuse=(collector.grace_until_t, collector.grace_cause) if collector.grace_cause else NO_EXCUSE,
        adopts=checker.adopts,
        confirmations=checker.confirmations or None,
        numbers=checker.numbers,
    )


def _woken(checker: KeyChecker, idle: IdleKey) -> KeyChecker:
    checker.collector.excuse(*idle.excuse)
    checker.last_t = checker.liveness.clock.last_t = idle.last_t
    checker.baseline_t, checker.adopts = idle.baseline_t, idle.adopts
    checker.confirmations = idle.confirmations or {}
    checker.numbers = idle.numbers
    for one in idle.lanes:
        checker.lane(one.region).resume(one)
    return checker
