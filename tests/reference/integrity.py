"""What a single message shows: never published, failed, another content, another filter, confirmed before."""

from __future__ import annotations

from collections.abc import Iterable

from prober.core.events import Delivered, Event, Published
from prober.core.findings import Kind
from tests.reference.facts import Facts
from tests.reference.values import Copy


def integrity(facts: Facts) -> set[Kind]:
    """The kinds that single copies of the key show."""
    found = {kind for copy in facts.copies for kind in _of_copy(facts, copy)}
    return found | ({Kind.EOD_REDELIVERY_AFTER_ACK} if _redelivered_after_ack(facts) else set())


def _of_copy(facts: Facts, copy: Copy) -> Iterable[Kind]:
    if facts.is_phantom(copy):
        yield Kind.PHANTOM
    elif _failed(facts, copy):
        yield Kind.GHOST
    if copy.event.defect is not None:
        yield Kind.ID_CONFLICT
    if not copy.event.matches_filter and not any(start <= copy.t and copy.lo <= end for start, end in facts.grace_periods):
        yield Kind.FILTER_LEAK


def _failed(facts: Facts, copy: Copy) -> bool:
    attempts = facts.publishes.get(copy.message, {}).values()
    return bool(attempts) and not facts.is_foreign(copy) and all(one.failed for one in attempts)


def _redelivered_after_ack(facts: Facts) -> bool:
    """A confirmation that can only mean this record, and a copy of it that was certainly sent later."""
    if not facts.rules.exactly_once:
        return False
    for confirmed in facts.confirmed_acks:
        meant = facts.answered_by(confirmed.session, confirmed.message_id, confirmed.t)
        if len(meant) == 1 and any(_sent_after(facts, copy, meant[0], confirmed.t) for copy in facts.copies):
            return True
    return False


def _sent_after(facts: Facts, copy: Copy, acked: Copy, t: float) -> bool:
    if copy.record != acked.record or t + facts.rules.clock_error_s >= copy.lo or facts.excused_since(acked.lo, copy.t):
        return False
    return not _belongs_to_an_earlier_run(facts, copy, acked)


def _belongs_to_an_earlier_run(facts: Facts, copy: Copy, acked: Copy) -> bool:
    """Whether something before it was redelivered, which brings all later messages with it, and had not been acknowledged."""
    before = {one.record for one in facts.copies if one.number < acked.number} - {acked.record}
    again = (one for one in facts.copies if one.record in before and acked.number < one.number < copy.number)
    return any(not facts.was_confirmed(one.record[0], one.lo) for one in again)


def conflicts(events: Iterable[Event]) -> set[Kind]:
    """One message id is one message of one key of one epoch, in deliveries and in confirmations."""
    meaning: dict[str, tuple[str, str, int]] = {}
    delivered = set()
    for event in sorted(events, key=lambda one: one.t):
        if isinstance(event, Delivered | Published):
            mine = event.key, event.epoch, event.seq
            if meaning.setdefault(event.message_id, mine) != mine:
                delivered.add(event.message_id)
    seen = {event.message_id for event in events if isinstance(event, Delivered)}
    return {Kind.ID_CONFLICT} if delivered & seen else set()
