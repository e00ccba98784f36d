"""What a legal service may do: docs/model.md in code. The numbers in this file are its sections.

A `Send` is one delivery with the state that it is sent into. Each rule answers with the problems that it sees: a problem with a `doubt`
rests on something that was not recorded, one without cannot be explained. A legal send has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from prober.checker.facts import Delivery, earliest_end, earliest_release
from prober.core.findings import Kind
from prober.core.rules import Mode, Rules

if TYPE_CHECKING:
    from prober.checker.publications import Publication
    from prober.checker.subscription import Subscription

OVERLAP: Final = {Mode.STREAMING: Kind.AFFINITY_SPLIT, Mode.PULL: Kind.PULL_OVERLAP, Mode.PUSH: Kind.PUSH_OVERLAP}

DEAD_LETTER: Final = "the subscription has a dead-letter policy, and with one redelivery need not be consistent"
LOST: Final = "what is missing was acknowledged before, and may have been sent again on a stream or pull that was lost"
BESIDE: Final = "what is missing may have been sent on another stream of the same subscriber, which broke"
UNSEEN_ATTEMPTS: Final = "streams broke or pulls were lost, so the dead-letter policy may have removed what is missing"
GRACE: Final = "{} may explain it"
FILTERED: Final = "the subscription has a filter, which may exclude what is missing"
CONFIRMED_AHEAD: Final = "its acknowledgement was confirmed, and exactly-once delivery does not say whether it comes again in a run"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a send is not simply legal.

    doubt       what may explain it all the same; empty: nothing does.
    positions   the records that it is about: those skipped, or held.
    publications    those that are missing.
    others      deliveries that it is about: the one before, those held.
    """

    kind: Kind
    doubt: str = ""
    positions: tuple[int, ...] = ()
    publications: tuple[Publication, ...] = ()
    others: tuple[Delivery, ...] = ()


class View(Protocol):
    """The log that a delivery is sent from."""

    def skipped(self, after: int, before: int) -> Sequence[int]:
        """The positions between two that are still to be delivered: not dead-lettered, and not unplaced."""

    def low(self, position: int) -> int:
        """The first position of the group of a position."""

    def high(self, position: int) -> int:
        """The last position of the group of a position."""

    def acked(self, position: int, by_t: float) -> bool:
        """Whether an acknowledgement that may have meant a position was sent by a time."""

    def ack_confirmed(self, position: int, by_t: float) -> bool:
        """Whether an acknowledgement of a position was confirmed by a time."""

    def invoked_t(self, position: int) -> float:
        """When the publish of a position was invoked."""

    def holds(self, position: int) -> bool:
        """Whether what is known of a position is not forgotten."""


