"""What the publisher's own record says about one key: which sequence numbers were sent, with which outcome.

The rule of this file: *a publish is confirmed, certainly failed, or unknown, and unknown is never turned into either.*

A sequence number is confirmed when a publish of it returned a message id; that record is its *primary*. It is certainly unsent when
every attempt failed definitely. Everything else (no answer yet, deadline, lost reply) is open: it may be in the log once, several
times, later, or never. An abandoned sequence number has no primary, whatever answer still comes.

The record is shared by all subscriptions of a key. A sequence number is kept until its outcome is settled and every subscription
has received its primary, so the size follows what is published and undelivered, not the length of the history. The publications of an
epoch are linked in the order in which they were invoked, so that each subscription can go through them once, as far as it has come.

A history may begin in the middle: what was published before its first recorded publish of an epoch is unknown, not unpublished.
"""

from __future__ import annotations

from math import inf
from typing import Final

from prober.core.attempts import Early, PublishAttempts
from prober.core.events import LONG_AGO

EPOCHS_KEPT: Final = 64
"""Epochs remembered per key; beyond that the one idle longest is forgotten, and its messages count as foreign."""
OPEN_KEPT: Final = 65_536
"""Unsettled sequence numbers remembered per epoch; beyond that the oldest are given up and no longer judged."""
DUPLICATES_KEPT: Final = 16
"""Records of one sequence number besides its primary remembered per subscription; beyond that it is no longer judged."""
EXCEPTIONS_KEPT: Final = 64
"""Holes in the numbering, and repeated sequence numbers, remembered per epoch; beyond that they prove nothing any more."""
INDEX_SLACK: Final = 1024
"""Settled publications that may stay in an index of tokens before it is made anew."""


_NOTHING: Final[frozenset[int]] = frozenset()


