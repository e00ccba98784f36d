"""One key on one subscription: routes its events through the checks, in the order in which they need each other.

A delivery is first placed in the learned log, then judged as a message (integrity), as the next thing sent (redelivery), as a first
delivery (order), and as something held (holder); last, it is held itself and its redelivery is owed until it is acknowledged. The
holder is judged before the rewind that this delivery may be takes away what others held: the rewind is what is in question.

Messages of an epoch without any recorded publish are *foreign* (another run's): they are counted and not judged. They may rewind the
key, so everything learned may have been released by them.
"""

from __future__ import annotations

from math import inf
from typing import Protocol

from prober.core.coverage import count_redelivery, count_rewind
from prober.core.docket import Docket
from prober.core.events import LONG_AGO, AckConfirmed, Acked, DeadLettered, Delivered, LeaseModified, Nacked
from prober.core.holder import HolderCheck
from prober.core.integrity import judge_content, judge_failure, judge_known_id, judge_origin, judge_redelivery
from prober.core.liveness import LivenessCheck
from prober.core.order import EpochOrder, OrderCheck
from prober.core.positions import ACKED, REMOVED, LearnedLog
from prober.core.publications import EpochRecord, Publication
from prober.core.redelivery import RedeliveryCheck
from prober.core.rules import Mode
from prober.core.sessions import ANCIENT, NO_TRACKS, TRACKS_KEPT, UNARY_TRACKS_KEPT, Arrival, Held, Session, Track, take_over
from prober.core.subscription import Subscription

_NO_OTHERS: list[Track] = []


class TopicKey(Protocol):
    """The key as all subscriptions of the topic see it: `epochs` is what its publisher recorded."""

    epochs: dict[str, EpochRecord]

    def learned(self, checker: KeyChecker, arrival: Arrival) -> None:
        """A subscription learned a position of the key's log."""


