"""What had to come and did not, although the service could deliver for longer than the deadline (section 3.5 and the amendments).

A clock adds up the time in which the service could deliver. Whatever may have been in its way counts as having been.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from prober.core.events import Event, Sought
from prober.core.findings import Kind
from prober.core.rules import Mode
from tests.reference.facts import Facts
from tests.reference.values import Copy, Message, Record, Session

LEFT = 0.25
"""The share of a deadline that has to be left when what a broken stream took with it is leased no more."""


@dataclass(slots=True)
class Clocks:
    """When the service could deliver the key. `others` are the same subscription's other keys."""

    facts: Facts
    others: list[Facts]
    _moments: list[float] = field(default_factory=list)
    _unknown_until: float = -inf

    def __post_init__(self) -> None:
        moments = {
            one for facts in (self.facts, *self.others) for copy in facts.copies for one in (copy.lo, self.held_until(facts, copy))
        }
        for session in self.facts.sessions.values():
            moments |= {session.opened, self._closed(session), session.closed, session.answered, self._maybe_held_until(session)}
            moments |= set(self._lost_around(session))
        moments |= {moment for one in self.facts.all_grace_periods() for moment in one}
        if self.facts.began_before():  # what was refused before the record began may wait
            rules = self.facts.rules
            lease = rules.ack_deadline_s + rules.delivery_delay_max_s
            self._unknown_until = self.facts.events[0].t + lease + rules.retry_backoff_max_s
            moments.add(self._unknown_until)
        if self.facts.rules.retry_backoff_max_s:
            moments |= {moment for copy in self.facts.copies for moment in (self._waits_since(copy), self._backoff_until(copy))}
            moments |= {self._delays_until(facts, copy) for facts in self.others for copy in facts.copies}
        self._moments = sorted(moment for moment in moments if -inf < moment < inf)

    def ran(self, start: float, stop: float, at_or_before: Callable[[Copy], bool] = lambda _: True) -> float:
        """How long the service could deliver between these times what waits behind the copies that `at_or_before` picks."""
        inner = [moment for moment in self._moments if start < moment < stop]
        edges = [start, *inner, stop]
        before = [copy for copy in self.facts.copies if at_or_before(copy)]
        spans = [(left, right) for left, right in pairwise(edges) if right > left]
        again = self._opened_again(stop)
        return sum(
            right - left
            for left, right in spans
            if self._could(start, (left + right) / 2, before) and (left >= again or self._is_steady((left + right) / 2))
        )

    def _opened_again(self, t: float) -> float:
        """When a stream was opened last by then while none was."""
        if self.facts.rules.mode is not Mode.STREAMING:
            return -inf
        sessions = self.facts.sessions.values()
        alone = [one.opened for one in sessions if not any(other.opened < one.opened < other.closed for other in sessions)]
        return max((opened for opened in alone if opened < t), default=-inf)

    def _is_steady(self, t: float) -> bool:
        """Whether what was sent at that time arrived for certain: no stream broke so soon after, or so little time before."""
        around = map(self._lost_around, self.facts.sessions.values())
        return not any(start <= t <= stop for start, stop in around)

    def _lost_around(self, stream: Session) -> tuple[float, float]:
        """From when to when what was sent on a stream that broke may be lost, and leased."""
        rules = self.facts.rules
        slack = rules.delivery_delay_max_s + rules.clock_error_s
        return (
            stream.closed - rules.close_detection_max_s - slack,
            stream.closed + rules.ack_deadline_s + rules.retry_backoff_max_s + slack,
        )

    def is_overdue(
        self, start: float, stop: float, seconds: float, sent: float, at_or_before: Callable[[Copy], bool] = lambda _: True
    ) -> bool:
        """Whether the service could deliver for more than `seconds` between these times what it had since `sent`.

        It may have gone into a stream that broke: then it comes when its lease is over, as does what is behind what was held. Asked
        just before each stream breaks, since what was overdue then stays so.
        """
        breaks = self._breaks()
        stops = [*(t for t in breaks if start < t < stop), stop]
        return any(
            self.ran(start, end, at_or_before) > seconds
            and self._had_time_left(start, end, seconds, [t for t in breaks if sent <= t < end], at_or_before)
            for end in stops
        )

    def _breaks(self) -> list[float]:
        if self.facts.rules.mode is not Mode.STREAMING:
            return []
        return sorted(one.closed + self.facts.rules.clock_error_s for one in self.facts.sessions.values() if one.closed < inf)

    def _had_time_left(
        self, start: float, stop: float, seconds: float, breaks: list[float], at_or_before: Callable[[Copy], bool]
    ) -> bool:
        """Of what was sent one delivery may have been lost, not all of them: a broken stream excuses for one lease."""
        if not breaks:
            return True
        lease = self.facts.rules.ack_deadline_s + self.facts.rules.retry_backoff_max_s
        held = [self.lease_until(self.facts, copy) for copy in self.facts.copies if not self.facts.acked(copy.record, stop)]
        ends = [t for t in held if start < t < inf]
        if self.ran(start, stop, at_or_before) <= seconds + lease:
            ends.append(max(breaks) + lease)
        return all(self.ran(max(t, start), stop, at_or_before) > seconds * LEFT for t in ends)

    # --- holds ---

    def held_until(self, facts: Facts, copy: Copy) -> float:
        """When the copy is certainly no longer outstanding."""
        rules = facts.rules
        ends = [self.lease_until(facts, copy)]
        if rules.mode is not Mode.STREAMING:  # an answer may be lost: the lease goes on until a later delivery elsewhere
            ends.extend(one.t for one in facts.copies if one.number > copy.number and one.session is not copy.session)
        elif not facts.stored_twice(copy.record[0]):  # else the answer may have meant the other record
            ends.extend(t + rules.ack_settled_s for t in (*copy.acks, *copy.nacks))
        if rules.mode is Mode.STREAMING:
            ends.append(copy.session.closed)
        return min(ends) + rules.clock_error_s

    def lease_until(self, facts: Facts, copy: Copy) -> float:
        """When the lease is certainly over, if nothing but time ends it."""
        rules = facts.rules
        return max([copy.t + rules.ack_deadline_s, *(t + seconds for t, seconds in copy.leases)]) + rules.delivery_delay_max_s

    def _held(self, facts: Facts, t: float) -> list[Copy]:
        return [copy for copy in facts.copies if copy.lo <= t <= self.held_until(facts, copy)]

    def _delays_until(self, facts: Facts, copy: Copy) -> float:
        """Until when it may delay other keys: while it is outstanding, and while the retry policy keeps it back."""
        backoff = 0.0 if copy.acks else facts.rules.retry_backoff_max_s
        return max(self.held_until(facts, copy), self.lease_until(facts, copy) + backoff if backoff else -inf)

    def _delays_since(self, facts: Facts, t: float) -> float:
        """Since when the key of `facts` may have delayed others without a pause, at that time; infinite if it does not."""
        return self._without_pause(t, [(copy.lo, self._delays_until(facts, copy)) for copy in facts.copies])

    def _held_since(self, t: float) -> float:
        """Since when the key may have been held without a pause, at that time; infinite if it is not held."""
        return self._without_pause(t, [(copy.lo, self.held_until(self.facts, copy)) for copy in self.facts.copies])

    def _without_pause(self, t: float, spans: list[tuple[float, float]]) -> float:
        since = t
        while earlier := [start for start, stop in spans if start < since <= stop]:
            since = min(earlier)
        return since if since < t else inf

    def _maybe_held_until(self, session: Session) -> float:
        """A pull that was lost may have carried messages of the key, which were held from then on."""
        rules = self.facts.rules
        if rules.mode is not Mode.PULL or not session.lost:
            return -inf
        return session.closed + rules.ack_deadline_s + rules.delivery_delay_max_s

    # --- what may be in the way ---

    def _could(self, start: float, t: float, before: list[Copy]) -> bool:
        facts, rules = self.facts, self.facts.rules
        if any(begin <= t <= end for begin, end in facts.all_grace_periods()) or self._backed_off(t, before):
            return False
        if t <= self._unknown_until or any(self._delays_since(other, t) < inf for other in self.others):
            return False
        held = self._held(facts, t)
        if rules.mode is Mode.PUSH:
            return not held
        if rules.mode is Mode.PULL:
            lost = any(one.opened <= t <= self._maybe_held_until(one) for one in facts.sessions.values())
            waiting = any(one.opened <= t < min(one.answered, one.closed) for one in facts.sessions.values())
            return waiting and not held and not lost
        owners = {copy.owner for copy in held}
        had = {copy.owner for copy in held if copy.t <= t} or owners  # what is on its way may be what is waited for
        return not (held and self._was_joined(t, had)) and self._stream_has_room(t, owners)

    def _was_joined(self, t: float, owners: set[str | None]) -> bool:
        """Whether another subscriber opened a stream while the key was held, and it did not go on for longer than a deadline after that."""
        rules, since = self.facts.rules, self._held_since(t)
        came = [one.opened for one in self.facts.sessions.values() if one.owner not in owners and one.opened <= t]
        latest = max((opened for opened in came if opened + rules.clock_error_s > since), default=inf)
        went_on = any(latest + rules.delivery_deadline_s < copy.t <= t for copy in self.facts.copies)
        return latest < inf and not went_on and rules.delivery_delay_max_s < inf

    def _stream_has_room(self, t: float, holders: set[str | None]) -> bool:
        """Some stream is open and may get more; while the key is held, all streams of who holds it."""
        open_now = [one for one in self.facts.sessions.values() if one.opened <= t < self._closed(one)]
        mine = [one for one in open_now if one.owner in holders]
        rooms = [self._room(one, t) for one in mine or open_now]
        return all(rooms) if mine else any(rooms)

    def _closed(self, stream: Session) -> float:
        """A stream may have been dead for some time when it was noticed."""
        return stream.closed - self.facts.rules.close_detection_max_s

    def _room(self, stream: Session, t: float) -> bool:
        held = {
            (facts.key, copy.record): facts.publishes[copy.message]
            for facts in (self.facts, *self.others)
            for copy in self._held(facts, t)
            if copy.session.name == stream.name and copy.message in facts.publishes
        }
        size = sum(max((attempt.size for attempt in attempts.values()), default=0) for attempts in held.values())
        return len(held) < stream.max_messages and size < stream.max_bytes

    def _backoff_until(self, copy: Copy) -> float:
        """How long the service may wait after a refusal or the end of a lease: at most until the message comes again.

        An acknowledgement may be lost, and then the lease ends all the same.
        """
        again = min((one.t for one in self.facts.copies if one.record == copy.record and one.t > copy.t), default=inf)
        return min(again, self.lease_until(self.facts, copy) + self.facts.rules.retry_backoff_max_s)

    def _backed_off(self, t: float, before: list[Copy]) -> bool:
        if not self.facts.rules.retry_backoff_max_s:
            return False
        return any(self._waits_since(copy) <= t <= self._backoff_until(copy) for copy in before)

    def _waits_since(self, copy: Copy) -> float:
        """When the back-off after a copy may begin."""
        shortest = [t + seconds for t, seconds in copy.leases]
        return min([copy.lo + self.facts.rules.ack_deadline_s, *shortest, *copy.nacks])