class Publication:
    """One sequence number: its invocations, its outcome, and how many subscriptions still wait for its primary.

    rank        its place among the invocations of its epoch, and `following` the next.
    region      where it was published; order is promised within one region.
    size        of the data in bytes, 0 if it was not recorded.
    ordered_t   when the confirmed attempt was handed over: session order is promised in that order.
    received    whether any subscription received the primary.
    early       deliveries whose meaning depends on the outcome, or that are duplicates.
    several     the prober's own attempts, where there was more than one or not all of them succeeded.
    """

    __slots__ = (
        "abandoned",
        "confirmed_number",
        "confirmed_t",
        "early",
        "following",
        "invoked_number",
        "invoked_t",
        "ordered_t",
        "rank",
        "received",
        "region",
        "seq",
        "several",
        "size",
        "token",
        "waiting",
    )

    def __init__(self, seq: int, t: float, number: int, waiting: int, rank: int, region: str, size: int) -> None:
        self.seq = seq
        self.invoked_t = t
        self.invoked_number = number
        self.waiting = waiting
        self.rank = rank
        self.region = region
        self.size = size
        self.abandoned = False
        self.received = False
        self.token: int | None = None
        self.confirmed_t = inf
        self.confirmed_number = 0
        self.ordered_t = t
        self.early: tuple[Early, ...] = ()
        self.following: Publication | None = None
        self.several: PublishAttempts | None = None

    @property
    def confirmed(self) -> bool:
        """Whether the service named this sequence number's primary record."""
        return self.token is not None

    @property
    def attempts(self) -> int:
        """How many attempts of the prober's own were recorded."""
        return 1 if self.several is None else self.several.count

    @property
    def open(self) -> bool:
        """Whether an attempt has no outcome yet."""
        return self.token is None if self.several is None else self.several.open > 0

    @property
    def unknown(self) -> bool:
        """Whether an attempt ended without anybody knowing what it stored."""
        return self.several is not None and self.several.unknown

    @property
    def several_regions(self) -> bool:
        """Whether attempts were handed over in more than one region, so that a record may be of either."""
        return self.several is not None and len({region for _, region in self.several.invoked.values()}) > 1

    @property
    def certainly_unsent(self) -> bool:
        """Whether every attempt is over and failed definitely."""
        return self.token is None and not self.open and not self.unknown

    @property
    def may_come(self) -> bool:
        """Whether its record may still be delivered, and would be bound to its place: not given up, not certainly unsent."""
        return not self.abandoned and not self.certainly_unsent

    def invocation(self, generation: int) -> tuple[float, str]:
        """When and in which region an attempt was handed over."""
        first = (self.invoked_t, self.region)
        return first if self.several is None else self.several.invoked.get(generation, first)

    def earliest_t(self, generation: int) -> float:
        """The earliest that a record which carries a generation can have been handed over."""
        return self.invoked_t if self.several is None else min(self.invoked_t, self.invocation(generation)[0])

    def origin(self, token: int, generation: int) -> tuple[float, str]:
        """When and in which region a record was handed over: the primary with the confirmed attempt, another with its generation's."""
        return (self.ordered_t, self.region) if token == self.token else self.invocation(generation)

    def begun_before(self, generation: int) -> None:
        """The first attempt on record is not the first."""
        self._several().begun_before(generation, self.invoked_t, self.region)

    def republish(self, generation: int, t: float, region: str) -> None:
        """Notes one more attempt of the prober's own."""
        attempts = self._several()
        attempts.count += 1
        attempts.open += 1
        attempts.invoked[generation] = (t, region)

    def confirm(self, token: int, generation: int, t: float, number: int) -> bool:
        """Notes a confirmation; True when it names the primary, which only the first one does."""
        if self.several is not None:
            self.several.open = max(0, self.several.open - 1)
        if self.abandoned:
            self._several().unknown = True
        if self.token is not None or self.abandoned:
            return False
        self.token = token
        self.confirmed_t = t
        self.confirmed_number = number
        if self.several is not None:
            self.ordered_t, self.region = self.several.invoked.get(generation, (self.invoked_t, self.region))
        return True

    def delivered_early(self, early: Early) -> None:
        """Notes a delivery whose meaning depends on the outcome, or that is a duplicate."""
        if len(self.early_on(early.subscription)) < DUPLICATES_KEPT:
            self.early += (early,)
        else:
            self.abandoned = True

    def early_on(self, subscription: int) -> list[Early]:
        """The deliveries on one subscription that were not known to be the primary when they came."""
        return [early for early in self.early if early.subscription == subscription]

    def records_beside(self, token: int) -> int:
        """How many records of this sequence number are known besides the one of that token."""
        known = {early.token for early in self.early} | {self.token}
        return len(known - {None, token})

    def close_attempt(self, *, unknown: bool) -> None:
        """Notes the end of an attempt without a confirmation."""
        attempts = self._several()
        attempts.failed += attempts.open > 0 and not unknown
        attempts.open = max(0, attempts.open - 1)
        attempts.unknown = attempts.unknown or unknown

    def _several(self) -> PublishAttempts:
        if self.several is None:
            self.several = PublishAttempts(self.invoked_t, self.region)
            self.several.open = 0 if self.token is not None else 1
        return self.several


