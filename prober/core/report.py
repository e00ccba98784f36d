"""Problems as findings: the facts that a sentence needs, and the events that prove it. This module decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from prober.core.collector import SEQS_SHOWN
from prober.core.excuses import NO_DUPLICATE, NO_ORDER, at, doubt_of, ruled_out
from prober.core.facts import Delivery, deliveries_of, earliest_release, ends_of, in_session, may_be_held_until
from prober.core.findings import Fact, Facts, Kind
from prober.core.integrity import record_of
from prober.core.log import PRIMARY, UNPLACED
from prober.core.model import OVERLAP, Problem
from prober.core.names import Named, RecordName, id_of, ids_of, words_for
from prober.core.publications import Publication
from prober.core.rules import Mode
from prober.core.send_excuses import ABSENCE, Absent, stored_before
from prober.core.sought import Restart

if TYPE_CHECKING:
    from prober.core.accepted import AcceptedDeliveries
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane

EARLY: Final = "the service may redeliver from the lowest message held, or below, before its lease is over"
RELEASED: Final = "what was held may have been released"
RELEASED_BY: Final = {
    "ack": "its acknowledgement, which was under way",
    "nack": "a nack",
    "answer": "an answer to another delivery of it",
    "stream": "the end of its stream",
    "lease": "the end of its lease",
}
"""Possible ends of a hold, by the fields of `facts.Ends`: those on record first."""
CAUSES_MAX: Final = 3


def gap(key: KeyChecker, lane: Lane, one: Delivery, problem: Problem) -> None:
    """File ORDER_GAP for messages missing before a delivery, and report those that were received late meanwhile."""
    came = {missing: lane.arrival_of(missing) for missing in problem.publications}
    absent = [missing for missing, arrival in came.items() if _was_missing(key, missing, one, arrival)]
    if absent:
        _gap(key, one, absent, problem)
    if problem.doubt:
        lane.pending.update((missing, one) for missing in problem.publications if missing in lane.pending)
        return
    for missing, arrival in came.items():
        lane.overtaken[missing] = one
        if arrival is not None:
            late(key, lane, missing, arrival, one)


def _was_missing(key: KeyChecker, missing: Publication, one: Delivery, arrival: Delivery | None) -> bool:
    """Return whether a message was missing when the order of the two was known.

    Across epochs: whether it has not been received yet.
    """
    if arrival is None:
        return True
    if not in_session(missing, one):
        return False
    assert one.publication is not None
    return arrival.t > max(one.t, missing.confirmed_t, one.publication.confirmed_t)


def _gap(key: KeyChecker, one: Delivery, missing: Sequence[Publication], problem: Problem) -> None:
    witnesses = [one.number, *(() if one.publication is None else (one.publication.confirmed_number,))]
    for publication in missing[:3]:
        witnesses += [publication.invoked_number, publication.confirmed_number]
    key.collector.violation(Kind.ORDER_GAP, one.t, witnesses, _of_gap(key, one, missing), problem.doubt, problem.reasons)


def _of_gap(key: KeyChecker, record: Named, missing: Sequence[Publication]) -> Facts:
    name, shown = RecordName.of(record), missing[:SEQS_SHOWN]
    return {
        "seq": name.seq,
        "epoch": name.epoch,
        "missing": tuple(publication.seq for publication in shown),
        "missing_count": len(missing),
        "missing_epoch": missing[0].epoch.name,
        **id_of(key, "seq", record),
        **ids_of(key, "missing", shown),
    }


def _of_inversion(key: KeyChecker, late: Named, early: Named) -> Facts:
    behind, before = RecordName.of(late), RecordName.of(early)
    facts: Facts = {"seq": behind.seq, "epoch": behind.epoch, "after": before.seq, "after_epoch": before.epoch}
    return {**facts, **id_of(key, "seq", late), **id_of(key, "after", early)}


def late(key: KeyChecker, lane: Lane, publication: Publication, one: Delivery, early: Delivery) -> None:
    """File ORDER_INVERSION or REALTIME_INVERSION for a message that was missing before `early` and received late."""
    before = early.publication
    of_one_epoch = before is not None and before.epoch is publication.epoch
    eps = 0.0 if of_one_epoch else key.rules.clock_error_s
    facts = _of_inversion(key, publication, early)
    confirmed = 0 if before is None else before.confirmed_number
    reasons = (
        *stored_before(key, publication, early),
        f"not a missing message: {words_for(key, one)} came later, at {at(one.t)}",
        NO_ORDER,
    )
    if in_session(publication, early):
        witnesses = (early.number, confirmed, one.number, publication.confirmed_number)
        key.collector.violation(Kind.ORDER_INVERSION, one.t, witnesses, facts, "", reasons)
    if before is not None and publication.confirmed_t + eps < before.ordered_t:
        times: Facts = {**facts, "confirmed_t": publication.confirmed_t, "invoked_t": before.ordered_t}
        witnesses = (publication.confirmed_number, before.invoked_number, early.number, one.number)
        key.collector.violation(Kind.REALTIME_INVERSION, one.t, witnesses, times, "", reasons)
        return
    lane.commit(one.t)
    position = _published_after(lane, publication, key.rules.clock_error_s)
    if position:
        log = lane.log
        facts = _of_inversion(key, publication, log.named(position))
        times = {**facts, "confirmed_t": publication.confirmed_t, "invoked_t": log.invoked_t(position)}
        proof = publication.confirmed_number, log.number(position), one.number
        key.collector.violation(Kind.REALTIME_INVERSION, one.t, proof, times, "", (NO_ORDER,))


def _published_after(lane: Lane, publication: Publication, eps: float) -> int:
    """Return the first final position whose publish was invoked after the confirmation of a publication; 0 if there is none."""
    log = lane.log
    final = (one for one in log.between(0, lane.final + 1) if not log.flagged(one, UNPLACED))
    return next((one for one in final if log.invoked_t(one) > publication.confirmed_t + eps), 0)


def pair(key: KeyChecker, lane: Lane, behind: Publication | int, early: int, confirmed: Publication) -> None:
    """File two records in the wrong order, or a record missing before another (see `late`)."""
    log, number, before = lane.log, lane.log.number(early), lane.log.named(early)
    missing = behind if isinstance(behind, Publication) else confirmed
    absent = Absent(key, missing, _first_at(key, lane, early, confirmed), key.last_t, key.last_t)
    doubt = doubt_of(ABSENCE, absent)
    if isinstance(behind, Publication):
        facts = _of_gap(key, before, [behind])
        witnesses = (number, behind.invoked_number, behind.confirmed_number)
        reasons = () if doubt else (_confirmed_late(key, behind), *ruled_out(ABSENCE, absent))
        key.collector.violation(Kind.ORDER_GAP, behind.confirmed_t, witnesses, facts, doubt, reasons)
        return
    inversion = _of_inversion(key, log.named(behind), before)
    witnesses = number, log.number(behind), confirmed.confirmed_number
    of_session = log.epoch(behind) == before.epoch and log.flagged(early, PRIMARY)
    kind, reasons = (Kind.ORDER_INVERSION, (NO_DUPLICATE, NO_ORDER)) if of_session else (Kind.REALTIME_INVERSION, (NO_ORDER,))
    if not of_session:
        inversion = {**inversion, "confirmed_t": confirmed.confirmed_t, "invoked_t": log.invoked_t(early)}
    key.collector.violation(kind, key.last_t, witnesses, inversion, doubt, () if doubt else reasons)


def _first_at(key: KeyChecker, lane: Lane, position: int, confirmed: Publication) -> Delivery | None:
    """Return the first delivery at a position, if it is remembered for answers or by the publication that was just confirmed."""
    remembered = (*deliveries_of(key.newest(lane.log.token(position))), *confirmed.early_on(key.subscription.index))
    return next((one for one in remembered if one.first and one.position == position), None)


def _confirmed_late(key: KeyChecker, publication: Publication) -> str:
    return f"not an unknown outcome: the publish of {words_for(key, publication)} was confirmed at {at(publication.confirmed_t)}"


def skip(key: KeyChecker, lane: Lane, one: Delivery, problem: Problem) -> None:
    """File REDELIVERY_SKIP or PULL_BATCH_ORDER."""
    log, shown = lane.log, problem.positions[:SEQS_SHOWN]
    (before,) = problem.others
    facts: dict[str, Fact] = {
        **record_of(one),
        "after": before.seq if before.number < one.number else 0,
        "skipped": tuple(log.seq(position) for position in shown),
        "skipped_count": len(problem.positions),
        "subscriber": one.session.owner or one.session.name,
        "mode": key.rules.mode.value,
        **id_of(key, "seq", one),
        **ids_of(key, "skipped", map(log.named, shown)),
        **(id_of(key, "after", before) if before.event.message_id else {}),
    }
    epochs = tuple(log.epoch(position) for position in shown)
    if any(epoch != one.epoch for epoch in epochs):
        facts["skipped_epochs"] = epochs
    if isinstance(before, Restart):
        facts["sought_t"] = before.sought_t
    elif before.epoch != one.epoch:
        facts["after_epoch"] = before.epoch
    witnesses = (before.number, *(log.number(position) for position in shown[:5]), one.number)
    key.collector.violation(problem.kind, one.t, witnesses, facts, problem.doubt, problem.reasons)


def overlap(key: KeyChecker, lane: Lane, one: Delivery, problem: Problem) -> None:
    """File AFFINITY_SPLIT, PULL_OVERLAP or PUSH_OVERLAP: earlier deliveries prove it, or else later ones that were sent before."""
    if key.rules.mode is Mode.STREAMING and not problem.doubt:
        key.counts.affinity_moves_outstanding_yes += 1
    held = [other for other in problem.others if other.number < one.number] or problem.others
    _overlap(key, lane, one, held, problem.doubt, reasons=problem.reasons)


def _overlap(
    key: KeyChecker,
    lane: AcceptedDeliveries,
    one: Delivery,
    held: Sequence[Delivery],
    doubt: str,
    holder: str = "",
    reasons: Sequence[str] = (),
) -> None:
    shown = sorted(held, key=lambda other: other.position)[:SEQS_SHOWN]
    facts: dict[str, Fact] = {
        **record_of(one),
        "subscriber": one.session.owner or one.session.name,
        "holder": (shown[0].session.owner or shown[0].session.name) if shown else holder,
        "held": tuple(other.seq for other in shown),
        **id_of(key, "seq", one),
        **ids_of(key, "held", shown),
    }
    epochs = tuple(other.epoch for other in shown)
    if any(epoch != one.epoch for epoch in epochs):
        facts["held_epochs"] = epochs
    if shown and shown[0].number > one.number:
        facts["held_t"] = shown[0].t
    before = lane.now.before
    witnesses = (*(other.number for other in held[:5]), 0 if before is None else before.number, one.number)
    key.collector.violation(OVERLAP[key.rules.mode], one.t, witnesses, facts, doubt, reasons)


def past_nack(key: KeyChecker, lane: Lane, one: Delivery, problem: Problem) -> None:
    """File PUSH_ADVANCE_PAST_NACK."""
    (position, *_), (nacked, *_) = problem.positions, problem.others
    ids = {**id_of(key, "seq", one), **id_of(key, "nacked", nacked)}
    facts: Facts = {**record_of(one), "nacked": nacked.seq, "nacked_epoch": nacked.epoch, **ids}
    witnesses = (lane.log.number(position), nacked.number, one.number)
    key.collector.violation(Kind.PUSH_ADVANCE_PAST_NACK, one.t, witnesses, facts, problem.doubt, problem.reasons)


def held_twice(key: KeyChecker, lane: Lane, one: Delivery, problem: Problem) -> None:
    """File EOD_REDELIVERY_WHILE_OUTSTANDING."""
    del lane
    (held,) = problem.others
    facts: Facts = {
        **record_of(one),
        "subscriber": one.session.owner or one.session.name,
        "holder": held.session.owner or held.session.name,
        "mode": key.rules.mode.value,
    }
    key.collector.violation(problem.kind, one.t, (held.number, one.number), facts, problem.doubt, problem.reasons)


def moved(key: KeyChecker, lane: AcceptedDeliveries, one: Delivery) -> None:
    """Report that the key continues on a session of another owner."""
    before = lane.now.before
    if before is None or isinstance(before, Restart) or before.owner == one.owner:
        return
    if not key.rules.redelivery_promised or not key.group.key:
        return
    position = one.position or lane.log.frontier
    held = lane.now.held if key.subscription.streaming else lane.now.outstanding()
    others = [(at, other) for at, other in held if other.owner != one.owner]
    answered = not others and not key.subscription.streaming
    if answered and lane.region in key.reported_acked:
        return  # by pull and push that is the rule, and reported once
    if _moved(key, lane, one, position, others) and answered:
        key.reported_acked |= {lane.region}


def _moved(key: KeyChecker, lane: AcceptedDeliveries, one: Delivery, position: int, others: Sequence[tuple[int, Delivery]]) -> bool:
    """7.1: report a move to another owner while messages at or above the position are, or may be, held by the former owners.

    Return whether a doubt was reported.
    """
    if lane.is_reported(one, OVERLAP[key.rules.mode]):
        return False
    eps, before = key.rules.clock_error_s, lane.now.before
    assert before is not None
    certain = [
        held for at, held in others if at >= position and earliest_release(key.rules, held, key.newest(held.token)) > one.t + eps
    ]
    unbounded = key.rules.delivery_delay_max_s == inf  # the time of the send is unknown
    held_then = (may_be_held_until(key.rules, held) > one.t for held in (*(held for _, held in others), before))
    perhaps = bool(certain) or unbounded or any(held_then)
    streaming = key.rules.mode is Mode.STREAMING
    if perhaps:
        key.counts.early_redeliveries += bool(certain)
        key.counts.affinity_moves_outstanding_unknown += streaming
        doubt = EARLY if certain else _released(key, one, [*(held for _, held in others), before])
        _overlap(key, lane, one, certain, doubt, before.session.owner or before.session.name)
    elif streaming and None not in (before.owner, one.owner):
        key.counts.affinity_moves_outstanding_no += 1
        facts: Facts = {"seq": one.seq, "epoch": one.epoch, "subscriber": one.owner or "", "holder": before.owner or ""}
        key.collector.info(Kind.AFFINITY_MOVE, one.t, (before.number, one.number), facts)
    return perhaps


def _released(key: KeyChecker, one: Delivery, held: Sequence[Delivery]) -> str:
    """State why no message that may be held was provably held when another delivery was sent."""
    by_t = one.t + key.rules.clock_error_s
    ends = [ends_of(key.rules, other, key.newest(other.token))._asdict() for other in held]
    causes = [words for name, words in RELEASED_BY.items() if any(each[name] <= by_t for each in ends)][:CAUSES_MAX]
    return f"{RELEASED} by {' or '.join(causes)}" if causes else RELEASED


Report = Callable[["KeyChecker", "Lane", Delivery, Problem], None]

REPORTS: Final[Mapping[Kind, Report]] = MappingProxyType(
    {
        Kind.ORDER_GAP: gap,
        **dict.fromkeys(OVERLAP.values(), overlap),
        Kind.REDELIVERY_SKIP: skip,
        Kind.PULL_BATCH_ORDER: skip,
        Kind.PUSH_ADVANCE_PAST_NACK: past_nack,
        Kind.EOD_REDELIVERY_WHILE_OUTSTANDING: held_twice,
    }
)


def report(key: KeyChecker, lane: Lane, one: Delivery, problem: Problem) -> None:
    """File a problem of a delivery."""
    REPORTS[problem.kind](key, lane, one, problem)