@dataclass(slots=True)
class Overdue:
    """The liveness findings of a key. `log` is the order of its records."""

    facts: Facts
    others: list[Facts]
    log: tuple[Record, ...]
    clocks: Clocks = field(init=False)

    def __post_init__(self) -> None:
        self.clocks = Clocks(self.facts, self.others)

    def kinds(self) -> set[Kind]:
        found = {self._undelivered(message) for message in self.facts.publishes}
        found.add(Kind.REDELIVERY_STALL if any(self._stalled(number) for number in range(len(self.facts.copies))) else None)
        found.add(Kind.REDELIVERY_STALL if any(map(self._not_brought_back, self.facts.events)) else None)
        found.add(Kind.UNACKED_STALL if any(map(self._not_again, self.facts.copies)) else None)
        return {kind for kind in found if kind is not None}

    def _expires(self, message: Message) -> float:
        return self.facts.invoked(message) + self.facts.rules.message_retention_s - self.facts.rules.clock_error_s

    # --- V1 ---

    def _undelivered(self, message: Message) -> Kind | None:
        facts, rules = self.facts, self.facts.rules
        confirmed = facts.stored(message)
        if confirmed is None or confirmed.message_id in facts.dead_lettered or rules.filtered:
            return None
        if facts.first_receipt(confirmed.message_id) == inf and facts.may_be_dead_lettered_unseen():
            return None
        if any(confirmed.ok <= end for _, end in facts.all_grace_periods()) or self._before_the_baseline(message):
            return None
        stop = min(facts.first_receipt(confirmed.message_id), facts.end, self._expires(message))
        overtaken = [copy.t for copy in facts.copies if self._overtakes(copy, message) and copy.t < stop]
        seconds, sent = rules.delivery_deadline_s, facts.invoked(message)
        if overtaken and stop == facts.end and self.clocks.is_overdue(min(overtaken), stop, seconds, sent):
            return Kind.LOST_OVERTAKEN
        progress = [confirmed.ok, *(copy.t for copy in facts.copies if confirmed.ok < copy.t < stop), stop]
        if any(self.clocks.is_overdue(left, right, seconds, sent) for left, right in pairwise(progress)):
            return Kind.STUCK
        return None

    def _before_the_baseline(self, message: Message) -> bool:
        if self.facts.rules.subscription_predates_first_publish:
            return False
        return not self.facts.copies or self.facts.invoked(message) <= self.facts.invoked(self.facts.copies[0].message)

    def _overtakes(self, copy: Copy, message: Message) -> bool:
        confirmed = self.facts.confirmed(message)
        if confirmed is None:
            return False
        if self.facts.region(copy.record, copy.message) != confirmed.region:
            return False
        return confirmed.ok + self.facts.rules.clock_error_s < self.facts.invoked(copy.message)

    # --- V2 ---

    def _stalled(self, number: int) -> bool:
        """A copy that began a run, or went on with one, and after which the run's target was never reached."""
        facts, rules = self.facts, self.facts.rules
        copy = facts.copies[number]
        region = facts.region(copy.record, copy.message)
        log = [one for one in self.log if facts.region(one, facts.message_of(one)) == region]
        before = {one.record for one in facts.copies[:number] if one.record in log}
        if rules.dead_letter_max_attempts or copy.record not in before or facts.is_unjudged(copy):
            return False
        position = log.index(copy.record)
        owed = [one for one in log[position + 1 :] if one in before and not self._need_not_come(one)]
        later = [one for one in facts.copies if self._may_follow(one, copy)]
        if not owed or any(one.record in log and log.index(one.record) >= log.index(owed[-1]) for one in later):
            return False
        if self._was_lost_since(copy) and all(facts.acked(one, copy.t) for one in owed):
            return False
        if any(copy.t <= end for _, end in facts.all_grace_periods()):
            return False
        last = max(copy.t, *(one.t for one in facts.copies))
        stop = min(facts.end, *(self._expires(facts.message_of(one)) for one in owed))
        sent = facts.invoked(facts.message_of(owed[-1]))
        return self.clocks.is_overdue(last, stop, rules.stall_deadline_s, sent)

    def _not_brought_back(self, event: Event) -> bool:
        """A seek back, after which something that it restores was not delivered again."""
        facts = self.facts
        if not isinstance(event, Sought) or event.subscription != facts.subscription or event.since_t is None or facts.holes:
            return False
        restored = [one for one in self.log if event.since_t + facts.rules.clock_error_s < facts.invoked(facts.message_of(one))]
        came = {copy.record for copy in facts.copies if copy.t >= event.t}
        missing = [one for one in restored if one not in came and not self._need_not_come(one)]
        later = any(start > event.t for start, _ in facts.grace_periods)
        if not missing or later or facts.rules.dead_letter_max_attempts or facts.rules.filtered:
            return False
        last = max([event.t + event.settle_s, *(copy.t for copy in facts.copies)])
        stop = min(facts.end, *(self._expires(facts.message_of(one)) for one in missing))
        return self.clocks.is_overdue(last, stop, facts.rules.stall_deadline_s, event.t)

    def _may_follow(self, one: Copy, copy: Copy) -> bool:
        """Whether `one` may have been sent after `copy`."""
        if one.session is copy.session:
            return one.number > copy.number
        return one.t + self.facts.rules.clock_error_s >= copy.lo

    def _need_not_come(self, record: Record) -> bool:
        confirmed = self.facts.rules.exactly_once and self.facts.was_confirmed(record[0], self.facts.end)
        return confirmed or record[0] in self.facts.dead_lettered

    def _was_lost_since(self, copy: Copy) -> bool:
        mode = self.facts.rules.mode
        sessions = self.facts.sessions.values()
        if mode is Mode.STREAMING:
            return any(copy.lo <= one.closed < inf for one in sessions)
        return mode is Mode.PULL and any(one.lost and copy.lo <= one.closed for one in sessions)

    # --- V3 ---

    def _not_again(self, copy: Copy) -> bool:
        facts, rules = self.facts, self.facts.rules
        same = [one for one in facts.copies if one.record == copy.record]
        again = min((one.t for one in same if one.number > copy.number), default=facts.end)
        if facts.acked(copy.record, again) or copy.record[0] in facts.dead_lettered or facts.is_phantom(copy):
            return False
        attempts = max(len(same), *(one.event.delivery_attempt for one in same))
        if rules.dead_letter_max_attempts and attempts >= rules.dead_letter_max_attempts - 1:
            return False
        if facts.is_foreign(copy) or any(copy.t <= end for _, end in facts.all_grace_periods()):
            return False
        # a refusal may be lost, and then the lease runs on
        due = self.clocks.lease_until(facts, copy)
        if rules.mode is Mode.STREAMING:
            due = min(due, copy.session.closed)
        stop = min(again, self._expires(copy.message))
        return self.clocks.is_overdue(due, stop, rules.unacked_deadline_s, facts.invoked(copy.message), self._not_behind(copy))

    def _not_behind(self, copy: Copy) -> Callable[[Copy], bool]:
        """Picks the copies of what is at the place of this one or before it; what is behind it does not delay it."""
        behind = set(self.log[self.log.index(copy.record) + 1 :]) if copy.record in self.log else set()
        return lambda one: one.record not in behind
