"""Promises about single messages: what is delivered was published, unchanged, once, and belongs here.

PHANTOM       a sequence number is delivered that was never invoked in a known epoch.
GHOST         a message is delivered although every attempt to publish it failed definitely.
ID_CONFLICT   one message id stands for two messages, or the content or key of a message is not what was published.
FILTER_LEAK   a message is delivered that the subscription's filter excludes.
EOD_REDELIVERY_AFTER_ACK   with exactly-once delivery, a message comes again after its acknowledgement was confirmed; certain
              only when the redelivery cannot have been sent before the confirmation.
PUBLISHER_DUP / LATE_DUP   a further record of a sequence number. A client that retries by itself makes such records, so they
              are informational; they are a violation only where every attempt is on record and there was just one.
"""

from __future__ import annotations

from prober.core.docket import Docket
from prober.core.findings import Facts, Kind
from prober.core.order import EpochOrder
from prober.core.positions import LearnedLog
from prober.core.publications import Publication
from prober.core.sessions import Arrival

RACING = "the redelivery may have been sent before the acknowledgement was confirmed"


class IntegrityCheck:
    """Judges single messages of one key; see the head of this file."""

    __slots__ = ("_docket", "_log")

    def __init__(self, docket: Docket, log: LearnedLog) -> None:
        self._docket = docket
        self._log = log

    def content(self, arrival: Arrival, message_id: str, defect: str | None, matches_filter: bool) -> None:
        """Judges what the recorder found in the message itself."""
        facts: Facts = {"seq": arrival.seq, "message_id": message_id}
        if defect is not None:
            self._docket.violation(Kind.ID_CONFLICT, arrival.t, (arrival.number,), {**facts, "defect": defect})
        if not matches_filter:
            self._docket.violation(Kind.FILTER_LEAK, arrival.t, (arrival.number,), facts)

    def known_id(self, arrival: Arrival, orders: dict[str, EpochOrder], message_id: str) -> None:
        """A message id that was received before must stand for the same message."""
        position = arrival.position
        this = orders[arrival.epoch]
        if self._log.epoch(position) == this.index and self._log.seq(position) == arrival.seq:
            return
        live = {order.index: name for name, order in orders.items()}
        first_epoch = live.get(self._log.epoch(position))
        if first_epoch is None:
            return
        self._docket.violation(
            Kind.ID_CONFLICT,
            arrival.t,
            (self._log.number(position), arrival.number),
            {"seq": arrival.seq, "message_id": message_id, "first_seq": self._log.seq(position), "first_epoch": first_epoch},
        )

    def origin(self, arrival: Arrival, publication: Publication | None, order: EpochOrder, message_id: str) -> None:
        """Judges whether a message id received for the first time can stem from the recorded publishes."""
        facts: Facts = {"seq": arrival.seq, "epoch": arrival.epoch, "message_id": message_id}
        if publication is None:
            record = order.record
            predates = not self._docket.rules.subscription_predates_first_publish and arrival.seq < record.first
            if not record.was_invoked(arrival.seq) and not predates:
                self._docket.violation(Kind.PHANTOM, arrival.t, (arrival.number,), facts)
                return
        elif publication.certainly_unsent:
            self._docket.violation(Kind.GHOST, arrival.t, (publication.invoked_number, arrival.number), facts)
            return
        self._duplicate(arrival, publication, order, message_id)

    def failed(self, publication: Publication, order: EpochOrder, epoch: str, t: float, number: int) -> None:
        """Judges a definite failure: nothing of it may have been delivered already."""
        seen = order.unresolved.get(publication.seq)
        if seen and publication.certainly_unsent:
            witnesses = (publication.invoked_number, number, seen[0].number)
            self._docket.violation(Kind.GHOST, t, witnesses, {"seq": publication.seq, "epoch": epoch})

    def redelivered(self, arrival: Arrival, message_id: str) -> None:
        """Judges a message that comes again against the confirmation of its acknowledgement."""
        confirmation = self._log.confirmation(arrival.position)
        if confirmation is None:
            return
        t, number = confirmation
        doubt = "" if t + self._docket.rules.clock_error_s < arrival.lo else RACING
        witnesses = (self._log.number(arrival.position), number, arrival.number)
        facts: Facts = {"seq": arrival.seq, "message_id": message_id, "confirmed_t": t}
        self._docket.violation(Kind.EOD_REDELIVERY_AFTER_ACK, arrival.t, witnesses, facts, doubt)

    def _duplicate(self, arrival: Arrival, publication: Publication | None, order: EpochOrder, message_id: str) -> None:
        if publication is None:
            further = arrival.seq < (order.next or 0)
        elif publication.confirmed:
            further = publication.token != arrival.token
        else:
            further = arrival.seq in order.unresolved
        if not further:
            return
        late = order.next is not None and arrival.seq < order.next - 1
        kind = Kind.LATE_DUP if late else Kind.PUBLISHER_DUP
        facts: Facts = {"seq": arrival.seq, "epoch": arrival.epoch, "message_id": message_id}
        self._docket.counters["publisher_duplicates"] += 1
        if self._docket.rules.attempts_observed and order.record.was_attempted_once(arrival.seq):
            self._docket.violation(kind, arrival.t, (arrival.number,), facts)
        else:
            self._docket.info(kind, arrival.t, (arrival.number,), facts)
