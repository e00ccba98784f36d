"""What may explain a violation of the one-holder rule, and those that are on hold until it no longer can.

*Answers under way* (`Acknowledgements`). A client cannot see when an acknowledgement or refusal is applied: at the latest `ack_lag_max_s`
after it was sent. It ends a hold of its own message only, but of any delivery of it: one that is applied late ends the hold of a later
delivery.

*Beginnings anew* (`Break`). A delivery takes up to Delta from the service to the recorder. So one that arrives while another subscriber
holds the key may have been sent before that one's run began: the key was let go in between, unseen by any client. It was if

* the run is a repetition that began at the delivery's position or below: what was sent before is dropped then, whatever it was;
* everything below the delivery had been received before that run began, else it would have been a skip, and acknowledged where the
  service pushes: it sends nothing of a region past a request that was not answered so;
* nothing below it was certainly held elsewhere just before that run began: then it was no split either.

On the streams of one subscriber a run goes on from what came on any of them.

*Beginnings that nobody saw.* Of another subscriber with several streams one may break and take with it that the key began again there,
so that what is held was dropped: then the rest of that run comes on another one of its streams. What was lost before and comes at last
(`overtakings`) is a beginning as well, though it is learned last.

*What shows later* (`Splits`). What was seen of a split may look otherwise a little later: a stream concerned turns out to have been dead, a
rewind that was sent before arrives, an answer whose recorder's clock is behind. Then what was held was not held, or not certainly; a split
of which nothing held is left is filed as indeterminate. So is one that is on hold when a record stops that was not waited for. A rewind to
what is held excuses nothing if it brings it to a third subscriber: that one held it then. With exactly-once delivery it excuses nothing
wherever it brings it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final, NamedTuple

from prober.core.collector import FindingsCollector
from prober.core.events import LONG_AGO
from prober.core.findings import Facts, Kind
from prober.core.order import OrderCheck
from prober.core.places import certainly_before, precedes, was_sent_beside
from prober.core.positions import ACKED, OLDER, REFUSED, REMOVED, STAYED, LearnedLog
from prober.core.rules import Mode, Rules
from prober.core.sessions import Arrival, Session, Tracks
from prober.core.subscription import Subscription

BROKEN: Final = "one of the streams broke soon after, and may have been dead already"
REWOUND: Final = "a rewind or an answer that was recorded later may have ended what was held"
LEFT_OUT: Final = "the key may have begun again on a stream that was lost, without what is held, which had been acknowledged before"
RESET: Final = "{} may have released what was held"

SPLITS_MAX: Final = 256
"""Violations on hold per key; beyond that the oldest is decided at once."""
BREAKS_KEPT: Final = 8
"""Breaks remembered per key; beyond that the two oldest become one that explains what either explains."""
ANSWERS_KEPT: Final = 64
"""Answers remembered one by one; all that are older are taken to have been sent when the latest of those was."""


class Certain(NamedTuple):
    """One message that a subscriber certainly holds.

    `in_order`: its place and that of the delivery are certain, and a run from it must bring it again, so that below means something.
    `overtook_t`: the delivery that is judged may have been sent before this one, which came then; long ago if not.
    `left_out_t`: it had been acknowledged before, so a run that began at it elsewhere after that time, on a stream that was lost, need
    not bring it again; inf if it had not. `again_below_t`: with exactly-once delivery, since when something below it may have been sent
    again unseen; inf if that cannot be.
    """

    position: int
    number: int
    session: Session
    in_order: bool = True
    overtook_t: float = LONG_AGO
    left_out_t: float = inf
    again_below_t: float = inf


def overtook_t(rules: Rules, t: float, arrival: Arrival) -> float:
    """When what is held came, if it may have been sent after a delivery."""
    return t if arrival.lo - rules.clock_error_s <= t else LONG_AGO


class Split(NamedTuple):
    """A violation on hold: of `kind`, if what is `held` was held indeed when `position` was delivered on `session`.

    `moved`: the key moved there, from one stream to another, which is counted when it is decided what was held.
    `begun_by_none`: where no run can have begun by then: with exactly-once delivery, what this session certainly held.
    """

    kind: Kind
    due_t: float
    t: float
    position: int
    session: Session
    held: tuple[Certain, ...]
    witnesses: tuple[int, ...]
    facts: Facts
    moved: bool = False
    begun_by_none: frozenset[int] = frozenset()


class Splits:
    """The violations on hold of one key; `pending`: the one that is due first comes first."""

    __slots__ = ("_collector", "_log", "_orders", "_subscription", "pending")

    def __init__(self, collector: FindingsCollector, log: LearnedLog, orders: OrderCheck, subscription: Subscription) -> None:
        self._collector = collector
        self._log = log
        self._orders = orders
        self._subscription = subscription
        self.pending: tuple[Split, ...] = ()

    def put_on_hold(self, split: Split) -> None:
        """Notes a violation that may yet be explained."""
        waiting = [*self.pending, split]
        waiting.sort(key=lambda one: one.due_t)
        if len(waiting) > SPLITS_MAX:
            self._decide(waiting.pop(0))
        self.pending = tuple(waiting)

    def explain(self, arrival: Arrival) -> None:
        """A rewind that was sent before a split, and arrives after it, had dropped what was held at or above it."""
        sent_t = arrival.lo - self._collector.rules.clock_error_s
        self.pending = tuple(
            split._replace(held=tuple(self._still_held(arrival, sent_t, split)))
            if sent_t <= split.t and arrival.position not in split.begun_by_none
            else split
            for split in self.pending
        )

    def _still_held(self, arrival: Arrival, sent_t: float, split: Split) -> Iterator[Certain]:
        """What was held whether a delivery was sent before the split or after it."""
        for held in split.held:
            if not self._may_drop(arrival, sent_t, held, split):
                yield held
            elif self._takes_over(arrival, held, split):
                yield held._replace(number=arrival.number, session=arrival.track.session)

    def _takes_over(self, arrival: Arrival, held: Certain, split: Split) -> bool:
        """Whether a message was held by whom a rewind brought it to, if not by whom it was taken from.

        It was if the rewind begins with it, at another subscriber than that of the split: no answer was under way that could have ended
        that hold before the split, or the other would not have been certain, and its lease was over later than that of the other.
        """
        session, clocks_agree = arrival.track.session, not self._collector.rules.clock_error_s
        elsewhere = session.subscriber != split.session.subscriber and not session.unseen
        return arrival.position == held.position < split.position and elsewhere and clocks_agree

    def _may_drop(self, arrival: Arrival, sent_t: float, held: Certain, split: Split) -> bool:
        """Whether a delivery is a rewind to what is held or perhaps below, or the other copy of it, which may be the first.

        On the session of the split it was sent after that, but perhaps before what is held. With exactly-once delivery one more delivery
        of what is held must not come either, whichever of them was sent first.
        """
        if held.number == arrival.number:
            return False
        if split.kind is Kind.EOD_REDELIVERY_WHILE_OUTSTANDING and arrival.position == held.position and not arrival.copies_id:
            return False
        if arrival.track.session is split.session and (held.overtook_t < sent_t or arrival.track.session is held.session):
            return False
        known = self._log.holds(held.position)
        copied = arrival.copies_id and (not known or self._log.token(held.position) == arrival.token)
        begins = not arrival.new and arrival.position != arrival.own + 1  # what goes on with a run dropped nothing
        begins = begins or was_sent_beside(self._log, arrival.position)  # and so does what was lost before, and comes at last
        again_below = begins and not precedes(self._orders, self._log, held.position, arrival.position)
        return copied or held.position >= arrival.position or again_below

    def lets_go(self, session: str, positions: list[int], t: float) -> None:
        """An answer whose recorder's clock may be behind: what it let go was perhaps not held any more when a split was seen.

        That is so of any delivery of the message: one that was sent before may be applied to it. No `positions` stand for a message
        that has left the window: it may be any of those.
        """
        eps = self._collector.rules.clock_error_s
        self.pending = tuple(
            split._replace(held=tuple(held for held in split.held if not self._names(positions, held)))
            if t <= split.t + eps and session != split.session.name  # one recorder's order is certain
            else split
            for split in self.pending
        )

    def _names(self, positions: list[int], held: Certain) -> bool:
        return held.position in positions if positions else held.position <= self._log.floor

    def settle(self, now: float) -> None:
        """Decides what is on hold and whose time has passed."""
        while self.pending and (self.pending[0].due_t < now or now == inf):
            split, *rest = self.pending
            self.pending = tuple(rest)
            self._decide(split)

    def reset(self) -> None:
        """A control operation may have released what was held."""
        for split in self.pending:
            self._file(split, RESET.format(self._collector.grace_cause))
        self.pending = ()

    def _decide(self, split: Split) -> None:
        """Files a violation whose time is over; a stream concerned that broke meanwhile may have been dead already."""
        rules = self._collector.rules
        streaming = rules.mode is Mode.STREAMING
        alive_t = split.t + rules.close_detection_max_s + rules.clock_error_s if streaming else LONG_AGO
        first = [held for held in split.held if not self._may_have_begun_beside(held, split)]
        kept = [held for held in first if not self._subscription.may_have_lost(held.left_out_t, split.t)]
        alive = [held for held in kept if held.session is split.session or self._is_alive(held.session, alive_t, split.due_t)]
        same = bool(alive) and all(held.session is split.session for held in alive)
        proven = bool(alive) and (same or split.session.closed_t > alive_t)
        broken = kept or len(first) < len(split.held)
        self._file(split, "" if proven else BROKEN if broken else LEFT_OUT if split.held else REWOUND)

    def _may_have_begun_beside(self, held: Certain, split: Split) -> bool:
        """Whether the key may have begun again at what is held, or below, on a stream that took that with it when it broke.

        It did so beside the stream of the split, and at another subscriber than what is held; with exactly-once delivery only where
        something below had been released.
        """
        parted, source = self._subscription.parted, split.session.source
        if split.kind is Kind.EOD_REDELIVERY_WHILE_OUTSTANDING:
            return held.again_below_t < inf and parted.may_have_taken(held.again_below_t, source, split.t, split.t)
        if not self._log.holds(held.position):
            return False
        return parted.may_have_taken(self._log.invoked_t(held.position), source, split.t, split.t)

    def _file(self, split: Split, doubt: str) -> None:
        counts = self._collector.counts
        certain = self._collector.violation(split.kind, split.t, split.witnesses, split.facts, doubt)
        counts.affinity_moves_outstanding_yes += split.moved and certain
        counts.affinity_moves_outstanding_unknown += split.moved and not certain

    def _is_alive(self, session: Session, alive_t: float, due_t: float) -> bool:
        return session.closed_t > alive_t and not self._subscription.went_with_another(session, due_t)


class Break:
    """The service began again at `position` on a session, seen at `t`, when the log was known up to `frontier`.

    It did so with a redelivery that does not continue the run of its own session. `held`: the lowest position that each subscriber
    certainly held just before. `unanswered`: where the service pushes, the lowest position from there on that nobody had acknowledged,
    0 if there is none or if that is not known: it sends one message at a time, so what follows that in order had not been sent.
    """

    __slots__ = ("frontier", "held", "position", "session", "t", "unanswered")

    def __init__(
        self, t: float, session: str, position: int, frontier: int, held: tuple[tuple[int, str], ...], unanswered: int = 0
    ) -> None:
        self.t = t
        self.session = session
        self.position = position
        self.frontier = frontier
        self.held = held
        self.unanswered = unanswered

    def explains(self, arrival: Arrival, sent_t: float, orders: OrderCheck, log: LearnedLog) -> bool:
        """Whether a delivery, sent at `sent_t` or later, may have been sent before the break."""
        position, session = arrival.position, arrival.track.session
        if self.t < sent_t or self.session == session.name or not self.position <= position <= self.frontier + 1:
            return False
        if self.unanswered < position and log.holds(self.unanswered) and certainly_before(orders, log, self.unanswered, arrival):
            return False
        return not any(held < position and holder != session.subscriber for held, holder in self.held)

    def join(self, other: Break) -> Break:
        """One that explains whatever either does, and perhaps more."""
        return Break(max(self.t, other.t), "", min(self.position, other.position), max(self.frontier, other.frontier), ())


def with_break(
    kept: tuple[Break, ...], arrival: Arrival, tracks: Tracks, log: LearnedLog, collector: FindingsCollector
) -> tuple[Break, ...]:
    """The breaks of a key when a redelivery begins a run; those of long before explain nothing any more."""
    oldest_t = arrival.t - 3 * (collector.rules.delivery_delay_max_s + collector.rules.clock_error_s)
    lowest = ((track.lowest_held(arrival.t, log.floor), track.session.subscriber) for track in tracks)
    held = tuple((position, subscriber) for position, subscriber in lowest if position)
    session, unanswered = arrival.track.session.name, _unanswered(arrival.position, log, collector)
    kept = (
        *(one for one in kept if one.t >= oldest_t),
        Break(arrival.t, session, arrival.position, log.frontier, held, unanswered),
    )
    return kept if len(kept) <= BREAKS_KEPT else (kept[0].join(kept[1]), *kept[2:])


def _unanswered(begun: int, log: LearnedLog, collector: FindingsCollector) -> int:
    """The lowest position from where a run began that nobody had acknowledged then, and that nothing else can have ended."""
    rules = collector.rules
    if rules.mode is not Mode.PUSH or rules.clock_error_s or rules.dead_letter_max_attempts:
        return 0
    if not rules.subscription_predates_first_publish:
        return 0  # what was acknowledged before deliveries were recorded is not known
    waiting = (one for one in log.between(begun - 1, log.frontier + 1) if not log.flags(one) & (ACKED | OLDER))
    return next((one for one in waiting if log.flags(one) & STAYED or log.invoked_t(one) > collector.grace_until_t), 0)


class Acknowledgements:
    """When each message of a key was last acknowledged or refused: the latest exactly, others rather too late than too early."""

    __slots__ = ("_forgotten_t", "_latest", "_log", "_rules")

    def __init__(self, log: LearnedLog, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        self._latest: dict[int, float] | None = None
        self._forgotten_t = LONG_AGO

    def sent(self, position: int, t: float) -> None:
        """An answer for the position is on its way."""
        latest = self._latest
        if latest is None:
            latest = self._latest = {}
        if position in latest:
            del latest[position]
        latest[position] = t
        if len(latest) > ANSWERS_KEPT:
            self._forgotten_t = latest.pop(next(iter(latest)))

    def may_end(self, position: int, sent_t: float) -> bool:
        """Whether one of them may be applied after `sent_t`, and end a hold of the position that began then."""
        if not self._log.flags(position) & (ACKED | REFUSED):
            return False
        return self.latest_t(position) + self._rules.ack_lag_max_s + self._rules.clock_error_s >= sent_t

    def may_have_ended(self, position: int, sent_t: float, number: int) -> bool:
        """The same, of a hold that was over before event `number`: none was, of a message that first came later by the same clock."""
        older = self._log.flags(position) & OLDER  # and perhaps received before the record
        known = not older and not self._rules.clock_error_s
        return self.may_end(position, sent_t) and not (known and self._log.number(position) >= number)

    def all_known(self, position: int) -> bool:
        """Whether nothing else can have ended the message: it was not received before the record, and has not left the subscription."""
        return not self._log.flags(position) & (OLDER | REMOVED)

    def all_sent_since(self, positions: tuple[int, ...], t: float) -> bool:
        """Whether all of these were answered after `t`, or may have been."""
        return bool(positions) and all(self.latest_t(position) > t for position in positions)

    def latest_t(self, position: int) -> float:
        """When the position was answered last, long ago if it never was; later than that, perhaps, if it is forgotten."""
        return self._forgotten_t if self._latest is None else self._latest.get(position, self._forgotten_t)

    def rest(self) -> None:
        """Gives the memory back."""
        if self._latest:
            self._forgotten_t = max(self._forgotten_t, *self._latest.values())
        self._latest = None
