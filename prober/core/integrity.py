"""Guarantees about single messages (docs/model.md, sections 4 and 9).

A delivered message was published, is unchanged, is delivered once, and belongs to this subscription.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.events import AckConfirmed, Delivered
from prober.core.excuses import GRACE, Excuse, at, doubt_of, ruled_out
from prober.core.facts import Delivery, answered_by, deliveries_of
from prober.core.findings import Facts, Kind
from prober.core.log import ACK_CONFIRMED
from prober.core.publications import Epoch, Publication
from prober.core.rules import Rules

if TYPE_CHECKING:
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane

NEVER_INVOKED = "not published before the record began: the record has the epoch from its first message on"
ALL_FAILED = "not an unknown outcome: every attempt to publish it failed definitely"
RACING = "the redelivery may have been sent before the acknowledgement was confirmed"
OUT_OF_ORDER = "it may have been part of the redelivery of an earlier message, which had not been acknowledged"


def record_of(one: Delivery) -> Facts:
    """Return the facts that name the record of a delivery."""
    return {"seq": one.seq, "epoch": one.epoch, "message_id": one.event.message_id}


def verify_content(key: KeyChecker, one: Delivery, event: Delivered) -> None:
    """Report the recorder's findings about the message itself: a defect, or a filter that should exclude it."""
    if event.defect is not None:
        key.collector.violation(Kind.ID_CONFLICT, one.t, (one.number,), {**record_of(one), "defect": event.defect})
    if not event.matches_filter or key.rules.excludes(one.seq):
        grace = key.subscription.grace_of(one)
        doubt = "" if grace is None else GRACE.format(grace.cause)
        key.collector.violation(Kind.FILTER_LEAK, one.t, (one.number,), record_of(one), doubt)


def verify_identity(key: KeyChecker, one: Delivery) -> bool:
    """L5: return False, and report it, if the message id was delivered before with another sequence number or epoch."""
    before = _known_as(key, one.token, one.older)
    if before is None or before[:2] == (one.seq, one.epoch):
        return True
    seq, epoch, number = before
    facts: Facts = {**record_of(one), "first_seq": seq, "first_epoch": epoch}
    key.collector.violation(Kind.ID_CONFLICT, one.t, (number, one.number), facts)
    return False


def _known_as(key: KeyChecker, token: int, older: Delivery | None) -> tuple[int, str, int] | None:
    """Return the sequence number and epoch that an id was delivered with before, and the number of that event."""
    for lane in key.lanes.values():
        for position in lane.log.positions_of(token):
            return lane.log.seq(position), lane.log.epoch(position), lane.log.number(position)
    return None if older is None else (older.seq, older.epoch, older.number)


def verify_repetition(key: KeyChecker, lane: Lane, one: Delivery, position: int) -> None:
    """Verify that a redelivered record is the same message and, with exactly-once delivery, that its acknowledgement was not confirmed."""
    log = lane.log
    if log.seq(position) != one.seq or log.epoch(position) != one.epoch:
        facts: Facts = {**record_of(one), "first_seq": log.seq(position), "first_epoch": log.epoch(position)}
        key.collector.violation(Kind.ID_CONFLICT, one.t, (log.number(position), one.number), facts)
    if key.rules.exactly_once:
        _verify_confirmed(key, lane, one, position)


def _verify_confirmed(key: KeyChecker, lane: Lane | None, one: Delivery, position: int) -> None:
    """9: report a redelivery after a confirmed acknowledgement; `lane` is None if the position was forgotten."""
    confirmation = key.confirmations.get(one.token)
    if confirmation is None or (confirmation.stamp and one.stamp and confirmation.stamp != one.stamp):
        return
    again = Again(key.rules, lane, one, position, confirmation)
    doubt = doubt_of(AFTER_CONFIRMATION, again)
    reasons = () if doubt else ruled_out(AFTER_CONFIRMATION, again)
    if doubt and doubt != RACING:
        del key.confirmations[one.token]  # it is outstanding again; one that was sent before the confirmation is not
    witnesses = (0 if lane is None else lane.log.number(position), confirmation.number, one.number)
    facts: Facts = {**record_of(one), "confirmed_t": confirmation.t}
    key.collector.violation(Kind.EOD_REDELIVERY_AFTER_ACK, one.t, witnesses, facts, doubt, reasons)


