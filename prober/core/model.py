"""The rules of a legal service: docs/model.md in code. The numbers in this file are its sections.

Other modules state the sections about deadlines (8: `clocks`, `liveness`, `runs`), incomplete records (10: `log`, `accepted`,
`subscription`), several subscriptions (12: `divergence`) and streams without recorded publishes (13: `unrecorded`).

A `Send` is one delivery with the state before it. Each rule returns the problems that it detects: a problem with a `doubt` depends on
an unrecorded event, a problem without cannot be explained. A legal send has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from prober.core.excuses import CONFIRMED_AHEAD, GRACE, doubt_of, ruled_out
from prober.core.facts import Delivery, Ends, ends_of
from prober.core.findings import Kind
from prober.core.hold_excuses import AGAIN, DEAD_LETTERED, DROPPED, HANDOVER, PUSHED, SETTLED, Again, Holding, not_released
from prober.core.rules import Mode, Rules
from prober.core.send_excuses import (
    ABSENCE,
    EXPIRY,
    FILTER,
    PASSED_EXPIRY,
    PASSED_OVER,
    Absent,
    Passed,
    no_restart,
    passed_by_control,
    stored_before,
)
from prober.core.state import held_below

if TYPE_CHECKING:
    from prober.core.key import KeyChecker
    from prober.core.log import Log
    from prober.core.publications import Publication
    from prober.core.search_view import SearchView
    from prober.core.subscription import Subscription

    View: TypeAlias = Log | SearchView

HELD_MAX: Final = 16
"""Number of held deliveries in a problem, the lowest ones: one is enough to prove it, and a subscriber may hold thousands."""
OVERLAP: Final = {Mode.STREAMING: Kind.AFFINITY_SPLIT, Mode.PULL: Kind.PULL_OVERLAP, Mode.PUSH: Kind.PUSH_OVERLAP}


def _nothing() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why a send is not legal without an assumption.

    doubt       the possible explanation; empty if there is none.
    positions   the affected records: those skipped, or held.
    publications    the missing publications.
    others      the affected deliveries: the one before, those held.
    alternatives    returns the excluded explanations, each with the fact that excludes it.
    besides     further assumptions, or facts that rule an explanation out, of the whole order of sends.
    """

    kind: Kind
    doubt: str = ""
    positions: tuple[int, ...] = ()
    publications: tuple[Publication, ...] = ()
    others: tuple[Delivery, ...] = ()
    alternatives: Callable[[], tuple[str, ...]] = field(default=_nothing, compare=False, repr=False)
    besides: tuple[str, ...] = field(default=(), compare=False)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The assumptions of the best explanation, the doubt first; without an explanation, the facts that rule each alternative out."""
        if not self.doubt:
            return *self.alternatives(), *self.besides
        return self.doubt, *(one for one in self.besides if one != self.doubt)


@dataclass(slots=True)
class Send:
    """The next send: a delivery with the state before it.

    view        the log before it, from the viewpoint of the order of arrival or of a searched order.
    position    of its record; if that is new, the next one.
    before      the send before it in its region, if that is known.
    held        deliveries that may be held, the highest position first.
    missing     publications that must precede it in the log and do not.
    latest_t    the latest possible time of the send; `by_t` adds the clock error.
    key         the checker of the key.
    stands_behind_missing   whether its record is known and an earlier message in the log was not received.
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
    key: KeyChecker
    stands_behind_missing: bool = False
    rules: Rules = field(init=False)
    by_t: float = field(init=False)

    def __post_init__(self) -> None:
        self.rules = self.subscription.rules
        self.by_t = self.latest_t + self.rules.clock_error_s

    def problems(self) -> list[Problem]:
        """Return all problems of the send."""
        return self._settled([*self.order(), *self.step(), *self.holder(), *self.exactly_once()])

    def alone(self) -> list[Problem]:
        """Return the problems that do not depend on other sends."""
        return self._settled(self.exactly_once())

    def missing_only(self) -> list[Problem]:
        """Return the problems in any order of sends that lacks only `missing`."""
        return self._settled(self.order())

    def _settled(self, found: list[Problem]) -> list[Problem]:
        """Return the problems, all in doubt if a control operation had not settled."""
        grace = self.subscription.grace_of(self.delivery)
        if grace is None:
            return found
        return [replace(one, doubt=GRACE.format(grace.cause)) for one in found]

    # --- 4: order ------------------------------------------------------------------------------------------------------------

    def order(self) -> list[Problem]:
        """L3 and L4: report confirmed messages that are missing although they must precede this send."""
        absent = [self._absent(one) for one in self.missing]
        doubts = {case: doubt_of(ABSENCE, case) for case in absent}
        breaches = tuple(case.missing for case, doubt in doubts.items() if not doubt)
        if breaches:
            return [Problem(Kind.ORDER_GAP, "", publications=breaches, alternatives=partial(self._not_absent, breaches[0]))]
        counted: dict[str, tuple[Publication, ...]] = {}
        for case, doubt in doubts.items():
            if self._is_counted(case):
                counted[doubt] = *counted.get(doubt, ()), case.missing
        return [Problem(Kind.ORDER_GAP, doubt, publications=missing) for doubt, missing in counted.items()]

    def _absent(self, missing: Publication) -> Absent:
        return Absent(self.key, missing, self.delivery, self.delivery.t, self.by_t)

    def _not_absent(self, missing: Publication) -> tuple[str, ...]:
        return *stored_before(self.key, missing, self.delivery), *ruled_out(ABSENCE, self._absent(missing))

    def _is_counted(self, case: Absent) -> bool:
        """Return whether a doubt deserves a finding: an expired or filtered message is simply not in the log."""
        return not FILTER.doubt(case) and not EXPIRY.doubt(case)

    # --- 6.2: the step -------------------------------------------------------------------------------------------------------

    def step(self) -> list[Problem]:
        """6.2: report a send more than one position above the send before it."""
        before = self.before
        if before is None or self._may_stand_elsewhere() or not self.rules.redelivery_promised:
            return []
        inside = self.rules.mode is Mode.PULL and before.session is self.delivery.session
        if inside and self.position <= self.before_position and not before.bound:
            same_group = self.view.high(self.position) > self.view.low(self.before_position)
            return [] if same_group else [Problem(Kind.PULL_BATCH_ORDER, others=(before,), alternatives=self._not_back)]
        lowest, highest = self.view.low(self.position), self.view.high(self.before_position)
        if lowest <= highest + 1:
            return []
        positions = tuple(self.view.skipped(highest, lowest))
        if self.rules.message_retention_s < inf:
            positions = tuple(one for one in positions if not PASSED_EXPIRY.doubt(Passed(self, one, before, inside)))
        kind, counted = Kind.PULL_BATCH_ORDER if inside else Kind.REDELIVERY_SKIP, ""
        for position in positions:
            case = Passed(self, position, before, inside)
            doubt = passed_by_control(case) or doubt_of(PASSED_OVER, case)
            if not doubt:
                return [Problem(kind, "", positions, others=(before,), alternatives=partial(self._not_passed, case))]
            if doubt != CONFIRMED_AHEAD:
                counted = counted or doubt
        return [Problem(kind, counted, positions, others=(before,))] if counted else []

    def _not_passed(self, case: Passed) -> tuple[str, ...]:
        return no_restart(case), *ruled_out(PASSED_OVER, case), PASSED_EXPIRY.fact(case)

    def _not_back(self) -> tuple[str, ...]:
        return (f"not a restart of the redelivery: pull response {self.delivery.session.name} had not ended",)

    def _may_stand_elsewhere(self) -> bool:
        """10: return whether its place in the log is unknown; in a grace period everything is in doubt anyway."""
        return self.delivery.unplaced and self.subscription.grace_of(self.delivery) is None

    def may_have_lost(self, since_t: float) -> bool:
        """6.3: return whether messages sent since a time may have been lost before this send."""
        return self.subscription.may_have_lost(since_t, self.latest_t, self.delivery.session)

    def may_have_handed_over(self, held: Delivery) -> bool:
        """7.4: return whether a newer stream took over the held message, and ended before this send."""
        return self.subscription.may_have_handed_over(held, self.delivery.session, self.by_t)

    # --- 7: holders ----------------------------------------------------------------------------------------------------------

    def holder(self) -> list[Problem]:
        """Report lower messages that another owner provably holds.

        Those below an earlier delivery to its own owner belong to the violation of that delivery.
        """
        if self._may_stand_elsewhere() or not self.rules.redelivery_promised:
            return []
        from_top = list(held_below(self.held, self.delivery.owner, self.position))
        below = (one for one in reversed(from_top) if self._matters(*one))
        if self.rules.mode is Mode.PUSH:
            return self._push([Holding(self, *one) for one in below][::-1])
        held = (Holding(self, *one) for one in below if not self.may_be_released(one[1]))
        certain = list(islice((case for case in held if not (SETTLED.doubt(case) or doubt_of(DROPPED, case))), HELD_MAX))[::-1]
        if not certain:
            return []
        doubt = DEAD_LETTERED.doubt(certain[0])  # the held message need not be part of the run that released it
        return [self._overlap(OVERLAP[self.rules.mode], certain, doubt, partial(self._not_free, self._shown(certain)))]

    def _push(self, below: Sequence[Holding]) -> list[Problem]:
        """7.3: report a push request past a message without a success."""
        found: dict[Kind, list[Holding]] = {}
        for case in below:
            if not doubt_of(PUSHED, case):
                found.setdefault(Kind.PUSH_ADVANCE_PAST_NACK if self.may_be_released(case.held) else Kind.PUSH_OVERLAP, []).append(
                    case
                )
        return [self._overlap(kind, cases, "", partial(self._not_done, kind, self._shown(cases))) for kind, cases in found.items()]

    def _shown(self, cases: Sequence[Holding]) -> Holding:
        """Return the case shown in a finding: one received before the send, if there is any."""
        return next((case for case in cases if case.held.number < self.delivery.number), cases[0])

    def _overlap(self, kind: Kind, cases: Sequence[Holding], doubt: str, alternatives: Callable[[], tuple[str, ...]]) -> Problem:
        positions, others = tuple(case.position for case in cases), tuple(case.held for case in cases)
        return Problem(kind, doubt, positions, others=others, alternatives=alternatives)

    def _not_free(self, case: Holding) -> tuple[str, ...]:
        return *not_released(case), SETTLED.fact(case), *ruled_out(DROPPED, case), DEAD_LETTERED.fact(case)

    def _not_done(self, kind: Kind, case: Holding) -> tuple[str, ...]:
        if kind is not Kind.PUSH_OVERLAP:
            return ruled_out(PUSHED, case)
        return *ruled_out(PUSHED, case), *not_released(case)

    def may_be_released(self, held: Delivery) -> bool:
        """7.4: return whether anything but a redelivery may have ended a hold."""
        return min(ends_of(self.rules, held, self.key.newest(held.token))) <= self.by_t

    def _matters(self, position: int, held: Delivery) -> bool:
        known = self.view.holds(position) and not self.view.is_open(position, self.position)
        return known and held.owner is not None and self.delivery.owner is not None

    # --- 9: exactly-once delivery --------------------------------------------------------------------------------------------

    def exactly_once(self) -> list[Problem]:
        """Report a run that starts with a provably outstanding message; later messages of the run follow it."""
        before = self.before
        if not self.rules.exactly_once or before is None or self.position > self.before_position:
            return []
        if self.view.is_open(self.position, self.before_position):
            return []
        for position, held in self.held:
            if position != self.position or min(ends := ends_of(self.rules, held)) <= self.by_t:
                continue
            case = Holding(self, position, held)
            if not (HANDOVER.doubt(case) or doubt_of(AGAIN, Again(self, before))):
                again = partial(self._not_again, case, ends, before)
                return [Problem(Kind.EOD_REDELIVERY_WHILE_OUTSTANDING, "", (position,), others=(held,), alternatives=again)]
        return []

    def _not_again(self, case: Holding, ends: Ends, before: Delivery) -> tuple[str, ...]:
        return *not_released(case, ends), *ruled_out((HANDOVER,), case), *ruled_out(AGAIN, Again(self, before))
