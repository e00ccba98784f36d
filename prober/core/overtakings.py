"""What overtook what, as far as a stream that broke may yet explain it.

Of a subscriber with several streams one may be dead for some time before that is noticed. What was sent there is lost then, and what is
behind it comes on another stream first: nobody was wrong. So such a finding is told when that would have shown.

That shows later, too, when meanwhile the stream that the other one was beside is over.

What comes late is sent again then, and so all that overtook it has to come again behind it. If something later comes next on that
stream, for the first time, then no stream that broke explains it, unless another one took that as well; or the same one, if it was sent
again because its lease was over, so that nobody had noticed yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import Final, NamedTuple

from prober.core.collector import FindingsCollector
from prober.core.epoch_order import Primary
from prober.core.events import Delivered
from prober.core.findings import Facts, Kind
from prober.core.places import Places
from prober.core.sessions import ANYWHERE, Arrival, Session, Source
from prober.core.subscription import Subscription

PENDING_MAX: Final = 64
"""Findings per key that wait to be explained; beyond that they are told at once, and are not certain."""
AGAIN_KEPT: Final = 64
"""Of how many messages that came again it is remembered; anything may have come before those."""

BESIDE: Final = "it may have been sent in time on another stream of the same subscriber, and been lost when that broke"


class By(NamedTuple):
    """What came first though it had to come behind: where, when, when it was published, and its place in the log."""

    source: Source
    t: float
    invoked_t: float
    position: int

    @classmethod
    def of(cls, first: Primary, t: float) -> By:
        """A primary that came at `t`, or before."""
        return cls(first.source, min(t, first.came_t), first.ordered_t, first.position)


class Overtaking(NamedTuple):
    """What was published at `invoked_t` was overtaken. Seen at `t`: when it came after all, at `source`, or when it was missed.

    `position`: its place in the learned log, 0 if it has none.
    """

    kind: Kind
    t: float
    invoked_t: float
    by: By
    source: Source
    position: int
    witnesses: tuple[int, ...]
    facts: Facts


class Pending(NamedTuple):
    """One that waits until `due_t`. `next_t`: when something later came on its stream next; `again`: what overtook it came again."""

    due_t: float
    one: Overtaking
    next_t: float = inf
    again: bool = False

    def is_followed(self, session: str, invoked_t: float) -> bool:
        """Whether what comes for the first time on a stream, published then, is the first that comes behind it."""
        return self.one.source.session == session and self.next_t == inf and not self.again and self.one.by.invoked_t < invoked_t

    def comes_again(self, position: int, t: float, late_s: float) -> bool:
        """Whether what comes again, on any stream, may be what overtook it: before something else did, or not much later."""
        return position != self.one.position and self.one.by.position <= position and t <= self.next_t + late_s


class Overtakings:
    """The findings of one key that wait, and how they are told."""

    __slots__ = ("_again", "_collector", "_subscription", "pending")

    def __init__(self, collector: FindingsCollector, subscription: Subscription) -> None:
        self._collector = collector
        self._subscription = subscription
        self._again: deque[tuple[int, float]] | None = None
        self.pending: tuple[Pending, ...] = ()

    @property
    def due_t(self) -> float:
        """When the next one is told; `inf` if none waits."""
        return min((one.due_t for one in self.pending), default=inf)

    def add(self, one: Overtaking, doubt: str) -> bool:
        """Tells it now if nothing more can become known; True if a stream that broke explains it, or may yet."""
        subscription = self._subscription
        explained = subscription.parted.may_have_taken(one.invoked_t, one.by.source, one.by.t, one.by.t)
        due_t = subscription.parting_shows_t(one.by.t)
        if explained and one.source.session:
            due_t = max(due_t, one.t + subscription.rules.delivery_delay_max_s)
        if not doubt and due_t > one.t and len(self.pending) < PENDING_MAX:
            self.pending += (Pending(due_t, one, again=self._came_again_before(one)),)
            return True
        explained = explained or (not doubt and due_t > one.t)  # nobody will know
        self._tell(one, BESIDE if explained else doubt)
        return explained

    def came(self, arrival: Arrival, invoked_t: float, places: Places, waiting: Iterable[Delivered] = ()) -> bool:
        """Something came for the first time that was published at `invoked_t`; what is `waiting` was put back on other sessions.

        True if it may have been sent before something that came earlier, on a stream that broke.
        """
        session, t = arrival.track.session, arrival.t
        session.alive_t = max(session.alive_t, invoked_t)
        if self.pending and self._all_come_again:
            self._came_next(session, t, invoked_t)
        return self._may_have_been_sent_beside(arrival, invoked_t, places, waiting)

    def _may_have_been_sent_beside(self, arrival: Arrival, invoked_t: float, places: Places, waiting: Iterable[Delivered]) -> bool:
        """What may yet turn out is waited for where a primary is judged by itself."""
        subscription = self._subscription
        may_show = not arrival.proven and subscription.parting_shows_t(arrival.t) > arrival.t
        if not may_show and subscription.parted.is_empty:
            return False
        came = places.came_since(invoked_t)
        came += [event.t for event in waiting if invoked_t <= event.t <= arrival.t]
        if not came:
            return False
        since_t, until_t = min(came), max(came)
        if subscription.parted.may_have_taken(invoked_t, ANYWHERE, since_t, until_t):
            return True
        return not arrival.proven and subscription.parting_shows_t(until_t) > max(until_t, arrival.t)

    def _came_next(self, session: Session, t: float, invoked_t: float) -> None:
        due_t = max(self._subscription.parting_shows_t(t), t + self._late_s)
        self.pending = tuple(
            one._replace(next_t=t, due_t=max(one.due_t, due_t)) if one.is_followed(session.name, invoked_t) else one
            for one in self.pending
        )

    def came_again(self, position: int, t: float) -> None:
        """What stands at a place in the log came again."""
        if self._again is None:
            self._again = deque(maxlen=AGAIN_KEPT)
        self._again.append((position, t))
        late_s = self._late_s
        self.pending = tuple(one._replace(again=True) if one.comes_again(position, t, late_s) else one for one in self.pending)

    def _came_again_before(self, one: Overtaking) -> bool:
        """Whether what overtook it had come again already, behind it, which was slower; of two copies either may be the first."""
        again, since_t = list(self._again or ()), one.t - self._late_s
        forgotten = len(again) == AGAIN_KEPT and again[0][1] > since_t
        return forgotten or any(position >= one.by.position and t > since_t for position, t in again)

    @property
    def _late_s(self) -> float:
        return self._subscription.rules.delivery_delay_max_s + self._subscription.rules.clock_error_s

    @property
    def _all_come_again(self) -> bool:
        """Whether all that is behind something comes again with it: none of it may have left, or have to stay away."""
        rules = self._subscription.rules
        promised = rules.redelivery_promised and not rules.exactly_once
        return promised and not rules.dead_letter_max_attempts and rules.message_retention_s == inf

    def settle(self, now: float) -> None:
        """Tells those that were due before `now`."""
        due = [one for one in self.pending if one.due_t < now or now == inf]
        self.pending = tuple(one for one in self.pending if one.due_t >= now and now < inf)
        for waiting in due:
            self._tell(waiting.one, BESIDE if self._is_explained(waiting) else "")

    def _is_explained(self, waiting: Pending) -> bool:
        one, parted = waiting.one, self._subscription.parted
        if waiting.again or waiting.next_t == inf:
            return parted.may_have_taken(one.invoked_t, one.by.source, one.by.t, one.by.t)
        return parted.may_have_taken_both(one.invoked_t, one.by.source, one.by.t, one.source, one.t, waiting.next_t)

    def _tell(self, one: Overtaking, doubt: str) -> None:
        self._collector.violation(one.kind, one.t, one.witnesses, one.facts, doubt)