def _follows_in_a_run(lane: Lane | None, position: int, acked: int) -> bool:
    """Return whether an earlier unconfirmed message was redelivered since the acknowledgement: its redelivery includes its successors."""
    if lane is None:
        return False
    again = (at for at, held in lane.now.held if at < position and held.number > acked)
    return bool(lane.waiting) or any(not lane.log.flagged(at, ACK_CONFIRMED) for at in again)


class Confirmation:
    """A confirmed acknowledgement. `out_of_order`: an earlier message in the log had no confirmed acknowledgement then.

    acked   the delivery that was acknowledged.
    """

    __slots__ = ("acked", "number", "out_of_order", "stamp", "t")

    def __init__(self, t: float, number: int, stamp: int, acked: int, *, out_of_order: bool) -> None:
        self.acked = acked
        self.t = t
        self.number = number
        self.stamp = stamp
        self.out_of_order = out_of_order


class Again(NamedTuple):
    """A redelivery after a confirmed acknowledgement; `lane` is None if its position was forgotten."""

    rules: Rules
    lane: Lane | None
    one: Delivery
    position: int
    confirmation: Confirmation


def _may_be_racing(case: Again) -> str:
    return "" if case.confirmation.t + case.rules.clock_error_s < case.one.earliest_t else RACING


def _may_be_dragged(case: Again) -> str:
    early = case.confirmation.out_of_order or _follows_in_a_run(case.lane, case.position, case.confirmation.acked)
    return OUT_OF_ORDER if early else ""


AFTER_CONFIRMATION: Final[tuple[Excuse[Again], ...]] = (
    Excuse(
        _may_be_racing,
        lambda case: (
            f"not sent before the confirmation: that was at {at(case.confirmation.t)}, and the redelivery was sent at "
            f"{at(case.one.earliest_t)} or later"
        ),
    ),
    Excuse(
        _may_be_dragged,
        lambda _: "not part of the redelivery of an earlier message: every acknowledgement of an earlier message was confirmed",
    ),
)
"""Excuses of a redelivery after a confirmed acknowledgement (decision D3)."""


def note_confirmation(key: KeyChecker, event: AckConfirmed, number: int) -> None:
    """Note a confirmed acknowledgement; one that may refer to several records proves nothing."""
    token = hash(event.message_id)
    meant = [one for one in answered_by(key.live.get(token), event.session) if one.t <= event.t]
    if token in key.confirmations or len(meant) != 1:
        return
    (one,) = meant
    for lane in key.lanes.values():
        position = one.position or lane.position_of(one)  # it may be on hold
        if one.token == lane.log.token(position):
            out_of_order = lane.is_unconfirmed_before(position)
            key.confirmations[token] = Confirmation(event.t, number, one.stamp, one.number, out_of_order=out_of_order)
            if len(key.confirmations) > key.rules.window:
                del key.confirmations[next(iter(key.confirmations))]
            key.counts.acks_confirmed += 1
            key.subscription.opportunities.confirmed.add(event.t)


def verify_origin(key: KeyChecker, one: Delivery, publication: Publication | None, *, forgotten: bool) -> bool:
    """L1: verify a record on its first delivery, or a `forgotten` one; return whether it cannot stem from the recorded publishes."""
    if forgotten and key.rules.exactly_once:
        _verify_confirmed(key, None, one, 0)
    epoch = key.group.epochs.get(one.epoch)
    if publication is None and epoch is None:
        return False
    if publication is not None and publication.failed:
        numbers = (publication.invoked_number, one.number)
        key.collector.violation(Kind.GHOST, one.t, numbers, record_of(one), reasons=(ALL_FAILED,))
        return True
    named = key.group.primary(one.token)
    if named is not None and (named.seq, named.epoch.name) != (one.seq, one.epoch):
        facts: Facts = {**record_of(one), "confirmed_seq": named.seq, "confirmed_epoch": named.epoch.name}
        witnesses = (named.invoked_number, named.confirmed_number, one.number)
        key.collector.violation(Kind.ID_CONFLICT, one.t, witnesses, facts)
    if publication is None:
        assert epoch is not None
        return _verify_unknown(key, one, epoch, forgotten=forgotten)
    if not forgotten and (publication.early_on(key.subscription.index) or publication.token not in (None, one.token)):
        verify_duplicate(key, one, publication)
    return False


