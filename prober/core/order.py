"""Promise 1: messages of a key are received in the order in which the service received them.

What is compared are *primaries*: the records whose ids the publishes returned. Within one epoch the primaries must appear in the
learned log in the order of their sequence numbers (session order, L3), because one writer handed them over one after the other.
Across everything, a record whose publish was invoked after another publish had completed must come later in the log (real time, L4).
Both hold within one publishing region only.

    ORDER_GAP           a primary is received although an earlier, confirmed one has not been; or any record, although a publish that
                        had completed before its own was invoked has not been: so the lost tail of an epoch shows when the next one flows.
    ORDER_INVERSION     a primary is received after one that had to come later.
    REALTIME_INVERSION  a record is received before the primary of a publish that had completed before the record's own publish
                        was even invoked. One comparison decides it: the completion time against the latest invocation learned so far.

What is *not* a violation: other records of the same sequence number (a client's retry puts 1, 2, 1', 2', 3 in the log), and publishes
whose outcome is unknown, which may be in the log once, several times, late, or never. Session order binds two sequence numbers only
when the confirmed attempt of the lower one was handed over first: a republication after an unknown outcome is ordered where it was
republished. Nor is it one that what was published longer ago than the retention never comes.

A delivery may arrive before its publish is confirmed. Such ids wait in the record; the verdict is passed when the confirmation
arrives. That is also when a gap shows that could not be one before.

Each subscription goes through the publications of an epoch once, in the order of their invocations: `behind` is the last that it has
come past. What it passed without receiving it is `overtaken`. So judging a delivery takes the same time whatever waits behind it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from math import inf
from typing import Final

from prober.core.attempts import Early
from prober.core.collector import SEQS_SHOWN, FindingsCollector
from prober.core.epoch_order import Awaited, EpochOrder, Primary, RealTime
from prober.core.events import LONG_AGO
from prober.core.findings import Facts, Kind
from prober.core.overtakings import By, Overtaking, Overtakings
from prober.core.places import Places
from prober.core.positions import PRIMARY, RACED, LearnedLog
from prober.core.publications import EPOCHS_KEPT, EpochRecord, Publication
from prober.core.sessions import ANYWHERE, Arrival, Source
from prober.core.subscription import Subscription

SOUGHT: Final = "it was published before {} had settled, which may have passed over it"
DEAD_LETTER: Final = "streams broke or pulls were lost so often that the dead-letter policy may have removed what is missing"
SECOND_COPY: Final = (
    "it may be the second copy of a message that was stored twice, and the first have expired, been dead-lettered or come too early"
)


class OrderCheck:
    """Judges the order of first deliveries of one key; see the head of this file.

    records             the publisher's record by epoch; an epoch that is not in it is foreign.
    epochs              how far each of them has been received, by region.
    lost                what is missing before a record that came, until it had time to come late.
    overtakings         what came late or is missing, until a stream that broke had time to explain it.
    places              how certain the order of the learned log is.
    adopted_t           where the baseline is adopted: when the first delivery was placed.
    excused_until_t     publishes invoked up to this time may have been passed over by a control operation.
    forgiven_until_t    publishes invoked up to this time need never come.
    """

    __slots__ = (
        "_collector",
        "_forgot_epochs",
        "_log",
        "_real_times",
        "_records",
        "_subscription",
        "adopted_t",
        "epochs",
        "excused_until_t",
        "forgiven_until_t",
        "lost",
        "overtakings",
        "places",
    )

    def __init__(
        self, collector: FindingsCollector, log: LearnedLog, subscription: Subscription, records: Mapping[str, EpochRecord]
    ) -> None:
        self._collector = collector
        self._log = log
        self._subscription = subscription
        self._records = records
        self._real_times: tuple[RealTime, ...] = ()
        self.epochs: tuple[EpochOrder, ...] = ()
        self.lost: tuple[Awaited, ...] = ()
        self.overtakings = Overtakings(collector, subscription)
        self.places = Places(log)
        self._forgot_epochs = False
        self.excused_until_t = self.forgiven_until_t = self.adopted_t = LONG_AGO

    # --- epochs and regions --------------------------------------------------------------------------------------------------

    def epoch(self, name: str, region: str | None) -> EpochOrder | None:
        """The state of an epoch in a region, in any if that is None, begun when its first publish is on record.

        None for a foreign epoch.
        """
        record = self._records.get(name)
        return None if record is None else self.of(record, region)

    def of(self, record: EpochRecord, region: str | None) -> EpochOrder:
        """The same for an epoch that is on record."""
        if self.epochs:
            newest = self.epochs[-1]
            if newest.record is record and (region is None or newest.real_time.region == region):
                return newest
        for order in reversed(self.epochs):
            if order.record is record and (region is None or order.real_time.region == region):
                return order
        return self._begin(record, region or "")

    def epoch_name(self, index: int) -> str:
        """The name of an epoch by the index that stands for it in the log; empty if it is forgotten."""
        return next((order.record.name for order in self.epochs if order.index == index), "")

    def knows_epoch(self, position: int) -> bool:
        """Whether the epoch of a position inside the window is still recorded: a record of one that is not counts as foreign."""
        if not self._forgot_epochs and len(self._records) < EPOCHS_KEPT:
            return True
        index, records = self._log.epoch(position), self._records
        return any(order.index == index and records.get(order.record.name) is order.record for order in self.epochs)

    def record_of(self, position: int) -> EpochRecord | None:
        """What the publisher recorded of the epoch of a position inside the window."""
        return self._records.get(self.epoch_name(self._log.epoch(position)))

    @property
    def several_regions(self) -> bool:
        """Whether the key was published in more than one region, as far as is recorded."""
        return len(self._real_times) > 1 or len(self._regions()) > 1

    def _regions(self) -> set[str]:
        return {region for record in self._records.values() for region in record.regions}

    def share_region(self, *positions: int) -> bool:
        """Whether positions inside the window were published in one region, as far as is known."""
        return len(self._real_times) < 2 or len(set(map(self.region_of, positions))) == 1

    def last_of_region(self, position: int) -> int:
        """The highest position of the log that was published in the region of another one."""
        last = self._log.frontier
        while last > position and not self.share_region(position, last):
            last -= 1
        return last

    def region_of(self, position: int) -> str:
        """Where a position inside the window was published, as far as is known."""
        index = self._log.epoch(position)
        return next((order.real_time.region for order in self.epochs if order.index == index), "")

    def is_anywhere(self, position: int) -> bool:
        """Whether a position may be of any region: its publish is not on record any more, or never was, or it has left the window."""
        log, held = self._log, self._log.holds(position)
        if held and not log.flags(position) & RACED:
            return False
        regions = self._regions()
        if len(regions) > 1 or not held:
            return len(regions) > 1
        record = self.record_of(position)
        return record is not None and log.seq(position) < record.first and any(regions)

    def has_expired(self, invoked_t: float, t: float) -> bool:
        """Whether what was published then may be older than the retention at `t`."""
        return invoked_t < self.expired_t(t)

    def expired_t(self, now: float) -> float:
        """What was published up to this time may be older than the retention; long ago if that has no bound."""
        return now - self._collector.rules.message_retention_s + self._collector.rules.clock_error_s

    def _free_until_t(self, now: float) -> float:
        """What was published before need not come: it may be older than the retention, or than a subscription of unknown age.

        Of what a younger subscription receives first, the service may have stored the first copy before there was a subscription;
        then that says nothing about what was published next. Publish times tell copies apart, and without them there are none.
        """
        return max(self.expired_t(now), LONG_AGO if self._collector.ids_alone else self._subscription.there_since_t)

    def _begin(self, record: EpochRecord, region: str) -> EpochOrder:
        index = self.epochs[-1].index + 1 if self.epochs else 0
        real_time = next((known for known in self._real_times if known.region == region), None)
        if real_time is None:
            real_time = RealTime(region)
            self._real_times += (real_time,)
        known = []
        for kept in self.epochs:
            if self._records.get(kept.record.name) is kept.record:
                known.append(kept)
            else:
                self._log.forget_epoch(kept.index)
                self._forgot_epochs = True
        order = EpochOrder(index, record, real_time, settled=self._collector.rules.subscription_predates_first_publish)
        self.epochs = (*known, order)
        if all(kept.record is not record for kept in known):
            self._collector.epochs += 1
        return order

    def join(self) -> None:
        """The subscription is new: what was published before is awaited, as far as it is on record."""
        for record in self._records.values():
            if record.confirmed_rank:
                for region in sorted({publication.region for publication in record.open.values()}):
                    self._begin(record, region)

    # --- control operations --------------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """The record has a hole: what was published before it can no longer be placed, and every baseline is adopted anew."""
        for name in self._records:
            self.epoch(name, None)
        for order in self.epochs:
            order.interrupt()
            self._log.retire(order.index, order.record.last)

    def excuse(self, until_t: float, since_t: float) -> None:
        """A seek: what was invoked up to `until_t` may have been passed over, and is owed no more if it was not after `since_t`."""
        self.excused_until_t = until_t
        self.forgiven_until_t = min(until_t, since_t)
        self.lost = ()
        for order in self.epochs:
            order.overtaken.clear()

    def dismiss(self, publication: Publication) -> None:
        """The record of a publication left the subscription before it was received."""
        for order in self.epochs:
            if order.record.open.get(publication.seq) is publication:
                order.dismiss(publication)

    def give_up(self, record: EpochRecord) -> None:
        """The oldest publications of an epoch are not recorded any more."""
        oldest = record.oldest
        for order in self.epochs:
            if order.record is record and oldest is not None:
                for publication in order.pending():
                    if publication.rank >= oldest.rank:
                        break
                    order.come_past(publication)

    # --- what is owed --------------------------------------------------------------------------------------------------------

    def undelivered(self, now: float) -> Iterator[tuple[EpochOrder, Iterator[Publication]]]:
        """What each epoch is still owed. With a filter nothing can be said: the record does not tell which publishes match."""
        if self._collector.rules.filtered:
            return
        for order in self.epochs:
            if self._records.get(order.record.name) is order.record:
                yield order, order.confirmed_pending(max(self.forgiven_until_t, self._free_until_t(now)))

    @property
    def chain(self) -> int:
        """How many publications hang together, one following the other, at most."""
        behind = (order.record.ranks - order.passed for order in self.epochs if order.behind is not None)
        opened = (record.ranks - record.oldest.rank for record in self._records.values() if record.oldest is not None)
        return max([*behind, *opened], default=0)

    def owes(self, now: float) -> bool:
        """Whether anything that was confirmed is still owed, and is not older than the retention."""
        expired_t = self.expired_t(now)
        excused_until_t = max(self.forgiven_until_t, expired_t, self._subscription.there_since_t)
        for order, owed in self.undelivered(now):
            if next(owed, None) is not None or order.owes_first(excused_until_t):
                return True
            if any(overtaken.publication.invoked_t >= expired_t for overtaken in order.missing()):
                return True
        return False

    def waits(self, publication: Publication, epoch: str, token: int, generation: int) -> bool:
        """Whether something that has not been received must come before a first record of this publication."""
        invoked_t, region = publication.origin(token, generation)
        order = self.epoch(epoch, region)
        if order is None:
            return False
        ahead = order.settled and publication.rank > order.passed
        if ahead and self._waits_inside(order, publication, self._bound_t(publication, token, generation), invoked_t):
            return True
        return any(True for _, _ in self._lost_before(order, invoked_t, LONG_AGO))

    def _waits_inside(self, order: EpochOrder, publication: Publication, before_t: float, invoked_t: float) -> bool:
        raced = (one for lost in self.lost if lost.order is order for one in lost.publications if order.awaits(one))
        if any(self._must_precede(one, publication) and one.confirmed_t < before_t for one in (*order.still_late(), *raced)):
            return True
        for other in order.pending():
            if other is publication and publication.several is None:
                break
            gone = other is publication or not other.may_come or other.seq in order.gone
            lower = other.rank < publication.rank and self._may_precede(other, publication)
            lower = lower and (before_t == inf or other.confirmed_t < before_t)
            if (lower or other.confirmed_t < invoked_t) and not gone and not self._has_come(other):
                return True
        return False

    def precedes(
        self, publication: Publication, epoch: str, other: Publication, other_epoch: str, token: int, generation: int
    ) -> bool:
        """Whether the primary of one publication must come before the record of another that has that token and generation."""
        if epoch == other_epoch:
            invoked_t, region = other.origin(token, generation)
            lower = self._may_precede(publication, other) and publication.confirmed_t < self._bound_t(other, token, generation)
            return publication.region == region and (lower or publication.confirmed_t < invoked_t)
        return publication.confirmed_t + self._collector.rules.clock_error_s < other.origin(token, generation)[0]

    def _bound_t(self, publication: Publication, token: int, generation: int) -> float:
        """What of lower numbers was confirmed by then must come before a record: all of it if this is the primary, or may be.

        A writer's own events are in the order of its own clock.
        """
        if not publication.abandoned and publication.token in (None, token):
            return inf
        return publication.invocation(generation)[0]

    def _has_come(self, publication: Publication) -> bool:
        """Whether a record that is, or may yet turn out to be, the primary was received already."""
        early = publication.early_on(self._subscription.index)
        return any(publication.token in (None, one.token) for one in early)

    # --- first deliveries ----------------------------------------------------------------------------------------------------

    def has_retired(self, arrival: Arrival, order: EpochOrder, publication: Publication | None) -> bool:
        """Whether an unknown record may have left the window, or be older than the record.

        Where it was published is not known once its publish is settled.
        """
        if publication is not None:
            return self._log.is_retired(arrival.token, order.index, arrival.seq)
        orders = (one for one in self.epochs if one.record is order.record)
        retired = any(self._log.is_retired(arrival.token, one.index, arrival.seq) for one in orders)
        return retired or self.predates(order, None, arrival)

    def predates(self, order: EpochOrder, publication: Publication | None, arrival: Arrival) -> bool:
        """Whether an unknown message may belong before what was learned first, or into a hole of the record.

        Where the baseline is adopted, that is a message whose publish began before the first delivery that was placed, and that
        stands before something learned already: the rewind goes further back than the checker does.
        """
        if publication is None:
            before_record = 0 < arrival.seq < order.record.first and order.real_time.t > LONG_AGO
            return before_record or not order.record.complete
        if order.settled:
            return False
        if order.real_time.t == LONG_AGO:
            self.adopted_t = arrival.t
        order.highest, highest = max(order.highest, arrival.seq), order.highest
        overtaken = publication.confirmed_t < order.real_time.t or arrival.seq < highest
        return publication.invoked_t < self.adopted_t and overtaken

    def first_delivery(self, order: EpochOrder, publication: Publication, arrival: Arrival) -> bool:
        """Judges a record received for the first time; True when it is its sequence number's primary, received only now."""
        real_time = order.real_time
        eps = self._collector.rules.clock_error_s if real_time.epoch != arrival.epoch else 0.0  # a writer has one clock
        late = publication.token == arrival.token and publication.confirmed_t + eps < real_time.t
        explained = late and self._realtime_inversion(publication, arrival, order)
        received = self._received_first(order, publication, arrival)
        if explained:
            self.places.lose_beside(arrival.position)
        return received

    def _received_first(self, order: EpochOrder, publication: Publication, arrival: Arrival) -> bool:
        self.learn(order, publication, arrival)
        if len(self.epochs) > 1:
            self._judge_other_epochs(order, publication, arrival)
        if publication.token == arrival.token:
            counted = publication.seq in order.gone  # when it was confirmed, though it could not be placed before
            self._primary(order, publication, arrival.position, arrival.number, arrival.t, arrival.track.session.source)
            return not counted
        if not publication.abandoned:
            publication.delivered_early(Early.of(self._subscription.index, arrival))
        return False

    def learn(self, order: EpochOrder, publication: Publication, arrival: Arrival) -> None:
        """A record of the publication is in the log: of that of its attempts whose generation it carries."""
        invoked_t, region = publication.origin(arrival.token, arrival.generation)
        real_time = order.real_time
        if invoked_t > real_time.t and region == real_time.region:
            real_time.learn(publication, invoked_t, arrival)

    def unplaced(self, publication: Publication | None, arrival: Arrival) -> None:
        """A delivery that can no longer be placed may be the primary that its publish names, or names later: it has come."""
        if publication is not None and not publication.confirmed:
            publication.delivered_early(Early.of(self._subscription.index, arrival))
        elif publication is not None and publication.token == arrival.token:
            self.dismiss(publication)

    def confirmed(self, order: EpochOrder, publication: Publication, t: float) -> bool:
        """Judges a confirmation: its record may have been received already (then True), or overtaken."""
        if publication.early:
            for seen in publication.early_on(self._subscription.index):
                if seen.token != publication.token:
                    continue
                if seen.position:
                    # In real time there is nothing to compare: this publish completed only now, after whatever was invoked so far.
                    self._primary(order, publication, seen.position, seen.number, t, seen.source, seen.t)
                else:
                    order.dismiss(publication)
                return True
        overtaken = order.overtaken.get(publication.seq)
        if overtaken is not None and self._is_bound(publication, overtaken.by):
            del order.overtaken[publication.seq]
            self._gap(order, [publication], overtaken.by, t, overtaken.t)
        elif overtaken is not None and not overtaken.bound and not self._collector.rules.filtered:
            self._confirmed_late(order, publication, t)
        return False

    def _is_bound(self, one: Publication, by: Primary) -> bool:
        """Whether a publication had to come before what overtook it."""
        return not self._collector.rules.filtered and one.seq < by.seq and one.ordered_t <= by.ordered_t

    def _confirmed_late(self, order: EpochOrder, publication: Publication, t: float) -> None:
        """It was republished behind what overtook it: perhaps before the last that was received, else before what is still to come."""
        last = order.last_primary
        if publication.seq < last.seq and publication.ordered_t <= last.ordered_t:
            del order.overtaken[publication.seq]
            self._gap(order, [publication], last, t)
        else:
            order.await_late(publication)

    def _primary(
        self, order: EpochOrder, publication: Publication, position: int, number: int, t: float, source: Source, came_t: float = inf
    ) -> None:
        self._collector.counts.chances_order += order.last is not None
        if order.is_next(publication, position):
            order.come_past(publication)
        elif order.settled:
            self._judge_primary(order, publication, order.primary(publication, position, number, source, came_t), t)
        else:
            order.settled = True
            order.come_past(publication)
            self._log.retire(order.index, publication.seq - 1)
        if position > order.last_position:
            order.last, order.last_position, order.last_number = publication, position, number
        if self._subscription.racing and self._log.holds(position):
            self._log.mark(position, PRIMARY)

    def _judge_primary(self, order: EpochOrder, publication: Publication, this: Primary, t: float) -> None:
        overtaken, last = order.overtaken.pop(this.seq, None), order.last_primary
        if overtaken is not None and overtaken.by.epoch == this.epoch and (overtaken.bound or overtaken.by.inverts(this)):
            self._inversion(publication, this, overtaken.by, t, overtaken.t)
        elif overtaken is None and publication.rank > order.passed and last.inverts(this):
            self._inversion(publication, this, last, t, t)
        if publication.rank > order.passed + 1 or order.late:
            self._pass_over(order, publication, this, t)
        if publication.rank > order.passed:
            order.come_past(publication)

    def _pass_over(self, order: EpochOrder, publication: Publication, this: Primary, t: float) -> None:
        """Sorts what lies between what was passed and the later one that came instead."""
        free_until_t = self._free_until_t(t)
        gap = [one for one in order.still_late() if self._must_precede(one, publication) and one.invoked_t >= free_until_t]
        order.miss(gap)
        for earlier in order.pending():
            if earlier is publication:
                break
            if earlier.seq in order.gone or earlier.seq in order.overtaken or earlier.invoked_t < free_until_t:
                continue
            if self._collector.rules.filtered:
                order.overtake_filtered(earlier, this, t)
            elif earlier.token is not None and self._must_precede(earlier, publication):
                gap.append(earlier)
            elif earlier.may_come:
                order.overtake(earlier, this, t, bound=False)
                order.await_late(earlier)
        if gap and not self._subscription.racing:
            self._gap(order, gap, this, t)
        elif gap:
            self._await_racing(order, gap, this, t)

    def _must_precede(self, earlier: Publication, publication: Publication) -> bool:
        return earlier.seq < publication.seq and earlier.ordered_t <= publication.ordered_t

    def _may_precede(self, earlier: Publication, publication: Publication) -> bool:
        """The same, where it may not be known yet which attempts are confirmed."""
        if earlier.token is None or publication.token is None:
            return earlier.seq < publication.seq
        return self._must_precede(earlier, publication)

    def _await_racing(self, order: EpochOrder, gap: list[Publication], this: Primary, t: float) -> None:
        """Where sessions race, what is missing may yet come on another one."""
        for publication in gap:
            order.overtake(publication, this, t, bound=False)
        self.lost += (Awaited(t + self._patience_s, t, order, this, tuple(gap)),)

    @property
    def _patience_s(self) -> float:
        return self._collector.rules.delivery_delay_max_s + self._collector.rules.clock_error_s

    def settle(self, now: float, put_back: Container[int] = ()) -> None:
        """Files what is missing before a record of another epoch, if it had time to come late; then it is an inversion.

        What was `put_back`, by the tokens of the messages, has come.
        """
        waiting = self.lost
        self.lost = ()
        for lost in waiting:
            if now != inf and (lost.due_t >= now or lost.has_come(put_back)):
                self.lost += (lost._replace(due_t=max(lost.due_t, now)),)
            else:
                gap = [publication for publication in lost.publications if lost.order.awaits(publication)]
                if gap:
                    self._gap(lost.order, gap, lost.by, lost.t)
        self.overtakings.settle(now)

    @property
    def on_hold(self) -> bool:
        """Whether anything waits to be decided."""
        return bool(self.lost or self.overtakings.pending)

    @property
    def due_t(self) -> float:
        """When the next of what waits is decided; `inf` if nothing waits."""
        return min([self.overtakings.due_t, *(lost.due_t for lost in self.lost)])

    # --- across epochs -------------------------------------------------------------------------------------------------------

    def _judge_other_epochs(self, order: EpochOrder, publication: Publication, arrival: Arrival) -> None:
        """What had completed before this record's publish was invoked must have come: so the lost tail of an epoch shows."""
        lost: dict[int, tuple[EpochOrder, list[Publication]]] = {}
        invoked_t, _ = publication.origin(arrival.token, arrival.generation)
        for other, earlier in self._lost_before(order, invoked_t, self._free_until_t(arrival.t)):
            lost.setdefault(other.index, (other, []))[1].append(earlier)
        this = order.primary(publication, arrival.position, arrival.number, arrival.track.session.source)
        for other, gap in lost.values():
            other.lost_rank = gap[-1].rank
            self.lost += (Awaited(arrival.t + self._patience_s, arrival.t, other, this, tuple(gap)),)

    def _lost_before(self, order: EpochOrder, invoked_t: float, expired_t: float) -> Iterator[tuple[EpochOrder, Publication]]:
        """Publishes of other epochs of the region that completed before one was invoked, and have not been received."""
        if self._collector.rules.filtered:
            return
        before_t = invoked_t - self._collector.rules.clock_error_s
        for other in self.epochs:
            if other is order or other.real_time is not order.real_time or other.record.confirmed_rank <= other.lost_rank:
                continue
            if self._records.get(other.record.name) is not other.record:
                continue
            yield from ((other, earlier) for earlier in other.lost_before(before_t, expired_t))

    # --- findings ------------------------------------------------------------------------------------------------------------

    def _gap(self, order: EpochOrder, gap: list[Publication], this: Primary, t: float, came_t: float = inf) -> None:
        certain = [publication for publication in gap if publication.invoked_t > self.excused_until_t]
        shown = (certain or gap)[:SEQS_SHOWN]
        witnesses = [this.number, this.confirmed_number]
        for publication in shown[:3]:
            witnesses += [publication.invoked_number, publication.confirmed_number]
        facts: Facts = {
            "seq": this.seq,
            "epoch": this.epoch,
            "missing": tuple(publication.seq for publication in shown),
            "missing_count": len(certain or gap),
            "missing_epoch": order.record.name,
        }
        doubt = self.dead_letter_doubt() if certain else SOUGHT.format(self._collector.grace_cause)
        came_t, invoked_t = min(came_t, t), max(publication.invoked_t for publication in certain or gap)
        one = Overtaking(Kind.ORDER_GAP, t, invoked_t, By.of(this, came_t), ANYWHERE, 0, tuple(witnesses), facts)
        self.overtakings.add(one, doubt)
        if t > self._collector.grace_until_t and not doubt:
            for publication in certain:
                order.overtake(publication, this, came_t, bound=True)

    def dead_letter_doubt(self) -> str:
        """A message that was sent so often and lost each time may have been dead-lettered before it was ever received."""
        attempts_max = self._collector.rules.dead_letter_max_attempts
        return DEAD_LETTER if attempts_max and self._subscription.losses_max >= attempts_max - 1 else ""

    def _inversion(self, publication: Publication, this: Primary, other: Primary, t: float, came_t: float) -> None:
        """`this` came at `t`, and `other` at `came_t`."""
        late, early = (this, other) if this.position > other.position else (other, this)
        witnesses = (early.number, early.confirmed_number, late.number, late.confirmed_number)
        facts: Facts = {"seq": late.seq, "epoch": late.epoch, "after": early.seq, "after_epoch": early.epoch}
        doubt = self._doubt(publication, t) or self.places.race_doubt(early.position, late.position)
        invoked_t, by = publication.invoked_t, By.of(other, came_t)
        one = Overtaking(Kind.ORDER_INVERSION, t, invoked_t, by, this.source, this.position, witnesses, facts)
        if self.overtakings.add(one, doubt) and self._log.holds(late.position):
            self.places.lose_beside(late.position)

    def _realtime_inversion(self, publication: Publication, arrival: Arrival, order: EpochOrder) -> bool:
        before, overtaken = order.real_time, order.overtaken.get(publication.seq)
        witnesses = (publication.confirmed_number, before.invoked_number, before.number, arrival.number)
        facts = before.inversion(publication, arrival.epoch)
        doubt = self._doubt(publication, arrival.t) or self.places.race_doubt(before.position, arrival.position)
        latest = By(before.source, before.came_t, before.t, before.position)
        by = latest if overtaken is None else By.of(overtaken.by, overtaken.t)  # the first that came before it
        source, position = arrival.track.session.source, arrival.position
        one = Overtaking(Kind.REALTIME_INVERSION, arrival.t, publication.invoked_t, by, source, position, witnesses, facts)
        return self.overtakings.add(one, doubt)

    def _doubt(self, publication: Publication, t: float) -> str:
        """What may explain that a primary came late: a control operation, or what came is a second copy and the first is gone.

        The service may store a message twice under one id; publish times tell the copies apart.
        """
        if publication.invoked_t <= self.excused_until_t:
            return SOUGHT.format(self._collector.grace_cause)
        if self._collector.ids_alone:
            return ""
        return SECOND_COPY if publication.invoked_t < self._free_until_t(t) or self.dead_letter_doubt() else ""
