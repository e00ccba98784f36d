"""The recorded facts about sessions and deliveries, and the arithmetic of the bounds in `Rules` (docs/model.md, sections 3 and 7.4).

This module decides nothing. Bounds describe an unobserved time: the earliest and the latest possible value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from prober.core.events import LONG_AGO
from prober.core.rules import Mode, Rules

if TYPE_CHECKING:
    from prober.core.events import Delivered
    from prober.core.publications import Publication

Record: TypeAlias = int | tuple[int, int]
"""The identity of a record: the message id, with the publish time if that was recorded."""


class Session:
    """A stream, a pull response or a push request.

    owner       the holder of its deliveries: the client of a stream, else the session itself; None if its opening was not recorded.
    opened_t    the time before which nothing was sent on it.
    closed_t    when its end was noticed, infinite while it is open.
    lost        whether it is a pull that ended without an answer.
    answered_t  when its first message was received.
    is_limited  whether it has flow control: `max_messages`, `max_bytes`.
    sent_t      the time up to which its received deliveries were sent; lost deliveries were sent later.
    """

    __slots__ = ("answered_t", "closed_t", "is_limited", "lost", "max_bytes", "max_messages", "name", "opened_t", "owner", "sent_t")

    def __init__(self, name: str, owner: str | None, opened_t: float) -> None:
        self.name = name
        self.owner = owner
        self.opened_t = self.sent_t = opened_t
        self.closed_t = self.answered_t = inf
        self.max_messages = self.max_bytes = inf
        self.lost = self.is_limited = False


class Delivery:
    """One delivery of a record.

    event, number, t    the recorded event, its number and its time.
    token, stamp    the hashes of its message id and of its publish time (0 if that was not recorded); `record` is both.
    earliest_t      the earliest time at which it can have been sent.
    publication     its publish, None if that is not in the record.
    position        its place in the log of its region, 0 while it has none.
    region          the region in which its record was published, None if unknown.
    first           whether it was the first delivery of its record.
    copy            whether another record of the message id was received before: the service stored the message twice.
    shared          whether another record of the message id was received, before or since: the primary among them is unknown.
    unplaced        whether its record may have another place in the log than the learned one (section 10).
    bound           if it is unplaced, the first position that its record precedes; 0 if none is known.
    acked_t, nacked_t, leases   its answers; of the leases those that end first and last, and the newest.
    older           the previous delivery of the same message id, as long as an answer may refer to it.
    answered_before_t   the last answer to its record before this delivery, if the answered delivery is not remembered; or a repeated
                        answer to an earlier delivery.
    """

    __slots__ = (
        "acked_t",
        "answered_before_t",
        "bound",
        "copy",
        "earliest_t",
        "epoch",
        "event",
        "first",
        "leases",
        "nacked_t",
        "number",
        "older",
        "position",
        "publication",
        "record",
        "region",
        "seq",
        "session",
        "shared",
        "stamp",
        "t",
        "token",
        "unplaced",
    )

    def __init__(
        self,
        event: Delivered,
        number: int,
        session: Session,
        token: int,
        stamp: int,
        publication: Publication | None,
        earliest_t: float,
    ) -> None:
        self.event = event
        self.number = number
        self.t = event.t
        self.earliest_t = earliest_t
        self.session = session
        self.token = token
        self.stamp = stamp
        self.record: Record = (token, stamp) if stamp else token
        self.epoch = event.epoch
        self.seq = event.seq
        self.publication = publication
        self.position = self.bound = 0
        self.region: str | None = None
        self.first = self.copy = self.shared = self.unplaced = False
        self.acked_t = self.nacked_t = inf
        self.answered_before_t = -inf
        self.leases: tuple[tuple[float, float], ...] = ()
        self.older: Delivery | None = None

    @property
    def owner(self) -> str | None:
        """The subscriber that holds it; None if unknown."""
        return self.session.owner

    @property
    def invoked_t(self) -> float:
        """The time at which the attempt that stored its record was invoked; `LONG_AGO` if that is not on record."""
        publication = self.publication
        if publication is None:
            return LONG_AGO
        return publication.ordered_t if self.primary else publication.invoked_of(self.event.generation)

    @property
    def primary(self) -> bool:
        """Whether the confirmed publish named its record."""
        return self.publication is not None and self.publication.token == self.token and not self.copy


class Loss:
    """A broken stream, or a pull that ended without an answer: messages sent on it between two times may be lost."""

    __slots__ = ("session", "since_t", "until_t")

    def __init__(self, session: Session, since_t: float, until_t: float) -> None:
        self.session = session
        self.since_t = since_t
        self.until_t = until_t


def earliest_send(rules: Rules, t: float, session: Session, publication: Publication | None) -> float:
    """Return the earliest possible send of a message received on a session at a time: 3, "When was it sent?"."""
    bound_t = t - rules.delivery_delay_max_s
    if session.opened_t > bound_t:
        bound_t = session.opened_t
    if publication is not None and publication.invoked_t - rules.clock_error_s > bound_t:
        bound_t = publication.invoked_t - rules.clock_error_s
    return bound_t if bound_t < t else t


class Ends(NamedTuple):
    """The earliest possible ends of the hold of a delivery, by cause; infinite if the cause is not on record: 7.4."""

    lease: float
    nack: float
    stream: float
    ack: float = inf
    answer: float = inf


def ends_of(rules: Rules, held: Delivery, newest: Delivery | None = None) -> Ends:
    """Return the possible ends of the hold of a delivery, except for a redelivery at or below its position.

    newest  the last delivery of the same message id, if answers count.
    """
    lease_t = held.earliest_t + rules.ack_deadline_s
    for t, seconds in held.leases:
        lease_t = min(lease_t, t + seconds)
    stream_t = held.session.closed_t - rules.close_detection_max_s if rules.mode is Mode.STREAMING else inf
    alone = held.answered_before_t == -inf and (newest is None or (newest is held and held.older is None))
    if rules.exactly_once or alone:
        return Ends(lease_t, held.nacked_t, stream_t, held.acked_t)  # exactly-once: an answer counts for its own delivery only
    return Ends(lease_t, held.nacked_t, stream_t, held.acked_t, answered_elsewhere(rules, held, newest))


def earliest_end(rules: Rules, held: Delivery) -> float:
    """Return the time before which only an acknowledgement can have ended the hold of a delivery: 7.4."""
    ends = ends_of(rules, held)
    return min(ends.lease, ends.nack, ends.stream)


def lease_until(rules: Rules, one: Delivery) -> float:
    """Return when the lease of a delivery is provably over, if only time ends it: 7.4."""
    end_t = one.t + rules.ack_deadline_s
    for t, seconds in one.leases:
        end_t = max(end_t, t + seconds)
    return end_t + rules.delivery_delay_max_s + rules.clock_error_s


def may_be_held_until(rules: Rules, one: Delivery) -> float:
    """Return when a delivery is provably no longer outstanding: 7.4.

    By then an answer has been applied, or its lease or its stream is over.
    """
    answered_t = min(one.acked_t, one.nacked_t)
    if answered_t < inf:
        return min(lease_until(rules, one), answered_t + rules.ack_settled_s + rules.clock_error_s)
    end_t = lease_until(rules, one)
    return min(end_t, one.session.closed_t + rules.clock_error_s) if rules.mode is Mode.STREAMING else end_t


def provably_before(rules: Rules, one: Delivery, other: Delivery) -> bool:
    """3: return whether a delivery was sent before another, for all possible values of the unknown times."""
    if one.session is other.session:
        return one.number < other.number
    return one.t + rules.clock_error_s < other.earliest_t


def must_precede(rules: Rules, one: Publication, other: Delivery) -> bool:
    """L3 and L4: return whether the primary of a publish precedes a record in every legal log of their region (section 4)."""
    publication = other.publication
    if one.token is None or publication is None or one is publication:
        return False
    eps = 0.0 if one.epoch is publication.epoch else rules.clock_error_s  # a publisher has one clock
    return one.confirmed_t + eps < other.invoked_t or in_session(one, other)


def in_session(one: Publication, other: Delivery) -> bool:
    """L3: return whether one publisher sent a publication before that of a primary."""
    publication = other.publication
    if publication is None or one.epoch is not publication.epoch:
        return False
    return other.primary and one.seq < publication.seq and one.ordered_t <= publication.ordered_t


def is_too_late(rules: Rules, one: Publication, other: Delivery) -> bool:
    """Return whether neither a publication nor any invoked after it has to precede a record."""
    publication = other.publication
    if publication is not None and publication.attempts is None and one.rank >= publication.rank:
        return True  # only a repeated attempt can start after the confirmation of a later invocation
    return one.invoked_t > other.invoked_t + 2 * rules.clock_error_s


def surely_before(rules: Rules, one: Delivery, other: Delivery) -> bool:
    """Return whether a delivery was sent before another in every legal order of sends: by time, or by the order of their records."""
    if one.session is other.session:
        return one.number < other.number
    if provably_before(rules, one, other):
        return True
    return one.first and other.first and stands_before(rules, one, other)


def stands_before(rules: Rules, one: Delivery, other: Delivery) -> bool:
    """Return whether the record of a delivery precedes that of another in every legal log of their region (section 4)."""
    publication = one.publication
    return publication is not None and one.primary and not one.shared and must_precede(rules, publication, other)


def hold_s(rules: Rules) -> float:
    """Return for how long after a delivery earlier sends may still arrive, and the loss of a stream may stay unnoticed."""
    close_s = rules.close_detection_max_s if rules.mode is Mode.STREAMING else 0.0
    return close_s + rules.delivery_delay_max_s + rules.clock_error_s


def deliveries_of(newest: Delivery | None) -> Iterator[Delivery]:
    """Yield a delivery and the earlier deliveries of the same message id, as far as they are remembered."""
    while newest is not None:
        yield newest
        newest = newest.older


def acked_earlier(one: Delivery) -> float | None:
    """Return when an earlier delivery of the same record was last acknowledged; None if none is remembered."""
    earlier = (older.acked_t for older in deliveries_of(one.older) if older.stamp == one.stamp and older.acked_t < inf)
    return max(earlier, default=None)


def answered_by(newest: Delivery | None, session: str) -> list[Delivery]:
    """Return the deliveries that an answer may refer to: on its session the last delivery of each record of its message id."""
    found: dict[int, Delivery] = {}
    for one in deliveries_of(newest):
        if one.session.name == session:
            found.setdefault(one.stamp, one)
    return list(found.values())


def answered_elsewhere(rules: Rules, held: Delivery, newest: Delivery | None) -> float:
    """Return when an answer to another delivery of the same message id may first have ended the hold of this one: N2, 7.4."""
    others = [other for other in deliveries_of(newest) if other is not held]
    times = [one.answered_before_t for one in (held, *others)]
    times += [t for other in others for t in (other.acked_t, other.nacked_t)]
    recent_t = counts_from(rules, held)
    return min((t if t >= held.t else held.earliest_t for t in times if t >= recent_t), default=inf)


def counts_from(rules: Rules, held: Delivery) -> float:
    """Return from when on an answer to another delivery of the same message id may be applied while this one is held."""
    return held.earliest_t - rules.ack_lag_max_s - rules.clock_error_s


def earliest_release(rules: Rules, held: Delivery, newest: Delivery | None = None) -> float:
    """Return the time before which a delivery is provably held, unless a redelivery at or below its position ended that: 7.4.

    newest  the last delivery of the same message id.
    """
    return min(ends_of(rules, held, newest))


@dataclass(slots=True)
class Grace:
    """A period without a reliable record: a control operation that settles, or a hole. Its limits hold by any clock.

    start_t, until_t    deliveries sent between them are not verified.
    begun_t     when earlier knowledge became uncertain.
    published_t         messages published up to then may have been delivered, or passed over, unseen.
    shown_t             the earliest provable send after a hole.
    """

    start_t: float
    begun_t: float
    until_t: float
    published_t: float
    cause: str
    is_hole: bool = False
    since_t: float = field(default=inf)
    shown_t: float = field(default=inf)


def overlaps(periods: Iterable[Grace], since_t: float, until_t: float) -> Grace | None:
    """Return the grace period that overlaps a time; of several the one that ends last; None if there is none."""
    found = [one for one in periods if one.start_t <= until_t and since_t <= one.until_t]
    return max(found, key=lambda one: one.until_t, default=None)