def _verify_unknown(key: KeyChecker, one: Delivery, epoch: Epoch, *, forgotten: bool) -> bool:
    """Verify a record whose publication is settled, or was never made."""
    if not epoch.was_invoked(one.seq):
        if _was_delivered_since(one, epoch.began_t - key.rules.clock_error_s):
            return True
        key.collector.violation(Kind.PHANTOM, one.t, (one.number,), record_of(one), reasons=(NEVER_INVOKED,))
        return True
    if one.copy or forgotten:
        return False  # the service stored it twice, not the publisher
    another = any(lane.log.has_another(one.epoch, one.seq, one.token) for lane in key.lanes.values())
    certain = another and key.rules.attempts_observed and epoch.was_attempted_once(one.seq)
    _file_duplicate(key, one, certain=certain)
    return False


def _was_delivered_since(one: Delivery, t: float) -> bool:
    """Return whether an earlier delivery of the record occurred at or after a time."""
    return any(older.stamp == one.stamp and older.t >= t for older in deliveries_of(one.older))


def verify_duplicate(key: KeyChecker, one: Delivery, publication: Publication) -> None:
    """Report a further record of a sequence number: a violation only if every attempt is on record and there are fewer."""
    known = {early.token for early in publication.early_on(key.subscription.index)} | {publication.token, one.token}
    records = len(known - {None})
    if records < 2:
        return
    certain = key.rules.attempts_observed and publication.epoch.complete and records > publication.records_max
    _file_duplicate(key, one, certain=certain)


def _file_duplicate(key: KeyChecker, one: Delivery, *, certain: bool) -> None:
    """File a further record of a message, as late if a later message of its epoch came before it."""
    late = any(lane.highest.get(one.epoch, 0) > one.seq for lane in key.lanes.values())
    key.counts.publisher_duplicates += 1
    one_id = any(lane.log.positions_of(one.token) for lane in key.lanes.values())
    key.collector.note_repeated(one.epoch, one.seq, one_id=one_id)
    file = key.collector.violation if certain else key.collector.info
    file(Kind.LATE_DUP if late else Kind.PUBLISHER_DUP, one.t, (one.number,), record_of(one))


def verify_confirmation(key: KeyChecker, publication: Publication, t: float) -> None:
    """Verify that a confirmation does not name the id of a message that was delivered as another one."""
    assert publication.token is not None
    before = _known_as(key, publication.token, key.live.get(publication.token))
    if before is None or before[:2] == (publication.seq, publication.epoch.name):
        return
    seq, epoch, number = before
    facts: Facts = {"seq": seq, "epoch": epoch, "confirmed_seq": publication.seq, "confirmed_epoch": publication.epoch.name}
    witnesses = (number, publication.invoked_number, publication.confirmed_number)
    key.collector.violation(Kind.ID_CONFLICT, t, witnesses, facts)


def verify_failure(key: KeyChecker, publication: Publication, t: float, number: int) -> None:
    """Verify that no message of a definitely failed publish was delivered."""
    if not publication.failed:
        return
    for early in publication.early_on(key.subscription.index):
        facts: Facts = {"seq": publication.seq, "epoch": publication.epoch.name}
        witnesses = (publication.invoked_number, number, early.number)
        key.collector.violation(Kind.GHOST, t, witnesses, facts, reasons=(ALL_FAILED,))


def note_copy(key: KeyChecker, one: Delivery) -> None:
    """Note the first delivery of a record; if its message id is known, the service stored the message twice."""
    if one.copy:
        key.counts.service_duplicates += 1
        key.collector.note_repeated(one.epoch, one.seq, one_id=True)
        key.collector.info(Kind.SERVICE_DUP, one.t, (one.number,), record_of(one))
