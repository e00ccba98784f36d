"""Exactly-once delivery: a message does not come again while it is outstanding.

    EOD_REDELIVERY_WHILE_OUTSTANDING   a message comes again while it is certainly held. (A rewind to something below it that was
                                       released drops it first; so it can only be where the service started again.)

It is on hold until it can no longer be explained, as the violations of the one-holder rule are (`splits`). Of a subscriber with several
streams the rewind to something below need not be seen: what is below may have been sent again on a stream that broke, and what is held
have come behind it on another one. That explains nothing where nothing below can have been released: all of it is confirmed, or certainly
held on the very stream on which the message comes again.
"""

from __future__ import annotations

from math import inf
from typing import Final

from prober.core.collector import FindingsCollector
from prober.core.events import LONG_AGO
from prober.core.findings import Facts, Kind
from prober.core.order import OrderCheck
from prober.core.places import precedes
from prober.core.positions import OLDER, LearnedLog
from prober.core.sessions import Arrival, Held, Tracks
from prober.core.splits import Break, Certain, Split, Splits, overtook_t
from prober.core.subscription import Subscription

NOT_HELD: Final[Held] = (0, LONG_AGO, LONG_AGO, LONG_AGO)


class OutstandingCheck:
    """Judges what comes again of one key; see the head of this file."""

    __slots__ = ("_collector", "_log", "_orders", "_splits", "_subscription", "_tracks")

    def __init__(
        self,
        collector: FindingsCollector,
        log: LearnedLog,
        tracks: Tracks,
        subscription: Subscription,
        orders: OrderCheck,
        splits: Splits,
    ) -> None:
        self._collector = collector
        self._log = log
        self._tracks = tracks
        self._subscription = subscription
        self._orders = orders
        self._splits = splits

    def judge(self, arrival: Arrival, breaks: tuple[Break, ...]) -> None:
        """A message comes again: it must not be held. `breaks`: where the key may have begun again."""
        held = self._held(arrival)
        if not held or self._collector.rules.dead_letter_max_attempts or self._in_run_from_below(arrival):
            return  # a run that restarts at a dead-lettered message begins with the next one
        sent_t = arrival.lo - self._collector.rules.clock_error_s
        if any(one.position < arrival.position and one.explains(arrival, sent_t, self._orders, self._log) for one in breaks):
            held = [one for one in held if one.session is arrival.track.session]  # the others began anew after this was sent
        if held:
            self._splits.put_on_hold(self._split(arrival, held))

    def _held(self, arrival: Arrival) -> list[Certain]:
        """The deliveries of the message that are certainly held."""
        rules, position = self._collector.rules, arrival.position
        before_t, now = arrival.t - rules.clock_error_s, arrival.t + rules.clock_error_s
        held = []
        for track in self._tracks:
            number, t, until_t, _ = track.held.get(position, NOT_HELD)
            if until_t > now and (t <= before_t or track is arrival.track):
                sent_t = t - rules.delivery_delay_max_s
                again_t = sent_t if self._subscription.racing and self._may_begin_below(arrival, sent_t) else inf
                one = Certain(position, number, track.session, True, overtook_t(rules, t, arrival))
                held.append(one._replace(again_below_t=again_t))
        return held

    def _may_begin_below(self, arrival: Arrival, since_t: float) -> bool:
        """Whether anything below may have been released since then: let go, or lost with a stream before it came."""
        if any(order.overtaken for order in self._orders.epochs):
            return True
        log, position = self._log, arrival.position
        below = log.between(log.floor, position)
        below += [one for one in log.between(position, log.frontier + 1) if not precedes(self._orders, log, position, one)]
        return log.floor > 0 or any(self._may_be_released(one, arrival, since_t) for one in below)

    def _may_be_released(self, position: int, arrival: Arrival, since_t: float) -> bool:
        """Not what had been confirmed by then, nor what has been held since on the very stream of an arrival."""
        confirmed = self._log.confirmation(position)
        if confirmed is not None and confirmed.t < since_t:
            return False
        _, t, until_t, _ = arrival.track.held.get(position, NOT_HELD)
        return t >= since_t or until_t <= arrival.t + self._collector.rules.clock_error_s

    def _split(self, arrival: Arrival, held: list[Certain]) -> Split:
        rules, subscription, session = self._collector.rules, self._subscription, arrival.track.session
        due_t = arrival.t if subscription.is_alone(session) else arrival.t + rules.on_hold_s
        if any(one.again_below_t < inf for one in held):
            due_t = max(due_t, subscription.parting_shows_t(arrival.t))
        facts: Facts = {
            "seq": arrival.seq,
            "epoch": arrival.epoch,
            "message_id": arrival.message_id,
            "subscriber": session.subscriber,
            "holder": held[0].session.subscriber,
            "mode": rules.mode.value,
        }
        witnesses = (*(one.number for one in held), arrival.number)
        now = arrival.t + rules.clock_error_s
        own = frozenset(one for one, (_, _, until_t, _) in arrival.track.held.items() if until_t > now)
        kind = Kind.EOD_REDELIVERY_WHILE_OUTSTANDING
        return Split(kind, due_t, arrival.t, arrival.position, session, tuple(held), witnesses, facts, begun_by_none=own)

    def _in_run_from_below(self, arrival: Arrival) -> bool:
        """Whether what came before on its session, the place of which is not certain, may have been a rewind to below."""
        own, position, log = arrival.own, arrival.position, self._log
        if arrival.track.after_foreign:
            return True
        if not position < own <= log.frontier:
            return False
        return bool(log.flags(own) & OLDER) or not precedes(self._orders, log, position, own)
