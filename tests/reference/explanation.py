"""Looks for a legal explanation: an order in which the service may have sent what was received. None means a violation.

The search walks through all orders of sending that the times allow, keeping every distinct situation that a legal service could be in.
A situation is the log as far as it was sent, the last message sent of each region and who certainly still holds what. When no situation
allows any further message, the rule whose breach would let it go on is the one that was broken; the search goes on as if it were not.
Order, runs and holds of two publishing regions are not related.

Rules of a send of the record at position q to an owner (sections 3.2 to 3.4 of the specification and its amendments):

* step      q is at most one above the last send, but for what is gone, or what was acknowledged and may have been lost
* log       a record that is sent for the first time may be where it is by L3 and L4, and nothing confirmed is missing before it
* holder    nothing below q is certainly held by another owner; a rewind drops the holds from there on
* push      the next request after one that was not acknowledged is at or below it
* response  a pull response is sent at once, and its messages are consecutive
* exactly-once  a run does not begin with what is certainly outstanding
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf

from prober.core.findings import Kind
from prober.core.rules import Mode, Rules
from tests.reference.facts import Facts
from tests.reference.values import Copy, Message, Record, Session

TOO_MANY = 2000
"""Situations; beyond so many nothing is said about the rest of the key."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What the service may have done so far. `sent` is how many copies were sent from the front of the list; `ahead` are further ones."""

    sent: int = 0
    ahead: frozenset[int] = frozenset()
    log: tuple[Record, ...] = ()
    last: int | None = None
    before: tuple[tuple[str, int], ...] = ()
    held: tuple[int, ...] = ()
    waived: frozenset[Message] = frozenset()


@dataclass(frozen=True, slots=True)
class Breach:
    """No legal explanation beyond here. `kinds`: the rules of which one was broken; `t`: of the message that cannot be explained."""

    t: float
    kinds: frozenset[Kind]
    number: int


