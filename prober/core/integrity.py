"""Promises about single messages: what is delivered was published, unchanged, once, and belongs here.

PHANTOM       a sequence number is delivered that was never invoked in a known epoch. What is below the first recorded publish of
              an epoch is unknown instead: the history began in the middle of it.
GHOST         a message is delivered although every attempt to publish it failed definitely.
ID_CONFLICT   one message id stands for two messages, be it in two deliveries or in a delivery and a confirmation, or the content or
              key of a message is not what was published. Content is judged under whatever key it arrives.
FILTER_LEAK   a message is delivered that the subscription's filter excludes.
EOD_REDELIVERY_AFTER_ACK   with exactly-once delivery, a message comes again after its acknowledgement was confirmed; certain
              only when the redelivery cannot have been sent before the confirmation.
EOD_REDELIVERY_WHILE_OUTSTANDING is judged in `holder`.
SERVICE_DUP   a message id was delivered with another publish time: the service's own retry stored the message twice. Informational.
PUBLISHER_DUP / LATE_DUP   a further record of a sequence number. A client that retries by itself makes such records, so they
              are informational; they are a violation only where every attempt is on record and there are more records than attempts that
              did not fail definitely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prober.core.attempts import Early
from prober.core.collector import FindingsCollector
from prober.core.epoch_order import EpochOrder
from prober.core.findings import Facts, Kind
from prober.core.positions import LearnedLog
from prober.core.publications import EpochRecord, Publication
from prober.core.sessions import Arrival

RACING = "the redelivery may have been sent before the acknowledgement was confirmed"


def judge_content(collector: FindingsCollector, arrival: Arrival, defect: str | None, matches_filter: bool) -> None:
    """Judges what the recorder found in the message itself."""
    facts = _record_of(arrival)
    if defect is not None:
        collector.violation(Kind.ID_CONFLICT, arrival.t, (arrival.number,), {**facts, "defect": defect})
    if not matches_filter:
        collector.violation(Kind.FILTER_LEAK, arrival.t, (arrival.number,), facts)


def judge_known_id(
    collector: FindingsCollector, log: LearnedLog, position: int, arrival: Arrival, order: EpochOrder, orders: Iterable[EpochOrder]
) -> None:
    """A message id that was received before, at `position`, must stand for the same message. `orders`: the epochs still known."""
    index, seq = log.epoch(position), log.seq(position)
    if index == order.index and seq == arrival.seq:
        return
    for first in orders:
        if first.index == index and (first.record is not order.record or seq != arrival.seq):
            facts: Facts = {**_record_of(arrival), "first_seq": seq, "first_epoch": first.record.name}
            collector.violation(Kind.ID_CONFLICT, arrival.t, (log.number(position), arrival.number), facts)


def judge_other_claim(
    collector: FindingsCollector,
    arrival: Arrival,
    publication: Publication | None,
    named: Publication | None,
    records: Mapping[str, EpochRecord],
) -> None:
    """A new message id, though the publish of that sequence number is settled or was confirmed with another one.

    Judged against `named`, the publish that was confirmed with this id, if any was; `records`: the publisher's, by epoch.
    """
    if named is None or named is publication:
        return
    epoch = _epoch_of(named, records)
    if named.seq == arrival.seq and epoch in ("", arrival.epoch):
        return
    facts: Facts = {**_record_of(arrival), "confirmed_seq": named.seq, "confirmed_epoch": epoch}
    collector.violation(Kind.ID_CONFLICT, arrival.t, (named.invoked_number, named.confirmed_number, arrival.number), facts)


def judge_confirmation(
    collector: FindingsCollector, log: LearnedLog, publication: Publication, epoch: str, orders: Iterable[EpochOrder], t: float
) -> None:
    """A confirmation must not name the id of a message that was delivered as another sequence number, or of another epoch."""
    position = log.find(publication.token or 0)
    if not position:
        return
    delivered = next((order.record.name for order in orders if order.index == log.epoch(position)), "")
    if log.seq(position) == publication.seq and delivered in ("", epoch):
        return
    facts: Facts = {
        "seq": log.seq(position),
        "epoch": delivered,
        "confirmed_seq": publication.seq,
        "confirmed_epoch": epoch,
    }
    collector.violation(
        Kind.ID_CONFLICT, t, (log.number(position), publication.invoked_number, publication.confirmed_number), facts
    )


def judge_early_claims(
    collector: FindingsCollector,
    publication: Publication,
    early: Iterable[Early],
    primary: Callable[[int], Publication | None],
    records: Mapping[str, EpochRecord],
    t: float,
) -> None:
    """What came before its publish was confirmed, with another id: that must not be the one that another publish was confirmed with."""
    for seen in early:
        named = primary(seen.token) if seen.token != publication.token else None
        if named is not None and named is not publication:
            witnesses = (named.invoked_number, named.confirmed_number, seen.number)
            facts: Facts = {
                "seq": publication.seq,
                "epoch": _epoch_of(publication, records),
                "confirmed_seq": named.seq,
                "confirmed_epoch": _epoch_of(named, records),
            }
            collector.violation(Kind.ID_CONFLICT, t, witnesses, facts)


def note_service_duplicate(collector: FindingsCollector, arrival: Arrival) -> None:
    """A known message id came with another publish time."""
    collector.counts.service_duplicates += 1
    collector.info(Kind.SERVICE_DUP, arrival.t, (arrival.number,), _record_of(arrival))


def judge_redelivery(collector: FindingsCollector, log: LearnedLog, arrival: Arrival) -> None:
    """Judges a message that comes again against the confirmation of its acknowledgement."""
    confirmation = log.confirmation(arrival.position)
    if confirmation is None:
        return
    doubt = "" if confirmation.t + collector.rules.clock_error_s < arrival.lo else RACING
    witnesses = (log.number(arrival.position), confirmation.number, arrival.number)
    facts: Facts = {**_record_of(arrival), "confirmed_t": confirmation.t}
    collector.violation(Kind.EOD_REDELIVERY_AFTER_ACK, arrival.t, witnesses, facts, doubt)


def judge_origin(
    collector: FindingsCollector, arrival: Arrival, publication: Publication | None, early: Sequence[Early], order: EpochOrder
) -> bool:
    """Judges whether a message id received for the first time can stem from the recorded publishes; True if it cannot.

    `early`: what this subscription received of the same sequence number so far, the primary left out.
    """
    attempts_observed = collector.rules.attempts_observed
    if publication is None:
        record = order.record
        if not record.was_invoked(arrival.seq):
            collector.violation(Kind.PHANTOM, arrival.t, (arrival.number,), _record_of(arrival))
            return True
        if order.settled and record.first <= arrival.seq <= order.last_seq:
            certain = attempts_observed and record.was_attempted_once(arrival.seq)
            _file_duplicate(collector, arrival, order, certain=certain)
    elif publication.certainly_unsent:
        collector.violation(Kind.GHOST, arrival.t, (publication.invoked_number, arrival.number), _record_of(arrival))
        return True
    elif early or (publication.confirmed and publication.token != arrival.token):
        records = publication.records_beside(arrival.token) + 1
        stored_max = 1 if publication.several is None else publication.several.records_max
        certain = attempts_observed and order.record.complete and records > stored_max
        _file_duplicate(collector, arrival, order, certain=certain)
    return False


def judge_failure(
    collector: FindingsCollector, publication: Publication, early: Iterable[Early], epoch: str, t: float, number: int
) -> None:
    """Judges a definite failure: nothing of it may have been delivered already, as the deliveries `early` were."""
    if not publication.certainly_unsent:
        return
    for delivery in early:
        witnesses = (publication.invoked_number, number, delivery.number)
        collector.violation(Kind.GHOST, t, witnesses, {"seq": publication.seq, "epoch": epoch})


def _file_duplicate(collector: FindingsCollector, arrival: Arrival, order: EpochOrder, *, certain: bool) -> None:
    late = order.settled and arrival.seq < order.last_seq
    kind = Kind.LATE_DUP if late else Kind.PUBLISHER_DUP
    collector.counts.publisher_duplicates += 1
    file = collector.violation if certain else collector.info
    file(kind, arrival.t, (arrival.number,), _record_of(arrival))


def _record_of(arrival: Arrival) -> Facts:
    return {"seq": arrival.seq, "epoch": arrival.epoch, "message_id": arrival.message_id}


def _epoch_of(publication: Publication, records: Mapping[str, EpochRecord]) -> str:
    """The epoch of a publication, empty if that is settled."""
    return next((name for name, record in records.items() if record.open.get(publication.seq) is publication), "")