class EpochRecord:
    """The sequence numbers of one incarnation of a writer, the epoch `name`, on one key.

    open        those that are not settled, in the order of their invocations.
    ranks       how many publications were invoked, and `latest` the last of them.
    confirmed_rank  the highest rank that was confirmed.
    begun       the highest sequence number of which an attempt ended that was not seen to begin.
    began_t     when the first invocation was recorded.
    complete    False once the record may have a hole: then an unrecorded sequence number proves nothing.
    regions     where any of it was published.
    """

    __slots__ = (
        "_repeated",
        "_skipped",
        "began_t",
        "begun",
        "complete",
        "confirmed_rank",
        "first",
        "given_up",
        "last",
        "latest",
        "name",
        "open",
        "ranks",
        "regions",
    )

    def __init__(self, name: str, *, complete: bool = True) -> None:
        self.name = name
        self.first = 0
        self.last = 0
        self.begun = 0
        self.began_t = LONG_AGO
        self.complete = complete
        self.given_up = 0
        self.ranks = 0
        self.regions: tuple[str, ...] = ()
        self.confirmed_rank = 0
        self.latest: Publication | None = None
        self.open: dict[int, Publication] = {}
        self._skipped: tuple[tuple[int, int], ...] = ()
        self._repeated: frozenset[int] = _NOTHING

    @property
    def oldest(self) -> Publication | None:
        """The publication that has been open longest."""
        return next(iter(self.open.values()), None)

    def was_invoked(self, seq: int) -> bool:
        """Whether a publish of `seq` was recorded (True also where the record does not tell)."""
        if seq in self.open or not self.complete:
            return True
        if 0 < seq < self.first:
            return True  # the history begins in the middle of the epoch
        return self.first <= seq <= self.last and not any(low <= seq <= high for low, high in self._skipped)

    def earliest_t(self, seq: int) -> float:
        """The earliest that a record of `seq` can have been handed over, if its publication is forgotten."""
        return LONG_AGO if self.may_predate(seq) else self.began_t

    def may_predate(self, seq: int) -> bool:
        """Whether a record of `seq` that no confirmation names may be of an attempt before the record of the epoch, or in its hole."""
        return not self.complete or 0 < seq < self.first or seq <= self.begun

    def was_attempted_once(self, seq: int) -> bool:
        """Whether exactly one attempt to publish a settled `seq` was recorded and nothing speaks for more."""
        return self.complete and not self.given_up and seq >= self.first and seq not in self._repeated and self.was_invoked(seq)

    def invoke(self, seq: int, generation: int, t: float, number: int, waiting: int, region: str, size: int) -> bool:
        """Notes an invocation of `seq`, whose primary `waiting` subscriptions will want; True if the oldest was given up for it."""
        if not self.ranks:
            self.began_t = t
            self.complete = self.complete and generation == 0  # a repetition: others may have been published before the record
        if region not in self.regions:
            self.regions += (region,)
        if seq != self.last + 1 or not self.last:
            publication = self.open.get(seq)
            if publication is not None:
                publication.republish(generation, t, region)
                return False
            if self.last and self.first <= seq <= self.last and self.was_invoked(seq):
                self._repeat(seq)
                return False
        self._extend(seq)
        self.ranks += 1
        publication = self.open[seq] = Publication(seq, t, number, waiting, self.ranks, region, size)
        if generation > 0:
            publication.begun_before(generation)
        if self.latest is not None:
            self.latest.following = publication
        self.latest = publication
        if len(self.open) <= OPEN_KEPT:
            return False
        del self.open[next(iter(self.open))]
        self.given_up += 1
        return True

    def receive(self, publication: Publication) -> None:
        """Notes that one more subscription received the primary."""
        publication.received = True
        publication.waiting -= 1
        if publication.waiting <= 0:
            self.settle(publication)

    def settle(self, publication: Publication) -> None:
        """Drops the record of a sequence number when its outcome is known and no subscription waits for it."""
        if publication.waiting > 0 or not publication.received or publication.open:
            return
        if publication.attempts > 1:
            self._repeat(publication.seq)
        self.open.pop(publication.seq, None)

    def give_up(self, publication: Publication) -> None:
        """One subscription does not wait for the primary any more; it may never have been meant for it."""
        publication.waiting -= 1
        self.given_up += 1
        if publication.waiting <= 0 and not publication.open:
            self.open.pop(publication.seq, None)

    def rest(self) -> None:
        """Gives back the memory of a backlog that is gone."""
        if not self.open:
            self.open = {}

    def forget(self) -> None:
        """Gives up every open sequence number: the record has a hole."""
        self.complete = False
        self.open.clear()

    def _repeat(self, seq: int) -> None:
        if len(self._repeated) < EXCEPTIONS_KEPT:
            self._repeated |= {seq}
        else:
            self.complete = False

    def _extend(self, seq: int) -> None:
        if seq == self.last + 1 and self.last:
            self.last = seq
        elif not self.last:
            self.first = self.last = seq
        elif seq > self.last:
            self._skip(self.last + 1, seq - 1)
            self.last = seq
        elif seq < self.first:
            self._skip(seq + 1, self.first - 1)
            self.first = seq
        else:
            self._fill(seq)

    def _skip(self, low: int, high: int) -> None:
        if low > high:
            return
        if len(self._skipped) < EXCEPTIONS_KEPT:
            self._skipped += ((low, high),)
        else:
            self.complete = False

    def _fill(self, seq: int) -> None:
        low, high = next(hole for hole in self._skipped if hole[0] <= seq <= hole[1])
        self._skipped = tuple(hole for hole in self._skipped if hole != (low, high))
        self._skip(low, seq - 1)
        self._skip(seq + 1, high)