@dataclass(slots=True)
class Search:
    """One key of one subscription. `breaches` is the result; `gave_up` says that there were too many situations."""

    facts: Facts
    breaches: list[Breach] = field(default_factory=list)
    gave_up: bool = False
    lost: list[Session] = field(default_factory=list)
    situations: set[Situation] = field(default_factory=set)
    _required: dict[int, list[Message]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mode = self.facts.rules.mode
        closed = (session for session in self.facts.sessions.values() if session.closed < inf)
        self.lost = [session for session in closed if mode is Mode.STREAMING or (mode is Mode.PULL and session.lost)]

    def earliest_loss(self, session: Session) -> float:
        """What was sent into a lost session since then may never have arrived."""
        if self.facts.rules.mode is Mode.PULL:
            return session.opened
        return session.closed - self.facts.rules.close_detection_max_s - self.facts.rules.delivery_delay_max_s

    def run(self) -> list[Breach]:
        """Every breach that no explanation avoids, one after the other."""
        self.situations = {Situation()}
        for _ in self.facts.copies:
            following: dict[Situation, None] = {}
            broken: list[tuple[frozenset[Kind], int, Situation]] = []
            for situation in self.situations:
                for number in self._next(situation):
                    kinds, after = self._send(situation, number)
                    if kinds:
                        broken.append((kinds, number, after))
                    else:
                        following[after] = None
            if not following:
                following = self._blame(broken)
            if len(following) > TOO_MANY:
                self.gave_up = True
                break
            self.situations = set(following)
        return self.breaches

    def logs(self) -> set[tuple[Record, ...]]:
        """The logs with which everything was explained."""
        return set() if self.gave_up else {one.log for one in self.situations}

    def _blame(self, broken: list[tuple[frozenset[Kind], int, Situation]]) -> dict[Situation, None]:
        """The smallest breaches that let it go on; of these, those about the message that was received first."""
        least = min((len(kinds), number) for kinds, number, _ in broken)
        chosen = [(kinds, after) for kinds, number, after in broken if (len(kinds), number) == least]
        copy = self.facts.copies[least[1]]
        if least[0] == 1:
            self.breaches.append(Breach(copy.t, frozenset().union(*(kinds for kinds, _ in chosen)), copy.number))
        else:
            self.breaches.extend(Breach(copy.t, frozenset({kind}), copy.number) for kind in chosen[0][0])
        return dict.fromkeys(after for _, after in chosen)

    # --- orders of sending ---

    def _next(self, situation: Situation) -> Iterator[int]:
        """The copies that may have been sent next: nothing unsent comes before them for certain."""
        copies = self.facts.copies
        if situation.last is not None and (rest := self._rest_of_response(situation)) is not None:
            yield rest
            return
        seen: set[str] = set()
        first_receipt, number = inf, situation.sent
        while number < len(copies):
            copy = copies[number]
            if copy.t - self.facts.rules.delivery_delay_max_s - self.facts.rules.clock_error_s > first_receipt:
                break
            if number not in situation.ahead:
                if copy.session.name not in seen and not self._after_another(situation, number):
                    yield number
                seen.add(copy.session.name)
                first_receipt = min(first_receipt, copy.t + self.facts.rules.clock_error_s)
            number += 1

    def _rest_of_response(self, situation: Situation) -> int | None:
        """The next message of the response that is being sent."""
        assert situation.last is not None
        if self.facts.rules.mode is not Mode.PULL:
            return None
        session = self.facts.copies[situation.last].session
        for number in range(situation.last + 1, len(self.facts.copies)):
            if self.facts.copies[number].session is session:
                return number
        return None

    def _after_another(self, situation: Situation, number: int) -> bool:
        """Whether something else that is not sent yet certainly comes before it."""
        copy, eps = self.facts.copies[number], self.facts.rules.clock_error_s
        for other in range(situation.sent, len(self.facts.copies)):
            earlier = self.facts.copies[other]
            if earlier.t + eps >= copy.lo and other > number:
                break
            if other == number or other in situation.ahead:
                continue
            if earlier.session is copy.session:
                if other < number:
                    return True
            elif earlier.t + eps < copy.lo:
                return True
        return False

    def _latest_send(self, situation: Situation, number: int) -> float:
        """The copy was sent by then: before it was received, and before everything that is still to be sent was."""
        copy, eps = self.facts.copies[number], self.facts.rules.clock_error_s
        latest = copy.t
        for other in range(situation.sent, len(self.facts.copies)):
            if self.facts.copies[other].t + eps >= latest:
                break
            if other not in situation.ahead and other != number:
                latest = min(latest, self.facts.copies[other].t + eps)
        return latest

    # --- one send ---

    def _send(self, situation: Situation, number: int) -> tuple[frozenset[Kind], Situation]:
        """The rules that sending this copy next would break, and the situation after it."""
        copy = self.facts.copies[number]
        after = _sent(situation, number)
        if self.facts.is_phantom(copy):
            return frozenset(), after
        new = copy.record not in situation.log
        if self.facts.is_foreign(copy):  # its place in the log is not known
            return frozenset(), replace(after, last=None, before=(), held=())
        if self.facts.region(copy.record, copy.message) is None:  # in which of the regions it was stored nobody can tell
            return frozenset(), replace(after, last=number, held=())
        log = self._with(situation.log, copy.record) if new else situation.log
        if self.facts.is_unjudged(copy):
            return frozenset(), replace(after, last=None, before=(), held=())
        send = Send(self, situation, copy, log, self._latest_send(situation, number))
        missing = send.missing() if new else {}
        kinds = {*missing.values(), *send.step(), *send.holder(), *send.exactly_once()}
        held = (*(one for one in situation.held if send.still_holds(one)), number)
        waived = situation.waived.union(missing)
        before = tuple(sorted({**dict(situation.before), send.region: number}.items()))
        return frozenset(kinds), replace(after, log=log, last=number, before=before, held=held, waived=waived)

    def _with(self, log: tuple[Record, ...], record: Record) -> tuple[Record, ...]:
        """The log with one more record; grouped by region, as only the order within one matters."""
        return tuple(sorted((*log, record), key=lambda one: self.facts.region(one, self.facts.message_of(one)) or ""))

    def required(self, copy: Copy) -> list[Message]:
        """What has to be in the log before a record of this publish, whatever may excuse it (L3 and L4)."""
        if copy.number not in self._required:
            region = self.facts.region(copy.record, copy.message)
            self._required[copy.number] = [
                message
                for message in self.facts.publishes
                if self.facts.region_of(message) == region and self._must_be_before(message, copy)
            ]
        return self._required[copy.number]

    def _must_be_before(self, message: Message, copy: Copy) -> bool:
        """L3: an earlier message of the epoch. L4: it was confirmed before this one was handed over."""
        confirmed = self.facts.confirmed(message)
        if confirmed is None or message == copy.message or self.facts.invoked(message) == -inf:
            return False
        by_session = message[0] == copy.message[0] and message[1] < copy.message[1] and self.facts.is_primary(copy)
        return by_session or confirmed.ok + self.facts.rules.clock_error_s < self.facts.invoked(copy.message)


def _sent(situation: Situation, number: int) -> Situation:
    ahead, sent = set(situation.ahead) | {number}, situation.sent
    while sent in ahead:
        ahead.remove(sent)
        sent += 1
    return replace(situation, sent=sent, ahead=frozenset(ahead))


OVERLAP = {Mode.STREAMING: Kind.AFFINITY_SPLIT, Mode.PULL: Kind.PULL_OVERLAP, Mode.PUSH: Kind.PUSH_OVERLAP}


@dataclass(slots=True)
class Send:
    """One candidate: this copy is sent next. `log` has its record already, `latest` is when it had been sent at the latest."""

    search: Search
    situation: Situation
    copy: Copy
    log: tuple[Record, ...]
    latest: float
    facts: Facts = field(init=False)
    rules: Rules = field(init=False)
    region: str = field(init=False)
    position: int = field(init=False)
    before: Copy | None = field(init=False)

    def __post_init__(self) -> None:
        self.facts, self.rules = self.search.facts, self.search.facts.rules
        self.position = self.log.index(self.copy.record)
        self.region = self._region_of(self.copy)
        before = dict(self.situation.before).get(self.region)
        self.before = None if before is None else self.facts.copies[before]

    def _region_of(self, copy: Copy) -> str:
        return self.facts.region(copy.record, copy.message) or ""

    # --- the log: L3 and L4 ---

    def missing(self) -> dict[Message, Kind]:
        """What had to be in the log before this record, and what its absence is called."""
        ids = {record[0] for record in self.log}
        return {
            message: self._name_of_absence(message)
            for message in self.search.required(self.copy)
            if message not in self.situation.waived and not self._may_be_missing(message, ids)
        }

    def _may_be_missing(self, message: Message, ids: set[str]) -> bool:
        confirmed = self.facts.confirmed(message)
        assert confirmed is not None
        if confirmed.message_id in ids or any(record[0] == confirmed.message_id for record in self.facts.placeless):
            return True
        gone = self.facts.may_be_gone((confirmed.message_id, None), message, self.latest)
        if gone or self.facts.may_be_lost_beside(message, self.copy):
            return True
        if any(start <= self.copy.t and self.facts.invoked(message) <= end for start, end in self.facts.times_unseen()):
            return True
        adopted = not self.rules.subscription_predates_first_publish and self._before_the_first(message)
        if adopted or self.facts.may_be_dead_lettered_unseen():
            return True
        return self.rules.filtered and self.facts.first_receipt(confirmed.message_id) == inf

    def _before_the_first(self, message: Message) -> bool:
        """Adopted baseline: what was handed over before the first message that came."""
        first = min(self.facts.copies, key=lambda copy: copy.number)
        return self.facts.invoked(message) <= self.facts.invoked(first.message)

    def _name_of_absence(self, message: Message) -> Kind:
        mine, missed = self.facts.confirmed(self.copy.message), self.facts.confirmed(message)
        assert missed is not None
        receipt = self.facts.first_receipt(missed.message_id)
        if receipt == inf:
            return Kind.ORDER_GAP
        if not self.facts.is_primary(self.copy) or message[0] != self.copy.message[0]:
            return Kind.REALTIME_INVERSION
        assert mine is not None
        known = max(self.copy.t, mine.ok, missed.ok)
        return Kind.ORDER_INVERSION if receipt <= known else Kind.ORDER_GAP

    # --- the step rule ---

    def step(self) -> set[Kind]:
        if self.before is None:
            return set()
        previous = self.log.index(self.before.record)
        skipped = [record for record in self.log[previous + 1 : self.position] if self._in_my_region(record)]
        inside = self.rules.mode is Mode.PULL and self.before.session is self.copy.session
        if inside and self.position <= previous:
            return {Kind.PULL_BATCH_ORDER}
        if all(self._need_not_come(record, inside) for record in skipped):
            return set()
        return {Kind.PULL_BATCH_ORDER if inside else Kind.REDELIVERY_SKIP}

    def _in_my_region(self, record: Record) -> bool:
        return self.facts.region(record, self.facts.message_of(record)) == self.region

    def _need_not_come(self, record: Record, inside: bool) -> bool:
        latest = self.latest + self.rules.clock_error_s
        if self.rules.dead_letter_max_attempts or (self.rules.exactly_once and self.facts.was_confirmed(record[0], latest)):
            return True
        if self.facts.may_be_gone(record, self.facts.message_of(record), self.latest):
            return True
        acked = self.facts.acked(record, latest) and self._may_be_lost()
        return not inside and (acked or self.facts.may_be_lost_beside(self.facts.message_of(record), self.copy))

    def _may_be_lost(self) -> bool:
        """Whether something sent between the one before and this one may have gone into a stream or a response that was lost."""
        assert self.before is not None
        return self._lost_since(self.before.lo)

    def _lost_since(self, start: float) -> bool:
        eps = self.rules.clock_error_s
        return any(
            max(start, session.opened) - eps <= min(self.latest, session.closed) + eps
            and min(self.latest, session.closed) + eps >= self.search.earliest_loss(session)
            for session in self.search.lost
            if session is not self.copy.session
        )

    # --- one holder ---

    def still_holds(self, number: int) -> bool:
        """Whether a hold matters any longer: it was not dropped by a rewind, and it is not certainly in the past."""
        held = self.facts.copies[number]
        if self.log.index(held.record) >= self.position and self._region_of(held) == self.region:
            return False
        return self.rules.mode is Mode.PUSH or self.facts.earliest_release(held) > self.copy.lo

    def holder(self) -> set[Kind]:
        below = [
            held
            for held in map(self.facts.copies.__getitem__, self.situation.held)
            if self._elsewhere(held) and self._region_of(held) == self.region and self.log.index(held.record) < self.position
        ]
        if self.rules.mode is Mode.PUSH:
            return {kind for held in below if (kind := self._passed(held)) is not None}
        latest = self.latest + self.rules.clock_error_s
        certain = [held for held in below if self.facts.earliest_release(held) > latest and not self._dropped_unseen(held)]
        return {OVERLAP[self.rules.mode]} if certain else set()

    def _dropped_unseen(self, held: Copy) -> bool:
        """A run may have dropped it that was lost: as a whole, if it was acknowledged; or its beginning, on a stream beside."""
        acked = self.facts.acked(held.record, self.latest + self.rules.clock_error_s)
        return (acked and self._lost_since(held.lo)) or self.facts.may_be_lost_beside(held.message, self.copy)

    def _elsewhere(self, held: Copy) -> bool:
        return held.owner != self.copy.owner and None not in (held.owner, self.copy.owner)

    def _passed(self, held: Copy) -> Kind | None:
        """Push goes on only after success; `held` is below this request."""
        latest = self.latest + self.rules.clock_error_s
        if self.facts.acked(held.record, latest) or self.rules.dead_letter_max_attempts:
            return None
        if self.facts.may_be_gone(held.record, held.message, self.latest) or self.facts.excused_since(held.lo, latest):
            return None
        return Kind.PUSH_ADVANCE_PAST_NACK if self.facts.earliest_release(held) <= latest else Kind.PUSH_OVERLAP

    # --- exactly-once ---

    def exactly_once(self) -> set[Kind]:
        """A run begins with what is outstanding: nothing let it come again. What follows in the run is dragged along."""
        if not self.rules.exactly_once or self.before is None or (self._may_be_lost() and self._lower_may_come_again()):
            return set()
        if self.position > self.log.index(self.before.record) or self._follows_what_is_gone():
            return set()
        latest = self.latest + self.rules.clock_error_s
        for held in map(self.facts.copies.__getitem__, self.situation.held):
            if held.record == self.copy.record and self.facts.earliest_release(held) > latest:
                return {Kind.EOD_REDELIVERY_WHILE_OUTSTANDING}
        return set()

    def _lower_may_come_again(self) -> bool:
        """Whether the run may have begun below, with something that was lost on its way."""
        lower = [record for record in self.log[: self.position] if self._in_my_region(record)]
        latest = self.latest + self.rules.clock_error_s
        return any(copy.record in lower and self.facts.earliest_end(copy) <= latest for copy in self.facts.copies)

    def _follows_what_is_gone(self) -> bool:
        below = next((record for record in reversed(self.log[: self.position]) if self._in_my_region(record)), None)
        gone = below is not None and self.facts.may_be_gone(below, self.facts.message_of(below), self.latest)
        return gone or (below is not None and self.rules.dead_letter_max_attempts > 0)
