"""Records in the wrong order, as proven by a late confirmation or, with a filter, by a late delivery (L3, L4).

A confirmed primary is compared with its nearest neighbours in the log only. Pairs further apart are in order if these are. A message
published again only after a larger number is not late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING

from prober.core.facts import Delivery
from prober.core.log import PRIMARY, SHARED, UNPLACED, Log
from prober.core.publications import Publication
from prober.core.rules import Rules

if TYPE_CHECKING:
    from prober.core.subscription import Subscription


def first_of(publication: Publication, subscription: int) -> Delivery | None:
    """Return the first delivery of a primary on a subscription, if it was received before its confirmation."""
    return next((one for one in publication.early_on(subscription) if one.token == publication.token), None)


def pairs(
    log: Log, pending: Iterable[Publication], publication: Publication, delivery: Delivery | None, rules: Rules
) -> Iterator[tuple[Publication | int, int]]:
    """Yield late or missing records, each with the position that it should precede.

    publication     the publication that was just confirmed, or delivered, and `delivery` the first delivery of its primary, if that was
                    received first.
    pending         confirmed publications not yet delivered; with a filter they need not be.
    """
    position = _place(log, publication) if delivery is None else delivery.position or log.find(delivery.token, delivery.stamp)
    if position:
        yield from _behind(log, () if rules.filtered else pending, publication, position)
    if position or (delivery is None and not rules.filtered):
        yield from _before(log, publication, position, rules.clock_error_s)


def _place(log: Log, publication: Publication) -> int:
    """Return the position of a primary delivered after its confirmation; 0 if it has not been delivered."""
    assert publication.token is not None
    return next((one for one in log.positions_of(publication.token) if _is_primary(log, one, publication)), 0)


def _behind(
    log: Log, pending: Iterable[Publication], publication: Publication, position: int
) -> Iterator[tuple[Publication | int, int]]:
    """Yield records that should precede the position and follow it, or were not delivered."""
    for other in range(log.high(position) + 1, log.frontier + 1):
        earlier = log.seq(other) < publication.seq and log.invoked_t(other) <= publication.ordered_t
        if earlier and _is_primary(log, other, publication):
            yield other, position
    for missing in pending:
        if missing.epoch is publication.epoch and missing.seq < publication.seq and missing.ordered_t <= publication.ordered_t:
            yield missing, position


def _before(log: Log, publication: Publication, position: int, eps: float) -> Iterator[tuple[Publication | int, int]]:
    """Yield the position that should follow the publication and precedes it."""
    start = log.low(position) if position else log.frontier + 1
    for other in range(start - 1, log.floor, -1):
        if publication.confirmed_t + eps < log.invoked_t(other) and not log.flagged(other, UNPLACED | SHARED):
            yield position or publication, other
            return
        if _is_primary(log, other, publication):
            if log.seq(other) < publication.seq:
                return
            if publication.ordered_t <= log.invoked_t(other):
                yield position or publication, other
                return


def _is_primary(log: Log, position: int, publication: Publication) -> bool:
    """Return whether a position contains a primary of the same epoch whose place is known."""
    certain = log.flagged(position, PRIMARY) and not log.flagged(position, UNPLACED | SHARED)
    return certain and log.epoch(position) == publication.epoch.name


def stands_below(log: Log, upto: int, epoch: str, seq: int, invoked_t: float) -> int:
    """Return the first position up to `upto` that a primary precedes, for any place of its own (L3); 0 if none is known."""
    found = 0
    for other in range(upto, log.floor, -1):
        if log.flagged(other, PRIMARY) and not log.flagged(other, UNPLACED | SHARED) and log.epoch(other) == epoch:
            if log.seq(other) < seq:
                break
            found = other if invoked_t <= log.invoked_t(other) else found
    return found


def note_late(subscription: Subscription, deliveries: Iterable[Delivery]) -> None:
    """10: mark late messages as unplaced that may have been sent before early ones, on a stream that broke later."""
    earlier, latest_t = list[Delivery](), -inf
    for one in deliveries if subscription.losses else ():
        if one.first and not one.unplaced and one.invoked_t < latest_t:
            later = (other for other in earlier if one.invoked_t < other.invoked_t)
            one.unplaced = any(subscription.may_have_lost_beside(one.invoked_t, other) for other in later)
        earlier.append(one)
        latest_t = max(latest_t, one.invoked_t)
