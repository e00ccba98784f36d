"""What subscribers say about their deliveries: acknowledgements, refusals (a deadline of 0) and moved deadlines.

Without exactly-once delivery an answer to a delivery that is over is accepted and has no effect ("If the ack ID has expired, the message
may be redelivered later", proto, AcknowledgeRequest). With it such an answer fails, and acknowledgements of one key are only accepted in
order (documentation, "Exactly-once delivery"). What failed, and why, is returned by acknowledgement id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from prober.embedded import errors, limits
from prober.embedded.feed import Feed
from prober.embedded.lanes import Entry
from prober.embedded.subscribers import LateAnswer

_ACK_ID: Final = re.compile(r"ack-[0-9a-f]{1,32}")
_CONFIRMED_KEPT_MAX: Final = 10_000


def acknowledge(feed: Feed, ack_ids: Sequence[str], now: float) -> dict[str, str]:
    """Settle what these ids name; raises INVALID_ARGUMENT, before anything is done, for what cannot be an id."""
    found, failed = _find(feed, ack_ids, feed.confirmed)
    exactly_once = feed.settings.enable_exactly_once_delivery
    if exactly_once:
        found.sort(key=lambda entry: entry.position)  # the order inside one request is not held against the subscriber
    for entry in found:
        ack_id = entry.ack_id
        if not ack_id:
            continue  # named twice
        if feed.engine.conduct.lose_ack(feed.name, entry, now):
            failed[ack_id] = errors.TEMPORARY_FAILURE
        elif exactly_once and entry.lane.key and not _is_first(entry):
            failed[ack_id] = errors.UNORDERED_ACK_ID
        elif not _put_off(feed, entry, None, now):
            feed.settle(entry, now)
            if exactly_once:
                _remember(feed, ack_id)
    return failed if exactly_once else {}


def _is_first(entry: Entry) -> bool:
    entry.lane.trim()
    return entry.position == entry.lane.floor


def _remember(feed: Feed, ack_id: str) -> None:
    """Keep an id for a while: "acknowledging a message more than once will not result in an error" (proto, AcknowledgeRequest)."""
    feed.confirmed[ack_id] = None
    if len(feed.confirmed) > _CONFIRMED_KEPT_MAX:
        del feed.confirmed[next(iter(feed.confirmed))]


def modify(feed: Feed, ack_ids: Sequence[str], seconds: int, now: float) -> dict[str, str]:
    """Move deadlines to so many seconds from now; 0 refuses the messages. Raises INVALID_ARGUMENT like `acknowledge`."""
    limits.check_ack_deadline(seconds)
    found, failed = _find(feed, ack_ids, ())
    if seconds == 0:
        feed.fail(dict.fromkeys(found), now, expired=False)
    else:
        for entry in found:
            if now + seconds <= entry.deadline or not _put_off(feed, entry, seconds, now):
                _set_deadline(feed, entry, now + seconds)
    return failed if feed.settings.enable_exactly_once_delivery else {}


def _set_deadline(feed: Feed, entry: Entry, deadline: float) -> None:
    sooner = deadline < entry.deadline
    entry.deadline = deadline
    if sooner:
        feed.engine.leases.watch(feed, entry)


def _put_off(feed: Feed, entry: Entry, seconds: int | None, now: float) -> bool:
    """Whether an acknowledgement or a further deadline takes effect later. With exactly-once delivery it was confirmed by then."""
    if feed.settings.enable_exactly_once_delivery:
        return False
    late_s = feed.engine.conduct.delay_answer(feed.name, entry, now)
    if late_s > 0.0:
        feed.engine.set_timer(now + late_s, feed, LateAnswer(entry.ack_id, seconds))
    return late_s > 0.0


def take_effect(feed: Feed, late: LateAnswer, now: float) -> None:
    """What was put off has its effect now, as if it had been said now."""
    entry = feed.leases.get(late.ack_id)
    if entry is None:
        return
    if late.seconds is None:
        feed.settle(entry, now)
    else:
        _set_deadline(feed, entry, now + late.seconds)


def _find(feed: Feed, ack_ids: Sequence[str], harmless: Iterable[str]) -> tuple[list[Entry], dict[str, str]]:
    """The outstanding entries that are meant, and the reasons for those that are not outstanding."""
    if not ack_ids:
        raise errors.no_ack_ids()
    leases = feed.leases
    found, failed = [], {}
    for ack_id in ack_ids:
        entry = leases.get(ack_id)
        if entry is not None:
            found.append(entry)
        elif not _ACK_ID.fullmatch(ack_id):
            raise errors.bad_ack_id(ack_id)
        elif ack_id not in harmless:
            failed[ack_id] = errors.INVALID_ACK_ID
    return found, failed


def push_answered(feed: Feed, push: str, *, accepted: bool, now: float) -> None:
    """A push endpoint has answered, or could not be reached; late answers have no effect."""
    entry = feed.leases.get(push)
    if entry is None:
        return
    feed.pushes.discard(push)
    if not accepted:
        feed.fail([entry], now, expired=False)
    elif not feed.engine.conduct.lose_ack(feed.name, entry, now) and not _put_off(feed, entry, None, now):
        feed.settle(entry, now)
    if feed.ready:
        feed.engine.dirty[feed] = None
