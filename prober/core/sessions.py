"""Who received what, and when: sessions of a subscription, and what one key has seen of each.

A `Session` is shared by all keys of its subscription: a stream that breaks is noted once, and each key takes notice when it next matters.
A `Track` is one key's view of one session: its last delivery, what it certainly still holds, and a short past. `Tracks` are all of a key.

The past answers one question: *which deliveries on this session may have been sent after a given moment, and what is the highest
position among them?* It is kept as a few spans: what was delivered within a sixteenth of Delta is one span, with the higher position
and the longer time. A merged span can only make more deliveries possible, so it can hide a violation and never invent one. The same
holds when a session that is over is forgotten and its spans are kept without it.

What a session certainly holds is kept in ascending order of positions. It is first in, first out, so a lower position after a higher
one means that the service went back and dropped what was held above: that is taken from the end, what has run out from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from math import inf
from typing import Final, NamedTuple, TypeAlias

from prober.core.events import LONG_AGO, Delivered
from prober.core.positions import NO_STAMP
from prober.core.waiting import FlowControl

SPANS_PER_DELAY: Final = 16
"""Into how many spans the deliveries of one Delta are divided."""
PASTS_KEPT: Final = 16
"""Sessions that are over whose pasts are kept; beyond that those of the two oldest become one, as a single span."""
TRACKS_KEPT: Final = 64
"""Sessions remembered per key; beyond that the oldest are let go, also while they are open."""
OWNERS_KEPT: Final = 64
"""Subscribers whose sessions are over and whose last delivery is remembered per key."""

ANCIENT: Final = 1 << 62
"""Stands for the position of a delivery that can no longer be placed: higher than any, so that nothing is judged against it."""

Held: TypeAlias = tuple[int, float, float, float]
"""A delivery that its subscriber holds: its event number, when it came, and until when its lease certainly and perhaps runs."""


class Source(NamedTuple):
    """Where something was received: on which session, opened when, of which subscriber; empty where nobody knows."""

    session: str
    subscriber: str
    opened_t: float = LONG_AGO


ANYWHERE: Final = Source("", "")


class Session:
    """One first-in-first-out channel: a stream, a PullResponse, or a push request.

    opened_t    nothing on it was sent before this (for pull: when it was invoked).
    answered    something was delivered on it, whatever the key: a pull whose answer has come.
    flow        what the service may have outstanding on it, None without a limit.
    unseen      its opening is not on record.
    source      its name, and its subscriber if that is known.
    alive_t     when the latest of what it delivered was published, where sessions race: whatever was sent on it before has come.
    """

    __slots__ = ("alive_t", "answered", "closed_t", "flow", "name", "opened_t", "source", "subscriber", "unseen")

    def __init__(
        self, name: str, subscriber: str, opened_t: float, flow: FlowControl | None = None, *, unseen: bool = False
    ) -> None:
        self.name = name
        self.subscriber = subscriber
        self.opened_t = opened_t
        self.closed_t = inf
        self.answered = False
        self.flow = flow
        self.unseen = unseen
        self.source = Source(name, "" if unseen else subscriber, opened_t)
        self.alive_t = LONG_AGO


class Span:
    """Deliveries of one session from `first_t` to `last_t` whose highest position is `position`, delivered by event `number`.

    `besides` is the highest of the others, 0 if there are none. `sent_after_t`: nothing on the session was sent before.
    """

    __slots__ = ("besides", "first_t", "last_t", "number", "position", "sent_after_t")

    def __init__(self, first_t: float, last_t: float, position: int, number: int, sent_after_t: float) -> None:
        self.first_t = first_t
        self.last_t = last_t
        self.position = position
        self.number = number
        self.sent_after_t = sent_after_t
        self.besides = 0

    def absorb(self, t: float, position: int, number: int) -> None:
        """Takes one more delivery into the span."""
        self.last_t = t
        if position > self.position:
            self.besides = self.position
            self.position = position
            self.number = number
        elif position > self.besides:
            self.besides = position

    def without(self, number: int) -> Span:
        """The same but for what was delivered by event `number`, if that is the highest; position 0 if nothing is left."""
        return self if self.number != number else Span(self.first_t, self.last_t, self.besides, 0, self.sent_after_t)

    def take_in(self, other: Span) -> None:
        """Becomes one span with that of another session."""
        self.absorb(self.last_t if self.last_t > other.last_t else other.last_t, other.position, other.number)
        self.besides = max(self.besides, other.besides)
        if other.first_t < self.first_t:
            self.first_t = other.first_t
        self.sent_after_t = LONG_AGO


class Track:
    """What one key has seen of one session.

    last, last_t, last_number   its latest delivery (position 0: none yet, or not trusted any more).
    run_start, run_start_t      where and when the current run of consecutive positions began.
    held                        position -> `Held` for what its subscriber certainly holds, ascending.
    rewound_t                   when a delivery on it last rewound the key.
    unsettled_until_t           until then, something that was received on it may still count as held, though not certainly.
    after_foreign               whether a foreign message came after its latest delivery.
    spans                       its deliveries before the latest one, as far as they may matter; see the head of this file.
    """

    __slots__ = (
        "_highest_held",
        "_leased_until_t",
        "after_foreign",
        "held",
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
        self.rewound_t = LONG_AGO
        self._leased_until_t = LONG_AGO
        self._highest_held = 0
        self.last = 0
        self.last_t = LONG_AGO
        self.last_number = 0
        self.run_start = 0
        self.run_start_t = LONG_AGO
        self.after_foreign = False
        self.spans: list[Span] = []

    def distrust(self) -> None:
        """Forgets where the session stood, and what it holds: its next delivery is taken as it comes."""
        self.last = 0
        self.last_t = LONG_AGO
        self.last_number = 0
        self.run_start = 0
        self.run_start_t = LONG_AGO
        self.spans = []
        self.held = {}

    def record(self, position: int, t: float, number: int, delay_s: float, eps: float) -> None:
        """Notes a delivery. What was followed by something a Delta earlier is no longer needed."""
        if self.last:
            spans = self.spans
            if spans and self.last_t - spans[-1].first_t <= delay_s / SPANS_PER_DELAY:
                spans[-1].absorb(self.last_t, self.last, self.last_number)
            else:
                self._remember_last(t - delay_s - eps)
        if position != self.last + 1 or not self.last:
            self.run_start = position
            self.run_start_t = t
        self.last = position
        self.last_t = t
        self.last_number = number
        self.after_foreign = False

    def _remember_last(self, needed_from_t: float) -> None:
        spans = self.spans
        while len(spans) > 1 and spans[1].last_t < needed_from_t:
            del spans[0]
        spans.append(Span(self.last_t, self.last_t, self.last, self.last_number, self.session.opened_t))

    def past(self) -> list[Span]:
        """Everything that was delivered on the session, as far as it may matter, in order; the latest delivery stands alone."""
        if not self.last:
            return self.spans
        return [*self.spans, Span(self.last_t, self.last_t, self.last, self.last_number, self.session.opened_t)]

    # --- what is held --------------------------------------------------------------------------------------------------------

    def hold(self, position: int, held: Held, window: int) -> None:
        """Its subscriber certainly holds a message now. More than a window of them is not remembered."""
        if position <= self._highest_held:
            self.drop_from(position)
        self._highest_held = position
        self.held[position] = held
        if held[3] > self._leased_until_t:
            self._leased_until_t = held[3]
        if len(self.held) > window:
            self.doubt(next(iter(self.held)))

    def shorten(self, position: int, until_t: float, delay_s: float) -> None:
        """The lease of a message was changed to end at `until_t`: earlier, or perhaps later, than it would have."""
        held = self.held.get(position)
        if held is not None:
            number, t, certainly_t, perhaps_t = held
            perhaps_t = max(perhaps_t, until_t + delay_s)
            self.held[position] = (number, t, min(certainly_t, until_t), perhaps_t)
            self._leased_until_t = max(self._leased_until_t, perhaps_t)

    def let_go(self, position: int) -> bool:
        """A message was acknowledged or refused by its subscriber; True if it was certainly held."""
        held = self.held.pop(position, None)
        if not self.held:
            self._leased_until_t = LONG_AGO
        return held is not None

    def certainly_holds(self, t: float) -> bool:
        """Whether its subscriber certainly holds something at `t`: the highest, whose lease mostly runs longest."""
        return bool(self.held) and self.held[next(reversed(self.held))][2] > t

    def doubt(self, position: int) -> None:
        """A position is no longer held certainly, but perhaps."""
        held = self.held.get(position)
        if held is not None:
            self.unsettle(held[3])
            self.let_go(position)

    def drop_from(self, floor: int) -> None:
        """What is held at or above `floor` may have been dropped by a rewind."""
        while self.held:
            position = next(reversed(self.held))
            if position < floor:
                return
            self.doubt(position)

    def drop_where(self, may_be_dropped: Callable[[int], bool]) -> None:
        """The same of what may stand at or above a floor, though it was learned below."""
        for position in [held for held in self.held if may_be_dropped(held)]:
            self.doubt(position)

    def lowest_held(self, t: float, floor: int) -> int:
        """The lowest position above `floor` that its subscriber certainly still holds at `t`; 0 if there is none."""
        while self.held:
            position = next(iter(self.held))
            if self.held[position][2] > t and position > floor:
                return position
            self.doubt(position)
        return 0

    def unsettle(self, until_t: float) -> None:
        """Something let go may still count as held at the service until `until_t`."""
        if until_t > self.unsettled_until_t:
            self.unsettled_until_t = until_t

    @property
    def busy_until_t(self) -> float:
        """Until when something received on the session may count as held, by its subscriber or at the service."""
        return self.unsettled_until_t if self.unsettled_until_t > self._leased_until_t else self._leased_until_t


NO_TRACKS: dict[str, Track] = {}
"""The sessions of a key that has seen none, shared by all such keys; never written to."""

NO_OWNERS: dict[str, int] = {}
"""The same for subscribers whose sessions are over."""


class Tracks:
    """The sessions that delivered one key, those that matter.

    A session that is over is folded away when it is noticed: what remains of it is what it may still be a predecessor with (`past`),
    until when something of it may count as held (`unsettled_until_t`), and how far its subscriber had come (`lasts_of`). A stream that
    is closed is over; a pull response or push request is when nothing that came with it is held any more.

    by_session      the tracks by the names of their sessions: to look up, not to change.
    latest          the one that delivered last, None if it is not tracked any more.
    forgetful       whether a subscriber's last delivery may have been forgotten.
    """

    __slots__ = ("_last_of", "_streaming", "by_session", "forgetful", "latest", "past", "unsettled_until_t")

    def __init__(self, *, streaming: bool) -> None:
        self._streaming = streaming
        self.by_session = NO_TRACKS
        self.latest: Track | None = None
        self._last_of = NO_OWNERS
        self.past: list[list[Span]] = []
        self.unsettled_until_t = LONG_AGO
        self.forgetful = False

    def __len__(self) -> int:
        return len(self.by_session)

    def __iter__(self) -> Iterator[Track]:
        return iter(self.by_session.values())

    def find(self, session: str) -> Track | None:
        """What was seen of the session of that name."""
        return self.by_session.get(session)

    def of(self, session: Session, t: float) -> Track:
        """The track of a session that delivers at `t`, begun if it is new."""
        track = self.by_session.get(session.name)
        if track is not None and track.session is session:
            self.latest = track
            return track
        if track is not None:
            self._fold(session.name)
        if not self._streaming:
            self._fold_all([name for name, track in self.by_session.items() if not track.lowest_held(t, 0)])
        if len(self.by_session) >= TRACKS_KEPT:
            self._fold(next(iter(self.by_session)))
            self.forgetful = True
        if not self.by_session:
            self.by_session = {}
        track = self.latest = self.by_session[session.name] = Track(session)
        return track

    def others(self, own: Track) -> Iterable[Track]:
        """All tracks but one."""
        if len(self.by_session) == 1:
            return ()
        return [track for track in self.by_session.values() if track is not own]

    def reached_since(self, sent_t: float, own: Track) -> int:
        """The highest position that was delivered elsewhere since `sent_t`, 0 if there is none."""
        spans = chain(*(track.past() for track in self.others(own)), *self.past)
        return max((span.position for span in spans if span.last_t >= sent_t), default=0)

    def lasts_of(self, subscriber: str, arrival: Arrival) -> Iterator[int]:
        """The last position delivered on each session of a subscriber before an arrival; of sessions that are over the latest."""
        for track in self.by_session.values():
            if track.session.subscriber == subscriber:
                yield arrival.own if track is arrival.track else track.last
        yield self._last_of.get(subscriber, 0)

    def unsettle(self, track: Track | None, until_t: float) -> None:
        """Something let go may still count as held until `until_t`: of a session that is tracked, or of one that is over."""
        if track is not None:
            track.unsettle(until_t)
        elif until_t > self.unsettled_until_t:
            self.unsettled_until_t = until_t

    def fold_closed(self, t: float) -> None:
        """Folds away the streams that are closed at `t`."""
        self._fold_all([name for name, track in self.by_session.items() if self._streaming and track.session.closed_t <= t])

    def _fold_all(self, names: list[str]) -> None:
        for name in names:
            self._fold(name)

    def _fold(self, name: str) -> None:
        self.latest = None
        track = self.by_session.pop(name)
        track.drop_from(0)
        self.unsettle(None, track.busy_until_t)
        if track.last:
            self._remember_owner(track)
        self._remember_past(track.past())

    def _remember_owner(self, track: Track) -> None:
        owners = self._last_of = self._last_of or {}
        owners.pop(track.session.subscriber, None)
        owners[track.session.subscriber] = track.last
        if len(owners) > OWNERS_KEPT:
            del owners[next(iter(owners))]
            self.forgetful = True

    def _remember_past(self, spans: list[Span]) -> None:
        """Keeps what a session that is no longer tracked may still be a predecessor with."""
        if not spans:
            return
        self.past.append(spans)
        if len(self.past) > PASTS_KEPT:
            oldest, *others = [*self.past[0], *self.past.pop(1)]
            for span in others:
                oldest.take_in(span)
            self.past[0] = [oldest]

    def forget_before(self, t: float) -> None:
        """Nothing that was sent up to `t` can be a predecessor any more."""
        if self.past and any(spans[-1].last_t < t for spans in self.past):
            self.past = [spans for spans in self.past if spans[-1].last_t >= t]

    def distrust(self) -> None:
        """Forgets where all sessions stood: a seek, or a hole in the record."""
        for track in self.by_session.values():
            track.distrust()
        self.past = []

    def forget(self) -> None:
        """Gives everything back."""
        self.by_session = NO_TRACKS
        self.latest = None
        self.past = []
        self.forgetful = self.forgetful or bool(self._last_of)
        self._last_of = NO_OWNERS

    @property
    def busy_until_t(self) -> float:
        """Until when something may count as held, on a session or of one that was folded away."""
        return max([self.unsettled_until_t, *(track.busy_until_t for track in self.by_session.values())])


class Arrival:
    """One delivery on its way through the checks.

    position    its place in the learned log; 0 when it can no longer be placed.
    new         whether this is the first delivery of its record.
    copies_id   whether that is a further record of a message id: the service stored the message twice.
    lo          the earliest time at which the service can have sent it, by the clock of its own recorder.
    proven      whether it is the record that a confirmation names.
    own         the position delivered before it on the same session, 0 when there is none.
    token       what stands for its message id in the learned log, and `stamp` for its publish time.
    """

    __slots__ = (
        "copies_id",
        "epoch",
        "generation",
        "lo",
        "message_id",
        "new",
        "number",
        "own",
        "position",
        "proven",
        "seq",
        "stamp",
        "t",
        "token",
        "track",
    )

    def __init__(self, event: Delivered, number: int, lo: float, track: Track, stamp: int) -> None:
        self.t = event.t
        self.number = number
        self.lo = lo
        self.track = track
        self.own = track.last
        self.epoch = event.epoch
        self.seq = event.seq
        self.message_id = message_id = event.message_id
        self.generation = event.generation
        self.token = hash(message_id)
        self.stamp = stamp
        self.position = 0
        self.new = False
        self.copies_id = False
        self.proven = False


def stamp_of(event: Delivered) -> int:
    """What stands for the publish time of a delivery."""
    return NO_STAMP if event.publish_time is None else hash(event.publish_time) or 1
