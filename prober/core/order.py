"""Promise 1: messages of a key are received in the order in which the service received them.

What is compared are *primaries*: the records whose ids the publishes returned. Within one epoch the primaries must appear in the
learned log in the order of their sequence numbers (session order, L3), because one writer handed them over one after the other.
Across everything, a record whose publish was invoked after another publish had completed must come later in the log (real time, L4).

    ORDER_GAP           a primary is received although an earlier, confirmed one has not been.
    ORDER_INVERSION     a primary is received after a primary of a higher sequence number.
    REALTIME_INVERSION  a record is received before the primary of a publish that had completed before the record's own publish
                        was even invoked. One comparison decides it: the completion time against the latest invocation learned so far.

What is *not* a violation: other records of the same sequence number (a client's retry puts 1, 2, 1', 2', 3 in the log), and publishes
whose outcome is unknown, which may be in the log once, several times, late, or never. Session order binds two sequence numbers only
when the confirmed attempt of the lower one was handed over first: a republication after an unknown outcome is ordered where it was
republished.

A delivery may arrive before its publish is confirmed. Such ids wait in the record; the verdict is passed when the confirmation
arrives. That is also when a gap shows that could not be one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from prober.core.docket import SEQS_SHOWN, Docket
from prober.core.events import LONG_AGO
from prober.core.findings import Facts, Kind
from prober.core.positions import LearnedLog
from prober.core.publications import Early, EpochRecord, Publication
from prober.core.sessions import Arrival

OVERTAKEN_MAX = 4096
"""Overtaken sequence numbers remembered per epoch; no more are noted beyond that."""

GONE_MAX = 256
"""Sequence numbers remembered per epoch that were dead-lettered before they were received."""

_NOTHING: frozenset[int] = frozenset()

FILTERED = "the subscription's filter may exclude what is missing"
SOUGHT = "published before a seek, which may have passed over it"


class Latest(NamedTuple):
    """The latest publish invocation among the records learned so far: whose and when, and which event delivered the record."""

    t: float
    seq: int
    number: int
    invoked_number: int


NEVER = Latest(LONG_AGO, 0, 0, 0)


class Primary(NamedTuple):
    """A primary that was received: where in the log, delivered and confirmed by which events, when handed over."""

    position: int
    seq: int
    number: int
    confirmed_number: int
    ordered_t: float

    def inverts(self, other: Primary) -> bool:
        """Whether the two break session order: the lower one was handed over first, yet stands later in the log."""
        lower, higher = (self, other) if self.seq < other.seq else (other, self)
        return lower.position > higher.position and lower.ordered_t <= higher.ordered_t


BEFORE_ALL = Primary(0, 0, 0, 0, inf)


@dataclass(slots=True)
class Overtaken:
    """A sequence number that had not been received when a higher primary was, at `t`.

    `bound`: it was confirmed and had to come first. Otherwise its outcome was open then, or it was republished later.
    """

    publication: Publication
    by: Primary
    t: float
    bound: bool
    reported_lost: bool = False


class EpochOrder:
    """How far the primaries of one epoch have been received, in the order of their sequence numbers.

    index       small number that stands for the epoch in the learned log.
    next        the sequence number expected next; None until an adopted baseline is known.
    last        the primary that stands furthest in the log.
    overtaken   sequence numbers below `next` that have not been received.
    highest     where the baseline is adopted: the highest sequence number received.
    gone        sequence numbers that were dead-lettered before they were received.
    """

    __slots__ = ("gone", "highest", "index", "last", "next", "overtaken", "record")

    def __init__(self, index: int, record: EpochRecord, baseline: int | None) -> None:
        self.index = index
        self.record = record
        self.next = baseline
        self.last = BEFORE_ALL
        self.overtaken: dict[int, Overtaken] = {}
        self.gone = _NOTHING
        self.highest = 0

    def between(self, low: int, high: int) -> list[Publication]:
        """The recorded publications from `low` up to, not including, `high`, ascending; settled ones are no longer recorded."""
        recorded = self.record.open
        if high - low <= len(recorded):
            return [recorded[seq] for seq in range(low, high) if seq in recorded]
        return [recorded[seq] for seq in sorted(recorded) if low <= seq < high]

    def awaits(self, seq: int) -> bool:
        """Whether the primary of `seq` has not been received; False before a baseline is known."""
        return self.next is not None and (seq >= self.next or seq in self.overtaken)

    def undelivered(self, excused_until_t: float) -> list[Publication]:
        """Confirmed publishes, invoked after `excused_until_t`, that nothing overtook and whose primary was not received."""
        return [
            publication
            for publication in self.record.open.values()
            if publication.confirmed
            and publication.invoked_t > excused_until_t
            and self.awaits(publication.seq)
            and publication.seq not in self.gone
            and not self._is_bound(publication.seq)
        ]

    def dismiss(self, token: int) -> None:
        """The record of that token left the subscription before it was received."""
        for publication in self.record.open.values():
            if publication.token == token and self.awaits(publication.seq):
                self.overtaken.pop(publication.seq, None)
                self.gone = frozenset([publication.seq, *sorted(self.gone)[-GONE_MAX:]])

    def missing(self) -> Iterator[Overtaken]:
        """Confirmed publishes that had to come before what overtook them, and have not come."""
        return (overtaken for overtaken in self.overtaken.values() if overtaken.bound)

    def interrupt(self) -> None:
        """The record has a hole: the baseline is adopted anew, and nobody waits for what was published before."""
        self.next = None
        self.last = BEFORE_ALL
        self.overtaken.clear()

    def forget(self, seq: int) -> None:
        """A sequence number was given up: nothing is bound to it."""
        self.overtaken.pop(seq, None)

    def overtake(self, publication: Publication, by: Primary, t: float, *, bound: bool) -> None:
        """Notes that a sequence number was overtaken; beyond `OVERTAKEN_MAX` no more are noted."""
        if len(self.overtaken) < OVERTAKEN_MAX:
            self.overtaken[publication.seq] = Overtaken(publication, by, t, bound)

    def _is_bound(self, seq: int) -> bool:
        overtaken = self.overtaken.get(seq)
        return overtaken is not None and overtaken.bound


class OrderCheck:
    """Judges the order of first deliveries of one key; see the head of this file.

    records             the publisher's record by epoch; an epoch that is not in it is foreign.
    epochs              how far each of them has been received.
    adopted_t           where the baseline is adopted: when the first delivery was placed.
    excused_until_t     publishes invoked up to this time may have been passed over by a seek.
    """

    __slots__ = ("_docket", "_log", "_records", "_subscription", "adopted_t", "epochs", "excused_until_t", "latest")

    def __init__(self, docket: Docket, log: LearnedLog, subscription: int, records: Mapping[str, EpochRecord]) -> None:
        self._docket = docket
        self._log = log
        self._subscription = subscription
        self._records = records
        self.epochs: tuple[EpochOrder, ...] = ()
        self.latest = NEVER
        self.excused_until_t = LONG_AGO
        self.adopted_t = LONG_AGO

    def epoch(self, name: str) -> EpochOrder | None:
        """The state of an epoch, begun when its first publish is on record; None for a foreign epoch."""
        record = self._records.get(name)
        if record is None:
            return None
        for order in reversed(self.epochs):
            if order.record is record:
                return order
        index = self.epochs[-1].index + 1 if self.epochs else 0
        baseline = 1 if self._docket.rules.subscription_predates_first_publish else None
        known = (kept for kept in self.epochs if self._records.get(kept.record.name) is kept.record)
        self.epochs = (*known, EpochOrder(index, record, baseline))
        return self.epochs[-1]

    def interrupt(self) -> None:
        """The record has a hole: what was published before it can no longer be placed, and every baseline is adopted anew."""
        for name, record in self._records.items():
            order = self.epoch(name)
            if order is not None:
                order.interrupt()
                self._log.retire(order.index, record.last)

    def excuse(self, until_t: float) -> None:
        """A seek: what was invoked up to `until_t` may have been passed over, and is owed no more."""
        self.excused_until_t = until_t
        for order in self.epochs:
            order.overtaken.clear()

    def dismiss(self, token: int) -> None:
        """A record left the subscription before it was received."""
        for order in self.epochs:
            order.dismiss(token)

    def predates(self, order: EpochOrder, publication: Publication | None, arrival: Arrival) -> bool:
        """Whether an unknown message may belong before what was learned first, or into a hole of the record.

        Where the baseline is adopted, that is a message whose publish began before the first delivery that was placed, and that
        stands before something learned already: the rewind goes further back than the checker does.
        """
        if publication is None:
            return not order.record.complete
        if order.next is not None:
            return False
        if self.latest == NEVER:
            self.adopted_t = arrival.t
        order.highest, highest = max(order.highest, arrival.seq), order.highest
        overtaken = publication.confirmed_t < self.latest.t or arrival.seq < highest
        return publication.invoked_t < self.adopted_t and overtaken

    def undelivered(self) -> Iterator[tuple[EpochOrder, list[Publication]]]:
        """What each epoch is still owed. With a filter nothing can be said: the record does not tell which publishes match."""
        if not self._docket.rules.filtered:
            for order in filter(None, map(self.epoch, tuple(self._records))):
                yield order, order.undelivered(self.excused_until_t)

    def first_delivery(self, order: EpochOrder, publication: Publication, arrival: Arrival) -> bool:
        """Judges a message id received for the first time; True when it is its sequence number's primary."""
        before = self.latest
        if publication.invoked_t > before.t:
            self.latest = Latest(publication.invoked_t, arrival.seq, arrival.number, publication.invoked_number)
        if publication.token == arrival.token:
            if publication.confirmed_t + self._docket.rules.clock_error_s < before.t:
                self._realtime_inversion(publication, arrival.number, before, arrival.t)
            self._primary(order, publication, arrival.position, arrival.number, arrival.t)
            return True
        if not publication.abandoned:
            publication.delivered_early(Early(self._subscription, arrival.token, arrival.position, arrival.number))
        return False

    def unplaced(self, publication: Publication | None, arrival: Arrival) -> None:
        """A delivery that can no longer be placed may still be the primary that its publish names later."""
        if publication is not None and not publication.confirmed:
            publication.delivered_early(Early(self._subscription, arrival.token, 0, arrival.number))

    def confirmed(self, order: EpochOrder, publication: Publication, t: float) -> bool:
        """Judges a confirmation: its record may have been received already (then True), or overtaken."""
        for seen in publication.early_on(self._subscription):
            if seen.token == publication.token and not seen.position:
                order.overtaken.pop(publication.seq, None)
                return True
            if seen.token == publication.token:
                # In real time there is nothing to compare: this publish completed only now, after whatever was invoked so far.
                self._primary(order, publication, seen.position, seen.number, t)
                return True
        overtaken = order.overtaken.get(publication.seq)
        if overtaken is not None and publication.ordered_t <= overtaken.by.ordered_t:
            del order.overtaken[publication.seq]
            self._gap(order, [publication], overtaken.by, t)
        return False

    def _primary(self, order: EpochOrder, publication: Publication, position: int, number: int, t: float) -> None:
        seq = publication.seq
        this = Primary(position, seq, number, publication.confirmed_number, publication.ordered_t)
        if order.next is None:
            order.next = seq
            self._log.retire(order.index, seq - 1)
        if seq >= order.next:
            if order.last.inverts(this):
                self._inversion(publication, this, order.last, t)
            if seq > order.next:
                self._pass_over(order, publication, this, t)
            order.next = seq + 1
        else:
            self._late(order, publication, this, t)
        if position > order.last.position:
            order.last = this

    def _late(self, order: EpochOrder, publication: Publication, this: Primary, t: float) -> None:
        """A primary below the expected sequence number: something passed it."""
        overtaken = order.overtaken.pop(this.seq, None)
        if overtaken is not None and (overtaken.bound or overtaken.by.inverts(this)):
            self._inversion(publication, this, overtaken.by, t)

    def _pass_over(self, order: EpochOrder, publication: Publication, this: Primary, t: float) -> None:
        """Sorts what lies between the expected sequence number and the higher one that came instead."""
        gap = []
        for earlier in order.between(order.next or 0, publication.seq):
            if earlier.seq in order.gone:
                continue
            if earlier.confirmed and earlier.ordered_t <= publication.ordered_t:
                gap.append(earlier)
            elif not earlier.abandoned:
                order.overtake(earlier, this, t, bound=False)
        if gap:
            self._gap(order, gap, this, t)

    def _gap(self, order: EpochOrder, gap: list[Publication], this: Primary, t: float) -> None:
        certain = [publication for publication in gap if publication.invoked_t > self.excused_until_t]
        shown = (certain or gap)[:SEQS_SHOWN]
        witnesses = [this.number, this.confirmed_number]
        for publication in shown[:3]:
            witnesses += [publication.invoked_number, publication.confirmed_number]
        facts: Facts = {
            "seq": this.seq,
            "missing": tuple(publication.seq for publication in shown),
            "missing_count": len(certain or gap),
        }
        filtered = self._docket.rules.filtered
        doubt = FILTERED if filtered else "" if certain else SOUGHT
        self._docket.violation(Kind.ORDER_GAP, t, witnesses, facts, doubt)
        if t > self._docket.amnesty_until_t and not filtered:
            for publication in certain:
                order.overtake(publication, this, t, bound=True)

    def _inversion(self, publication: Publication, this: Primary, other: Primary, t: float) -> None:
        late, early = (this, other) if this.position > other.position else (other, this)
        self._docket.violation(
            Kind.ORDER_INVERSION,
            t,
            (early.number, early.confirmed_number, late.number, late.confirmed_number),
            {"seq": late.seq, "after": early.seq},
            self._doubt(publication),
        )

    def _realtime_inversion(self, publication: Publication, number: int, before: Latest, t: float) -> None:
        self._docket.violation(
            Kind.REALTIME_INVERSION,
            t,
            (publication.confirmed_number, before.invoked_number, before.number, number),
            {
                "seq": publication.seq,
                "after": before.seq,
                "confirmed_t": publication.confirmed_t,
                "invoked_t": before.t,
            },
            self._doubt(publication),
        )

    def _doubt(self, publication: Publication) -> str:
        return SOUGHT if publication.invoked_t <= self.excused_until_t else ""
