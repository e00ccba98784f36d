"""What a history says about one ordering key of one subscription, sorted for looking things up. No verdicts here.

All times are the recorders' seconds. A *copy* is one delivery; a *record* is what the service stored: a message id, with its publish time
if every copy states one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from prober.core.events import (
    AckConfirmed,
    Acked,
    Closed,
    DeadLettered,
    Delivered,
    Ended,
    Event,
    FilterChanged,
    Interrupted,
    LeaseModified,
    Nacked,
    Opened,
    PublishAbandoned,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
    Sought,
)
from prober.core.rules import Mode, Rules
from tests.reference.values import Attempt, Copy, Message, Record, Session

UNKNOWN = "?"


@dataclass(slots=True)
class Facts:
    """Everything that concerns one key of one subscription."""

    subscription: str
    key: str
    rules: Rules
    events: list[Event]
    sessions: dict[str, Session] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    publishes: dict[Message, dict[int, Attempt]] = field(default_factory=dict)
    dead_lettered: set[str] = field(default_factory=set)
    confirmed_acks: list[AckConfirmed] = field(default_factory=list)
    grace_periods: list[tuple[float, float]] = field(default_factory=list)
    holes: list[float] = field(default_factory=list)
    acks_of: dict[str, list[float]] = field(default_factory=dict)
    nacks_of: dict[str, list[float]] = field(default_factory=dict)
    messages: dict[Record, Message] = field(default_factory=dict)
    placeless: set[Record] = field(default_factory=set)
    first_receipts: dict[str, float] = field(default_factory=dict)
    _regions: dict[tuple[Record, Message], str | None] = field(default_factory=dict)
    end: float = 0.0
    drained: bool = False
    is_cut_off: bool = False

    def __post_init__(self) -> None:
        stated: dict[str, bool] = {}
        for event in self.events:
            if isinstance(event, Delivered):
                stated[event.message_id] = stated.get(event.message_id, True) and event.publish_time is not None
        for number, event in enumerate(self.events, 1):
            self.end = max(self.end, event.t)
            self._publish(event)
            self._session(event)
            self._control(event)
            if isinstance(event, Delivered) and event.key == self.key and event.subscription == self.subscription:
                self._delivered(number, event, stated[event.message_id])
            self._answer(event)
        self._bound_sends()
        for record in self.messages:
            first = next(copy for copy in self.copies if copy.record == record)
            if self._in_the_dark(first) or self._may_have_come_unseen(first) or self._was_lost_beside(first):
                self.placeless.add(record)

    # --- reading ---

    def _publish(self, event: Event) -> None:
        if (
            not isinstance(event, PublishInvoked | Published | PublishFailed | PublishUnknown | PublishAbandoned)
            or event.key != self.key
        ):
            return
        attempts = self.publishes.setdefault((event.epoch, event.seq), {})
        if isinstance(event, PublishInvoked):
            attempts[event.generation] = Attempt(event.t, event.region, event.size)
        elif isinstance(event, Published):
            attempt = attempts.setdefault(event.generation, Attempt(-inf, "", 0))
            attempt.ok, attempt.message_id = event.t, event.message_id
        elif isinstance(event, PublishFailed) and event.generation in attempts:
            attempts[event.generation].failed = True

    def _session(self, event: Event) -> None:
        if isinstance(event, Opened) and event.subscription == self.subscription:
            opened = event.t if event.invoked_t is None else event.invoked_t
            self.sessions[event.session] = Session(event.session, event.subscriber, opened)
            self.sessions[event.session].max_messages = event.max_outstanding_messages or inf
            self.sessions[event.session].max_bytes = event.max_outstanding_bytes or inf
        elif isinstance(event, Closed) and event.subscription == self.subscription and event.session in self.sessions:
            self.sessions[event.session].closed = event.t
            self.sessions[event.session].lost = event.lost
        elif isinstance(event, Delivered) and event.subscription == self.subscription:
            session = self.sessions.setdefault(event.session, Session(event.session, self._owner_unrecorded(event)))
            session.answered = min(session.answered, event.t)

    def _owner_unrecorded(self, event: Delivered) -> str | None:
        """Whose stream it is nobody can tell if its opening is not in the record."""
        return None if self.rules.mode is Mode.STREAMING else event.session

    def _control(self, event: Event) -> None:
        if isinstance(event, Sought | FilterChanged) and event.subscription == self.subscription:
            self.grace_periods.append((event.t, event.t + event.settle_s))
        elif isinstance(event, Interrupted):
            self.holes.append(event.t)
        elif isinstance(event, DeadLettered) and event.subscription == self.subscription and event.key == self.key:
            self.dead_lettered.add(event.message_id)
        elif isinstance(event, Ended):
            self.drained, self.is_cut_off = event.drained, not event.drained

    def _delivered(self, number: int, event: Delivered, timed: bool) -> None:
        record = (event.message_id, event.publish_time if timed else None)
        session = self.sessions[event.session]
        self.messages.setdefault(record, (event.epoch, event.seq))
        self.first_receipts.setdefault(event.message_id, event.t)
        self.copies.append(Copy(number, event.t, session, record, (event.epoch, event.seq), event))

    def _answer(self, event: Event) -> None:
        if not isinstance(event, Acked | Nacked | AckConfirmed | LeaseModified):
            return
        if (event.subscription, event.key) != (self.subscription, self.key):
            return
        if isinstance(event, AckConfirmed):
            self.confirmed_acks.append(event)
            return
        if not isinstance(event, LeaseModified):
            times = self.acks_of if isinstance(event, Acked) else self.nacks_of
            times.setdefault(event.message_id, []).append(event.t)
        for copy in self.answered_by(event.session, event.message_id):
            if isinstance(event, Acked):
                copy.acks.append(event.t)
            elif isinstance(event, Nacked) or event.seconds <= 0:
                copy.nacks.append(event.t)
            else:
                copy.leases.append((event.t, event.seconds))

    def answered_by(self, session: str, message_id: str, t: float = inf) -> list[Copy]:
        """The copies that an answer with this id may mean: on its session, the last of every record of this id by then."""
        last: dict[Record, Copy] = {}
        for copy in self.copies:
            if copy.session.name == session and copy.record[0] == message_id and copy.t <= t:
                last[copy.record] = copy
        return list(last.values())

    def _bound_sends(self) -> None:
        """`lo`: within the delivery delay, not before its session, its publish or what came before it on its session."""
        latest: dict[str, float] = {}
        for copy in self.copies:
            invoked = min((one.invoked for one in self.publishes.get(copy.message, {}).values()), default=-inf)
            bounds = copy.t - self.rules.delivery_delay_max_s, copy.session.opened, invoked - self.rules.clock_error_s
            copy.lo = min(copy.t, max(*bounds, latest.get(copy.session.name, -inf)))
            latest[copy.session.name] = copy.lo

    # --- publishes ---

    def first_seq(self, epoch: str) -> int | None:
        """The first sequence number of an epoch that was recorded; None for an epoch that was not."""
        return next((seq for one, seq in self.publishes if one == epoch), None)

    def is_primary(self, copy: Copy) -> bool:
        """Whether the publish of this sequence number was confirmed with this copy's id."""
        return any(one.message_id == copy.record[0] for one in self.publishes.get(copy.message, {}).values())

    def confirmed(self, message: Message) -> Attempt | None:
        """The attempt that was confirmed, if one was."""
        return next((one for one in self.publishes.get(message, {}).values() if one.ok < inf), None)

    def stored(self, message: Message) -> Attempt | None:
        """The attempt that was confirmed; or, if its outcome is not known, what another subscription received of it."""
        return self.confirmed(message) or next(self._received_elsewhere(message), None)

    def _received_elsewhere(self, message: Message) -> Iterator[Attempt]:
        for event in self.events:
            if not isinstance(event, Delivered) or event.key != self.key or event.subscription == self.subscription:
                continue
            if (event.epoch, event.seq) == message and event.defect is None:
                yield Attempt(self.invoked(message), "", 0, ok=event.t, message_id=event.message_id)

    def invoked(self, message: Message) -> float:
        """When the message was first handed over; long ago if that was not recorded."""
        return min((one.invoked for one in self.publishes.get(message, {}).values()), default=-inf)

    def region_of(self, message: Message) -> str | None:
        """The region of the confirmed publish of a message."""
        confirmed = self.confirmed(message)
        return None if confirmed is None else confirmed.region

    def region(self, record: Record, message: Message) -> str | None:
        """The region of a record, None if nobody can tell: a copy of a publish that was tried in several."""
        known = self._regions.get((record, message), UNKNOWN)
        if known == UNKNOWN:
            known = self._regions[record, message] = self._find_region(record, message)
        return known

    def _find_region(self, record: Record, message: Message) -> str | None:
        attempts = list(self.publishes.get(message, {}).values())
        if not attempts:  # published before the record began
            attempts = [one for tries in self.publishes.values() for one in tries.values()]
        mine = {one.region for one in attempts if one.message_id == record[0]} or {one.region for one in attempts}
        return mine.pop() if len(mine) == 1 else None

    def message_of(self, record: Record) -> Message:
        return self.messages[record]

    def message_of_id(self, message_id: str) -> Message | None:
        """The message whose publish was handed over and confirmed with this id within the record."""
        for message, attempts in self.publishes.items():
            if any(one.message_id == message_id and one.invoked > -inf for one in attempts.values()):
                return message
        return None

    def began_before(self) -> bool:
        """Whether the key was in use before the record began."""
        return any(map(self.is_foreign, self.copies))

    def stored_twice(self, message_id: str) -> bool:
        """Whether several records came under that id."""
        return sum(record[0] == message_id for record in self.messages) > 1

    def first_receipt(self, message_id: str) -> float:
        """When a message id first came, infinite if it never did."""
        return self.first_receipts.get(message_id, inf)

    # --- copies ---

    def is_foreign(self, copy: Copy) -> bool:
        """Of an epoch, or from a part of an epoch, that the record does not have."""
        first = self.first_seq(copy.message[0])
        if first is None or 1 <= copy.message[1] < first:
            return True
        return copy.message in self.publishes and self.invoked(copy.message) == -inf

    def is_phantom(self, copy: Copy) -> bool:
        """Never handed over, as far as the record tells, though its epoch is known."""
        if self._begins_with_a_repetition(copy.message[0]) or self._is_at_a_cut_end(copy):
            return False
        if self.is_foreign(copy) or self.holes or copy.message not in self.publishes:
            return not self.is_foreign(copy) and not self.holes
        return self.invoked(copy.message) > copy.t + self.rules.clock_error_s

    def _begins_with_a_repetition(self, epoch: str) -> bool:
        """Whether the first publish on record was tried before: others of its epoch may have been published before the record."""
        first = self.first_seq(epoch)
        return first is not None and min(self.publishes[epoch, first], default=0) > 0

    def _is_at_a_cut_end(self, copy: Copy) -> bool:
        """Whether the record stops so soon after a delivery that its publish may be recorded later, by another clock."""
        return self.is_cut_off and copy.t + self.rules.clock_error_s >= self.end and self.rules.clock_error_s > 0

    def is_unjudged(self, copy: Copy) -> bool:
        """Where anything may have been missed, in a grace period or on a stream from before a hole, or of a record that first came so."""
        return copy.record in self.placeless or self._in_the_dark(copy)

    def _may_have_come_unseen(self, first: Copy) -> bool:
        """Published before the end of a grace period that began before its first receipt: it may have had a place before."""
        return any(start <= first.t and self.invoked(first.message) <= end for start, end in self.times_unseen())

    def _was_lost_beside(self, first: Copy) -> bool:
        """It may have been sent, on another stream, before something that was published later and came first."""
        overtook = (
            one for one in self.copies if one.number < first.number and self.invoked(one.message) > self.invoked(first.message)
        )
        return any(self.may_be_lost_beside(first.message, one) for one in overtook)

    def may_be_lost_beside(self, message: Message, copy: Copy) -> bool:
        """Whether a message may have been sent on another stream of the same subscriber before the copy, and lost when that broke."""
        rules = self.rules
        if rules.mode is not Mode.STREAMING or copy.message == message or copy.owner is None:
            return False
        return any(
            one is not copy.session
            and one.owner == copy.owner
            and one.opened <= copy.t + rules.clock_error_s
            and max(self.invoked(message), copy.lo) - rules.clock_error_s <= one.closed
            and one.closed <= copy.t + rules.close_detection_max_s + rules.delivery_delay_max_s + rules.clock_error_s
            for one in self.sessions.values()
        )

    def _in_the_dark(self, copy: Copy) -> bool:
        """`Interrupted` ends a hole: of what lies before it any part may be missing."""
        published = self.invoked(copy.message)
        if any(copy.t <= hole or (copy.session.opened < hole and min(copy.lo, published) <= hole) for hole in self.holes):
            return True
        return any(start <= copy.t and copy.lo <= end for start, end in self.grace_periods)

    # --- what became of a message ---

    def may_be_gone(self, record: Record, message: Message, t: float) -> bool:
        """Whether the record may have left the subscription: it was seen in the dead-letter topic, or it is too old."""
        return (
            record[0] in self.dead_lettered or t + self.rules.clock_error_s - self.invoked(message) > self.rules.message_retention_s
        )

    def may_be_dead_lettered_unseen(self) -> bool:
        """Whether attempts to deliver may have gone where nobody saw them, so that a message may have left before its receipt."""
        mode, sessions = self.rules.mode, self.sessions.values()
        if mode is Mode.STREAMING:
            lost = any(one.closed < inf for one in sessions)
        else:  # requests that get lost are not recorded, nor are pulls by older recorders, which do not say how they end either
            lost = mode is Mode.PUSH or any(one.lost or one.closed == inf for one in sessions)
        return lost and self.rules.dead_letter_max_attempts > 0

    def acked(self, record: Record, t: float) -> bool:
        """Whether an acknowledgement that may have meant the record had been sent by then."""
        return any(one <= t for copy in self.copies if copy.record == record for one in copy.acks)

    def was_confirmed(self, message_id: str, t: float) -> bool:
        """Whether an acknowledgement of the message had been confirmed by then (exactly-once)."""
        return any(one.message_id == message_id and one.t <= t for one in self.confirmed_acks)

    def excused_since(self, start: float, until: float) -> bool:
        """Whether a control operation or a hole in the record falls into that time."""
        return any(begin <= until and start <= end for begin, end in self.all_grace_periods())

    def all_grace_periods(self) -> list[tuple[float, float]]:
        """Grace periods with their ends; that of a hole lasts until a session opens after it, and until the old ones are closed."""
        return self.grace_periods + [(hole, self._hole_end(hole)) for hole in self.holes]

    def times_unseen(self) -> list[tuple[float, float]]:
        """When something may have been delivered that is not on record, or passed over: of what was published later, nothing was."""
        return self.grace_periods + [(hole, hole) for hole in self.holes]

    def _hole_end(self, hole: float) -> float:
        reopened = min((session.opened for session in self.sessions.values() if session.opened > hole), default=inf)
        if self.rules.mode is not Mode.STREAMING:
            return reopened
        return max([reopened, *(one.closed for one in self.sessions.values() if one.opened <= hole < one.closed < inf)])

    def earliest_release(self, held: Copy) -> float:
        """Before then the service certainly held the copy outstanding (3.3), a rewind apart."""
        ends = [self.earliest_end(held), *held.acks]
        if not self.rules.exactly_once:  # which takes no answer to an earlier delivery
            ends.extend(self._answers_to_other_copies(held))
        return min(ends)

    def earliest_end(self, held: Copy) -> float:
        """Before then nothing but an acknowledgement ended the hold of the copy."""
        rules = self.rules
        ends = [held.lo + rules.ack_deadline_s, *held.nacks, *(t + seconds for t, seconds in held.leases)]
        if rules.mode is Mode.STREAMING:
            ends.append(held.session.closed - rules.close_detection_max_s)
        ends.extend(max(start, held.lo) for start, end in self.all_grace_periods() if end >= held.lo)
        return min(ends)

    def _answers_to_other_copies(self, held: Copy) -> Iterable[float]:
        """When an acknowledgement or a refusal of another copy may have been taken for this one."""
        for t in self.acks_of.get(held.record[0], []) + self.nacks_of.get(held.record[0], []):
            if t >= held.t:
                yield t
            elif t + self.rules.ack_lag_max_s + self.rules.clock_error_s >= held.lo:
                yield held.lo


def keys_of(events: Iterable[Event], subscription: str) -> list[str]:
    """The keys that the subscription was delivered messages of or that were published, in order of appearance."""
    keys: dict[str, None] = {}
    for event in events:
        if isinstance(event, PublishInvoked) or (isinstance(event, Delivered) and event.subscription == subscription):
            keys[event.key] = None
    return list(keys)
