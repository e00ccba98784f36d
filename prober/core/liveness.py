"""Promises that something happens at all: accepted messages arrive, runs are finished, unacknowledged messages come back.

    STUCK             V1: a confirmed message is not delivered, and its key stood still, for `delivery_deadline_s`.
    LOST_OVERTAKEN    V1: a confirmed message that others overtook is not delivered within `delivery_deadline_s`.
    REDELIVERY_STALL  V2: after a rewind, no delivery reaches the frontier of that moment, and the key stood still, for
                      `stall_deadline_s`.
    UNACKED_STALL     V3: a message that was never acknowledged is not delivered again after its refusal or the end of its lease,
                      and the key stood still, for `unacked_deadline_s`.

Each is told once per standstill, as of the moment when its first deadline passed, so that it makes no difference when the clock was
looked at.

"Violated" always means "not within the deadline although the key made no progress": a key that is slow, but moves, lags and is not
stuck. Clocks run only while a subscriber is there to deliver to: for streaming pull an open stream, for pull and push once anything
was ever delivered or asked for.

A rewind obliges the service to reach the frontier again, but copies of the new run may have arrived at another subscriber before the
delivery that shows the rewind; so what can have been sent after it counts. If the stream that carried the run breaks, its tail may
have been lost on the way after it was acknowledged earlier: then the stall is indeterminate, and what is really owed shows as
UNACKED_STALL.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from prober.core.docket import SEQS_SHOWN, Docket
from prober.core.events import LONG_AGO
from prober.core.findings import Kind
from prober.core.order import EpochOrder, OrderCheck
from prober.core.positions import ACKED, REMOVED, LearnedLog
from prober.core.publications import Publication
from prober.core.redelivery import DEAD_LETTER
from prober.core.rules import Mode
from prober.core.sessions import Session

_NOTHING: frozenset[str] = frozenset()

STREAM_BROKE = "the stream that carried the run broke, and what it lost may have been acknowledged before"


class Owed(NamedTuple):
    """A delivered, never acknowledged position: from `due_t` on it has to come again; `number` is its latest delivery."""

    due_t: float
    number: int
    refused: bool = False


class Run(NamedTuple):
    """A redelivery run that has to reach `target` and has come to `reached`: begun by event `number` on `session`."""

    target: int
    reached: int
    number: int
    session: Session


class LivenessCheck:
    """Keeps what one key is owed and says when a deadline has passed; see the head of this file."""

    __slots__ = ("_docket", "_log", "_told", "last_delivery_number", "last_delivery_t", "owed", "run")

    def __init__(self, docket: Docket, log: LearnedLog) -> None:
        self._docket = docket
        self._log = log
        self.owed: dict[int, Owed] = {}
        self.run: Run | None = None
        self.last_delivery_t = LONG_AGO
        self.last_delivery_number = 0
        self._told = _NOTHING

    def delivered(self, position: int, t: float, number: int) -> None:
        """Notes progress: a delivery at `position` (0: cannot be placed)."""
        self.last_delivery_t = t
        self.last_delivery_number = number
        self._told = _NOTHING
        if self.run is not None:
            self._advance(self.run, max(position, self.run.reached), self.run.target)

    def owe(self, position: int, due_t: float, number: int) -> None:
        """A delivery that is not acknowledged has to come again from `due_t` on."""
        self.owed[position] = Owed(due_t, number)
        if len(self.owed) > 2 * self._docket.rules.window:
            self.owed = {kept: owed for kept, owed in self.owed.items() if kept > self._log.floor}

    def postpone(self, position: int, due_t: float) -> None:
        """The lease of a delivery may last until `due_t`."""
        owed = self.owed.get(position)
        if owed is not None and due_t > owed.due_t:
            self.owed[position] = Owed(due_t, owed.number)

    def refuse(self, position: int, t: float) -> None:
        """A delivery was refused: it has to come again from now on."""
        owed = self.owed.get(position)
        if owed is not None:
            self.owed[position] = Owed(t, owed.number, refused=True)

    def release(self, position: int) -> None:
        """Nothing is owed for a position any more: it was acknowledged or removed."""
        self.owed.pop(position, None)
        if self.run is not None:
            self._advance(self.run, self.run.reached, self.run.target)

    def rewound(self, number: int, session: Session, reached: int) -> None:
        """A rewind: everything up to the frontier has to come again. `reached` may have been sent again already."""
        self._advance(Run(0, 0, number, session), reached, self._log.frontier)

    def reset(self) -> None:
        """A seek: nothing that was owed is owed any more."""
        self.run = None
        self.rest()

    def rest(self) -> None:
        """Gives back the memory of what was owed."""
        self.owed = {}

    def judge(self, now: float, up_since_t: float, orders: OrderCheck) -> float:
        """Files every deadline that has passed before `now` and returns when the next one passes, `inf` if none is running.

        `up_since_t` says since when a subscriber is there, `inf` if none is.
        """
        if now <= self._docket.amnesty_until_t:
            return self._docket.amnesty_until_t
        quiet_since_t = max(self.last_delivery_t, up_since_t)
        if quiet_since_t == inf:
            return inf
        coming_t = min(self._judge_run(now, quiet_since_t), self._judge_owed(now, quiet_since_t))
        for order, undelivered in orders.undelivered():
            lost_t = self._judge_lost(now, up_since_t, order)
            coming_t = min(coming_t, lost_t, self._judge_stuck(now, quiet_since_t, order.record.name, undelivered))
        return coming_t

    def owes(self) -> bool:
        """Whether a redelivery is still owed to a subscriber."""
        return self.run is not None or (self._docket.rules.unacked_deadline_s < inf and bool(self.owed))

    def _advance(self, run: Run, reached: int, target: int) -> None:
        """The run has come to `reached`; positions that left the subscription need not come again."""
        while self._log.holds(target) and self._log.flags(target) & REMOVED:
            target -= 1
        self.run = run._replace(reached=reached, target=target) if reached < target else None

    def _judge_run(self, now: float, quiet_since_t: float) -> float:
        deadline_t = quiet_since_t + self._docket.rules.stall_deadline_s
        run = self.run
        if run is None or now <= deadline_t:
            return inf if run is None else deadline_t
        self.run = None
        if self._log.holds(run.target):
            facts = {"target": self._log.seq(run.target), "since_t": quiet_since_t}
            witnesses = (run.number, self.last_delivery_number, self._log.number(run.target))
            self._docket.liveness(Kind.REDELIVERY_STALL, deadline_t, witnesses, facts, self._doubt_of(run))
        return inf

    def _doubt_of(self, run: Run) -> str:
        streaming = self._docket.rules.mode is Mode.STREAMING
        if streaming and run.session.closed_t < inf and self._log.flags(run.target) & ACKED:
            return STREAM_BROKE
        return DEAD_LETTER if self._log.may_be_dead_lettered(run.target) else ""

    def _judge_owed(self, now: float, quiet_since_t: float) -> float:
        if self._docket.rules.unacked_deadline_s == inf:
            return inf
        firm: dict[int, float] = {}
        doubtful: dict[int, float] = {}
        for position, owed in self.owed.items():
            if position > self._log.floor:
                group = doubtful if self._log.may_be_dead_lettered(position) else firm
                group[position] = max(owed.due_t, quiet_since_t)
        return min(self._judge_overdue(now, firm, ""), self._judge_overdue(now, doubtful, DEAD_LETTER))

    def _judge_overdue(self, now: float, since: dict[int, float], doubt: str) -> float:
        """The same for a group of positions, by the time since when each is owed."""
        deadline_s = self._docket.rules.unacked_deadline_s
        since_t = min(since.values(), default=inf)
        told = f"{Kind.UNACKED_STALL} {doubt}"
        if now <= since_t + deadline_s or told in self._told:
            return inf if told in self._told else since_t + deadline_s
        self._told |= {told}
        overdue = sorted(position for position, t in since.items() if t == since_t)
        self._docket.liveness(
            Kind.UNACKED_STALL,
            since_t + deadline_s,
            [self.owed[position].number for position in overdue[:5]],
            {"seqs": tuple(map(self._log.seq, overdue[:SEQS_SHOWN])), "count": len(overdue), "since_t": since_t},
            doubt,
        )
        return inf

    def _judge_lost(self, now: float, up_since_t: float, order: EpochOrder) -> float:
        deadline_s = self._docket.rules.delivery_deadline_s
        coming_t = inf
        for overtaken in order.missing():
            since_t = max(overtaken.t, up_since_t)
            if overtaken.reported_lost:
                continue
            if now <= since_t + deadline_s:
                coming_t = min(coming_t, since_t + deadline_s)
                continue
            overtaken.reported_lost = True
            publication = overtaken.publication
            self._docket.liveness(
                Kind.LOST_OVERTAKEN,
                since_t + deadline_s,
                (publication.invoked_number, publication.confirmed_number, overtaken.by.number),
                {"seq": publication.seq, "by": overtaken.by.seq, "epoch": order.record.name, "since_t": overtaken.t},
            )
        return coming_t

    def _judge_stuck(self, now: float, quiet_since_t: float, epoch: str, undelivered: list[Publication]) -> float:
        deadline_s = self._docket.rules.delivery_deadline_s
        if not undelivered or epoch in self._told:
            return inf
        first = min(undelivered, key=lambda publication: publication.confirmed_t)
        since_t = max(first.confirmed_t, quiet_since_t)
        if now <= since_t + deadline_s:
            return since_t + deadline_s
        self._told |= {epoch}
        stuck = [publication.seq for publication in undelivered if publication.confirmed_t <= since_t + deadline_s]
        self._docket.liveness(
            Kind.STUCK,
            since_t + deadline_s,
            (first.invoked_number, first.confirmed_number, self.last_delivery_number),
            {"seqs": tuple(stuck[:SEQS_SHOWN]), "count": len(stuck), "epoch": epoch, "since_t": since_t},
        )
        return inf
