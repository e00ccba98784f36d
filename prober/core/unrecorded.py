"""Streams without recorded publishes: the order by number and publish time.

The rules are section 13 of docs/model.md.

Three facts of a message are known: the number from its publisher (in its *numbering*, the epoch of the delivery), the publish time from the
service, and the time of its first receipt. Two messages of one numbering are received out of order if the higher number was received first.
Then the publish times identify the cause:

    PUBLISHED_OUT_OF_ORDER   the service stored the higher number earlier, and delivered both as it stored them. Information.
    DELIVERED_OUT_OF_ORDER   the service stored the lower number earlier, and delivered the higher one first. A violation only if the two
                             publish times are further apart than `Rules.publish_time_error_s`.

Cases that are not out of order, and the reasons:

* A number that was received before, under another message id: a publisher that repeats publishes puts 1, 2, 1', 2', 3 in the log.
* A higher number that is repeated behind the lower one: 1, 3, 2', 3' is a batch of 2 and 3 of which a first attempt stored only 3. So
  a pair is on hold until a number above all others is received, for then its writer has advanced, or until `Rules.republish_max_s` have
  passed. Numbers still on hold at the end of the history are not reported as violations.
* A number below the first that was received: it may repeat a publish from before the subscription existed.
* Two numbers of which neither was provably sent first.
* A number that is never received: its publish is not on record.

If the subscription is older than the record, messages published before the first received one may arrive at any time (section 10). So only
messages that were provably stored behind all earlier arrivals have a place in the log.

Memory is bounded: `NUMBERINGS_KEPT` numberings per key, of which the one idle longest is forgotten, and in each `GAPS_KEPT` runs of missing
numbers. A numbering that is forgotten, or idle for `Rules.idle_after_s`, restarts with the next number. Numbers that the checker can no
longer decide about are counted as `numbers_unverified`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from prober.core.excuses import at
from prober.core.facts import provably_before
from prober.core.findings import Fact, Kind
from prober.core.gaps import Gaps

if TYPE_CHECKING:
    from prober.core.collector import FindingsCollector
    from prober.core.facts import Delivery
    from prober.core.rules import Rules

NUMBERINGS_KEPT: Final = 16
GAPS_KEPT: Final = 64
HELD_MAX: Final = 64
"""Number of pairs on hold per key; no more are verified beyond that."""

SAME_TIME: Final = "both have the same publish time, so nothing shows whether the publisher or the service exchanged them"
NO_TIME: Final = "their publish times are not known, so nothing shows whether the publisher or the service exchanged them"
CLOSE: Final = "their publish times differ by less than the service may take to store what it has received"
UNBOUNDED: Final = (
    "publishers in several regions, or a publish that the service stored late, would explain it, and nobody ruled that out"
)
CUT: Final = "the history ended before it was certain that the publisher did not try again"

PublishTime: TypeAlias = int | float


STORED_IN_ORDER: Final = (
    "not published out of order: their publish times differ by more than the service may take to store what it has received"
)
NOT_REPUBLISHED: Final = "not published again: the publisher has gone on, or has had the time to try again"


class Held(NamedTuple):
    """A pair that looks out of order: `late` was received after `ahead`, with the higher number. On hold until `due_t` at the latest."""

    due_t: float
    late: Delivery
    ahead: Delivery


class Numbering:
    """The received numbers of one publisher on one key, and the time of the last of them."""

    __slots__ = ("first", "gaps", "highest", "last_t")

    def __init__(self, first: int) -> None:
        self.first = first
        self.highest = first - 1
        self.last_t = -inf
        self.gaps: Gaps[Delivery] | None = None

    def jump(self, ahead: Delivery) -> None:
        """Note a number above all others; the numbers in between are missing."""
        seq = ahead.seq
        if seq > self.highest + 1:
            self.gaps = self.gaps or Gaps(GAPS_KEPT)
            self.gaps.add(self.highest + 1, seq - 1, ahead)
        self.highest = seq

    def overtaker(self, seq: int) -> Delivery | None:
        """Return the delivery before a number that was missing until now; None if it was not missing."""
        gap = self.gaps.find(seq) if self.gaps is not None else None
        if gap is None or self.gaps is None:
            return None
        self.gaps.fill(seq)
        return gap.mark

    def is_new(self, seq: int) -> bool:
        """Return whether a number is provably new."""
        return seq > self.highest or (self.gaps is not None and self.gaps.find(seq) is not None)

    def knows(self, seq: int) -> bool:
        """Return whether the check still knows if a number was received before."""
        return seq >= self.first and (self.gaps is None or seq >= self.gaps.known_from)


class NumbersCheck:
    """The check of the numbers of first deliveries of one key; see the module docstring.

    The publishes of these messages are not on record.
    """

    __slots__ = ("_begun", "_collector", "_first", "_first_t", "_held", "_highest", "_latest", "_numberings")

    def __init__(self, collector: FindingsCollector) -> None:
        self._collector = collector
        self._numberings: dict[str, Numbering] | None = None
        self._held: tuple[Held, ...] = ()
        self._highest: dict[str, int] = {}
        self._begun = False
        self._first: PublishTime | None = None
        self._first_t = -inf
        self._latest: PublishTime | None = None

    @property
    def due_t(self) -> float:
        """The time at which the next pair has to be decided; `inf` if none is on hold."""
        return min((held.due_t for held in self._held), default=inf)

    def came(self, one: Delivery, *, forgot: bool) -> bool:
        """Verify the number of an unknown record; return whether it has a place in the log, after all earlier records.

        forgot      whether any position of the key was forgotten, so that the record may have been delivered before.
        """
        adopted, stored = not self._collector.rules.subscription_predates_first_publish, comparable(one.event.publish_time)
        is_newest = self._is_newest(one, stored)
        placed = is_newest if adopted else not forgot or is_newest or self._is_new(one)
        if placed or (not forgot and not self._is_older(one, stored)):
            self._verify(one, stored)
        return placed

    def _is_newest(self, one: Delivery, stored: PublishTime | None) -> bool:
        """Return whether a record was stored after all earlier ones, by its publish time, else by its number."""
        if not self._begun:
            return True
        if stored is None or self._latest is None or stored == self._latest:
            return one.seq > self._highest.get(one.epoch, one.seq)
        return stored > self._latest

    def _is_new(self, one: Delivery) -> bool:
        """Return whether a record has a number that was not received before."""
        numbering = (self._numberings or {}).get(one.epoch)
        return one.seq > 0 and numbering is not None and numbering.is_new(one.seq)

    def _is_older(self, one: Delivery, stored: PublishTime | None) -> bool:
        """Return whether a record may be older than the first received one, or than one that may have been sent before that."""
        rules = self._collector.rules
        if self._first is None or stored is None:
            return stored is None
        if one.earliest_t <= self._first_t + rules.clock_error_s:
            self._first = max(self._first, stored)
        return stored < self._first

    def _verify(self, one: Delivery, stored: PublishTime | None) -> None:
        """Verify the number of a record received for the first time.

        A record without a number proves nothing.
        """
        counts = self._collector.counts
        self._begun = True
        if stored is not None:
            self._latest = stored if self._latest is None else max(self._latest, stored)
            if self._first is None:
                self._first, self._first_t = stored, one.t
        if one.seq < 1:
            counts.deliveries_unnumbered += 1
            return
        self._note_highest(one)
        numbering = self._numbering(one)
        numbering.last_t = one.t
        if one.seq > numbering.highest:
            self._decide(one.epoch)
            numbering.jump(one)
        elif not numbering.knows(one.seq):
            counts.numbers_unverified += 1
        elif (ahead := numbering.overtaker(one.seq)) is not None:
            self._hold(Held(one.t + self._collector.rules.republish_max_s, one, ahead))
        else:
            counts.numbers_repeated += 1
            self._excuse(one)

    def settle(self, now: float) -> None:
        """Decide the pairs on hold until before `now`; at the end of the history, `inf`, they stay undecided."""
        for held in self._held:
            if held.due_t < now:
                self._tell(held, CUT if now == inf else "")
        self._held = tuple(held for held in self._held if held.due_t >= now)

    def forget(self) -> None:
        """Restart every numbering, after a hole in the record or a control operation."""
        self._collector.counts.numbers_unverified += len(self._held)
        self._held = ()
        self._numberings = None

    def _numbering(self, one: Delivery) -> Numbering:
        """Return the numbering of a delivery, moved to the end: the first is the one idle longest."""
        numberings = self._numberings = self._numberings or {}
        known = numberings.pop(one.epoch, None)
        if known is None or one.t - known.last_t > self._collector.rules.idle_after_s:
            known = Numbering(one.seq)
            self._collector.counts.numberings += 1
        numberings[one.epoch] = known
        if len(numberings) > NUMBERINGS_KEPT:
            del numberings[next(iter(numberings))]
        return known

    def _note_highest(self, one: Delivery) -> None:
        """Note the highest number of a numbering, also when it restarts."""
        self._highest[one.epoch] = max(one.seq, self._highest.pop(one.epoch, 0))
        if len(self._highest) > NUMBERINGS_KEPT:
            del self._highest[next(iter(self._highest))]

    def _hold(self, held: Held) -> None:
        if len(self._held) < HELD_MAX:
            self._held += (held,)
        else:
            self._collector.counts.numbers_unverified += 1

    def _excuse(self, one: Delivery) -> None:
        """Drop the reorderings that the repetition of a number explains.

        Where it had been ahead of other numbers, its publisher tried all of them again.
        """

        def tried_again(held: Held) -> bool:
            return (held.ahead.epoch, held.ahead.seq) == (one.epoch, one.seq)

        self._held = tuple(held for held in self._held if not tried_again(held))

    def _decide(self, epoch: str) -> None:
        """Decide the pairs on hold of a publisher that has advanced: they stay out of order."""
        if self._held:
            for held in self._held:
                if held.late.epoch == epoch:
                    self._tell(held)
            self._held = tuple(held for held in self._held if held.late.epoch != epoch)

    def _tell(self, held: Held, doubt: str = "") -> None:
        collector, late, ahead = self._collector, held.late, held.ahead
        times = comparable(late.event.publish_time), comparable(ahead.event.publish_time)
        stored_later = times[0] is not None and times[1] is not None and times[0] > times[1]
        witnesses, facts = (ahead.number, late.number), _facts(held)
        if stored_later and not doubt:
            collector.info(Kind.PUBLISHED_OUT_OF_ORDER, late.t, witnesses, facts)
        elif not stored_later and provably_before(collector.rules, ahead, late):
            doubt = doubt or self._doubt(*times)
            reasons = () if doubt else (STORED_IN_ORDER, *_not_sent_in_order(collector.rules, ahead, late), NOT_REPUBLISHED)
            collector.violation(Kind.DELIVERED_OUT_OF_ORDER, late.t, witnesses, facts, doubt, reasons)
        else:
            collector.counts.numbers_unverified += 1

    def _doubt(self, late: PublishTime | None, ahead: PublishTime | None) -> str:
        if late is None or ahead is None:
            return NO_TIME
        if late == ahead:
            return SAME_TIME
        bound_s = self._collector.rules.publish_time_error_s
        if bound_s == inf:
            return UNBOUNDED
        return CLOSE if seconds_of(ahead) - seconds_of(late) <= bound_s else ""


def _not_sent_in_order(rules: Rules, ahead: Delivery, late: Delivery) -> Iterator[str]:
    if ahead.session is late.session:
        yield f"not sent in another order: message {ahead.seq} came before message {late.seq} in one session"
    else:
        yield f"not sent in another order: message {ahead.seq} came before {at(late.earliest_t)}, the earliest send of message {late.seq}"


def seconds_of(publish_time: PublishTime) -> float:
    """Return a publish time in seconds: adapters record whole nanoseconds."""
    return publish_time / 1e9 if isinstance(publish_time, int) else publish_time


def comparable(publish_time: PublishTime | str | None) -> PublishTime | None:
    """Return a publish time that can be compared with others; None for text, or for a value that is not finite."""
    if isinstance(publish_time, str) or publish_time is None or not isfinite(publish_time):
        return None
    return publish_time


def _facts(held: Held) -> dict[str, Fact]:
    late, ahead = held.late, held.ahead
    facts: dict[str, Fact] = {
        "seq": late.seq,
        "epoch": late.epoch,
        "message_id": late.event.message_id,
        "after": ahead.seq,
        "after_message_id": ahead.event.message_id,
    }
    times = comparable(late.event.publish_time), comparable(ahead.event.publish_time)
    if times[0] is not None and times[1] is not None:
        facts |= {"stored_at": seconds_of(times[0]), "after_stored_at": seconds_of(times[1])}
    return facts
