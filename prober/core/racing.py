"""Deliveries that may have overtaken others are put back until these had time to come.

Where one subscriber reads two streams side by side, or several recorders have clocks of their own, the order in which deliveries are
recorded is not the order in which they were sent, even for first deliveries: the old stream of a client is still read while the new
one delivers. The learned log would take the order of arrival for the order of the log. So a delivery that comes before something that
must precede it is put back, with everything that follows on its session, until what is missing has come on another session, or had
time to: Delta for the streams of one subscriber, the clock error for others. What never comes is a gap.

Where nothing says which of two records of different sessions comes first, only their arrival tells their places in the log, and that is
not certain (`Abreast`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf
from typing import Final, NamedTuple, TypeAlias

from prober.core.events import LONG_AGO, AckConfirmed, Acked, DeadLettered, Delivered, LeaseModified, Nacked
from prober.core.publications import Publication
from prober.core.sessions import Arrival

PUT_BACK_MAX: Final = 4096
"""Events put back per key; beyond that the first is let through at once."""

ABREAST_MAX: Final = 64
"""First deliveries per session whose order beside those of other sessions is looked at; what came before them is taken as abreast."""

SessionEvent: TypeAlias = Delivered | Acked | Nacked | AckConfirmed | LeaseModified

Waiting: TypeAlias = SessionEvent | DeadLettered
"""What may wait: also that a message left, which waits for the message."""


class PutBack:
    """What was put back of one key, by session, each first in, first out; each delivery until what it waits for had time to come."""

    __slots__ = ("_blocked_until_t", "_count", "_given_up", "_queues")

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[float, Waiting, int]]] = {}
        self._count = 0
        self._given_up = False
        self._blocked_until_t = LONG_AGO

    def __bool__(self) -> bool:
        return bool(self._queues)

    @property
    def due_t(self) -> float:
        """When the next delivery is let through in any case; `inf` if none waits."""
        return max(min((queue[0][0] for queue in self._queues.values()), default=inf), self._blocked_until_t)

    @property
    def latest_due_t(self) -> float:
        """When everything that waits now is let through in any case."""
        return max((queue[-1][0] for queue in self._queues.values()), default=LONG_AGO)

    def waits_on(self, session: str) -> bool:
        """Whether anything on a session was put back, so that whatever follows there waits as well."""
        return session in self._queues

    def put(self, event: SessionEvent, number: int, due_t: float) -> None:
        """Puts an event back, until `due_t` at the latest, or until what is put back on its session is let through if that is later."""
        queue = self._queues.get(event.session)
        if queue is None:
            queue = self._queues[event.session] = deque()
        elif queue[-1][0] > due_t:
            due_t = queue[-1][0]
        queue.append((due_t, event, number))
        self._count += 1

    def leaves(self, event: DeadLettered, number: int) -> bool:
        """The same for a message that left the subscription, if it waits here: behind it."""
        for queue in self._queues.values():
            if any(isinstance(other, Delivered) and other.message_id == event.message_id for _, other, _ in queue):
                queue.append((queue[-1][0], event, number))
                self._count += 1
                return True
        return False

    @property
    def tokens(self) -> set[int]:
        """The messages that wait."""
        waiting = (event for queue in self._queues.values() for _, event, _ in queue)
        return {hash(event.message_id) for event in waiting if isinstance(event, Delivered)}

    def deliveries(self, besides: str) -> Iterator[Delivered]:
        """What waits on other sessions, the first of each."""
        for session, queue in self._queues.items():
            if session != besides:
                yield from (event for _, event, _ in islice(queue, ABREAST_MAX) if isinstance(event, Delivered))

    def give_up(self) -> None:
        """Nothing is waited for any more, though it might have come."""
        self._given_up = True

    def next(
        self, now: float, waits: Callable[[Delivered], bool], precedes: Callable[[Delivered, Delivered], bool]
    ) -> tuple[Waiting, int, bool] | None:
        """Takes out an event that need not wait any more, and says whether it waited long enough: nothing is missing before it, or it was
        due before `now`. Then its place is as certain as any: whatever was sent before it has come.

        What waits on another session and must come before what is due (`precedes`) goes first, as soon as that is due as well.
        """
        forced = self._given_up or now == inf or self._count > PUT_BACK_MAX
        due: list[str] = []
        for session, queue in self._queues.items():
            due_t, event, _ = queue[0]
            if not (isinstance(event, Delivered) and waits(event)):
                return (*self._take(session), True)
            if forced or due_t < now:
                due.append(session)
        return self._next_due(due, now, precedes, forced=forced) if due else None

    def _next_due(
        self, due: list[str], now: float, precedes: Callable[[Delivered, Delivered], bool], *, forced: bool
    ) -> tuple[Waiting, int, bool] | None:
        blocked = {session: self._before(session, precedes) for session in due}
        free = [session for session in due if not blocked[session]]
        if not free and not forced:
            later_t = [t for before in blocked.values() for session in before if (t := self._queues[session][0][0]) >= now]
            if later_t:
                self._blocked_until_t = min(later_t)
                return None
        first = (free or due)[0]
        certain = self._queues[first][0][0] < now and not self._given_up
        return (*self._take(first), certain and (first in free or not any(blocked[first].values())))

    def _before(self, own: str, precedes: Callable[[Delivered, Delivered], bool]) -> dict[str, bool]:
        """The other sessions on which something waits that must come before the first of this one; True if copies of it do on several."""
        event = self._queues[own][0][1]
        assert isinstance(event, Delivered)
        where: dict[str, set[str]] = {}
        for session, queue in self._queues.items():
            for _, other, _ in queue:
                if isinstance(other, Delivered) and other is not event and precedes(other, event):
                    where.setdefault(other.message_id, set()).add(session)
        return {session: len(sessions) > 1 for sessions in where.values() for session in sessions if session != own}

    def _take(self, session: str) -> tuple[Waiting, int]:
        queue = self._queues[session]
        _, event, number = queue.popleft()
        self._count -= 1
        self._blocked_until_t = LONG_AGO
        if not queue:
            del self._queues[session]
        return event, number


class First(NamedTuple):
    """A first delivery: what is known of its place beside those of other sessions. `race_s`: by how much it may have been ahead.

    `again`: another record of its number came before, so nobody waited for this one until its publish was confirmed.
    `unawaited`: nobody did, because no baseline of its epoch was known.
    """

    t: float
    position: int
    epoch: str
    seq: int
    proven: bool
    invoked_t: float
    ordered_t: float
    completed_t: float
    race_s: float
    region: str = ""
    again: bool = False
    unawaited: bool = False

    def is_far_before(self, other: First) -> bool:
        """Whether this one came too long before the other to race it."""
        return other.t - self.t > max(self.race_s, other.race_s)

    def precedes(self, other: First, eps: float) -> bool:
        """Whether this one certainly stands before the other in the log: by session order or in real time."""
        if not self.proven or self.region != other.region:
            return False
        in_session = other.proven and self.epoch == other.epoch and self.seq < other.seq and self.ordered_t <= other.ordered_t
        return in_session or self.completed_t + (eps if self.epoch != other.epoch else 0.0) < other.invoked_t


class Abreast:
    """What was delivered for the first time lately, by session: records of two sessions whose order only their arrival tells."""

    __slots__ = ("_beyond_t", "_sessions")

    def __init__(self) -> None:
        self._sessions: dict[str, deque[First]] = {}
        self._beyond_t = LONG_AGO

    def learn(self, first: First, own: str, waiting: Iterable[First], eps: float, unsettled_until_t: float) -> set[int]:
        """Notes a first delivery on the session `own`; returns the positions whose places are not certain by it, and 0 for any others.

        `waiting` was put back on other sessions, and is learned later. Nothing waited that came up to `unsettled_until_t`.
        """
        raced = {first.position for other in waiting if _abreast(first, other, eps)}
        self._forget(first)
        for session, others in self._sessions.items():
            if session != own:
                raced |= {other.position for other in others if _abreast(other, first, eps, unsettled_until_t)}
        if self._beyond_t >= first.t - first.race_s:
            raced.add(0)
        if raced:
            raced.add(first.position)
        latest = self._sessions.setdefault(own, deque())
        latest.append(first)
        if len(latest) > ABREAST_MAX:
            dropped = latest.popleft()
            if len(self._sessions) > 1:
                self._beyond_t = dropped.t
        return raced

    def doubt(self, one: int, other: int) -> range:
        """Two positions turned out to be copies of one message: on two sessions that race, nothing proves which is the first.

        Returns those among which neither has a certain place.
        """
        found = self._find(one, other)
        if len(found) < 2 or _apart(*found):
            return range(0)
        for session, first in found:
            firsts = self._sessions[session]
            firsts[firsts.index(first)] = first._replace(proven=False)
        return range(min(one, other), max(one, other) + 1)

    def apart(self, one: int, other: int) -> bool:
        """Whether two positions were received for the first time on one session, or too far from each other to be abreast."""
        found = self._find(one, other)
        return len(found) == 2 and _apart(*found)

    def _find(self, one: int, other: int) -> list[tuple[str, First]]:
        """The first deliveries of two positions that are still remembered, each with its session."""
        return [
            (session, first) for session, firsts in self._sessions.items() for first in firsts if first.position in (one, other)
        ]

    def may_precede(self, position: int, session: str, t: float, race_s: float) -> bool:
        """Whether a copy on a session may have been sent before the first that was received, which came on another one."""
        return any(
            first.position == position and other != session and t - first.t <= max(race_s, first.race_s)
            for other, firsts in self._sessions.items()
            for first in firsts
        )

    def _forget(self, first: First) -> None:
        """What was put back is learned late, so twice the time is waited for it."""
        for session in list(self._sessions):
            others = self._sessions[session]
            while others and others[0].t < first.t - 3 * max(first.race_s, others[0].race_s):
                others.popleft()
            if not others:
                del self._sessions[session]


def first_of(event: Arrival | Delivered, token: int, publication: Publication | None, race_s: float, position: int = 0) -> First:
    """What is known of the place of a first delivery, also of one that has none yet because it was put back."""
    t, epoch, seq = event.t, event.epoch, event.seq
    if publication is None:
        return First(t, position, epoch, seq, False, LONG_AGO, LONG_AGO, inf, race_s)
    invoked_t, region = publication.origin(token, event.generation)
    proven, ordered_t, completed_t = publication.token == token, publication.ordered_t, publication.confirmed_t
    return First(t, position, epoch, seq, proven, invoked_t, ordered_t, completed_t, race_s, region)


def _apart(one: tuple[str, First], other: tuple[str, First]) -> bool:
    """Whether two came on one session, or in the order in which they were learned: what was put back is learned behind what came later."""
    first, second = sorted((one[1], other[1]), key=lambda each: each.position)
    return one[0] == other[0] or first.is_far_before(second)


def _abreast(one: First, other: First, eps: float, unsettled_until_t: float = LONG_AGO) -> bool:
    """Whether what is learned first may stand behind what is learned after it.

    What came up to `unsettled_until_t` did not wait for what must precede it. What was put back may be learned long after it came.
    """
    if one.is_far_before(other) or one.precedes(other, eps):
        return False
    did_not_wait = other.unawaited or one.t <= unsettled_until_t or (other.again and one.t <= other.completed_t + eps)
    return did_not_wait or not other.precedes(one, eps)
