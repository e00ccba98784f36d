"""Promise 3: while messages of a key are outstanding, the key stays at one subscriber.

The one-holder rule: *at no instant do two subscribers both hold an outstanding message of a key.* A holder is a streaming subscriber
(one client id, however many streams), one PullResponse, or one push request; so the same rule is "affinity" for streaming pull, "one
outstanding batch" for unary pull and "one outstanding message" for push.

A client cannot see when the service stops counting a message as held: an acknowledgement takes time to be applied, a lease runs out
unseen, a stream dies before its client notices. So the rule is three-valued. A message is *certainly held* when its receipt is
recorded, no acknowledgement or refusal was sent, no later rewind dropped it, its lease certainly runs, and its stream is open and
stays open for Delta_close.

A rewind to r drops only holds at or above r, and the new run starts at or below r. So when a key appears at a new holder at
position q there is no legal explanation if

    something below q is certainly held elsewhere, or something is certainly held and q is above everything that may have been
    released by now (refused, lease possibly over, delivered on a broken stream).

    AFFINITY_SPLIT / PULL_OVERLAP / PUSH_OVERLAP   violation in these two cases; indeterminate when a release may explain the move.
    AFFINITY_MOVE                                  informational: nothing was outstanding. Idle affinity is best effort.

Copies that an earlier holder's stream still delivers after the key has moved are recognised and do not move it back.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import NamedTuple

from prober.core.docket import SEQS_SHOWN, Docket
from prober.core.events import LONG_AGO
from prober.core.findings import Facts, Kind
from prober.core.positions import ACKED, LearnedLog
from prober.core.rules import Mode
from prober.core.sessions import Arrival, Session, Track

OVERLAP = {Mode.STREAMING: Kind.AFFINITY_SPLIT, Mode.PULL: Kind.PULL_OVERLAP, Mode.PUSH: Kind.PUSH_OVERLAP}

RELEASED = "what was held may have been released: refused, its lease over, its stream gone, or an acknowledgement under way"
LATE_COPY = "it may be a late copy, sent before the key moved"
EARLIER_RUN = "its run may have begun before the other subscriber's"
BROKEN = "a stream concerned broke within the time in which that may go unnoticed"

REWOUND = "a rewind that arrived later may have dropped what was held"

SHORT_LEASES_MAX = 64
SPLITS_MAX = 256


class Certain(NamedTuple):
    """One message that another subscriber certainly holds."""

    position: int
    number: int
    track: Track


class Split(NamedTuple):
    """A split on hold: its streams have to prove that they were alive, and a rewind sent before it may still arrive."""

    due_t: float
    t: float
    position: int
    session: Session
    held: tuple[Certain, ...]
    released: int
    witnesses: tuple[int, ...]
    facts: Facts


class HolderCheck:
    """Judges who holds one key; see the head of this file.

    `owner` holds the key since some time between `start_lo` and `start_t`, beginning at `start_position`; `contested` after a late
    copy elsewhere that may have been a move. `released` is the highest position that a refusal, a broken stream or a control
    operation may have released; `acked_t` when an acknowledgement was last sent.
    """

    __slots__ = (
        "_docket",
        "_log",
        "_short_leases",
        "acked_t",
        "contested",
        "owner",
        "pending",
        "released",
        "start_lo",
        "start_number",
        "start_position",
        "start_t",
        "unsettled_until_t",
    )

    def __init__(self, docket: Docket, log: LearnedLog) -> None:
        self._docket = docket
        self._log = log
        self._short_leases: tuple[tuple[float, int], ...] = ()
        self.pending: tuple[Split, ...] = ()
        self.acked_t = LONG_AGO
        self.contested = False
        self.owner: str | None = None
        self.start_t = self.start_lo = LONG_AGO
        self.start_position = 0
        self.start_number = 0
        self.released = 0
        self.unsettled_until_t = LONG_AGO
        """As in `Track`, for sessions that are no longer tracked."""

    def judge(self, arrival: Arrival, tracks: Collection[Track], last_closed_t: float) -> bool:
        """Judges a delivery to a subscriber that is not the holder, and moves the key there unless it is a late copy.

        `last_closed_t` is when a session of the subscription was last closed. True when the key is certainly there now.
        """
        if self.owner is None:
            self._move(arrival, (), arrival.position, arrival.lo)
            return True
        others = [track for track in tracks if track.session.subscriber != arrival.track.session.subscriber]
        self._notice_closed(others, arrival.t)
        certain = self._certainly_held(others, arrival.t)
        if self._is_late_copy(arrival, tracks, last_closed_t):
            if certain or self._maybe_held(others, arrival.t):
                self._file(arrival, certain, LATE_COPY)
            self.contested = True
            return False
        run_start, run_start_t = self._run_of(arrival)
        if run_start and run_start_t + self._docket.rules.clock_error_s >= self.start_lo:
            self._file(arrival, certain, EARLIER_RUN)
            self._docket.counters["affinity_moves_outstanding_unknown"] += 1
            run_lo = max(run_start_t - self._docket.rules.delivery_delay_max_s, arrival.track.session.opened_t)
            self._move(arrival, others, min(run_start, arrival.position), run_lo)
            for track in tracks:
                track.doubt_all()
            return False
        self._judge_move(arrival, others, certain)
        self._move(arrival, others, arrival.position, arrival.lo)
        return True

    def resume(self, arrival: Arrival) -> None:
        """The holder is delivered to after what may have been a late copy elsewhere, or a move there: then it begins anew."""
        self.contested = False
        self.start_t = arrival.t
        self.start_position = min(self.start_position, arrival.position)

    def unplaced(self, arrival: Arrival, tracks: Collection[Track]) -> None:
        """A delivery that can no longer be placed: the key is where it is, and everything may have been released."""
        self.released = max(self.released, self._log.frontier)
        for track in tracks:
            track.let_go(0, inf)
        self._move(arrival, (), 0, arrival.lo)

    def ack_under_way(self, arrival: Arrival) -> bool:
        """Whether an acknowledgement of an earlier delivery of the message may be applied after this one was sent, and so end it."""
        applied_t = self.acked_t + self._docket.rules.ack_lag_max_s
        return applied_t >= arrival.lo and bool(self._log.flags(arrival.position) & ACKED)

    def release(self, position: int) -> None:
        """The service may have released everything up to a position."""
        self.released = max(self.released, position)

    def shorten(self, position: int, lease_end_t: float, now: float) -> None:
        """A lease modification may let a position go earlier than its first lease would."""
        self._expire_short_leases(now)
        leases = [*self._short_leases, (lease_end_t, position)]
        if len(leases) > SHORT_LEASES_MAX:
            leases.sort()
            odd = leases[len(leases) // 2 * 2 :]
            pairs = zip(leases[::2], leases[1::2], strict=False)
            leases = [(earlier[0], max(earlier[1], later[1])) for earlier, later in pairs] + odd
        self._short_leases = tuple(leases)

    def settle(self, now: float) -> None:
        """Decides the splits on hold whose time has passed."""
        while self.pending and (self.pending[0].due_t < now or now == inf):
            split, *rest = self.pending
            self.pending = tuple(rest)
            self._decide(split)

    def reset(self, frontier: int) -> None:
        """A seek: all holds are gone and everything may have been released."""
        for split in self.pending:
            self._docket.violation(OVERLAP[self._docket.rules.mode], split.t, split.witnesses, split.facts, RELEASED)
        self.pending = ()
        self._short_leases = ()
        self.released = max(self.released, frontier)
        self.owner = None

    def _judge_move(self, arrival: Arrival, others: Collection[Track], certain: list[Certain]) -> None:
        released = self._released_by(arrival.t) if certain else 0
        if _unexplained(arrival.position, certain, released) and not self.ack_under_way(arrival):
            self._split(arrival, certain, released)
        elif certain or self._maybe_held(others, arrival.t):
            self._file(arrival, certain, RELEASED)
            self._docket.counters["affinity_moves_outstanding_unknown"] += 1
        else:
            self._idle_move(arrival)

    def _is_late_copy(self, arrival: Arrival, tracks: Collection[Track], last_closed_t: float) -> bool:
        """Whether the delivery may have been sent to its subscriber, on any of its streams, before the key moved away.

        If it was, then it was let go before the key moved: by a rewind to where the new period began, or by an acknowledgement of an
        earlier delivery. What a session delivered before a seek had settled is forgotten, so its first delivery after that may
        continue anything.
        """
        if arrival.lo > self.start_t:
            return False
        if self.ack_under_way(arrival):
            return True
        for track in tracks:
            if track.session.subscriber == arrival.track.session.subscriber:
                own = arrival.own if track is arrival.track else track.last
                rewound_to_it = self.start_position <= max(own, arrival.position)
                if own and rewound_to_it and self._log.may_follow(arrival.position, own):
                    return True
        if arrival.own:
            return False
        forgotten = arrival.track.session.opened_t < self._docket.amnesty_until_t
        return forgotten or last_closed_t >= arrival.lo - self._docket.rules.delivery_delay_max_s

    def _run_of(self, arrival: Arrival) -> tuple[int, float]:
        """Where and when the run that this delivery continues on its own session began; (0, ...) when it continues none."""
        if 0 < arrival.own < arrival.position and self._log.may_follow(arrival.position, arrival.own):
            return arrival.track.run_start, arrival.track.run_start_t
        return 0, LONG_AGO

    def _notice_closed(self, others: Collection[Track], now: float) -> None:
        """A stream that is gone holds nothing; a response or request that is over does until its messages are settled."""
        if self._docket.rules.mode is not Mode.STREAMING:
            return
        for track in others:
            if track.session.closed_t <= now and not track.closed_seen:
                track.closed_seen = True
                self.released = max(self.released, track.highest)
                track.let_go(0, inf)

    def _certainly_held(self, others: Collection[Track], now: float) -> list[Certain]:
        return [
            Certain(position, held.number, track)
            for track in others
            for position, held in track.held.items()
            if held.lease_end_min_t > now and position > self._log.floor
        ]

    def _maybe_held(self, others: Collection[Track], now: float) -> bool:
        return self.unsettled_until_t > now or any(track.busy_until_t > now for track in others)

    def _released_by(self, now: float) -> int:
        """The highest position that the service may have released by now."""
        rules = self._docket.rules
        self._expire_short_leases(now)
        leased = self._log.frontier_at(now + rules.delivery_delay_max_s - rules.ack_deadline_s)
        while self._log.confirmation(leased) is not None:
            leased -= 1
        released = max(self.released, leased)
        while self._log.holds(released) and self._log.may_be_gone(released):
            released += 1  # a run that restarts at a dead-lettered message begins with the next one
        return released

    def _expire_short_leases(self, now: float) -> None:
        over = [position for end_t, position in self._short_leases if end_t <= now and self._log.confirmation(position) is None]
        self._short_leases = tuple(lease for lease in self._short_leases if lease[0] > now)
        self.released = max(self.released, *over, 0)

    def _split(self, arrival: Arrival, certain: list[Certain], released: int) -> None:
        rules = self._docket.rules
        witnesses, facts = self._proof(arrival, certain)
        close_s = rules.close_detection_max_s if rules.mode is Mode.STREAMING else 0.0
        due_t = arrival.t + max(close_s, rules.delivery_delay_max_s)
        split = Split(due_t, arrival.t, arrival.position, arrival.track.session, tuple(certain), released, witnesses, facts)
        self._docket.counters["affinity_moves_outstanding_yes"] += 1
        self.pending += (split,)
        if len(self.pending) > SPLITS_MAX:
            self._decide(self.pending[0])
            self.pending = self.pending[1:]

    def explain_pending(self, arrival: Arrival) -> None:
        """A rewind that was sent before a split, and arrives after it, had dropped what was held at or above it."""
        self.pending = tuple(
            split._replace(held=tuple(held for held in split.held if held.position < arrival.position))
            if arrival.lo <= split.t and arrival.track.session is not split.session
            else split
            for split in self.pending
        )

    def _decide(self, split: Split) -> None:
        """Files a split whose time is over; a stream concerned that broke meanwhile may have been dead already."""
        streaming = self._docket.rules.mode is Mode.STREAMING
        alive_t = split.t + self._docket.rules.close_detection_max_s if streaming else LONG_AGO
        alive = [held for held in split.held if held.track.session.closed_t > alive_t]
        released = max([split.released, *(held.track.highest for held in split.held if held not in alive)])
        proven = split.session.closed_t > alive_t and _unexplained(split.position, alive, released)
        doubt = "" if proven else BROKEN if split.held else REWOUND
        self._docket.violation(OVERLAP[self._docket.rules.mode], split.t, split.witnesses, split.facts, doubt)

    def _file(self, arrival: Arrival, certain: list[Certain], doubt: str) -> None:
        witnesses, facts = self._proof(arrival, certain)
        self._docket.violation(OVERLAP[self._docket.rules.mode], arrival.t, witnesses, facts, doubt)

    def _idle_move(self, arrival: Arrival) -> None:
        if self._docket.rules.mode is Mode.STREAMING:
            facts: Facts = {"seq": arrival.seq, "subscriber": arrival.track.session.subscriber, "holder": self.owner or ""}
            self._docket.counters["affinity_moves_outstanding_no"] += 1
            self._docket.info(Kind.AFFINITY_MOVE, arrival.t, (self.start_number, arrival.number), facts)

    def _proof(self, arrival: Arrival, certain: list[Certain]) -> tuple[tuple[int, ...], Facts]:
        lowest = sorted(certain, key=lambda held: held.position)[:SEQS_SHOWN]
        witnesses = (self.start_number, *(held.number for held in lowest[:5]), arrival.number)
        facts: Facts = {
            "seq": arrival.seq,
            "subscriber": arrival.track.session.subscriber,
            "holder": lowest[0].track.session.subscriber if lowest else self.owner or "",
            "held": tuple(self._log.seq(held.position) for held in lowest),
        }
        return witnesses, facts

    def _move(self, arrival: Arrival, others: Collection[Track], position: int, lo: float) -> None:
        """The key is now at the arrival's subscriber; its period began at `position`, not before `lo` and not after this delivery.

        What the others hold at or above `position` is dropped.
        """
        self.owner = arrival.track.session.subscriber
        self.contested = False
        self.start_position = position
        self.start_t = arrival.t
        self.start_lo = lo
        self.start_number = arrival.number
        for track in others:
            track.let_go(position, inf)


def _unexplained(position: int, certain: Collection[Certain], released: int) -> bool:
    """Whether no release can explain a start at `position` while these are held."""
    return bool(certain) and (position > released or any(held.position < position for held in certain))
