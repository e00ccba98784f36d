"""What the publisher's own record says about one key: which sequence numbers were sent, with which outcome.

The rule of this file: *a publish is confirmed, certainly failed, or unknown, and unknown is never turned into either.*

A sequence number is confirmed when a publish of it returned a message id; that record is its *primary*. It is certainly unsent when
every attempt failed definitely. Everything else (no answer yet, deadline, lost reply) is open: it may be in the log once, several
times, later, or never. An abandoned sequence number has no primary, whatever answer still comes.

The record is shared by all subscriptions of a key. A sequence number is kept until its outcome is settled and every subscription
has received its primary, so the size follows what is published and undelivered, not the length of the history.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

EPOCHS_KEPT = 64
"""Epochs remembered per key; messages of older ones count as foreign."""
OPEN_KEPT = 65_536
"""Unsettled sequence numbers remembered per epoch; beyond that the oldest are given up and no longer judged."""
DUPLICATES_KEPT = 16
"""Records of one sequence number besides its primary remembered per subscription; beyond that it is no longer judged."""
EXCEPTIONS_KEPT = 64
"""Holes in the numbering, and repeated sequence numbers, remembered per epoch; beyond that they prove nothing any more."""


_NOTHING: frozenset[int] = frozenset()


class Early(NamedTuple):
    """A delivery on the subscription of that index that was not (yet) known to be the primary.

    `position` is 0 when the delivery could no longer be placed.
    """

    subscription: int
    token: int
    position: int
    number: int


class Publication:
    """One sequence number: its invocations, its outcome, and how many subscriptions still wait for its primary.

    `ordered_t` is when the confirmed attempt was handed over: session order is promised in that order. `received` says whether any
    subscription received the primary.
    """

    __slots__ = (
        "_invocations",
        "abandoned",
        "attempts",
        "confirmed_number",
        "confirmed_t",
        "early",
        "invoked_number",
        "invoked_t",
        "open",
        "ordered_t",
        "received",
        "seq",
        "token",
        "unknown",
        "waiting",
    )

    def __init__(self, seq: int, t: float, number: int, waiting: int) -> None:
        self.seq = seq
        self.invoked_t = t
        self.invoked_number = number
        self.waiting = waiting
        self.attempts = 1
        self.open = 1
        self.unknown = False
        self.abandoned = False
        self.received = False
        self.token: int | None = None
        self.confirmed_t = inf
        self.confirmed_number = 0
        self.ordered_t = t
        self.early: tuple[Early, ...] = ()
        self._invocations: dict[int, float] | None = None

    @property
    def confirmed(self) -> bool:
        """Whether the service named this sequence number's primary record."""
        return self.token is not None

    @property
    def certainly_unsent(self) -> bool:
        """Whether every attempt is over and failed definitely."""
        return not self.open and not self.unknown and self.token is None

    def republish(self, generation: int, t: float) -> None:
        """Notes one more attempt of the prober's own."""
        self.attempts += 1
        self.open += 1
        self._invocations = self._invocations or {}
        self._invocations[generation] = t

    def confirm(self, token: int, generation: int, t: float, number: int) -> bool:
        """Notes a confirmation; True when it names the primary, which only the first one does."""
        self.open = max(0, self.open - 1)
        if self.abandoned:
            self.unknown = True
        if self.token is not None or self.abandoned:
            return False
        self.token = token
        self.confirmed_t = t
        self.confirmed_number = number
        self.ordered_t = (self._invocations or {}).get(generation, self.invoked_t)
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
        self.open = max(0, self.open - 1)
        self.unknown = self.unknown or unknown


class EpochRecord:
    """The sequence numbers of one incarnation of a writer, the epoch `name`, on one key.

    `complete` is False once the record may have a hole: then an unrecorded sequence number proves nothing.
    """

    __slots__ = ("_repeated", "_skipped", "complete", "first", "given_up", "last", "name", "open")

    def __init__(self, name: str, *, complete: bool = True) -> None:
        self.name = name
        self.first = 0
        self.last = 0
        self.complete = complete
        self.given_up = 0
        self.open: dict[int, Publication] = {}
        self._skipped: tuple[tuple[int, int], ...] = ()
        self._repeated: frozenset[int] = _NOTHING

    def was_invoked(self, seq: int) -> bool:
        """Whether a publish of `seq` was recorded (True also where the record no longer tells)."""
        if seq in self.open or not self.complete:
            return True
        return self.first <= seq <= self.last and not any(low <= seq <= high for low, high in self._skipped)

    def was_attempted_once(self, seq: int) -> bool:
        """Whether exactly one attempt to publish a settled `seq` was recorded and nothing speaks for more."""
        return self.complete and not self.given_up and seq not in self._repeated and self.was_invoked(seq)

    def invoke(self, seq: int, generation: int, t: float, number: int, waiting: int) -> None:
        """Notes an invocation of `seq`; `waiting` subscriptions will want its primary."""
        publication = self.open.get(seq)
        if publication is not None:
            publication.republish(generation, t)
        elif self.last and self.first <= seq <= self.last and self.was_invoked(seq):
            self._repeat(seq)
        else:
            self._extend(seq)
            self.open[seq] = Publication(seq, t, number, waiting)
            if len(self.open) > OPEN_KEPT:
                del self.open[next(iter(self.open))]
                self.given_up += 1

    def receive(self, publication: Publication) -> None:
        """Notes that one more subscription received the primary."""
        publication.received = True
        publication.waiting -= 1
        self.settle(publication)

    def settle(self, publication: Publication) -> None:
        """Drops the record of a sequence number when its outcome is known and no subscription waits for it."""
        if publication.waiting > 0 or publication.open or not publication.received:
            return
        if publication.attempts > 1:
            self._repeat(publication.seq)
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
        if not self.last:
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
    """The publisher's record of one key, by epoch; the oldest epochs are forgotten beyond `EPOCHS_KEPT`.

    An epoch is known from its first recorded invocation on. `holed` says that invocations may be missing from the record so far.
    """

    __slots__ = ("epochs", "holed")

    def __init__(self) -> None:
        self.epochs: dict[str, EpochRecord] = {}
        self.holed = False

    def invoke(self, epoch: str, seq: int, generation: int, t: float, number: int, waiting: int) -> None:
        """Notes an invocation; see `EpochRecord.invoke`. The first one begins the epoch, which is whole if it is number 1."""
        record = self.epochs.get(epoch)
        if record is None:
            if len(self.epochs) >= EPOCHS_KEPT:
                del self.epochs[next(iter(self.epochs))]
            record = self.epochs[epoch] = EpochRecord(epoch, complete=seq == 1 or not self.holed)
        record.invoke(seq, generation, t, number, waiting)

    def find(self, epoch: str, seq: int) -> tuple[EpochRecord, Publication] | None:
        """The record of a sequence number whose outcome is still of interest."""
        record = self.epochs.get(epoch)
        publication = record.open.get(seq) if record is not None else None
        return None if record is None or publication is None else (record, publication)

    def interrupt(self) -> None:
        """The record has a hole: what is open is given up."""
        self.holed = True
        for record in self.epochs.values():
            record.forget()
