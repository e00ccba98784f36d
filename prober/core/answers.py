"""Answers of clients (acknowledgements, nacks, lease changes) and the deliveries that they may refer to (docs/model.md, 7.4)."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from prober.core import integrity, opportunities
from prober.core.events import AckConfirmed, Acked, DeadLettered, LeaseModified, Nacked
from prober.core.facts import Delivery, answered_by, counts_from, deliveries_of, hold_s
from prober.core.log import ACK_CONFIRMED, ACKED, REMOVED

if TYPE_CHECKING:
    from prober.core.key import KeyChecker

UNSEEN_KEPT: Final = 1024
"""Number of messages that left the subscription before their first observed delivery; beyond that the oldest are forgotten."""
LIVE_KEPT: Final = 256, 2048
"""Bounds of the number of deliveries remembered for answers: twice the window within these; the oldest are forgotten first."""


def acked(key: KeyChecker, event: Acked) -> None:
    """Note that the client sends an acknowledgement."""
    t = key.last_t = event.t
    token = hash(event.message_id)
    newest = key.live.get(token)
    if newest is not None and newest.older is None and newest.session.name == event.session:
        _ack(key, newest, t)
        if newest.position and not key.rules.exactly_once and len(key.group.checkers) == 1:
            del key.live[token]  # the log contains the relevant facts of it
        return
    answered = answered_by(newest, event.session)
    if any(one.acked_t < t for one in answered):
        _note_repeated(key, newest, t)
    for one in answered:
        _ack(key, one, t)
    if not answered:
        _mark(key, event.message_id, ACKED, t)
        key.liveness.acked_unseen(token)


def _ack(key: KeyChecker, one: Delivery, t: float) -> None:
    if t < one.acked_t:
        if not key.subscription.streaming:
            opportunities.answered(key, one, t)
        one.acked_t = t
        key.liveness.acked(one, t)
    lane = key.current_lane
    if lane is not None and one.position and one.region == lane.region:
        lane.log.answer(one.position, ACKED, t)
    else:
        _mark(key, one.event.message_id, ACKED, t)


def _note_repeated(key: KeyChecker, newest: Delivery | None, t: float) -> None:
    """7.4: apply a repeated answer, or an answer to another copy of the message id, to the deliveries since the first answer."""
    for one in deliveries_of(newest):
        if one.answered_before_t < counts_from(key.rules, one):
            one.answered_before_t = t


def _mark(key: KeyChecker, message_id: str, flag: int, t: float) -> None:
    token = hash(message_id)
    for lane in key.lanes.values():
        for position in lane.log.positions_of(token):
            lane.log.answer(position, flag, t)


def nacked(key: KeyChecker, event: Nacked | LeaseModified) -> None:
    """Note that the client sends a negative acknowledgement."""
    key.last_t = event.t
    for one in answered_by(key.live.get(hash(event.message_id)), event.session):
        opportunities.answered(key, one, event.t)
        one.nacked_t = min(one.nacked_t, event.t)
        key.liveness.nacked(one, event.t)


def lease_modified(key: KeyChecker, event: LeaseModified) -> None:
    """Note that the client changes the lease of a delivery; a lease of 0 s is a nack."""
    if event.seconds <= 0:
        nacked(key, event)
        return
    key.last_t = event.t
    answered = answered_by(key.live.get(hash(event.message_id)), event.session)
    for one in answered:
        by_end = sorted((*one.leases, (event.t, event.seconds)), key=sum)
        one.leases = by_end[0], by_end[-1], (event.t, event.seconds)
        key.liveness.leased(one, event.t)
    if all(one.acked_t < inf for one in answered):
        key.liveness.leased_after_answer(hash(event.message_id), event)


def ack_confirmed(key: KeyChecker, event: AckConfirmed, number: int) -> None:
    """Note that the service confirmed an acknowledgement."""
    if key.rules.exactly_once and event.t > key.collector.grace_until_t:
        key.counts.opportunities_confirmed += key.subscription.opportunities.certain(key.rules, event.t)
        integrity.note_confirmation(key, event, number)
        _mark(key, event.message_id, ACK_CONFIRMED, event.t)


def dead_lettered(key: KeyChecker, event: DeadLettered) -> None:
    """Note that a message left the subscription for the dead-letter topic."""
    token = hash(event.message_id)
    seen = False
    for lane in key.lanes.values():
        known = lane.log.positions_of(token)
        key.collector.dead_letters += bool(known)
        seen = seen or bool(known)
        for position in known:
            lane.log.mark(position, REMOVED)
        for publication in [one for one in lane.pending if one.token == token]:
            del lane.pending[publication]
            key.excuse(publication)
        lane.now.drop(token)
        lane.settled.drop(token)
    if not seen:
        key.dead_lettered_ids[token] = None
        if len(key.dead_lettered_ids) > UNSEEN_KEPT:
            del key.dead_lettered_ids[next(iter(key.dead_lettered_ids))]
    key.liveness.dead_lettered(token, event.t)


def forget(key: KeyChecker, t: float) -> None:
    """Forget deliveries that no later answer can affect."""
    rules = key.rules
    until_t = t - rules.ack_settled_s - hold_s(rules)
    kept = {token: one for token, one in key.live.items() if not _is_over(one, until_t)}
    least, most = LIVE_KEPT
    count = min(max(2 * rules.window, least), most)
    if len(kept) > count:
        kept = dict(list(kept.items())[-count:])
    key.live = kept
    key.forget_at = max(64, 2 * len(kept))


def _is_over(one: Delivery, until_t: float) -> bool:
    answered_t = min(one.acked_t, one.nacked_t)
    return answered_t < until_t and one.t < until_t