@dataclass(slots=True)
class Send:
    """A delivery that is sent next.

    position    of its record; if that is new, the next one.
    before      the send before it in its region, if that is known.
    held        what may be held, the lowest position first.
    missing     publications that had to be in the log before it and are not.
    latest_t    it was sent by then.
    newest      the last delivery of a message id.
    """

    subscription: Subscription
    view: View
    delivery: Delivery
    position: int
    before: Delivery | None
    before_position: int
    held: Iterable[tuple[int, Delivery]]
    missing: Sequence[Publication]
    latest_t: float
    newest: Callable[[int], Delivery | None]
    rules: Rules = field(init=False)

    def __post_init__(self) -> None:
        self.rules = self.subscription.rules

    def problems(self) -> list[Problem]:
        """Everything that is not simply legal about it."""
        return self._settled([*self.order(), *self.step(), *self.holder(), *self.exactly_once()])

    def alone(self) -> list[Problem]:
        """What is not simply legal about it, whatever else was sent."""
        return self._settled(self.exactly_once())

    def missing_only(self) -> list[Problem]:
        """What is not simply legal about it in any order of sends that has no more than `missing`."""
        return self._settled(self.order())

    def _settled(self, found: list[Problem]) -> list[Problem]:
        """The problems, in doubt where a control operation had not settled."""
        grace = self.subscription.grace_of(self.delivery)
        if grace is None:
            return found
        return [Problem(one.kind, GRACE.format(grace.cause), one.positions, one.publications, one.others) for one in found]

    # --- 4: order ------------------------------------------------------------------------------------------------------------

    def order(self) -> list[Problem]:
        """L3 and L4: nothing that was confirmed and stands before it is missing."""
        breaches = [one for one in self.missing if not self.absence(one)]
        if breaches:
            return [Problem(Kind.ORDER_GAP, "", publications=tuple(breaches))]
        doubts = {self.absence(one): one for one in self.missing if self._is_counted(one)}
        return [Problem(Kind.ORDER_GAP, doubt, publications=(one,)) for doubt, one in doubts.items()]

    def absence(self, missing: Publication) -> str:
        """What may explain that a publication is not in the log before this one; empty if nothing does."""
        if self._is_gone(missing.invoked_t):
            return "it may be older than the retention"
        grace = self.subscription.may_have_come_unseen(missing.invoked_t, self.delivery.t)
        if grace is not None:
            return GRACE.format(grace.cause)
        if self.subscription.may_have_lost_beside(missing.invoked_t, self.delivery):
            return BESIDE
        if self.rules.dead_letter_max_attempts and self.subscription.may_have_attempted_unseen():
            return UNSEEN_ATTEMPTS
        return FILTERED if self.rules.filtered else ""

    def _is_counted(self, missing: Publication) -> bool:
        """Whether the doubt is worth a finding: what is too old, or filtered out, is simply not in the log."""
        return not self.rules.filtered and not self._is_gone(missing.invoked_t)

    def _is_gone(self, invoked_t: float) -> bool:
        """6.4: older than the retention."""
        return self.latest_t + self.rules.clock_error_s - invoked_t > self.rules.message_retention_s

    # --- 6.2: the step -------------------------------------------------------------------------------------------------------

    def step(self) -> list[Problem]:
        """The position of a send is at most one above that of the send before it."""
        before = self.before
        if before is None or self._may_stand_elsewhere() or not self.rules.redelivery_promised:
            return []
        inside = self.rules.mode is Mode.PULL and before.session is self.delivery.session
        if inside and self.position <= self.before_position:
            same_group = self.view.high(self.position) > self.view.low(self.before_position)
            return [] if same_group else [Problem(Kind.PULL_BATCH_ORDER, others=(before,))]
        lowest, highest = self.view.low(self.position), self.view.high(self.before_position)
        if lowest <= highest + 1:
            return []
        skipped = [one for one in self.view.skipped(highest, lowest) if not self._is_gone(self.view.invoked_t(one))]
        excuses = {one: self._excuse(one, before, inside=inside) for one in skipped}
        owed = [one for one, doubt in excuses.items() if not doubt]
        kind = Kind.PULL_BATCH_ORDER if inside else Kind.REDELIVERY_SKIP
        if owed:
            return [Problem(kind, "", tuple(skipped), others=(before,))]
        doubts = [doubt for doubt in excuses.values() if doubt != CONFIRMED_AHEAD]
        return [Problem(kind, doubts[0], tuple(skipped), others=(before,))] if doubts else []

    def _may_stand_elsewhere(self) -> bool:
        """10: its place in the log is not known; in a grace period all is in doubt anyway."""
        return self.delivery.unplaced and self.subscription.grace_of(self.delivery) is None

    def _excuse(self, position: int, before: Delivery, *, inside: bool) -> str:
        """6.3 and 6.4: why a position may have been passed over; empty if it may not."""
        latest_t = self.latest_t + self.rules.clock_error_s
        if self.rules.dead_letter_max_attempts:
            return DEAD_LETTER
        if self.rules.exactly_once and self.view.ack_confirmed(position, latest_t):
            return CONFIRMED_AHEAD
        if inside:
            return ""
        if self.view.acked(position, latest_t) and self._may_have_lost(before.earliest_t):
            return LOST
        return BESIDE if self.subscription.may_have_lost_beside(self.view.invoked_t(position), self.delivery) else ""

    def _may_have_lost(self, since_t: float) -> bool:
        return self.subscription.may_have_lost(since_t, self.latest_t, self.delivery.session)

    # --- 7: holders ----------------------------------------------------------------------------------------------------------

    def holder(self) -> list[Problem]:
        """Nothing below it is provably held elsewhere, but for what was so when its owner received something above that before."""
        if self._may_stand_elsewhere() or not self.rules.redelivery_promised:
            return []
        above = max((position for position, held in self.held if held.owner == self.delivery.owner), default=0)
        below = [(position, held) for position, held in self.held if position > above and self._matters(position, held)]
        if not below:
            return []
        if self.rules.mode is Mode.PUSH:
            return self._push(below)
        certain = [(at, held) for at, held in below if self._is_held(at, held) and not self._dropped_unseen(at, held)]
        if not certain:
            return []
        again = self.rules.dead_letter_max_attempts > 0 and not self.delivery.first
        doubt = DEAD_LETTER if again else ""  # what was held need not be part of the run that released it
        return [Problem(OVERLAP[self.rules.mode], doubt, tuple(at for at, _ in certain), others=tuple(held for _, held in certain))]

    def _push(self, below: Sequence[tuple[int, Delivery]]) -> list[Problem]:
        """7.3: push goes on only after success."""
        latest_t = self.latest_t + self.rules.clock_error_s
        found: dict[Kind, list[tuple[int, Delivery]]] = {}
        for at, held in below:
            if (
                held.acked_t <= latest_t
                or self.view.acked(at, latest_t)
                or self.rules.dead_letter_max_attempts
                or self._is_gone(self.view.invoked_t(at))
            ):
                continue
            released = earliest_release(self.rules, held, self.newest(held.token)) <= latest_t
            if released and held.publication is None and not self.rules.subscription_predates_first_publish:
                continue  # it may have been acknowledged before the record
            found.setdefault(Kind.PUSH_ADVANCE_PAST_NACK if released else Kind.PUSH_OVERLAP, []).append((at, held))
        return [
            Problem(kind, "", tuple(at for at, _ in ones), others=tuple(one for _, one in ones)) for kind, ones in found.items()
        ]

    def _matters(self, position: int, held: Delivery) -> bool:
        return position < self.position and self.view.holds(position) and self._elsewhere(held)

    def _elsewhere(self, held: Delivery) -> bool:
        return held.owner != self.delivery.owner and held.owner is not None and self.delivery.owner is not None

    def _is_held(self, position: int, held: Delivery) -> bool:
        if self._is_gone(self.view.invoked_t(position)):
            return False
        if any(held.earliest_t <= grace.until_t and grace.begun_t <= self.latest_t for grace in self.subscription.graces):
            return False
        newest = self.newest(held.token)
        return earliest_release(self.rules, held, newest) > self.latest_t + self.rules.clock_error_s

    def _dropped_unseen(self, position: int, held: Delivery) -> bool:
        """A run that was lost may have dropped it: all of it, if it was acknowledged; or its beginning, on a stream beside."""
        latest_t = self.latest_t + self.rules.clock_error_s
        if self._may_have_lost(held.earliest_t) and self.view.acked(position, latest_t):
            return True
        return self.subscription.may_have_lost_beside(self.view.invoked_t(position), self.delivery)

    # --- 9: exactly-once delivery --------------------------------------------------------------------------------------------

    def exactly_once(self) -> list[Problem]:
        """A run does not begin with what is provably outstanding; what follows in a run is dragged along."""
        before = self.before
        if not self.rules.exactly_once or before is None or self.position > self.before_position:
            return []
        latest_t = self.latest_t + self.rules.clock_error_s
        for at, held in self.held:
            if at == self.position and earliest_release(self.rules, held) > latest_t and not self._lower_may_come_again(before):
                return [Problem(Kind.EOD_REDELIVERY_WHILE_OUTSTANDING, "", (at,), others=(held,))]
        return []

    def _lower_may_come_again(self, before: Delivery) -> bool:
        """Whether the run may have begun below, with something that was lost on its way, or that left the subscription."""
        if self.rules.dead_letter_max_attempts:
            return True
        return self._may_have_lost(before.earliest_t) and self._lower_may_be_free()

    def _lower_may_be_free(self) -> bool:
        """Whether the hold of something below may be over, an acknowledgement apart; what is not remembered may be free."""
        latest_t = self.latest_t + self.rules.clock_error_s
        lower = [held for at, held in self.held if at < self.position]
        return len(lower) < self.position - 1 or any(earliest_end(self.rules, held) <= latest_t for held in lower)
