"""Redelivery runs, which have to reach the former progress of the key, and messages restored by a seek (docs/model.md, 6.2 and 8.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.excuses import DEAD_LETTER, NO_POLICY, Excuse, doubt_of, none_lost, ruled_out, unacknowledged
from prober.core.facts import Delivery, lease_until
from prober.core.log import ACK_CONFIRMED, ACKED, PRIMARY, REMOVED, UNPLACED
from prober.core.names import words_for
from prober.core.sought import Seek

if TYPE_CHECKING:
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane

RECENT_KEPT: Final = 64
"""Number of remembered deliveries of a region, starting with those that may have been sent after the first redelivery."""

LOST: Final = "a stream broke or a pull was lost since the run began, and what is missing had been acknowledged before"
RACING: Final = "what is missing was first delivered out of order, so its place is not known"


class Run(NamedTuple):
    """A redelivery that reached `reached`, and has to reach `target`.

    number      the delivery that started it, 0 for a seek.
    began_t     the earliest possible time of its first send.
    since_t     from when on it is pending, independent of later deliveries.
    """

    lane: Lane
    number: int
    began_t: float
    reached: int
    target: int
    since_t: float = LONG_AGO


class Ending(NamedTuple):
    """A run, and the time up to which it was observed."""

    runs: Runs
    run: Run
    now: float


def _races(case: Ending) -> str:
    log, run = case.run.lane.log, case.run
    both = log.flagged(run.reached, PRIMARY) and log.flagged(run.target, PRIMARY)
    return RACING if both and log.epoch(run.reached) == log.epoch(run.target) and log.seq(run.reached) > log.seq(run.target) else ""


ENDINGS: Final[tuple[Excuse[Ending], ...]] = (
    Excuse(lambda case: DEAD_LETTER if case.runs.dead_letters() else "", lambda _: NO_POLICY),
    Excuse(_races, lambda _: "not first delivered out of order: the places of both ends of the run are known"),
    Excuse(
        lambda case: case.runs.lost_acked(case.run, case.now),
        lambda case: case.runs.not_lost(case.run, case.now),
    ),
)
"""Excuses of a run that ends before its target."""


class Runs:
    """The last deliveries of one key by region since a redelivery, and the messages that a seek restored, by id with their places."""

    __slots__ = ("_key", "_number", "_sought_t", "recent", "restored")

    def __init__(self, key: KeyChecker) -> None:
        self._key = key
        self.recent: dict[Lane, deque[Delivery]] = {}
        self.restored: dict[int, tuple[Lane, int]] = {}
        self._sought_t, self._number = LONG_AGO, 0

    # --- what happens --------------------------------------------------------------------------------------------------------

    def delivered(self, one: Delivery, lane: Lane | None) -> None:
        """Note a delivery; `lane` is None if it has no place in the record."""
        if self.restored:
            self.restored.pop(one.token, None)
        if lane is None:
            return
        recent = self.recent.get(lane)
        if one.position == lane.log.frontier and self._key.subscription.has_one_stream and one.session.closed_t == inf:
            if recent is not None:
                del self.recent[lane]  # the key has reached its former progress
            return
        if recent is not None:
            recent.append(one)
        elif not one.first:
            before = sorted((other for other in (*lane.window, *lane.waiting) if other is not one), key=lambda other: other.number)
            self.recent[lane] = deque((*before, one), maxlen=RECENT_KEPT)

    def gone(self, token: int) -> None:
        """Note that a message left the subscription, or was acknowledged."""
        self.restored.pop(token, None)

    def clear(self) -> None:
        """Forget the runs at a control operation or a hole in the record."""
        self.recent.clear()
        self.restored.clear()

    def sought(self, seek: Seek) -> None:
        """Note a seek back: messages published since its time are to be redelivered."""
        self._sought_t, self._number, rules = seek.sought_t, seek.number, self._key.rules
        for lane in self._key.lanes.values():
            log = lane.log
            for position in range(log.floor + 1, log.frontier + 1):
                if seek.brings(log, position, rules) and self._must_come(lane, position):
                    self.restored[log.tokens[position - log.floor - 1]] = lane, position

    # --- what is missing -----------------------------------------------------------------------------------------------------

    def unfinished(self, excused_t: float) -> Iterator[Run]:
        """Yield the runs that did not reach their target; deliveries up to `excused_t` start none."""
        for lane, recent in [each for each in self.recent.items() if not each[0].waiting]:
            target = self._target(lane)
            begun = next((one for one in reversed(recent) if self._stops_short(lane, one, target)), None)
            if begun is None:
                del self.recent[lane]
            elif begun.t > excused_t and self._key.subscription.grace_of(begun) is None:
                yield Run(lane, begun.number, begun.earliest_t, begun.position, target)

    def not_brought_back(self) -> Iterator[Run]:
        """Yield messages that a seek restored and that were not delivered, as a run to the last of them."""
        if self._key.rules.filtered:
            return
        last: dict[Lane, int] = {}
        for lane, position in self.restored.values():
            if lane.log.holds(position):
                last[lane] = max(position, last.get(lane, 0))
        for lane, position in last.items():
            since_t = max(self._key.collector.grace_until_t, self._leased_until(lane))
            yield Run(lane, self._number, self._sought_t, position - 1, position, since_t)

    def _leased_until(self, lane: Lane) -> float:
        """Return until when a client may hold a message that a seek restored."""
        held = (self._key.newest(token) for token, (other, _) in self.restored.items() if other is lane)
        return max((lease_until(self._key.rules, one) for one in held if one is not None), default=LONG_AGO)

    def has_pending(self, excused_t: float) -> bool:
        """Return whether a delivery of a run is provably pending."""
        return any(not self.doubt_of(run, inf) for run in (*self.unfinished(excused_t), *self.not_brought_back()))

    def doubt_of(self, run: Run, now: float) -> str:
        """Return why a run may legally end before its target, empty if it may not."""
        return doubt_of(ENDINGS, Ending(self, run, now))

    def ruled_out(self, run: Run, now: float) -> tuple[str, ...]:
        """Return the facts that exclude a legal end of a run."""
        return ruled_out(ENDINGS, Ending(self, run, now))

    def dead_letters(self) -> bool:
        """Return whether the subscription has a dead-letter policy."""
        return self._key.rules.dead_letter_max_attempts > 0

    def lost_acked(self, run: Run, now: float) -> str:
        """State why the acknowledged rest of a run may have been lost."""
        missing = (one for one in range(run.reached + 1, run.target + 1) if self._must_come(run.lane, one))
        acked = all(run.lane.log.flagged(one, ACKED) for one in missing)
        return LOST if acked and self._key.subscription.may_have_lost(run.began_t, now) else ""

    def not_lost(self, run: Run, now: float) -> str:
        """State the fact that excludes the loss of the rest of a run."""
        log = run.lane.log
        unacked = (
            one for one in range(run.reached + 1, run.target + 1) if self._must_come(run.lane, one) and not log.flagged(one, ACKED)
        )
        first = next(unacked, 0)
        if first:
            what = words_for(self._key, log.named(first))
            never = unacknowledged(self._key.subscription, what, log.invoked_t(first), inf)
            return f"not acknowledged: {never}, so it has to be redelivered"
        return none_lost(self._key.rules, run.began_t, now)

    def _target(self, lane: Lane) -> int:
        """Return the highest position that a run has to reach."""
        target = lane.log.frontier
        while target > lane.log.floor and not self._must_come(lane, target):
            target -= 1
        return target

    def _must_come(self, lane: Lane, position: int) -> bool:
        confirmed = ACK_CONFIRMED if self._key.rules.exactly_once else 0
        if lane.log.flagged(position, REMOVED | UNPLACED | confirmed):
            return False
        passed_over = self._key.subscription.graces and self._key.subscription.control_since(lane.log.invoked_t(position))
        return not passed_over or lane.log.stays(position)

    def _stops_short(self, lane: Lane, one: Delivery, target: int) -> bool:
        """Return whether a delivery was a redelivery, and no delivery that may have been sent after it reached the target."""
        log, position = lane.log, one.position
        if not position or log.number(position) == one.number or not log.holds(target) or log.number(target) > one.number:
            return False
        if log.high(position) >= target:
            return False
        recent, sent_t = self.recent[lane], one.earliest_t - self._key.rules.clock_error_s
        if len(recent) == RECENT_KEPT and recent[0].t >= sent_t:
            return False
        return not any(
            other.number > one.number if other.session is one.session else other.t >= sent_t
            for other in recent
            if other.position >= target or not other.position
        )
