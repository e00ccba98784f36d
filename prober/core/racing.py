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
    """What was put back of one key, by session, each first in, first out."""

    __slots__ = ("_count", "_queues")

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[float, Waiting, int]]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._queues)

    @property
    def due_t(self) -> float:
        """When the next delivery is let through in any case; `inf` if none waits."""
        return min((queue[0][0] for queue in self._queues.values()), default=inf)

    @property
    def latest_due_t(self) -> float:
        """When everything that waits now is let through in any case."""
        return max((queue[-1][0] for queue in self._queues.values()), default=LONG_AGO)

    def follows(self, event: SessionEvent, number: int, due_t: float = LONG_AGO) -> bool:
        """Puts an event back if something on its session was; True if so. It may wait until `due_t` itself when its turn comes."""
        queue = self._queues.get(event.session)
        if queue is None:
            return False
        queue.append((max(due_t, queue[-1][0]), event, number))
        self._count += 1
        return True

    def leaves(self, event: DeadLettered, number: int) -> bool:
        """The same for a message that left the subscription, if it waits here: behind it."""
        for queue in self._queues.values():
            if any(isinstance(other, Delivered) and other.message_id == event.message_id for _, other, _ in queue):
                queue.append((queue[-1][0], event, number))
                self._count += 1
                return True
        return False

    def put(self, event: Delivered, number: int, due_t: float) -> None:
        """Puts the first event of a session back."""
        self._queues[event.session] = deque([(due_t, event, number)])
        self._count += 1

    def first(self, session: str) -> Delivered:
        """What was put back first on a session that something was put back on."""
        return next(event for _, event, _ in self._queues[session] if isinstance(event, Delivered))

    @property
    def tokens(self) -> set[int]:
        """The messages that wait."""
        waiting = (event for queue in self._queues.values() for _, event, _ in queue)
        return {hash(event.message_id) for event in waiting if isinstance(event, Delivered)}

    def times(self, message_id: str) -> int:
        """How often a message waits here."""
        waiting = (event for queue in self._queues.values() for _, event, _ in queue)
        return sum(isinstance(event, Delivered) and event.message_id == message_id for event in waiting)

    def deliveries(self, besides: str) -> Iterator[Delivered]:
        """What waits on other sessions, the first of each."""
        for session, queue in self._queues.items():
            if session != besides:
                yield from (event for _, event, _ in islice(queue, ABREAST_MAX) if isinstance(event, Delivered))

    def brings(self, message_id: str, besides: str) -> bool:
        """Whether a copy of a message waits on another session, which may have been sent before what comes there."""
        return any(event.message_id == message_id for event in self.deliveries(besides))

    def on(self, session: str) -> Iterator[Delivered]:
        """What waits on one session."""
        return (event for _, event, _ in self._queues.get(session, ()) if isinstance(event, Delivered))

    def let_go(self, session: str) -> None:
        """What waits first on a session need not wait any more: no race explains that something comes behind it there."""
        queue = self._queues[session]
        queue[0] = (LONG_AGO, *queue[0][1:])

    def next(
        self,
        now: float,
        waits: Callable[[Delivered], bool],
        published_as: Callable[[Delivered], float],
        awaits: Callable[[Delivered, Delivered], bool],
    ) -> tuple[Waiting, int, bool] | None:
        """Takes out an event that need not wait any more: nothing is missing before it (then True), or it was due before `now`.

        What is due gives way to what waits on another session and was published before (`published_as`): both waited for something else.
        But if what it `awaits` came behind it on its session, and nowhere else in time, their order is certain.
        """
        due = None
        for session, queue in self._queues.items():
            due_t, event, _ = queue[0]
            if not (isinstance(event, Delivered) and waits(event)):
                return (*self._take(session), True)
            if due_t < now or due_t == LONG_AGO or now == inf or self._count > PUT_BACK_MAX:
                due = due or session
        if due is None:
            return None
        proven = self._queues[due][0][0] == LONG_AGO or self._is_proven(due, awaits)
        return (*self._take(due if proven else self._first_published(published_as)), proven)

    def _is_proven(self, session: str, awaits: Callable[[Delivered, Delivered], bool]) -> bool:
        first, *behind = self.on(session)
        elsewhere = {event.message_id for event in self.deliveries(besides=session)}
        return any(event.message_id not in elsewhere and awaits(first, event) for event in behind)

    def _first_published(self, published_as: Callable[[Delivered], float]) -> str:
        """The session on which the delivery waits that was published first, be it behind others; of several the one put back first."""
        waiting = ((event, session) for session, queue in self._queues.items() for _, event, _ in queue)
        ranked = ((published_as(event), session) for event, session in waiting if isinstance(event, Delivered))
        return min(ranked, key=lambda each: each[0])[1]

    def _take(self, session: str) -> tuple[Waiting, int]:
        queue = self._queues[session]
        _, event, number = queue.popleft()
        self._count -= 1
        if not queue:
            del self._queues[session]
        return event, number


