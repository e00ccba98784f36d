"""Promise 1 where nobody recorded the publishes: what numbers and publish times prove, and on whose side the cause is.

Others publish here, and nobody tells what they handed over when. Three things are known of a message: the number that its publisher gave
it (in its numbering, the *epoch* of the delivery), the publish time that the service gave it, and when it was first received. Received
out of order are two messages of one numbering if the higher number came first. Then the publish times say whose doing it is:

    PUBLISHED_OUT_OF_ORDER   the service stored the higher number earlier, by its own publish times, and delivered both as it stored them.
                             It kept its promise; the cause is on the publishing side: published in that order, by two writers at once, or
                             the lower one once more after an attempt that had failed. That is information about the publishers, and
                             never counts against the service.
    DELIVERED_OUT_OF_ORDER   the service stored the lower number earlier, and delivered the higher one first. A violation only if the two
                             publish times are further apart than `Rules.publish_time_error_s`, the bound on how far they may be from the
                             order in which the service stored messages; else indeterminate. By default there is no bound, because
                             order holds within one publishing region and nobody said that there is one only.

What is *not* out of order, and why:

* A number that came before, under another message id: a publisher that tries again puts 1, 2, 1', 2', 3 in the log.
* A higher number that comes once more behind the lower one: 1, 3, 2', 3' is a batch of 2 and 3 of which a first attempt stored only 3. So
  whatever looks out of order is on hold until a number above all others of the numbering has come, for then its writer has gone on, or
  until `Rules.republish_max_s` have passed. What is on hold at the end of the history is not held against anybody.
* A number below the first that was received: it may be the repetition of what was published before there was a subscription.
* Two numbers of which the higher one was received on another session at about the same time: that is no order of arrival (`places`).
* A number that never comes: without the publisher's record nobody knows that it was published.

Memory is bounded: `NUMBERINGS_KEPT` numberings per key, of which the one idle longest is forgotten, and in each `GAPS_KEPT` runs of missing
numbers. A numbering that is forgotten, or idle for `Rules.idle_after_s`, begins anew with the number that comes next. What cannot be told
any more is counted as `numbers_unjudged`.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Final, NamedTuple, TypeAlias

from prober.core.collector import FindingsCollector
from prober.core.events import Delivered
from prober.core.findings import Fact, Kind
from prober.core.gaps import Gaps
from prober.core.places import Places
from prober.core.publications import EpochRecord
from prober.core.sessions import Arrival

UNRECORDED: Final = ""
"""The name of the epoch that stands for all of a key whose publishes nobody recorded."""
NUMBERINGS_KEPT: Final = 16
GAPS_KEPT: Final = 64
HELD_MAX: Final = 64
"""Pairs on hold per key; no more are judged beyond that."""

SAME_TIME: Final = "both have the same publish time, so nothing shows whether the publisher or the service exchanged them"
NO_TIME: Final = "their publish times are not known, so nothing shows whether the publisher or the service exchanged them"
CLOSE: Final = "their publish times differ by less than the service may take to store what it has received"
UNBOUNDED: Final = (
    "publishers in several regions, or a publish that the service stored late, would explain it, and nobody ruled that out"
)
CUT: Final = "the history ended before it was certain that the publisher did not try again"

PublishTime: TypeAlias = int | float


class UnrecordedEpoch(EpochRecord):
    """Stands for the publisher's record where there is none: everything may have been published, at any time, any number of times."""

    __slots__ = ()

    def was_invoked(self, seq: int) -> bool:
        """Nobody knows, so nothing speaks against it."""
        del seq
        return True

    def may_predate(self, seq: int) -> bool:
        """The subscription is younger than the record of what it delivers: all of that is on record."""
        del seq
        return False

    def was_attempted_once(self, seq: int) -> bool:
        """Nobody knows."""
        del seq
        return False


def unrecorded_epoch() -> UnrecordedEpoch:
    """The record of a key whose publishes nobody recorded."""
    record = UnrecordedEpoch(UNRECORDED)
    record.first = 1
    return record


class Numbered(NamedTuple):
    """A first delivery of a number."""

    seq: int
    message_id: str
    publish_time: PublishTime | None
    number: int
    position: int


class Held(NamedTuple):
    """A pair that looks out of order: `late` came after `ahead`, which has the higher number. On hold until `due_t` at the latest."""

    due_t: float
    t: float
    epoch: str
    late: Numbered
    ahead: Numbered


class Numbering:
    """The numbers of one publisher on one key, as far as they were received, and when the last of them was."""

    __slots__ = ("first", "gaps", "highest", "last_t")

    def __init__(self, first: int) -> None:
        self.first = first
        self.highest = first - 1
        self.last_t = -inf
        self.gaps: Gaps[Numbered] | None = None

    def jump(self, ahead: Numbered) -> None:
        """A number above all others came; what lies between is missing."""
        if ahead.seq > self.highest + 1:
            self.gaps = self.gaps or Gaps(GAPS_KEPT)
            self.gaps.add(self.highest + 1, ahead.seq - 1, ahead)
        self.highest = ahead.seq

    def overtaker(self, seq: int) -> Numbered | None:
        """What came before a number that was missing until now, and is so no more; None if it was not missing."""
        gap = self.gaps.find(seq) if self.gaps is not None else None
        if gap is None or self.gaps is None:
            return None
        self.gaps.fill(seq)
        return gap.mark

    def knows(self, seq: int) -> bool:
        """Whether it can be told of a number whether it came before."""
        return seq >= self.first and (self.gaps is None or seq >= self.gaps.known_from)