class KeyChecker:
    """Judges one key on one subscription.

    Its memory is bounded by the window, by what is outstanding or undelivered, and by the live sessions. `due_t` is when it next has
    to be woken although nothing happens.
    """

    __slots__ = (
        "_holder",
        "_last_event_t",
        "_last_position",
        "_liveness",
        "_order",
        "_redelivery",
        "_rules",
        "_topic_key",
        "_tracks",
        "_unsettled",
        "docket",
        "due_t",
        "log",
        "subscription",
    )

    def __init__(self, docket: Docket, subscription: Subscription, topic_key: TopicKey) -> None:
        self.docket = docket
        self.subscription = subscription
        self.due_t = inf
        self.log = LearnedLog(subscription.rules.window, subscription.rules.dead_letter_max_attempts)
        self._topic_key = topic_key
        self._rules = subscription.rules
        self._tracks = NO_TRACKS
        self._unsettled = False
        self._last_event_t = LONG_AGO
        self._last_position = ANCIENT
        self._redelivery = RedeliveryCheck(docket, self.log)
        self._order = OrderCheck(docket, self.log, subscription.index, topic_key.epochs)
        self._holder = HolderCheck(docket, self.log)
        self._liveness = LivenessCheck(docket, self.log)

    def published(self, epoch: str, publication: Publication, t: float) -> None:
        """A publish was confirmed: its record may have been delivered already, or overtaken."""
        order = self._order.epoch(epoch)
        if order is not None and self._order.confirmed(order, publication, t):
            order.record.receive(publication)

    def publish_failed(self, epoch: str, publication: Publication, t: float, number: int) -> None:
        """An attempt failed definitely."""
        order = self._order.epoch(epoch)
        if order is not None:
            judge_failure(self.docket, publication, publication.early_on(self.subscription.index), epoch, t, number)

    def abandoned(self, epoch: str, seq: int) -> None:
        """A sequence number was given up: it has no primary, whatever answer still comes."""
        order = self._order.epoch(epoch)
        if order is not None:
            order.forget(seq)

    def delivered(self, event: Delivered, number: int) -> None:
        """Judges one delivery; see the head of this file for the order of the checks."""
        t = self._last_event_t = event.t
        session = self.subscription.session(event.session, t)
        track = self._track(session, t, number)
        order = self._order.epoch(event.epoch)
        if order is None:
            self._foreign(t)
            return
        publication = order.record.open.get(event.seq)
        lo = max(t - self._rules.delivery_delay_max_s, session.opened_t)
        arrival = Arrival(t, number, lo, track, event.epoch, event.seq, event.message_id)
        if event.defect is not None or not event.matches_filter:
            judge_content(self.docket, arrival, event.defect, event.matches_filter)
        if not self._place(arrival, order, publication):
            self._unplaced(arrival, publication)
            return
        self.log.count_attempt(arrival.position, event.delivery_attempt)
        rewinds = self._redelivery_judges(arrival)
        if arrival.new and publication is not None and self._order.first_delivery(order, publication, arrival):
            order.record.receive(publication)
        certain = self._holder_judges(arrival)
        if rewinds:
            self._rewind(arrival)
        self._hold(arrival, certain)

    def acked(self, event: Acked) -> None:
        """An acknowledgement is on its way: nothing is owed for the message any more."""
        self._last_event_t = event.t
        position = self.log.find(hash(event.message_id))
        if not position:
            return
        self.log.mark(position, ACKED)
        self._holder.acked_t = event.t
        self._liveness.release(position)
        acking = self._tracks.get(event.session)
        if acking is not None:
            acking.held.pop(position, None)
            acking.unsettle(event.t + self._rules.ack_settled_s)
        for track in self._others(acking):
            track.doubt(position)

    def nacked(self, event: Nacked | LeaseModified) -> None:
        """A refusal is on its way: the service may release the key from this message on."""
        t = self._last_event_t = event.t
        position = self.log.find(hash(event.message_id))
        track = self._tracks.get(event.session)
        self._holder.release(position or self.log.frontier)
        if not position or track is None:
            return
        held = track.held.pop(position, None)
        track.unsettle(t + self._rules.ack_settled_s)
        if held is not None:
            self._liveness.refuse(position, t)
            if self._rules.mode is Mode.PUSH:
                self._redelivery.nacked(position, held.number)

    def lease_modified(self, event: LeaseModified) -> None:
        """A lease is being changed: it may end earlier, or last longer, than it would have."""
        if event.seconds <= 0:
            self.nacked(event)
            return
        position = self.log.find(hash(event.message_id))
        track = self._tracks.get(event.session)
        if not position or track is None:
            return
        end_t = event.t + event.seconds
        self._holder.shorten(position, end_t, event.t)
        self._liveness.postpone(position, end_t)
        held = track.held.get(position)
        if held is not None:
            latest_t = max(held.lease_end_max_t, end_t + self._rules.delivery_delay_max_s)
            track.held[position] = Held(held.number, min(held.lease_end_min_t, end_t), latest_t)

    def ack_confirmed(self, event: AckConfirmed, number: int) -> None:
        """Exactly-once: the service confirmed an acknowledgement."""
        position = self.log.find(hash(event.message_id))
        if position and self._rules.exactly_once and event.t > self.docket.amnesty_until_t:
            self.log.confirm(position, event.t, number)

    def dead_lettered(self, event: DeadLettered) -> None:
        """A message left the subscription: runs may pass over it, and nobody holds it."""
        token = hash(event.message_id)
        position = self.log.find(token)
        if not position:
            return self._order.dismiss(token)
        self.log.mark(position, REMOVED)
        self._liveness.release(position)
        for track in self._tracks.values():
            track.held.pop(position, None)

    def unsettle(self, until_t: float) -> None:
        """A seek, purge or filter change settles until `until_t`: until then everything may be explained by it.

        What was learned may be passed over, holds and runs are gone. That is so again for what still comes from before it, so the
        same happens once more when it has settled.
        """
        self.docket.amnesty_until_t = until_t
        self._unsettled = True
        self._start_over()
        self.due_t = min(self.due_t, until_t)

    def interrupted(self) -> None:
        """The record has a hole: nothing from before it can be placed any more, and every baseline is adopted anew."""
        self.log.forget()
        self._tracks = NO_TRACKS
        self._order.interrupt()

    def wake(self, now: float) -> None:
        """Decides everything whose time passed before `now`, and says in `due_t` when to be woken next."""
        until_t = min(now, self.docket.amnesty_until_t) if self._unsettled else now
        self._redelivery.settle(until_t)
        self._holder.settle(until_t)
        if self._unsettled and now > self.docket.amnesty_until_t:
            self._unsettled = False
            self._start_over()
        coming_t = self._liveness.judge(now, self.subscription.up_since_t, self._order)
        if coming_t == inf:
            coming_t = self._sleep(now)
        if self.subscription.up_since_t == inf and self.owes():
            coming_t = min(coming_t, now + self.subscription.shortest_deadline_s)
        self.due_t = min(coming_t, self._next_hold())

    def next_due(self, t: float) -> float:
        """The earliest time at which something that happened at `t` may have to be decided without a further event."""
        due_t = t + self.subscription.shortest_deadline_s
        return min(due_t, self._next_hold()) if self._redelivery.held or self._holder.pending else due_t

    def finish(self) -> None:
        """Settles everything on hold as if time went on without further events."""
        self._redelivery.settle(inf)
        self._holder.settle(inf)

    def owes(self) -> bool:
        """Whether the service still owes this subscription a delivery."""
        return self._liveness.owes() or any(owed or any(order.missing()) for order, owed in self._order.undelivered())

    @property
    def at_rest(self) -> bool:
        """Whether nothing can be found until the next event, however late: nothing is owed, and no verdict is on hold."""
        return not (self._redelivery.held or self._holder.pending or self._liveness.owed or self.owes())

    def _track(self, session: Session, t: float, number: int) -> Track:
        track = self._tracks.get(session.name)
        if track is not None and track.session is session:
            return track
        if track is not None:
            self._tracks[f"{session.name} before {number}"] = track
        if len(self._tracks) >= (TRACKS_KEPT if self._rules.mode is Mode.STREAMING else UNARY_TRACKS_KEPT):
            self._forget_tracks(t)
        if not self._tracks:
            self._tracks = {}
        track = self._tracks[session.name] = Track(session)
        return track

    def _others(self, own: Track | None) -> list[Track]:
        """The sessions that delivered the key, one left out."""
        return [track for track in self._tracks.values() if track is not own] if len(self._tracks) > 1 else _NO_OTHERS

    def _forget_tracks(self, t: float) -> None:
        """Forgets sessions, but not what they may still be predecessors with, nor until when they may count as holders."""
        gone = take_over(self._tracks, t)
        for track in gone:
            track.let_go(0, inf)
            self._holder.unsettled_until_t = max(self._holder.unsettled_until_t, track.unsettled_until_t)
        self._redelivery.remember(span for track in gone for span in track.spans)

    def _foreign(self, t: float) -> None:
        self.docket.counters["deliveries_foreign"] += 1
        self._holder.release(self.log.frontier)
        self._liveness.delivered(0, t, 0)

    def _place(self, arrival: Arrival, order: EpochOrder, publication: Publication | None) -> bool:
        """Finds or learns the position; False for a record that may have been forgotten."""
        log = self.log
        position = log.find(arrival.token)
        if position:
            arrival.position = position
            arrival.lo = max(arrival.lo, log.invoked_t(position))
            count_redelivery(self.docket.counters, log, arrival, self._liveness.owed.get(position))
            judge_known_id(self.docket, log, arrival, order, self._order.epochs)
            judge_redelivery(self.docket, log, arrival)
            return True
        primary_awaited = publication is not None and publication.token == arrival.token and order.awaits(arrival.seq)
        retired = log.is_retired(order.index, arrival.seq) and not primary_awaited
        if retired or self._order.predates(order, publication, arrival):
            return False
        early = publication.early_on(self.subscription.index) if publication is not None else []
        invoked_t = publication.invoked_t if publication is not None else LONG_AGO
        arrival.new = True
        arrival.lo = max(arrival.lo, invoked_t)
        arrival.position = log.learn(arrival.token, order.index, arrival.seq, arrival.number, arrival.t, invoked_t)
        self.docket.counters["deliveries_first"] += 1
        judge_origin(self.docket, arrival, publication, early, order)
        self._topic_key.learned(self, arrival)
        if LONG_AGO < invoked_t <= self._order.excused_until_t:
            self._redelivery.sought_frontier = arrival.position
        return True

    def _unplaced(self, arrival: Arrival, publication: Publication | None) -> None:
        """A delivery from beyond the window begins a run that is not judged."""
        self._order.unplaced(publication, arrival)
        self.docket.counters["deliveries_unplaced"] += 1
        self._holder.unplaced(arrival, self._tracks.values())
        self._liveness.delivered(0, arrival.t, arrival.number)
        arrival.track.record(ANCIENT, arrival.t, arrival.number, LONG_AGO)
        self._last_position = ANCIENT

    def _redelivery_judges(self, arrival: Arrival) -> bool:
        """Judges the step to this delivery; the common cases need no look at the predecessors.

        The latest delivery of all is always a possible predecessor. So a new message right after it is neither a skip nor a rewind,
        and neither is the next message on the only session.
        """
        check, tracks = self._redelivery, self._tracks
        position, own = arrival.position, arrival.own
        if not check.watching:
            if own == position - 1 and own and len(tracks) == 1:
                return False
            if arrival.new and self._last_position == position - 1 and own in (0, position - 1):
                return False
        return check.judge(arrival, tracks.values(), self.subscription.is_alone(arrival.track.session))

    def _holder_judges(self, arrival: Arrival) -> bool:
        holder = self._holder
        if holder.pending:
            holder.explain_pending(arrival)
        if holder.owner == arrival.track.session.subscriber:
            if holder.contested:
                holder.resume(arrival)
            return True
        return holder.judge(arrival, self._tracks.values(), self.subscription.last_closed_t)

    def _rewind(self, arrival: Arrival) -> None:
        """Everything at or above the position is dropped where it was held, and is owed again up to the frontier."""
        count_rewind(self.docket.counters, self.log, arrival, inside_a_run=self._liveness.run is not None)
        reached = 0
        arrival.track.rewound_t = arrival.t
        arrival.track.let_go(arrival.position, inf)
        for track in self._others(arrival.track):
            track.let_go(arrival.position, inf)
            after = arrival.lo - self._rules.clock_error_s
            reached = max([reached, *(span.position for span in track.spans if span.last_t >= after)])
        if self.log.frontier > self._redelivery.sought_frontier:
            self._liveness.rewound(arrival.number, arrival.track.session, reached)

    def _hold(self, arrival: Arrival, certain: bool) -> None:
        """The subscriber holds the message now, `certain` only if it is beyond doubt that the key is with it.

        It is also in doubt while an acknowledgement of an earlier delivery may be under way, for applied now it ends this hold too, and
        when it may have been sent before a rewind that was seen on another session, which then has dropped it.
        """
        rules = self._rules
        t, number, position = arrival.t, arrival.number, arrival.position
        lease_end_t = t + rules.ack_deadline_s
        delay, track = rules.delivery_delay_max_s, arrival.track
        acked_before = self.log.flags(position) & ACKED
        if self._holder.ack_under_way(arrival) or any(other.rewound_t >= arrival.lo for other in self._others(track)):
            certain = False
        if self.subscription.open > 1:
            self.docket.counters["deliveries_among_several"] += 1
        track.held[position] = Held(number, lease_end_t - delay if certain else LONG_AGO, lease_end_t + delay)
        track.record(position, t, number, t - delay - rules.clock_error_s)
        self._liveness.delivered(position, t, number)
        self._last_position = position
        if not acked_before and position > self._redelivery.sought_frontier:
            self._liveness.owe(position, lease_end_t, number)

    def _start_over(self) -> None:
        self.log.forget_confirmations()
        self._order.excuse(self.docket.amnesty_until_t)
        self._redelivery.reset(self.log.frontier)
        self._holder.reset(self.log.frontier)
        self._liveness.reset()
        for track in self._tracks.values():
            track.held.clear()
            track.distrust()
        self._last_position = ANCIENT

    def _next_hold(self) -> float:
        skip_t = self._redelivery.held[0].due_t if self._redelivery.held else inf
        split_t = self._holder.pending[0].due_t if self._holder.pending else inf
        return min(skip_t, split_t)

    def _sleep(self, now: float) -> float:
        """Gives up the window of a key that is idle and settled; returns when to look again."""
        idle_t = self._last_event_t + self._rules.idle_after_s
        if now <= idle_t or not self._tracks:
            return idle_t if self._tracks else inf
        busy_until_t = max(track.busy_until_t for track in self._tracks.values())
        if busy_until_t >= now:
            return busy_until_t
        self.log.forget()
        self._tracks = NO_TRACKS
        self._holder.release(self.log.frontier)
        self._redelivery.rest()
        self._liveness.rest()
        for order in self._order.epochs:
            order.record.rest()
        self._last_position = ANCIENT
        return inf
