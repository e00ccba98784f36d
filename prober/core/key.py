"""The checker of one key on one subscription: its deliveries, its answers and their verification."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from prober.core import answers, integrity, log, report, usual
from prober.core.collector import CUT_OFF, FindingsCollector
from prober.core.coverage import Coverage
from prober.core.events import LONG_AGO, Delivered
from prober.core.facts import Delivery, Grace, deliveries_of, earliest_send, hold_s
from prober.core.lane import Lane
from prober.core.late import first_of
from prober.core.liveness import Liveness
from prober.core.log import ACKED, UNPLACED
from prober.core.publications import Epoch, Publication
from prober.core.rules import Rules
from prober.core.sought import Seek
from prober.core.subscription import Subscription
from prober.core.unrecorded import NumbersCheck

if TYPE_CHECKING:
    from prober.core.group import KeyGroup

STAMP = 0xFFFF_FFFF
"""The part of the hash of a publish time that distinguishes records of the same message id."""


class KeyChecker:
    """The checker of one key on one subscription.

    live        the last delivery of each message id that may still be answered, or was answered recently.
    lanes       the regions in which the key was published.
    numbers     verifies messages of other publishers, if their publishes are not on record.
    adopts      whether the baseline is still to be adopted.
    baseline    the first delivery, if no earlier copy of its record can precede the subscription.
    baseline_t  messages invoked up to then may have been published before the subscription existed.
    compare_t   when to compare its deliveries with other subscriptions.
    reported_acked   regions with a finding that the key moved while an acknowledgement may have been under way.
    """

    __slots__ = (
        "adopts",
        "baseline",
        "baseline_t",
        "collector",
        "compare_t",
        "confirmations",
        "counts",
        "current_lane",
        "dead_lettered_ids",
        "forget_at",
        "group",
        "lanes",
        "last_t",
        "live",
        "liveness",
        "numbers",
        "queued_t",
        "reported_acked",
        "rules",
        "subscription",
    )

    def __init__(self, collector: FindingsCollector, subscription: Subscription, group: KeyGroup, counts: Coverage) -> None:
        self.collector = collector
        self.subscription = subscription
        self.group = group
        self.counts = counts
        self.rules: Rules = subscription.rules
        self.live: dict[int, Delivery] = {}
        self.lanes: dict[str, Lane] = {}
        self.current_lane: Lane | None = None
        self.forget_at = 64
        self.dead_lettered_ids: dict[int, None] = {}
        self.confirmations: dict[int, integrity.Confirmation] = {}
        self.last_t = LONG_AGO
        self.adopts = not self.rules.subscription_predates_first_publish
        self.baseline_t = inf if self.adopts else LONG_AGO
        self.baseline: Delivery | None = None
        self.liveness = Liveness(self)
        self.queued_t = inf
        self.compare_t = inf
        self.reported_acked: frozenset[str] = frozenset()
        self.numbers = None if self.rules.publishes_recorded else NumbersCheck(collector)

    # --- deliveries ----------------------------------------------------------------------------------------------------------

    def delivered(self, event: Delivered, number: int) -> None:
        """Verify a delivery."""
        one, subscription = self._arrived(event, number), self.subscription
        if event.defect is not None or not event.matches_filter or self.rules.excludes(one.seq):
            integrity.verify_content(self, one, event)
        if subscription.graces:
            subscription.showed(one)
        if self.adopts:
            log.adopt(self, one)
        lane = self.current_lane
        if lane is not None and usual.goes_on_with(self, lane, one):
            self._receive(lane, one)
            one.region = lane.region
            lane.take(one, 0)
        else:
            lane, known = self._place(one)
            if lane is None:
                self._unplaced(one)
            else:
                one.region = lane.region
                lane.deliver(one, known)
        self.liveness.delivered(one, lane)
        if len(self.group.checkers) > 1:
            more_t = self.group.compare(self)
            if self.compare_t == inf:
                self.compare_t = more_t
        if len(self.live) > self.forget_at:
            answers.forget(self, event.t)

    def _arrived(self, event: Delivered, number: int) -> Delivery:
        """Create a delivery from its event: session, record, publication and the earliest possible send."""
        t = self.last_t = event.t
        subscription, live = self.subscription, self.live
        session = subscription.sessions.get(event.session) or subscription.session(event.session, t)
        if t < session.answered_t:
            session.answered_t = t
        token = hash(event.message_id)
        stamp = 0 if event.publish_time is None else hash(event.publish_time) & STAMP or 1
        epoch = self.group.epochs.get(event.epoch)
        publication = None if epoch is None else epoch.open.get(event.seq)
        earliest_t = earliest_send(self.rules, t, session, publication)
        one = Delivery(event, number, session, token, stamp, publication, earliest_t)
        if earliest_t > session.sent_t:
            session.sent_t = earliest_t
        if stamp:
            self.collector.ids_alone = False
        one.older = live.get(token)
        live[token] = one
        return one

    def may_be_older_record(self, one: Delivery) -> bool:
        """10: return whether an unexpected record may be older than the known age of the subscription."""
        older = not self.rules.subscription_predates_first_publish and not self.adopts
        return older and one.epoch in self.group.epochs

    def excuse(self, publication: Publication) -> None:
        """Mark a publication as one that the subscription need not receive."""
        publication.received |= 1 << self.subscription.index
        publication.epoch.settle(publication, self.group.everybody)

    def _place(self, one: Delivery) -> tuple[Lane | None, int]:
        """Return the lane of a delivery, None if it is unknown or not in the record, and its position."""
        publication = one.publication
        index = self.subscription.index
        if publication is not None and publication.token == one.token and not publication.received >> index & 1:
            lane = self.lane(publication.region)
            may_be_known = one.older is not None or len(self.lanes) > 1 or lane.log.may_have(one.token)
            if may_be_known and not integrity.verify_identity(self, one):
                return None, 0
            self._receive(lane, one)
            return lane, lane.position_of(one)
        known = self._known(one)
        if known is not None:
            return self._again(one, known)
        first = self._first(one, publication)
        return first, 0 if first is None else first.position_of(one)

    def _receive(self, lane: Lane, one: Delivery) -> None:
        """Note the first delivery of the primary of a publication."""
        publication = one.publication
        assert publication is not None
        one.first = True
        publication.received |= 1 << self.subscription.index
        lane.pending.pop(publication, None)
        if lane.overtaken and publication in lane.overtaken:
            report.late(self, lane, publication, one, lane.overtaken[publication])
        if self.rules.filtered:
            lane.note_filtered(publication, one)
        publication.epoch.settle(publication, self.group.everybody)
        self.collector.count_first_delivery(recorded=True)
        if publication.early:
            integrity.verify_duplicate(self, one, publication)
        if lane.log.frontier > 0 and one.older is None and self.group.key:
            self.counts.opportunities_order += 1

    def _known(self, one: Delivery) -> Lane | None:
        """Return the lane in which the record of a delivery is known."""
        for older in deliveries_of(one.older):
            if older.stamp == one.stamp and older.region is not None:
                return self.lanes[older.region]
        for lane in self.lanes.values():
            if lane.log.find(one.token, one.stamp):
                return lane
        return None

    def _again(self, one: Delivery, lane: Lane) -> tuple[Lane | None, int]:
        self.counts.deliveries_redelivery += 1
        lane.opportunities.redelivered(one)
        position = lane.position_of(one)
        if position:
            integrity.verify_repetition(self, lane, one, position)
            self.counts.redeliveries_of_acked += lane.log.flagged(position, ACKED)
        elif any(0 < older.position <= lane.log.floor for older in deliveries_of(one.older) if older.stamp == one.stamp):
            self.counts.deliveries_unplaced += 1
            return None, 0
        return lane, position

    def _first(self, one: Delivery, publication: Publication | None) -> Lane | None:
        """Place the first delivery of a record that is not known to be a primary; return its lane, or None."""
        if publication is None and self.numbers is not None and one.epoch not in self.group.epochs:
            return self._first_of_others(one, self.numbers)
        if one.older is not None and not integrity.verify_identity(self, one):
            return None
        if self._is_foreign(one, publication):
            self.counts.deliveries_foreign += 1
            self.liveness.foreign()
            return None
        one.copy = self._is_copy(one, publication)
        forgotten = self._may_be_forgotten(one, publication) or self.rules.excludes(one.seq)  # 6.4: it has no place in the log
        if integrity.verify_origin(self, one, publication, forgotten=forgotten) or forgotten:
            self.counts.deliveries_unplaced += 1
            return None
        one.first = True
        integrity.note_copy(self, one)
        if publication is None:
            region = self._settled_region(one)
        else:
            self.group.prove(publication, one, self)
            region = publication.region_of(one.token)
            if not publication.receive_early(self.subscription.index, one):
                region = None
        self.collector.count_first_delivery(recorded=True)
        return None if region is None else self.lane(region)

    def _may_be_forgotten(self, one: Delivery, publication: Publication | None) -> bool:
        """Return whether a record may have been delivered before and have left the window since."""
        forgot = any(lane.log.floor for lane in self.lanes.values())
        if publication is None:
            return forgot
        early = ((early.token, early.stamp) for early in publication.early_on(self.subscription.index))
        return (one.token, one.stamp) in early or (forgot and publication.token == one.token)

    def _is_copy(self, one: Delivery, publication: Publication | None) -> bool:
        """Return whether another record of its message id was delivered before."""
        if any(older.stamp != one.stamp for older in deliveries_of(one.older)):
            return True
        if one.stamp and any(lane.log.find(one.token, 0) for lane in self.lanes.values()):
            return True
        named = publication if publication is not None and publication.token == one.token else None
        return named is not None and bool(named.received >> self.subscription.index & 1)

    def _is_foreign(self, one: Delivery, publication: Publication | None) -> bool:
        """10: return whether a record belongs to an epoch, or to a part of an epoch, that is not on record."""
        if publication is not None:
            return publication.invoked_t == LONG_AGO or publication.may_predate(one.event.generation)
        placed = any(lane.log.positions_of(one.token) for lane in self.lanes.values())
        epoch, known = self.group.epochs.get(one.epoch), placed or (one.older is not None and one.older.region is not None)
        return not known and (epoch is None or epoch.may_predate(one.seq))  # L5: a known message id is of a recorded publish

    def _first_of_others(self, one: Delivery, numbers: NumbersCheck) -> Lane | None:
        """13: place the first delivery of a record whose publish is not on record; return its lane, or None."""
        if not numbers.came(one, forgot=any(lane.log.floor for lane in self.lanes.values())):
            self.counts.deliveries_unplaced += 1
            return None
        one.first, one.copy = True, self._is_copy(one, None)
        integrity.note_copy(self, one)
        self.collector.count_first_delivery(recorded=False)
        return self.lane("")

    def _settled_region(self, one: Delivery) -> str | None:
        """Return the region of a record with a settled publish: that of another record of its message id, or the only one of its epoch."""
        if one.older is not None:
            return one.older.region
        region = next((region for region, lane in self.lanes.items() if lane.log.positions_of(one.token)), None)
        if region is not None:
            return region
        epoch = self.group.epochs.get(one.epoch)
        if epoch is None:
            return ""
        return epoch.regions[0] if len(epoch.regions) == 1 else None

    def _unplaced(self, one: Delivery) -> None:
        self.group.unplaced(self, one.epoch)
        for lane in self.lanes.values():
            lane.unplaced(one)

    def lane(self, region: str) -> Lane:
        """Return the lane of a region."""
        lane = self.current_lane
        if lane is not None and lane.region == region:
            return lane
        lane = self.lanes.get(region)
        if lane is None:
            lane = self.lanes[region] = Lane(self, region)
        self.current_lane = lane
        return lane

    # --- publishes -----------------------------------------------------------------------------------------------------------

    def confirmed(self, publication: Publication, t: float) -> None:
        """Note that a publish was confirmed."""
        token = publication.token
        assert token is not None
        first = first_of(publication, self.subscription.index) if publication.early else None
        came = self.live.get(token)
        if first is not None:
            publication.received |= 1 << self.subscription.index
        elif came is not None and came.publication is publication:
            self.excuse(publication)  # it was delivered without a place, by an unrecorded attempt
            return
        elif publication.invoked_t <= self.baseline_t and not self.adopts and log.may_predate(self, publication):
            self.excuse(publication)
            return
        excluded = self.rules.excludes(publication.seq)
        self.counts.opportunities_filter += excluded
        if excluded or token in self.dead_lettered_ids:
            self.excuse(publication)
            return
        if first is not None and first.position > 1 and self.group.key:
            self.counts.opportunities_order += 1
        lane = self.lane(publication.region)
        lane.confirmed(publication, first, t)
        if self.liveness.due_t == inf:
            self.liveness.confirmed(t)
        if came is not None or len(self.lanes) > 1 or lane.log.may_have(token):
            integrity.verify_confirmation(self, publication, t)

    def evict(self, epoch: Epoch) -> None:
        """Forget the publications of an epoch, and mark its positions as unplaced."""
        for lane in self.lanes.values():
            for publication in [one for one in lane.pending if one.epoch is epoch]:
                del lane.pending[publication]
            for position in lane.log.between(0, lane.log.frontier + 1):
                if lane.log.epoch(position) == epoch.name:
                    lane.log.mark(position, UNPLACED)  # a redelivery would not be recognised

    def newest(self, token: int) -> Delivery | None:
        """Return the last delivery of a message id, or None."""
        return self.live.get(token)

    # --- time and control ----------------------------------------------------------------------------------------------------

    def control(self, grace: Grace) -> None:
        """Decide the deliveries on hold at a control operation or a hole in the record: in doubt if a later event might explain them."""
        for lane in self.lanes.values():
            lane.stop(grace.begun_t)
        self.collector.excuse(grace.until_t, grace.cause)
        for lane in self.lanes.values():
            lane.control(is_hole=grace.is_hole)
        if self.numbers is not None:
            self.numbers.forget()
        self.confirmations.clear()
        self.liveness.control()

    def sought(self, seek: Seek) -> None:
        """Note a seek back."""
        for lane in self.lanes.values():
            lane.sought(seek)
        self.liveness.sought(seek)

    @property
    def due_t(self) -> float:
        """The time of the next decision that needs no further event."""
        due_t = self.liveness.due_t
        if self.compare_t < due_t:
            due_t = self.compare_t
        if self.numbers is not None and self.numbers.due_t < due_t:
            due_t = self.numbers.due_t
        for lane in self.lanes.values():
            if lane.due_t < due_t:
                due_t = lane.due_t
        return due_t

    def wake(self, now: float) -> None:
        """Decide everything that was due before `now`."""
        for lane in self.lanes.values():
            lane.settle(now)
            lane.commit(now)
        if self.numbers is not None:
            self.numbers.settle(now)
        self.compare_t = max(self.group.compare(self), now + hold_s(self.rules))
        if now < inf:
            self.liveness.wake(now)

    def end(self, t: float) -> None:
        """Decide all deliveries on hold at the end of the record, and report messages that are overdue at `t`."""
        self.wake(inf)
        self.liveness.verify(t, t)

    def stop(self, t: float) -> None:
        """Decide the deliveries on hold that no event after `t`, the end of the record, can explain."""
        for lane in self.lanes.values():
            lane.stop(t)
        if self.numbers is not None:
            self.numbers.settle(t)

    def cut_off(self) -> None:
        """Make all later decisions doubtful: events after a cut-off record may explain them."""
        self.group.compare(self)
        self.collector.excuse(inf, CUT_OFF)