class Publications:
    """The publisher's record of one key, by epoch.

    An epoch is known from its first recorded invocation on. Beyond `EPOCHS_KEPT` the one idle longest is forgotten.

    holed           whether invocations may be missing from the record so far.
    primaries       the unsettled publications by the token of their primary, kept once it was asked for.
    largest         the largest size of the data of a publish, `inf` as soon as one was not recorded.
    forgotten       how many epochs were forgotten.
    """

    __slots__ = ("_begun", "_current", "_primaries", "epochs", "forgotten", "holed", "largest")

    def __init__(self) -> None:
        self.epochs: dict[str, EpochRecord] = {}
        self.holed = False
        self.largest = 0.0
        self.forgotten = 0
        self._begun: dict[str, int] | None = None
        self._current: EpochRecord | None = None
        self._primaries: dict[int, Publication] | None = None

    def invoke(
        self, epoch: str, seq: int, generation: int, t: float, number: int, waiting: int, region: str, size: int
    ) -> EpochRecord | None:
        """Notes an invocation; see `EpochRecord.invoke`. The first one begins the epoch, which is whole if it is number 1.

        Returns the epoch's record if its oldest publication was given up for it.
        """
        record = self._current
        if record is None or record.name != epoch:
            record = self._current = self._turn_to(epoch, seq)
        if size <= 0:
            self.largest = inf
        elif size > self.largest:
            self.largest = float(size)
        return record if record.invoke(seq, generation, t, number, waiting, region, size) else None

    def find(self, epoch: str, seq: int) -> tuple[EpochRecord, Publication] | None:
        """The record of a sequence number whose outcome is still of interest."""
        record = self.epochs.get(epoch)
        if record is None:
            self._note_begun(epoch, seq)
            return None
        publication = record.open.get(seq)
        return None if publication is None else (record, publication)

    def _note_begun(self, epoch: str, seq: int) -> None:
        """An attempt ended of an epoch of which none was seen to begin."""
        begun = self._begun = self._begun or {}
        begun[epoch] = max(seq, begun.pop(epoch, 0))
        if len(begun) > EPOCHS_KEPT:
            del begun[next(iter(begun))]

    def primary(self, token: int) -> Publication | None:
        """The unsettled publication that was confirmed with this token."""
        if self._primaries is None:
            self._primaries = self._index()
        return self._primaries.get(token)

    def confirmed(self, record: EpochRecord, publication: Publication) -> None:
        """Notes which publication a token names, for `primary`."""
        if publication.rank > record.confirmed_rank:
            record.confirmed_rank = publication.rank
        if self._primaries is not None and publication.token is not None:
            self._primaries[publication.token] = publication
            if len(self._primaries) > INDEX_SLACK + 2 * sum(len(one.open) for one in self.epochs.values()):
                self._primaries = self._index()

    def _index(self) -> dict[int, Publication]:
        unsettled = (publication for record in self.epochs.values() for publication in record.open.values())
        return {one.token: one for one in unsettled if one.token is not None}

    def interrupt(self) -> None:
        """The record has a hole: what is open is given up."""
        self.holed = True
        self._primaries = None
        for record in self.epochs.values():
            record.forget()

    def _turn_to(self, epoch: str, seq: int) -> EpochRecord:
        record = self.epochs.pop(epoch, None)
        if record is None:
            if len(self.epochs) >= EPOCHS_KEPT:
                del self.epochs[next(iter(self.epochs))]
                self.forgotten += 1
            record = EpochRecord(epoch, complete=seq == 1 or not self.holed)
            if self._begun:
                record.begun = self._begun.pop(epoch, 0)
        self.epochs[epoch] = record
        return record
