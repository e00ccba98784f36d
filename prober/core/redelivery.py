"""Promise 2: when a message is redelivered, all later messages of its key are redelivered too, acknowledged or not.

The step rule: *the next message sent is the next one in the log, or an earlier one; never a later one.* With learned positions, the
send order p1, p2, ... is legal iff every p[i+1] <= p[i] + 1. A rewind may happen at any time, to any position, also to an acknowledged
one (its acknowledgement may have been lost); what may not happen is a skip, and leaving out acknowledged messages is one.

    REDELIVERY_SKIP         a position was passed over: no possible predecessor of this delivery stands right before it.
    PULL_BATCH_ORDER        inside one PullResponse the positions are not consecutive.
    PUSH_ADVANCE_PAST_NACK  after a failed push request of p the next request is above p (nothing else can be in flight).

The order of arrival is the order of sending on one session only. When several sessions deliver a key, a delivery may have been sent
after any of several others: its *possible predecessors* are those that were not certainly followed by something that certainly came
before it. And a copy sent in between may arrive up to Delta later on another session, so a skip is then held for Delta and becomes
indeterminate if such a copy turns up. With one open session there is one predecessor and no hold.

Also here: what a rewind obliges the service to (everything up to the frontier of that moment), judged in `liveness`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from prober.core.docket import SEQS_SHOWN, Docket
from prober.core.events import LONG_AGO
from prober.core.findings import Facts, Kind
from prober.core.positions import ACKED, REMOVED, LearnedLog
from prober.core.rules import Mode
from prober.core.sessions import ANCIENT, Arrival, Session, Span, Track

DEAD_LETTER = "the dead-letter policy may have removed what is missing"
COPY = "a copy that arrived later on another session may have been sent in between"
SOUGHT = "a seek may have passed over what is missing"
ACKED_BEFORE = "an acknowledgement was sent for it, which may have been applied"

PAST_MAX = 16
HELD_MAX = 256
"""Skips held per key; beyond that the oldest are filed as indeterminate."""


class Predecessors(NamedTuple):
    """What may have been sent immediately before a delivery: the highest position among it, and which event delivered that."""

    position: int
    number: int


NONE = Predecessors(0, 0)


class Skip(NamedTuple):
    """A skip on hold: a copy of the position before `position`, or a later one, may still turn up on another session."""

    due_t: float
    t: float
    position: int
    session: Session
    witnesses: tuple[int, ...]
    facts: Facts


class RedeliveryCheck:
    """Judges the send order of one key; see the head of this file."""

    __slots__ = ("_docket", "_log", "_nacked_push", "_past", "held", "sought_frontier")

    def __init__(self, docket: Docket, log: LearnedLog) -> None:
        self._docket = docket
        self._log = log
        self._nacked_push: tuple[int, int] | None = None
        self._past: tuple[Span, ...] = ()
        self.held: tuple[Skip, ...] = ()
        self.sought_frontier = 0

    def judge(self, arrival: Arrival, tracks: Iterable[Track], alone: bool) -> bool:
        """Judges one placed delivery; `alone` when no other open session exists. True when it rewinds the key."""
        if self.held:
            self._explain_held(arrival)
        if self._nacked_push is not None:
            self._judge_push(arrival)
        if arrival.own and self._docket.rules.mode is Mode.PULL:
            self._judge_batch(arrival)
            return False
        before = self._predecessors(arrival, tracks)
        if not before.position:
            return False
        if arrival.position > before.position + 1:
            self._judge_skip(arrival, before, alone)
        return arrival.position <= before.position and not arrival.new

    @property
    def watching(self) -> bool:
        """Whether even the next message in the log on the only session has to be looked at."""
        return bool(self.held or self._past) or self._nacked_push is not None

    def nacked(self, position: int, number: int) -> None:
        """A push request of `position` was refused: the next request must not be above it."""
        self._nacked_push = (position, number)

    def settle(self, now: float) -> None:
        """Files what was held and whose time has passed without an explanation."""
        while self.held and (self.held[0].due_t < now or now == inf):
            skip, *rest = self.held
            self.held = tuple(rest)
            self._docket.violation(Kind.REDELIVERY_SKIP, skip.t, skip.witnesses, skip.facts)

    def remember(self, spans: Iterable[Span]) -> None:
        """Keeps what sessions that are no longer tracked may still be predecessors with.

        Every span counts as a session of its own. One that is neither later nor higher than another can never be the highest
        candidate; and where there are too many, the two oldest become one that is both.
        """
        kept: list[Span] = []
        for span in sorted([*self._past, *spans], key=lambda span: span.last_t):
            while kept and kept[-1].position <= span.position:
                kept.pop()
            kept.append(span)
        while len(kept) > PAST_MAX:
            kept[0] = kept[0]._replace(last_t=kept.pop(1).last_t)
        self._past = tuple(kept)

    def reset(self, frontier: int) -> None:
        """A seek: what was learned so far may be passed over, and nothing can be said about what was on hold."""
        for skip in self.held:
            self._docket.violation(Kind.REDELIVERY_SKIP, skip.t, skip.witnesses, skip.facts, SOUGHT)
        self.held = ()
        self.sought_frontier = frontier
        self.rest()

    def rest(self) -> None:
        """Nothing that was sent so far can be a predecessor any more."""
        self._nacked_push = None
        self._past = ()

    def _predecessors(self, arrival: Arrival, tracks: Iterable[Track]) -> Predecessors:
        """The highest possible predecessor (section 6.2): candidates not certainly followed by what certainly came before."""
        eps = self._docket.rules.clock_error_s
        possible = [track.past(arrival.lo - eps) for track in tracks if track is not arrival.track]
        latest_certain_t = max([past.latest_certain_t for past in possible], default=LONG_AGO)
        latest_certain_t = max([latest_certain_t, *(span.last_t for span in self._past if span.last_t < arrival.lo - eps)])
        if arrival.own:
            latest_certain_t = max(latest_certain_t, arrival.track.last_t)
        followed_t = latest_certain_t - self._docket.rules.delivery_delay_max_s
        candidates = [past.uncertain for past in possible if past.uncertain is not None]
        candidates += [past.certain for past in possible if past.certain is not None and past.certain.last_t >= followed_t - eps]
        candidates += [span for span in self._past if span.last_t >= followed_t - eps]
        best = max(candidates, key=lambda span: span.position, default=None)
        before = NONE if best is None else Predecessors(best.position, best.number)
        if arrival.own > before.position and arrival.track.last_t >= followed_t:
            before = Predecessors(arrival.own, arrival.track.last_number)
        return before

    def _judge_skip(self, arrival: Arrival, before: Predecessors, alone: bool) -> None:
        skipped = self._log.between(before.position, arrival.position)
        if not skipped:
            return
        witnesses = (before.number, *(self._log.number(position) for position in skipped[:5]), arrival.number)
        facts = self._facts(arrival, before.position, skipped)
        doubt = self._doubt(skipped)
        if doubt or alone or arrival.t <= self._docket.amnesty_until_t:
            self._docket.violation(Kind.REDELIVERY_SKIP, arrival.t, witnesses, facts, doubt)
            return
        due_t = arrival.t + self._docket.rules.delivery_delay_max_s
        self.held += (Skip(due_t, arrival.t, arrival.position, arrival.track.session, witnesses, facts),)
        if len(self.held) > HELD_MAX:
            oldest, *rest = self.held
            self.held = tuple(rest)
            self._docket.violation(Kind.REDELIVERY_SKIP, oldest.t, oldest.witnesses, oldest.facts, "too many skips on hold")

    def _explain_held(self, arrival: Arrival) -> None:
        kept = []
        for skip in self.held:
            explains = (
                arrival.track.session is not skip.session
                and arrival.position >= skip.position - 1
                and arrival.lo <= skip.t <= arrival.t
            )
            if explains:
                self._docket.violation(Kind.REDELIVERY_SKIP, skip.t, (*skip.witnesses, arrival.number), skip.facts, COPY)
            else:
                kept.append(skip)
        self.held = tuple(kept)

    def _judge_batch(self, arrival: Arrival) -> None:
        if arrival.own == ANCIENT or arrival.position == arrival.own + 1:
            return
        skipped = self._log.between(arrival.own, arrival.position)
        if arrival.position > arrival.own and not skipped:
            return
        witnesses = (arrival.track.last_number, *(self._log.number(position) for position in skipped[:5]), arrival.number)
        facts = self._facts(arrival, arrival.own, skipped)
        doubt = self._doubt(skipped) if skipped else ""
        self._docket.violation(Kind.PULL_BATCH_ORDER, arrival.t, witnesses, facts, doubt)

    def _judge_push(self, arrival: Arrival) -> None:
        position, number = self._nacked_push or (0, 0)
        self._nacked_push = None
        if arrival.position <= position or not self._log.holds(position):
            return
        flags = self._log.flags(position)
        if flags & REMOVED:
            return
        doubt = ""
        if flags & ACKED:
            doubt = ACKED_BEFORE
        elif self._docket.rules.dead_letter_max_attempts:
            doubt = DEAD_LETTER
        self._docket.violation(
            Kind.PUSH_ADVANCE_PAST_NACK,
            arrival.t,
            (self._log.number(position), number, arrival.number),
            {"seq": arrival.seq, "nacked": self._log.seq(position)},
            doubt,
        )

    def _doubt(self, skipped: list[int]) -> str:
        if skipped[-1] <= self.sought_frontier:
            return SOUGHT
        return DEAD_LETTER if all(self._log.may_be_dead_lettered(position) for position in skipped) else ""

    def _facts(self, arrival: Arrival, after: int, skipped: list[int]) -> Facts:
        after_seq = self._log.seq(after) if self._log.holds(after) else 0
        return {
            "seq": arrival.seq,
            "after": after_seq,
            "skipped": tuple(self._log.seq(position) for position in skipped[:SEQS_SHOWN]),
            "skipped_count": len(skipped),
            "subscriber": arrival.track.session.subscriber,
        }