class NumbersCheck:
    """Judges the numbers of first deliveries of one key that nobody recorded; see the head of this file."""

    __slots__ = ("_collector", "_held", "_numberings", "_places")

    def __init__(self, collector: FindingsCollector, places: Places) -> None:
        self._collector, self._places = collector, places
        self._numberings: dict[str, Numbering] | None = None
        self._held: tuple[Held, ...] = ()

    @property
    def on_hold(self) -> bool:
        """Whether anything is to be decided because time passes."""
        return bool(self._held)

    @property
    def due_t(self) -> float:
        """When the next pair has to be decided; `inf` if none is on hold."""
        return min((held.due_t for held in self._held), default=inf)

    def first_delivery(self, event: Delivered, arrival: Arrival) -> None:
        """Judges a record received for the first time. Of one without a number nothing can be said."""
        counts = self._collector.counts
        if event.seq < 1:
            counts.deliveries_unnumbered += 1
            return
        this = Numbered(event.seq, event.message_id, _comparable(event.publish_time), arrival.number, arrival.position)
        numbering = self._numbering(event.epoch, event.seq, event.t)
        numbering.last_t = event.t
        if this.seq > numbering.highest:
            self._decide(event.epoch)
            numbering.jump(this)
        elif not numbering.knows(this.seq):
            counts.numbers_unjudged += 1
        elif (ahead := numbering.overtaker(this.seq)) is not None:
            self._hold(Held(event.t + self._collector.rules.republish_max_s, event.t, event.epoch, this, ahead))
        else:
            counts.numbers_repeated += 1
            self._excuse(event.epoch, this.seq)

    def settle(self, now: float) -> None:
        """Decides what was on hold until before `now`; at the end of the history, `inf`, it stays undecided."""
        for held in self._held:
            if held.due_t < now:
                self._tell(held, CUT if now == inf else "")
        self._held = tuple(held for held in self._held if held.due_t >= now)

    def forget(self) -> None:
        """The record has a hole, or a control operation passed over something: every numbering begins anew."""
        self._collector.counts.numbers_unjudged += len(self._held)
        self._held = ()
        self._numberings = None

    def _numbering(self, epoch: str, seq: int, t: float) -> Numbering:
        """The one of that name, moved to the end: the first is the one idle longest."""
        numberings = self._numberings = self._numberings or {}
        known = numberings.pop(epoch, None)
        if known is None or t - known.last_t > self._collector.rules.idle_after_s:
            known = Numbering(seq)
            self._collector.counts.numberings += 1
        numberings[epoch] = known
        if len(numberings) > NUMBERINGS_KEPT:
            del numberings[next(iter(numberings))]
        return known

    def _hold(self, held: Held) -> None:
        if len(self._held) < HELD_MAX:
            self._held += (held,)
        else:
            self._collector.counts.numbers_unjudged += 1

    def _excuse(self, epoch: str, seq: int) -> None:
        """A number came again: where it had been ahead of others, its publisher tried all of them again."""
        if self._held:
            self._held = tuple(held for held in self._held if held.epoch != epoch or held.ahead.seq != seq)

    def _decide(self, epoch: str) -> None:
        """The writer has gone on: what is on hold stays as it is."""
        if self._held:
            for held in self._held:
                if held.epoch == epoch:
                    self._tell(held)
            self._held = tuple(held for held in self._held if held.epoch != epoch)

    def _tell(self, held: Held, doubt: str = "") -> None:
        late, ahead = held.late.publish_time, held.ahead.publish_time
        stored_later = late is not None and ahead is not None and late > ahead
        witnesses, facts = (held.ahead.number, held.late.number), _facts(held)
        if stored_later and not doubt:
            self._collector.info(Kind.PUBLISHED_OUT_OF_ORDER, held.t, witnesses, facts)
        elif not stored_later and self._places.in_order(held.ahead.position, held.late.position):
            doubt = doubt or self._doubt(late, ahead)
            self._collector.violation(Kind.DELIVERED_OUT_OF_ORDER, held.t, witnesses, facts, doubt)
        else:
            self._collector.counts.numbers_unjudged += 1

    def _doubt(self, late: PublishTime | None, ahead: PublishTime | None) -> str:
        if late is None or ahead is None:
            return NO_TIME
        if late == ahead:
            return SAME_TIME
        bound_s = self._collector.rules.publish_time_error_s
        if bound_s == inf:
            return UNBOUNDED
        return CLOSE if seconds_of(ahead) - seconds_of(late) <= bound_s else ""


def seconds_of(publish_time: PublishTime) -> float:
    """A publish time in seconds: adapters give whole nanoseconds."""
    return publish_time / 1e9 if isinstance(publish_time, int) else publish_time


def _comparable(publish_time: int | float | str | None) -> PublishTime | None:
    """A publish time that can be compared with others; one that is text, or no number, can not."""
    if isinstance(publish_time, str) or publish_time is None or not isfinite(publish_time):
        return None
    return publish_time


def _facts(held: Held) -> dict[str, Fact]:
    facts: dict[str, Fact] = {
        "seq": held.late.seq,
        "epoch": held.epoch,
        "message_id": held.late.message_id,
        "after": held.ahead.seq,
        "after_message_id": held.ahead.message_id,
    }
    if held.late.publish_time is not None and held.ahead.publish_time is not None:
        facts["stored_at"] = seconds_of(held.late.publish_time)
        facts["after_stored_at"] = seconds_of(held.ahead.publish_time)
    return facts
