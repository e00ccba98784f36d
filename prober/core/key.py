"""One key on one subscription: routes its events through the checks, in the order in which they need each other.

The way of a delivery (`_deliver`): it arrives, is placed in the learned log, and is judged as a message (integrity), as the next thing
sent (redelivery), as a first delivery (order), and as something held (holder); then it rewinds the key, if it does, and last it is held
itself and its redelivery is owed until it is acknowledged. The holder is judged before the rewind that this delivery may be takes away
what others held: the rewind is what is in question.

Messages of an epoch without any recorded publish are *foreign* (another run's): judged by content, counted, held, and progress for the key.
Where nobody recorded them (`Rules.publishes_recorded`), they are judged as far as that is possible (`unrecorded`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.collector import CUT_OFF, HOLE, FindingsCollector, count_redelivery, count_rewind
from prober.core.deadlines import doubtful_until_t
from prober.core.epoch_order import EpochOrder
from prober.core.events import LONG_AGO, AckConfirmed, Acked, DeadLettered, Delivered, LeaseModified, Nacked
from prober.core.holder import HolderCheck
from prober.core.integrity import (
    judge_confirmation,
    judge_content,
    judge_early_claims,
    judge_failure,
    judge_known_id,
    judge_origin,
    judge_other_claim,
    judge_redelivery,
    note_service_duplicate,
)
from prober.core.liveness import LivenessCheck
from prober.core.order import OrderCheck
from prober.core.positions import ACKED, NO_STAMP, OLDER, PRIMARY, REFUSED, REMOVED, SENT_BESIDE, SHARED, STRANGE, LearnedLog
from prober.core.publications import EPOCHS_KEPT, EpochRecord, Publication
from prober.core.racing import First, PutBack, SessionEvent, Waiting, first_of
from prober.core.redelivery import RedeliveryCheck
from prober.core.returned import Returned, brought_back
from prober.core.rules import Mode
from prober.core.sessions import ANCIENT, Arrival, Track, Tracks, stamp_of
from prober.core.subscription import Subscription
from prober.core.unrecorded import NumbersCheck, UnrecordedEpoch

if TYPE_CHECKING:
    from prober.core.group import KeyGroup

CHAIN_MAX: Final = 128
"""Publications that follow each other; with more a key is not put away, since that goes through them one within the other."""


class KeyChecker:
    """Judges one key on one subscription.

    Its memory is bounded by the window, what is outstanding or undelivered, and the live sessions. `due_t`: when to wake it next.
    """

    __slots__ = (
        "_back",
        "_claims",
        "_closed_seen_t",
        "_going_on",
        "_group",
        "_holder",
        "_in_doubt",
        "_last_event_t",
        "_last_position",
        "_liveness",
        "_numbers",
        "_order",
        "_put_back",
        "_redelivery",
        "_rules",
        "_tracks",
        "_unplaced_seen",
        "_unsettled",
        "collector",
        "due_t",
        "log",
        "subscription",
    )

    def __init__(self, collector: FindingsCollector, subscription: Subscription, group: KeyGroup) -> None:
        rules = subscription.rules
        self.collector = collector
        self.subscription = subscription
        self.due_t = inf
        self.log = LearnedLog(rules.window, rules.dead_letter_max_attempts)
        self._group = group
        self._rules = rules
        self._unsettled = False
        self._last_event_t = LONG_AGO
        self._last_position = ANCIENT
        self._closed_seen_t = LONG_AGO
        self._claims = False
        self._back: Returned | None = None
        self._in_doubt = False
        self._unplaced_seen = group.may_be_known
        self._put_back: PutBack | None = None
        self._going_on: PutBack | None = None
        self._tracks = Tracks(streaming=subscription.streaming)
        self._order = OrderCheck(collector, self.log, subscription, group.epochs)
        self._order.join()
        self._numbers = NumbersCheck(collector, self._order.places)
        self._holder = HolderCheck(collector, self.log, self._tracks, subscription, self._order)
        self._redelivery = RedeliveryCheck(collector, self.log, self._tracks, subscription, self._order, self._holder)
        self._liveness = LivenessCheck(collector, self.log, self._tracks, subscription, self._order, self._holder)

    # --- what the publisher says ---------------------------------------------------------------------------------------------

    def published(self, record: EpochRecord, publication: Publication, t: float) -> None:
        """A publish was confirmed: its record may have been delivered already, or overtaken."""
        order = self._order.of(record, publication.region)
        if publication.early:
            early = publication.early_on(self.subscription.index)
            judge_early_claims(self.collector, publication, early, self._group.primary, self._group.epochs, t)
        if (publication.early or order.overtaken) and self._order.confirmed(order, publication, t):
            record.receive(publication)
        elif self._claims and publication.token is not None:
            judge_confirmation(self.collector, self.log, publication, record.name, self._order.epochs, t)

    def publish_failed(self, epoch: str, publication: Publication, t: float, number: int) -> None:
        """An attempt failed definitely."""
        judge_failure(self.collector, publication, publication.early_on(self.subscription.index), epoch, t, number)

    def abandoned(self, epoch: str, publication: Publication) -> None:
        """A sequence number was given up: it has no primary, whatever answer still comes."""
        order = self._order.epoch(epoch, publication.region)
        if order is not None:
            order.overtaken.pop(publication.seq, None)

    def given_up(self, record: EpochRecord) -> None:
        """The oldest publications of an epoch are not recorded any more."""
        self._order.give_up(record)

    # --- deliveries ----------------------------------------------------------------------------------------------------------

    def delivered(self, event: Delivered, number: int) -> None:
        """Judges one delivery, unless it may have overtaken another: then that has time to come first."""
        if self.subscription.racing or event.session not in self.subscription.sessions:
            if self._follows(event, number):
                return
            if self._overtakes(event):
                self._put_back = self._put_back or PutBack()
                self._put_back.put(event, number, max(event.t + self._race_s(event), self._put_back.latest_due_t))
                return
        self._deliver(event, number)
        if self._put_back:
            self._let_through(LONG_AGO)

    def _deliver(self, event: Delivered, number: int) -> None:
        arrival = self._arrive(event, number)
        if event.defect is not None or not event.matches_filter:
            judge_content(self.collector, arrival, event.defect, event.matches_filter)
        record = self._group.epochs.get(event.epoch)
        if record is None and self._rules.publishes_recorded:
            self._foreign(arrival)
            return
        record = record or self._group.unrecorded()
        publication = record.open.get(event.seq)
        order = self._order.of(record, None if publication is None else publication.origin(arrival.token, arrival.generation)[1])
        if not self._place(arrival, order, publication):
            self._unplaced(arrival, order, publication)
            return
        if self._rules.dead_letter_max_attempts:
            self.log.count_attempt(arrival.position, event.delivery_attempt)
        rewinds = self._rules.redelivery_promised and self._redelivery_judges(arrival)
        if arrival.new and publication is not None:
            self._order_judges(arrival, order, publication)
        if arrival.new and publication is None and type(record) is UnrecordedEpoch:
            self._numbers.first_delivery(event, arrival)
        certain = self._rules.redelivery_promised and self._holder.judge(arrival)
        if rewinds:
            self._rewind(arrival)
        elif (self.subscription.racing or not arrival.new) and self._holder.may_begin_anew(arrival):
            self._holder.begin_anew(arrival)
        self._hold(arrival, certain, publication)

    def _arrive(self, event: Delivered, number: int) -> Arrival:
        t = event.t
        if t > self._last_event_t:
            self._last_event_t = t
        track = self._track(event.session, t)
        session = track.session
        if session.unseen and self.subscription.holed:
            self.collector.excuse(t, HOLE)
        lo = t - self._rules.delivery_delay_max_s
        stamp = stamp_of(event)
        if stamp != NO_STAMP:
            self.collector.ids_alone = False
        return Arrival(event, number, lo if lo > session.opened_t else session.opened_t, track, stamp)

    def _track(self, session: str, t: float) -> Track:
        """The track of the session of that name; mostly the one that delivered last, as long as its session is open."""
        tracks, subscription = self._tracks, self.subscription
        if self._closed_seen_t != subscription.last_closed_t:
            self._closed_seen_t = subscription.last_closed_t
            tracks.fold_closed(t)
        latest = tracks.latest
        if latest is not None and latest.session.name == session and latest.session.closed_t == inf:
            return latest
        known = subscription.session(session, t)
        if known.closed_t < inf:
            self._closed_seen_t = LONG_AGO  # its track is folded away again with the next delivery
        return tracks.of(known, t)

    def _foreign(self, arrival: Arrival) -> None:
        self.collector.counts.deliveries_foreign += 1
        self._holder.foreign(arrival)
        if len(self._group.epochs) >= EPOCHS_KEPT:
            self._group.lost_track(self)  # another subscription may have learned it before its epoch was forgotten
        self._liveness.delivered(0, arrival.t, 0, arrival.lo)
        self._liveness.foreign.hold(arrival, self._group.largest)

    def _place(self, arrival: Arrival, order: EpochOrder, publication: Publication | None) -> bool:
        """Finds or learns the position; False for a record that may have been forgotten."""
        log = self.log
        known = log.find(arrival.token)
        if known:
            arrival.position = log.find_record(known, arrival.token, arrival.stamp)
            if arrival.position:
                self._recognise(arrival, order)
            elif self._order.has_retired(arrival, order, publication):
                return False  # of two records under one id the other has left the window, or may be older than the record
            else:
                arrival.copies_id = True
                self._learn(arrival, order, publication)
                self._note_copy(arrival, order, known)
            return True
        awaited = publication is not None and publication.token == arrival.token and order.awaits(publication)
        if not awaited and (
            self._order.has_retired(arrival, order, publication) or self._order.predates(order, publication, arrival)
        ):
            return False
        self._learn(arrival, order, publication)
        if publication is None or not arrival.proven or publication.early:
            self._judge_origin(arrival, order, publication)
        return True

    def _note_copy(self, arrival: Arrival, order: EpochOrder, known: int) -> None:
        """A known message id with another publish time."""
        for position in (known, arrival.position):
            self.log.mark(position, SHARED)
        self._order.places.copied(known, arrival.position)
        judge_known_id(self.collector, self.log, known, arrival, order, self._order.epochs)
        note_service_duplicate(self.collector, arrival)

    def _recognise(self, arrival: Arrival, order: EpochOrder) -> None:
        """A record that was received before."""
        log, position = self.log, arrival.position
        arrival.lo = max(arrival.lo, log.invoked_t(position))
        count_redelivery(self.collector.counts, log, arrival, self._liveness.owed.get(position))
        judge_known_id(self.collector, log, position, arrival, order, self._order.epochs)
        judge_redelivery(self.collector, log, arrival)
        if self.subscription.racing:
            session = arrival.track.session
            self._order.places.came_again(position, session.name, arrival.t, self.subscription.race_s(session))
            self._order.overtakings.came_again(position, arrival.t)

    def _learn(self, arrival: Arrival, order: EpochOrder, publication: Publication | None) -> None:
        """A record that was not received before."""
        log, record = self.log, order.record
        invoked_t = publication.earliest_t(arrival.generation) if publication is not None else record.earliest_t(arrival.seq)
        arrival.new = True
        arrival.lo = arrival.lo if arrival.lo > invoked_t else invoked_t
        arrival.position = log.learn(arrival.token, arrival.stamp, order.index, arrival.seq, arrival.number, invoked_t)
        self.collector.count_first_delivery(recorded=type(record) is not UnrecordedEpoch)
        arrival.proven = publication is not None and publication.token == arrival.token
        if self.subscription.racing:
            self._mark_race(arrival, order, publication)
        if (publication is None or publication.several_regions) and self._order.several_regions:
            self._order.places.lose(arrival.position)  # it may be of either region
        if not arrival.proven and (self._unplaced_seen or record.may_predate(arrival.seq)):
            log.mark(arrival.position, OLDER)  # the log may have stood in another order when it was first delivered
            self._order.places.lose(arrival.position)
        self._group.learned(self, arrival)
        if publication is not None and LONG_AGO < invoked_t <= self._order.excused_until_t:
            self._redelivery.passed_over.frontier = arrival.position

    def _judge_origin(self, arrival: Arrival, order: EpochOrder, publication: Publication | None) -> None:
        early = publication.early_on(self.subscription.index) if publication is not None and publication.early else []
        if judge_origin(self.collector, arrival, publication, early, order):
            self.log.mark(arrival.position, STRANGE)
        if publication is None or publication.token != arrival.token:
            self._claims = True
            if publication is None or publication.token is not None:
                named = self._group.primary(arrival.token)
                judge_other_claim(self.collector, arrival, publication, named, self._group.epochs)

    def _mark_race(self, arrival: Arrival, order: EpochOrder, publication: Publication | None) -> None:
        """Marks what may have changed places with others: where either session may have been ahead, only their arrival tells."""
        session, places, eps = arrival.track.session, self._order.places, self._rules.clock_error_s
        flags = PRIMARY if arrival.proven and not arrival.copies_id else 0
        invoked_t, waiting = self.log.invoked_t(arrival.position), self._put_back_beside(session.name)
        if self._order.overtakings.came(arrival, invoked_t, places, waiting):
            flags |= SENT_BESIDE
        self.log.mark(arrival.position, flags)
        race_s = self.subscription.race_s(session)
        unbound = not order.settled and not arrival.proven and race_s > eps  # it did not wait for anything
        early = arrival.t - race_s <= self.subscription.unawaited_t  # nobody knew that there are several sessions
        if self._in_doubt or unbound or (early and self._tracks.reached_since(arrival.t - race_s, arrival.track)):
            places.lose(arrival.position)
        if self._waits_beside(arrival):
            places.advance(arrival.position)
        first = first_of(arrival, arrival.token, publication, race_s, arrival.position)
        proven = first.proven and not arrival.copies_id  # nothing binds the second copy
        again = publication is not None and bool(publication.early_on(self.subscription.index))
        first = first._replace(unawaited=not order.settled, proven=proven, again=again)
        places.learned(first, session.name, self._waiting_beside(session.name), eps, self.collector.grace_until_t + eps)

    def _unplaced(self, arrival: Arrival, order: EpochOrder, publication: Publication | None) -> None:
        """A delivery from beyond the window begins a run that is not judged."""
        self._unplaced_seen = True
        self._order.unplaced(publication, arrival)
        if not order.settled and publication is not None:
            self.log.retire(order.index, arrival.seq)  # it may come again when the baseline is known
        self._group.lost_track(self)
        self.collector.counts.deliveries_unplaced += 1
        self._redelivery.unplaced(arrival)
        self._liveness.delivered(0, arrival.t, arrival.number, arrival.lo)
        self._record(arrival, ANCIENT)

    def _redelivery_judges(self, arrival: Arrival) -> bool:
        """Judges the step to this delivery; the common cases need no look at the predecessors.

        The latest delivery of all is always a possible predecessor. So a new message right after it is neither a skip nor a rewind,
        and neither is the next message on the only session.
        """
        check = self._redelivery
        position, own = arrival.position, arrival.own
        if not check.watching:
            if own == position - 1 and own and len(self._tracks.by_session) == 1 and not self._tracks.past:
                return False
            if arrival.new and self._last_position == position - 1 and own in (0, position - 1):
                return False
        return check.judge(arrival)

    def _order_judges(self, arrival: Arrival, order: EpochOrder, publication: Publication) -> None:
        if arrival.copies_id:
            self._order.learn(order, publication, arrival)
        elif self._order.first_delivery(order, publication, arrival):
            order.record.receive(publication)

    def _rewind(self, arrival: Arrival) -> None:
        """Everything at or above the position is dropped where it was held, and is owed again up to the frontier."""
        count_rewind(self.collector.counts, self.log, arrival, inside_a_run=self._liveness.run is not None)
        self._holder.begin_anew(arrival)
        reached = self._tracks.reached_since(arrival.lo - self._rules.clock_error_s, arrival.track)
        if not self._redelivery.passed_over.may_have(self.log.frontier) and not self._order.is_anywhere(arrival.position):
            self._redelivery.beginning.begin(arrival, self._liveness.last_delivery_t)
            self._liveness.rewound(
                arrival.position, arrival.number, arrival.t, reached, self._order.last_of_region(arrival.position)
            )

    def _hold(self, arrival: Arrival, certain: bool, publication: Publication | None) -> None:
        """The subscriber holds the message now, `certain` only if it is beyond doubt that the key is with it.

        It is also in doubt while an acknowledgement of an earlier delivery may be under way, for applied now it ends this hold too, and
        when it may have been sent before a rewind that was seen on another session, which then has dropped it.
        """
        rules, holder, track = self._rules, self._holder, arrival.track
        position, delay_s = arrival.position, rules.delivery_delay_max_s
        lease_end_t = arrival.t + rules.ack_deadline_s
        acked_before = not (arrival.new and arrival.proven) and self.log.flags(position) & (ACKED | OLDER)
        acked_before = acked_before and position not in self._liveness.owed and not self._redelivery.returned.undid_acks(position)
        certain = certain and (arrival.new or not holder.acks.may_end(position, arrival.lo))
        if certain and len(self._tracks.by_session) > 1:  # a rewind seen on another session may have been sent after this
            certain = all(other.rewound_t < arrival.lo - rules.clock_error_s for other in self._tracks.others(track))
        if self.subscription.open > 1 and rules.mode is Mode.STREAMING:
            self.collector.counts.deliveries_among_several += 1
        if certain:
            track.hold(position, (arrival.number, arrival.t, lease_end_t - delay_s, lease_end_t + delay_s), rules.window)
        else:
            track.drop_from(position)
            track.unsettle(lease_end_t + delay_s)
        self._record(arrival, position)
        self._liveness.delivered(position, arrival.t, arrival.number, arrival.lo)
        self.subscription.neighbours.held(self.collector.key, arrival.t, lease_end_t + delay_s)
        if arrival.lo > self.collector.grace_until_t + rules.clock_error_s:
            self._redelivery.passed_over.came(position)
        if not acked_before and not self._redelivery.passed_over.may_have(position):
            self._liveness.owe(position, lease_end_t, arrival.number)
        if track.session.flow is not None:
            size = publication.size if publication is not None and publication.size else self._group.largest
            self.subscription.take(track.session, arrival.token, size, arrival.t, lease_end_t + delay_s)

    def _record(self, arrival: Arrival, position: int) -> None:
        rules = self._rules
        arrival.track.record(position, arrival.t, arrival.number, rules.delivery_delay_max_s, rules.clock_error_s)
        self._last_position = position

    # --- answers -------------------------------------------------------------------------------------------------------------

    def acked(self, event: Acked, number: int) -> None:
        """An acknowledgement is on its way: nothing is owed for the message any more."""
        if self._follows(event, number):
            return
        t = event.t
        if t > self._last_event_t:
            self._last_event_t = t
        token = hash(event.message_id)
        newest = self.log.find(token)
        acking = self._tracks.by_session.get(event.session)
        if self._holder.splits.pending:
            self._holder.splits.lets_go(event.session, self.log.positions_of(newest) if newest else [], t)
        if newest and not self.log.flags(newest) & SHARED:
            self._ack(newest, t, acking)
        elif newest:
            for position in self.log.positions_of(newest):
                self._ack(position, t, acking)
        elif self._liveness.foreign.release(token, t) and self._liveness.is_free(t):
            self.subscription.neighbours.freed(self.collector.key, t)
        if acking is None or acking.session.flow is not None:
            self.subscription.release(event.session, token, t)

    def _ack(self, position: int, t: float, acking: Track | None) -> None:
        self.log.mark(position, ACKED)
        self._holder.acks.sent(position, t)
        self._liveness.release(position)
        if self._liveness.is_free(t) and not self.log.flags(position) & SHARED:
            self.subscription.neighbours.freed(self.collector.key, t)
        if acking is not None:
            self._holder.answered(acking, position, t)
            acking.unsettle(t + self.subscription.ack_settled_s)
        if acking is None or len(self._tracks.by_session) > 1:
            for track in self._tracks:
                if track is not acking:
                    track.doubt(position)

    def nacked(self, event: Nacked | LeaseModified, number: int) -> None:
        """A refusal is on its way: the service may release the key from this message on."""
        if self._follows(event, number):
            return
        t = event.t
        self._last_event_t = max(self._last_event_t, t)
        token = hash(event.message_id)
        newest = self.log.find(token)
        track = self._tracks.find(event.session)
        if self._holder.splits.pending:
            self._holder.splits.lets_go(event.session, self.log.positions_of(newest) if newest else [], t)
        if not newest:
            self._liveness.foreign.refuse(event.session, token, t)
            return
        self.subscription.release(event.session, token, t)
        for position in self.log.positions_of(newest):
            self._nack(position, t, track)

    def _nack(self, position: int, t: float, track: Track | None) -> None:
        number = track.held.get(position, (0,))[0] if track is not None else 0
        if not self._rules.exactly_once:  # there, only the answer to the latest delivery counts
            self.log.mark(position, REFUSED)
            self._holder.acks.sent(position, t)
        self._tracks.unsettle(track, t + self._rules.ack_settled_s)
        if track is not None:
            self._holder.answered(track, position, t)
        owed = self._liveness.owed.get(position)
        self._liveness.refuse(position, t)
        number = number or (owed.number if owed is not None else 0)
        if number and self._rules.mode is Mode.PUSH:
            self._redelivery.nacked(position, number, t)

    def lease_modified(self, event: LeaseModified, number: int) -> None:
        """A lease is being changed: it may end earlier, or last longer, than it would have."""
        if event.seconds <= 0:
            self.nacked(event, number)
            return
        if self._follows(event, number):
            return
        token = hash(event.message_id)
        newest = self.log.find(token)
        track = self._tracks.find(event.session)
        end_t, delay_s = event.t + event.seconds, self._rules.delivery_delay_max_s
        self._tracks.unsettle(track, end_t + delay_s)  # also for a message that was forgotten
        # also if it was acknowledged before, which may have been lost
        self.subscription.neighbours.held(self.collector.key, event.t, end_t + delay_s)
        for position in self.log.positions_of(newest) if newest else (0,):  # 0: one that was forgotten
            self._liveness.postpone(position, end_t)
            if track is not None:
                track.shorten(position, end_t, delay_s)
        self.subscription.extend(event.session, token, end_t + delay_s)

    def ack_confirmed(self, event: AckConfirmed, number: int) -> None:
        """Exactly-once: the service confirmed an acknowledgement."""
        if self._follows(event, number):
            return
        position = self.log.find(hash(event.message_id))
        if (
            position
            and self._rules.exactly_once
            and event.t > self.collector.grace_until_t
            and not self.log.flags(position) & (SHARED | OLDER)  # or it may be another record of that id
        ):
            self.subscription.confirmations.confirm(self.collector.counts, self.log, position, event.t, number)

    def dead_lettered(self, event: DeadLettered, number: int) -> None:
        """A message left the subscription: runs may pass over it, and nobody holds it."""
        if self._put_back is not None and self._put_back.leaves(event, number):
            return
        token = hash(event.message_id)
        newest = self.log.find(token)
        if not newest:
            publication = self._group.primary(token)
            if publication is not None:
                self._order.dismiss(publication)
            return
        for position in self.log.positions_of(newest):
            self.log.mark(position, REMOVED)
            self._liveness.release(position)
            for track in self._tracks:
                track.let_go(position)
        self.collector.dead_letters += 1
        if self._liveness.is_free(event.t):
            self.subscription.neighbours.freed(self.collector.key, event.t)

    # --- sessions that race --------------------------------------------------------------------------------------------------

    def _follows(self, event: SessionEvent, number: int) -> bool:
        """Puts an event back if something on its session was; True if so."""
        waiting = self._put_back
        if waiting is None or not waiting.waits_on(event.session):
            return False
        waiting.put(event, number, event.t + self._race_s(event) if isinstance(event, Delivered) else LONG_AGO)
        return True

    def _race_s(self, event: Delivered) -> float:
        return self.subscription.race_s(self.subscription.session(event.session, event.t))

    def _overtakes(self, event: Delivered) -> bool:
        """Whether something that must come before a first delivery has not, and may yet on another session, or waits here."""
        publication = self._publication(event)
        if publication is None or self._unsettled or not (self._put_back or self._race_s(event) > 0):
            return False
        token = hash(event.message_id)
        return not self.log.find(token) and self._order.waits(publication, event.epoch, token, event.generation)

    def _let_through(self, now: float) -> None:
        """Lets go on what needs not wait any more: what it waited for has come, or had time to."""
        while self._put_back and (ready := self._put_back.next(now, self._overtakes, self._precedes)) is not None:
            event, number, in_time = ready
            self._going_on, self._put_back = self._put_back, None
            self._in_doubt = not in_time
            self._go_on(event, number)
            self._in_doubt = False
            self._put_back = self._going_on
            self._going_on = None
        if not self._put_back:
            self._put_back = None

    def _give_up_waiting(self) -> None:
        if self._put_back:
            self._put_back.give_up()
            self._let_through(inf)

    def _waiting_beside(self, session: str) -> Iterator[First]:
        """What was put back on other sessions and is not learned yet."""
        for event in self._put_back_beside(session):
            token = hash(event.message_id)
            if not self.log.find(token):
                yield first_of(event, token, self._publication(event), self._race_s(event))

    def _waits_beside(self, arrival: Arrival) -> bool:
        """Whether a copy of what was just learned waits on another session, which may have been received, or sent, before."""
        return any(
            event.message_id == arrival.message_id and (arrival.stamp == NO_STAMP or stamp_of(event) in (NO_STAMP, arrival.stamp))
            for event in self._put_back_beside(arrival.track.session.name)
        )

    def _put_back_beside(self, session: str) -> Iterator[Delivered]:
        waiting = self._put_back or self._going_on
        return waiting.deliveries(besides=session) if waiting else iter(())

    def _publication(self, event: Delivered) -> Publication | None:
        record = self._group.epochs.get(event.epoch)
        return record.open.get(event.seq) if record is not None else None

    def _precedes(self, one: Delivered, other: Delivered) -> bool:
        """Whether one delivery is of a primary that must come before another."""
        publication, behind = self._publication(one), self._publication(other)
        if publication is None or behind is None or publication.token != hash(one.message_id):
            return False
        return self._order.precedes(publication, one.epoch, behind, other.epoch, hash(other.message_id), other.generation)

    def _go_on(self, event: Waiting, number: int) -> None:
        if isinstance(event, Delivered):
            self._deliver(event, number)
        elif isinstance(event, Acked):
            self.acked(event, number)
        elif isinstance(event, Nacked):
            self.nacked(event, number)
        elif isinstance(event, LeaseModified):
            self.lease_modified(event, number)
        elif isinstance(event, DeadLettered):
            self.dead_lettered(event, number)
        else:
            self.ack_confirmed(event, number)

    # --- control operations and time -----------------------------------------------------------------------------------------

    def unsettle(self, until_t: float, cause: str, back: Returned | None = None) -> None:
        """A seek, purge or filter change settles until `until_t`: until then everything may be explained by it.

        What was learned may be passed over, holds and runs are gone. That is so again for what still comes from before it, so the
        same happens once more when it has settled. `back`: what is certain of it all the same.
        """
        self._give_up_waiting()
        self._back = back if until_t >= self.collector.grace_until_t else None
        self.collector.excuse(until_t, cause)
        self._unsettled = True
        self._start_over()
        self.subscription.neighbours.forget(self.collector.key)  # but not what comes until it has settled, and is held on to
        self.due_t = min(self.due_t, self.collector.grace_until_t)

    def interrupted(self) -> None:
        """The record has a hole: nothing from before it can be placed any more, and every baseline is adopted anew."""
        self._give_up_waiting()
        self.log.forget()
        self._tracks.forget()
        self._order.interrupt()

    def wake(self, now: float) -> None:
        """Decides everything whose time passed before `now`, and says in `due_t` when to be woken next.

        A clock that begins anew may be due again before `now`, but later than it was: else, with a deadline of 0, this would not end.
        """
        woken_t = self.due_t
        self._settle(now)
        self._group.compare(now)
        if self._unsettled and now > self.collector.grace_until_t:
            self._unsettled = False
            self._start_over()
            if self._back is not None and self._liveness.last_delivery_t < self._back.sought_t:
                self._redelivery.returned = back = brought_back(self._back, self.log, self._holder.acks)
                self._liveness.run = back.run
            self._back = None
        if not self.subscription.waiting.running:
            self.subscription.flow_changed(now)
        coming_t = inf if self._put_back else self._liveness.judge(now)  # what waits here has been delivered
        if not self.subscription.waiting.running and self.owes():  # whether anybody waits now says nothing about forgetting
            coming_t = min(coming_t, now + self.subscription.shortest_deadline_s)
        elif coming_t == inf and not self._put_back:
            coming_t = self._sleep(now)
        due_t = min(coming_t, self._next_hold())
        self.due_t = due_t if due_t > woken_t else max(due_t, now)

    def is_due_sooner(self, t: float) -> bool:
        """Whether something that happened at `t` may have to be decided, without a further event, before `due_t`: that is put forward."""
        due_t = t + self.subscription.shortest_deadline_s
        if self._redelivery.held or self._holder.splits.pending or self._put_back or self._order.on_hold or self._numbers.on_hold:
            due_t = min(due_t, self._next_hold())
        elif self._group.compared_t < due_t:
            due_t = self._group.compared_t
        if due_t >= self.due_t:
            return False
        self.due_t = due_t
        return True

    def finish(self, stopped_t: float = inf) -> None:
        """Settles what is on hold as if time went on without further events, in doubt what would have shown after `stopped_t`."""
        if stopped_t < inf:
            self._settle(stopped_t)
            self.collector.excuse(inf, CUT_OFF)
        self._settle(inf)

    def _settle(self, now: float) -> None:
        if self._put_back:
            self._let_through(now)
        until_t = min(now, self.collector.grace_until_t) if self._unsettled and now < inf else now
        self._redelivery.settle(until_t)
        self._holder.splits.settle(until_t)
        self._order.settle(until_t, self._put_back.tokens if self._put_back and self._order.lost else ())
        self._numbers.settle(until_t)

    def owes(self, now: float = LONG_AGO) -> bool:
        """Whether the service still owes this subscription a delivery, other than what may be older than the retention by `now`."""
        return self._liveness.owes() or self._order.owes(now)

    def expired_t(self, now: float) -> float:
        """What was published up to this time may be older than the retention of the subscription."""
        return self._order.expired_t(now)

    @property
    def is_excerpt(self) -> bool:
        """Whether the record begins in the middle of an epoch, so that what came first is not known."""
        return any(record.first > 1 or not record.complete for record in self._group.epochs.values())

    def epoch_of(self, position: int) -> str:
        """The name of the epoch of a position inside the window; empty if it is forgotten."""
        return self._order.epoch_name(self.log.epoch(position))

    def region_of(self, position: int) -> str:
        """Where a position inside the window was published, as far as is known."""
        return self._order.region_of(position)

    @property
    def at_rest(self) -> bool:
        """Whether nothing can be found until the next event, however late: nothing is owed, and no verdict is on hold."""
        waiting = self._redelivery.held or self._holder.splits.pending or self._put_back or self._liveness.owed
        return not (waiting or self._order.on_hold or self._numbers.on_hold or self.owes() or self._order.chain > CHAIN_MAX)

    def _start_over(self) -> None:
        self.log.forget_confirmations()
        self._order.excuse(self.collector.grace_until_t, inf if self._back is None else self._back.since_t)
        self._numbers.forget()
        self._redelivery.reset(self.log.frontier)
        self._holder.reset()
        self._liveness.reset()
        self._tracks.distrust()
        self._last_position = ANCIENT

    def _next_hold(self) -> float:
        splits, back_t = self._holder.splits.pending, self._put_back.due_t if self._put_back else inf
        held_t = min(back_t, splits[0].due_t if splits else inf, *(skip.due_t for skip in self._redelivery.held))
        return min(held_t, self._order.due_t, self._numbers.due_t, self._group.compared_t)

    def _sleep(self, now: float) -> float:
        """Gives up the window of a key that is idle and settled; returns when to look again."""
        idle_t = self._last_event_t + self._rules.idle_after_s
        if now <= idle_t or not len(self._tracks):
            return idle_t if len(self._tracks) else inf
        busy_until_t = max(self._tracks.busy_until_t, doubtful_until_t(self.subscription, self._liveness.owed, self.log))
        if busy_until_t >= now:
            return busy_until_t
        self.log.forget()
        self._group.lost_track(self)
        self._tracks.forget()
        self._holder.rest()
        self._redelivery.rest()
        self._liveness.rest()
        for order in self._order.epochs:
            order.record.rest()
        self._last_position = ANCIENT
        return inf