class First(NamedTuple):
    """A first delivery: what is known of its place beside those of other sessions. `race_s`: by how much it may have been ahead.

    `in_doubt`: it did not wait for what must precede it, or that had no time to come.
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
    in_doubt: bool = False

    def precedes(self, other: First, eps: float) -> bool:
        """Whether this one certainly stands before the other in the log: by session order or in real time."""
        if not self.proven:
            return False
        in_session = other.proven and self.epoch == other.epoch and self.seq < other.seq and self.ordered_t <= other.ordered_t
        return in_session or self.completed_t + eps < other.invoked_t


class Abreast:
    """What was delivered for the first time lately, by session: records of two sessions whose order only their arrival tells."""

    __slots__ = ("_beyond_t", "_sessions")

    def __init__(self) -> None:
        self._sessions: dict[str, deque[First]] = {}
        self._beyond_t = LONG_AGO

    def learn(
        self, first: First, session: str, own: str, waiting: Iterable[First], eps: float, unsettled_until_t: float
    ) -> set[int]:
        """Notes a first delivery on a session; returns the positions whose places are not certain by it, and 0 for any others.

        What came on the session `own` came in order. `waiting` was put back on other sessions, and is learned later. Nothing waited
        that came up to `unsettled_until_t`.
        """
        raced = {first.position for other in waiting if _abreast(first, other, eps)}
        self._forget(first)
        for name, others in self._sessions.items():
            if name != own:
                raced |= {other.position for other in others if _abreast(other, first, eps, unsettled_until_t)}
        if self._beyond_t >= first.t - first.race_s:
            raced.add(0)
        if raced:
            raced.add(first.position)
        latest = self._sessions.setdefault(session, deque())
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
        found = [
            (session, at, first)
            for session, firsts in self._sessions.items()
            for at, first in enumerate(firsts)
            if first.position in (one, other)
        ]
        if len(found) < 2 or found[0][0] == found[1][0]:
            return range(0)
        if abs(found[0][2].t - found[1][2].t) > max(first.race_s for _, _, first in found):
            return range(0)
        for session, at, first in found:
            self._sessions[session][at] = first._replace(proven=False)
        return range(min(one, other), max(one, other) + 1)

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
    invoked_t, _ = publication.origin(token, event.generation)
    proven, ordered_t, completed_t = publication.token == token, publication.ordered_t, publication.confirmed_t
    return First(t, position, epoch, seq, proven, invoked_t, ordered_t, completed_t, race_s)


def _abreast(one: First, other: First, eps: float, unsettled_until_t: float = LONG_AGO) -> bool:
    """Whether what is learned first may stand behind what is learned after it.

    What came up to `unsettled_until_t` did not wait for what must precede it.
    """
    if abs(one.t - other.t) > max(one.race_s, other.race_s) or one.precedes(other, eps):
        return False
    return one.in_doubt or one.t <= unsettled_until_t or not other.precedes(one, eps)
