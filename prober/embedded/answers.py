"""Answers of subscribers to deliveries.

An answer is an acknowledgement, a nack (a deadline of 0) or a moved deadline.

Without exactly-once delivery, an answer to an ended delivery is accepted and has no effect ("If the ack ID has expired, the message may be
redelivered later", proto, AcknowledgeRequest). Exception: an acknowledgement counts if the delivery ended with its stream and no message of
its key was sent since. A malformed id, or an id of another subscription, rejects the whole request.

With exactly-once delivery, an answer to an ended delivery fails, as do malformed and foreign ids, and acknowledgements of one key are only
accepted in order (documentation, "Exactly-once delivery"). Failures are returned as reasons by acknowledgement id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from prober.embedded import errors, resources
from prober.embedded.key_queues import QueueEntry
from prober.embedded.subscription_queue import SubscriptionQueue

_ACK_ID: Final = re.compile(r"ack-([0-9a-f]{1,32})-[0-9a-f]{1,32}")
_CONFIRMED_KEPT_MAX: Final = 10_000  # exactly-once delivery: acknowledgements that may be repeated


def acknowledge(queue: SubscriptionQueue, ack_ids: Sequence[str], now: float) -> dict[str, str]:
    """Settle the deliveries of these ids; return the reason of each failed id (exactly-once delivery only).

    Without exactly-once delivery a malformed id raises INVALID_ARGUMENT before any change.
    """
    found, failed = _find(queue, ack_ids, queue.confirmed)
    exactly_once = queue.settings.enable_exactly_once_delivery
    if exactly_once:
        found.sort(key=lambda entry: entry.position)  # the order inside one request is not held against the subscriber
    for ack_id in failed if queue.unanswered else ():
        _acknowledge_late(queue, ack_id, now)
    for entry in found:
        ack_id = entry.ack_id
        if not ack_id:
            continue  # named twice
        if queue.engine.behaviour.lose_ack(queue.name, entry, now):
            failed[ack_id] = errors.TEMPORARY_FAILURE
        elif exactly_once and entry.key_queue.key and not _is_first(entry):
            failed[ack_id] = errors.UNORDERED_ACK_ID
        elif not _put_off(queue, entry, None, now):
            _settle(queue, entry, now)
            if exactly_once:
                _remember(queue, ack_id)
    return failed if exactly_once else {}


def _acknowledge_late(queue: SubscriptionQueue, ack_id: str, now: float) -> None:
    entry = queue.unanswered.pop(ack_id, None)
    if entry is not None and not queue.engine.behaviour.lose_ack(queue.name, entry, now):
        entry.key_queue.acknowledge_late(entry)
        queue.after(entry.key_queue, now)


def _settle(queue: SubscriptionQueue, entry: QueueEntry, now: float) -> None:
    look_s = queue.engine.behaviour.looks_again() if queue.settings.enable_exactly_once_delivery and entry.key_queue.key else 0.0
    if look_s:
        entry.key_queue.pinned += 1
        queue.engine.set_timer(now + look_s, partial(_look_again, queue, entry))
    queue.settle(entry, now)


def _is_first(entry: QueueEntry) -> bool:
    entry.key_queue.trim()
    return entry.position == entry.key_queue.floor


def _remember(queue: SubscriptionQueue, ack_id: str) -> None:
    """Remember an id: "acknowledging a message more than once will not result in an error" (proto, AcknowledgeRequest)."""
    queue.confirmed[ack_id] = None
    if len(queue.confirmed) > _CONFIRMED_KEPT_MAX:
        del queue.confirmed[next(iter(queue.confirmed))]


def modify(queue: SubscriptionQueue, ack_ids: Sequence[str], seconds: int, now: float) -> dict[str, str]:
    """Set deadlines to `seconds` from now; 0 nacks the messages. Raises INVALID_ARGUMENT like `acknowledge`."""
    resources.check_ack_deadline(seconds)
    found, failed = _find(queue, ack_ids, ())
    if seconds == 0:
        queue.fail(dict.fromkeys(found), now, expired=False)
    else:
        for entry in found:
            if now + seconds <= entry.deadline or not _put_off(queue, entry, seconds, now):
                _set_deadline(queue, entry, now + seconds)
    return failed if queue.settings.enable_exactly_once_delivery else {}


def _set_deadline(queue: SubscriptionQueue, entry: QueueEntry, deadline: float) -> None:
    sooner = deadline < entry.deadline
    entry.deadline = deadline
    if sooner:
        queue.engine.leases.watch(queue, entry)


def _put_off(queue: SubscriptionQueue, entry: QueueEntry, seconds: int | None, now: float) -> bool:
    """Delay an acknowledgement or a later deadline by a fault; return whether it was delayed. Never with exactly-once delivery."""
    if queue.settings.enable_exactly_once_delivery:
        return False
    late_s = queue.engine.behaviour.delay_answer(queue.name, entry, now)
    if late_s > 0.0:
        queue.engine.set_timer(now + late_s, partial(_take_effect, queue, entry.ack_id, seconds))
    return late_s > 0.0


def _take_effect(queue: SubscriptionQueue, ack_id: str, seconds: int | None, now: float) -> None:
    """Apply a delayed answer as if it had just arrived; `seconds` None: an acknowledgement."""
    entry = queue.leases.get(ack_id)
    if entry is None:
        return
    if seconds is None:
        queue.settle(entry, now)
    else:
        _set_deadline(queue, entry, now + seconds)


def _look_again(queue: SubscriptionQueue, entry: QueueEntry, now: float) -> None:
    key_queue = entry.key_queue
    if queue.key_queues.get(key_queue.key) is not key_queue:
        return  # a seek came in between
    if not entry.removed and queue.engine.behaviour.forgets_ack(queue.name, entry, now):
        key_queue.floor = min(key_queue.floor, entry.position)
        queue.rewind(key_queue, entry.position)
    key_queue.pinned -= 1
    queue.after(key_queue, now)


def _find(queue: SubscriptionQueue, ack_ids: Sequence[str], harmless: Iterable[str]) -> tuple[list[QueueEntry], dict[str, str]]:
    """Return the outstanding entries of these ids, and the reasons of ids without one."""
    if not ack_ids:
        raise errors.no_ack_ids()
    leases = queue.leases
    found, failed = [], {}
    for ack_id in ack_ids:
        entry = leases.get(ack_id)
        if entry is not None:
            found.append(entry)
        elif not queue.settings.enable_exactly_once_delivery and not _is_own(queue, ack_id):
            raise errors.bad_ack_id(ack_id)
        elif ack_id not in harmless:
            failed[ack_id] = errors.INVALID_ACK_ID
    return found, failed


def _is_own(queue: SubscriptionQueue, ack_id: str) -> bool:
    """Return whether an id is well-formed and of this subscription."""
    named = _ACK_ID.fullmatch(ack_id)
    return named is not None and int(named[1], 16) == queue.number


def push_answered(queue: SubscriptionQueue, push: str, *, accepted: bool, now: float) -> None:
    """Settle or nack a pushed message by the response of its endpoint; late responses have no effect."""
    entry = queue.leases.get(push)
    if entry is None:
        return
    queue.pushes.discard(push)
    if not accepted:
        queue.fail([entry], now, expired=False)
    elif not queue.engine.behaviour.lose_ack(queue.name, entry, now) and not _put_off(queue, entry, None, now):
        queue.settle(entry, now)
    if queue.ready:
        queue.engine.dirty[queue] = None
