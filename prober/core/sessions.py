"""Who received what, and when: sessions of a subscription, and what one key has seen of each.

A `Session` is shared by all keys of its subscription, so a stream that breaks is noted once and each key takes notice when it
next matters. A `Track` is one key's view of one session: its last delivery, the messages it still holds, and a short past.

The past answers one question: *which deliveries on this session may have been sent after a given moment, and what is the highest
position among them?* It is kept as at most `SPANS_KEPT` spans; when there are more, neighbours are merged into one that has the
higher position and the longer time. A merged span can only make more deliveries possible, so it can hide a violation and never
invent one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from prober.core.events import LONG_AGO

SPANS_KEPT = 16
TRACKS_KEPT = 64
UNARY_TRACKS_KEPT = 8
"""Sessions remembered per key before those that are over are let go; for pull and push every response or request is one."""

ANCIENT = 1 << 62
"""Stands for the position of a delivery that can no longer be placed: higher than any, so that nothing is judged against it."""


class Session:
    """One first-in-first-out channel: a stream, a PullResponse, or a push request."""

    __slots__ = ("closed_t", "name", "opened_t", "subscriber")

    def __init__(self, name: str, subscriber: str, opened_t: float) -> None:
        self.name = name
        self.subscriber = subscriber
        self.opened_t = opened_t
        """Nothing on the session was sent before this (for pull: when it was invoked)."""
        self.closed_t = inf


class Span(NamedTuple):
    """Deliveries of one session from `first_t` to `last_t` whose highest position is `position`, delivered by event `number`."""

    first_t: float
    last_t: float
    position: int
    number: int


class Past(NamedTuple):
    """What a session delivered, seen from a send that cannot have happened before a given moment.

    certain             its last delivery before that moment, if that is known exactly: it certainly came before.
    latest_certain_t    a time at which it certainly had delivered something before that moment, `-inf` if it had not.
    uncertain           the span with the highest position among what may have been sent before or after.
    """

    certain: Span | None
    latest_certain_t: float
    uncertain: Span | None


class Held(NamedTuple):
    """A delivery whose acknowledgement was not sent: certainly leased before `lease_end_min_t`, perhaps until `lease_end_max_t`."""

    number: int
    lease_end_min_t: float
    lease_end_max_t: float


class Track:
    """What one key has seen of one session.

    last, last_t, last_number   its latest delivery (position 0: none yet, or not trusted any more).
    highest                     the highest position ever delivered on it.
    run_start, run_start_t      where and when the current run of consecutive positions began.
    held                        position -> `Held` for messages that its subscriber may be holding.
    rewound_t                   when a delivery on it last rewound the key.
    unsettled_until_t           until then, something that its subscriber let go may still count as held at the service.
    """

    __slots__ = (
        "closed_seen",
        "held",
        "highest",
        "last",
        "last_number",
        "last_t",
        "rewound_t",
        "run_start",
        "run_start_t",
        "session",
        "spans",
        "unsettled_until_t",
    )

    def __init__(self, session: Session) -> None:
        self.session = session
        self.held: dict[int, Held] = {}
        self.unsettled_until_t = LONG_AGO
        self.closed_seen = False
        self.rewound_t = LONG_AGO
        self.highest = 0
        self.distrust()

    def distrust(self) -> None:
        """Forgets where the session stood: its next delivery is taken as it comes."""
        self.last = 0
        self.last_t = LONG_AGO
        self.last_number = 0
        self.run_start = 0
        self.run_start_t = LONG_AGO
        self.spans: list[Span] = []

    def record(self, position: int, t: float, number: int, certain_before_t: float) -> None:
        """Notes a delivery. What was followed by something before `certain_before_t` is no longer needed."""
        if position != self.last + 1 or not self.last:
            self.run_start = position
            self.run_start_t = t
        self.last = position
        self.last_t = t
        self.last_number = number
        if self.highest < position < ANCIENT:
            self.highest = position
        spans = self.spans
        spans.append(Span(t, t, position, number))
        while len(spans) > 1 and spans[1].last_t < certain_before_t:
            del spans[0]
        if len(spans) > SPANS_KEPT:
            self.spans = list(_merged_by_pairs(spans))

    def unsettle(self, until_t: float) -> None:
        """Something let go may still count as held at the service until `until_t`."""
        self.unsettled_until_t = max(self.unsettled_until_t, until_t)

    def doubt(self, position: int) -> None:
        """A position is no longer held certainly."""
        held = self.held.get(position)
        if held is not None:
            self.held[position] = held._replace(lease_end_min_t=LONG_AGO)

    def doubt_all(self) -> None:
        """Nothing that is held is held certainly any more."""
        for position in self.held:
            self.doubt(position)

    @property
    def held_until_t(self) -> float:
        """Until when its subscriber may be holding something that it received on the session."""
        return max((held.lease_end_max_t for held in self.held.values()), default=LONG_AGO)

    @property
    def busy_until_t(self) -> float:
        """Until when something received on the session may count as held, by its subscriber or at the service."""
        return max(self.unsettled_until_t, self.held_until_t)

    def is_over(self, t: float) -> bool:
        """Whether the session is closed and its subscriber holds nothing that it received on it."""
        return self.session.closed_t <= t and self.held_until_t <= t

    def past(self, moment_t: float) -> Past:
        """What this session delivered, seen from a send that cannot have happened before `moment_t`."""
        certain: Span | None = None
        certain_t = LONG_AGO
        uncertain: Span | None = None
        for span in self.spans:
            if span.first_t < moment_t:
                certain_t = span.last_t if span.last_t < moment_t else span.first_t
                certain = span if span.last_t < moment_t else None
            if span.last_t >= moment_t and (uncertain is None or span.position > uncertain.position):
                uncertain = span
        return Past(certain, certain_t, uncertain)

    def let_go(self, floor: int, until_t: float) -> None:
        """Stops holding every position at or above `floor`; the service may see it otherwise until `until_t` at the latest."""
        gone = [position for position in self.held if position >= floor]
        for position in gone:
            held = self.held.pop(position)
            self.unsettle(min(held.lease_end_max_t, until_t))


NO_TRACKS: dict[str, Track] = {}
"""The sessions of a key that has seen none, shared by all such keys; never written to."""


def take_over(tracks: dict[str, Track], t: float) -> list[Track]:
    """Takes out of `tracks` those whose session is over; if none is, the older ones down to half of `TRACKS_KEPT`.

    Forgetting what an old one holds can only hide a split.
    """
    over = [name for name, track in tracks.items() if track.is_over(t)]
    return [tracks.pop(name) for name in over or list(tracks)[: len(tracks) - TRACKS_KEPT // 2]]


def _merged_by_pairs(spans: list[Span]) -> Iterator[Span]:
    """Halves the older spans by merging neighbours; the newest few stay exact."""
    exact = SPANS_KEPT // 2
    older, newest = spans[:-exact], spans[-exact:]
    for first, second in zip(older[::2], older[1::2], strict=False):
        highest = max(first, second, key=lambda span: span.position)
        yield Span(first.first_t, second.last_t, highest.position, highest.number)
    if len(older) % 2:
        yield older[-1]
    yield from newest


class Arrival:
    """One delivery on its way through the checks.

    position    its place in the learned log; 0 when it can no longer be placed.
    new         whether this is the first delivery of its message id.
    lo          the earliest time at which the service can have sent it.
    own         the position delivered before it on the same session, 0 when there is none.
    token       what stands for its message id in the learned log.
    """

    __slots__ = ("epoch", "lo", "message_id", "new", "number", "own", "position", "seq", "t", "token", "track")

    def __init__(self, t: float, number: int, lo: float, track: Track, epoch: str, seq: int, message_id: str) -> None:
        self.t = t
        self.number = number
        self.lo = lo
        self.track = track
        self.own = track.last
        self.epoch = epoch
        self.seq = seq
        self.message_id = message_id
        self.token = hash(message_id)
        self.position = 0
        self.new = False
