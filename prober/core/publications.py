"""The publishes of a key, shared by its subscriptions: sequence numbers, times, regions and outcomes.

A publish is confirmed, provably failed, or unknown, and unknown never becomes either of them. The confirmed attempt names the *primary*
record of the sequence number. A publication is kept until its outcome is known and every subscription has received its primary, so the
size depends on the undelivered messages, not on the length of the history.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.events import LONG_AGO

if TYPE_CHECKING:
    from prober.core.facts import Delivery

EXCEPTIONS_KEPT: Final = 64
"""Number of holes in the numbering per epoch; beyond that an unrecorded number proves nothing."""
NONE_REPEATED: Final[frozenset[int]] = frozenset()
DUPLICATES_KEPT: Final = 16
"""Number of distinct records of a publication that are kept per subscription."""


class Attempt:
    """One call that published a sequence number: a generation of it."""

    __slots__ = ("failed", "invoked_t", "open", "region")

    def __init__(self, invoked_t: float, region: str) -> None:
        self.invoked_t = invoked_t
        self.region = region
        self.open = True
        self.failed = False


class Publication:
    """The publication of one sequence number of an epoch.

    rank        its place among all invocations of the key.
    size        of its largest attempt, in bytes; 0 if that was not recorded.
    ordered_t   when the confirmed attempt was invoked; without one, the first.
    received    the subscriptions that received the primary, as bits.
    early       first deliveries of its records that were received before they were known to be primary, by subscription.
    attempts    by generation; None while the first attempt is the only one and has not failed.
    """

    __slots__ = (
        "abandoned",
        "attempts",
        "confirmed_number",
        "confirmed_t",
        "early",
        "epoch",
        "failed",
        "invoked_number",
        "invoked_t",
        "message_id",
        "ordered_t",
        "rank",
        "received",
        "region",
        "seq",
        "size",
        "token",
        "unknown",
    )

    def __init__(self, epoch: Epoch, seq: int, rank: int, t: float, number: int, region: str, size: int) -> None:
        self.epoch = epoch
        self.seq = seq
        self.rank = rank
        self.invoked_t = self.ordered_t = t
        self.invoked_number = number
        self.region = region
        self.size = size
        self.token: int | None = None
        self.message_id = ""
        self.confirmed_t = inf
        self.confirmed_number = 0
        self.received = 0
        self.unknown = self.failed = self.abandoned = False
        self.attempts: dict[int, Attempt] | None = None
        self.early: tuple[tuple[int, Delivery], ...] = ()

    @property
    def open(self) -> bool:
        """Whether an attempt has no outcome yet."""
        if self.attempts is None:
            return self.token is None
        return any(one.open for one in self.attempts.values())

    @property
    def several_regions(self) -> bool:
        """Whether attempts were made in several regions, so that a record other than the primary may be of any of them."""
        return self.attempts is not None and len({one.region for one in self.attempts.values()}) > 1

    @property
    def records_max(self) -> float:
        """The largest number of records that its attempts may have stored, if no client retries by itself."""
        return 1 if self.attempts is None else sum(not one.failed for one in self.attempts.values())

    def region_of(self, token: int) -> str | None:
        """Return the region of a record; None if it is unknown."""
        return self.region if token == self.token or not self.several_regions else None

    def invoked_of(self, generation: int) -> float:
        """Return when the attempt of a generation was invoked; the first one if it is not on record."""
        attempt = None if self.attempts is None else self.attempts.get(generation)
        return self.invoked_t if attempt is None else attempt.invoked_t

    def repeat(self, generation: int, t: float, region: str, size: int) -> None:
        """Add another attempt of the publisher."""
        self.size = max(self.size, size) if self.size and size else 0
        self._all()[generation] = Attempt(t, region)
        self.failed = False

    def begun_before(self, generation: int) -> None:
        """Note that attempts before the first recorded one exist."""
        attempts = self._all()
        attempts[generation] = attempts.pop(0)
        earlier = attempts[generation - 1] = Attempt(LONG_AGO, self.region)
        earlier.open, self.unknown = False, True

    def may_predate(self, generation: int) -> bool:
        """Return whether the attempt of a generation was made before the record started."""
        if self.attempts is None:
            return False
        return any(generation <= known and one.invoked_t == LONG_AGO for known, one in self.attempts.items())

    def confirm(self, message_id: str, generation: int, t: float, number: int) -> bool:
        """Note a confirmation; return True if it names the primary, which only the first does. An abandoned number has no primary."""
        if self.attempts is not None and generation in self.attempts:
            self.attempts[generation].open = False
        if self.token is not None or self.abandoned:
            self.unknown = True
            return False
        self.token, self.message_id = hash(message_id), message_id
        self.confirmed_t, self.confirmed_number = t, number
        if self.attempts is not None and generation in self.attempts:
            attempt = self.attempts[generation]
            self.ordered_t, self.region = attempt.invoked_t, attempt.region
        return True

    def end(self, generation: int, *, failed: bool) -> None:
        """End an attempt without a confirmation; if not `failed`, its outcome is unknown."""
        attempts = self._all()
        attempt = attempts.get(generation) or next((one for one in attempts.values() if one.open), None)
        if attempt is not None:
            attempt.open = False
            attempt.failed = failed
        self.unknown = self.unknown or not failed
        self.failed = self.token is None and not self.unknown and all(one.failed for one in attempts.values())

    def receive_early(self, subscription: int, delivery: Delivery) -> bool:
        """Add the first delivery of a record that is not known to be the primary; return False if there are too many to distinguish."""
        if len(self.early_on(subscription)) >= DUPLICATES_KEPT:
            self.abandoned = True
            return False
        self.early += ((subscription, delivery),)
        return True

    def early_on(self, subscription: int) -> list[Delivery]:
        """Return the first deliveries on a subscription that were received before they were known to be primary."""
        return [delivery for index, delivery in self.early if index == subscription]

    def _all(self) -> dict[int, Attempt]:
        if self.attempts is None:
            first = Attempt(self.invoked_t, self.region)
            first.open = self.token is None
            self.attempts = {0: first}
        return self.attempts


class Epoch:
    """One incarnation of a publisher on one key. `open`: its unsettled publications, in the order of their invocations.

    began       the first recorded number: lower ones may have been invoked before the record.
    complete    False if the record may have a hole: then an unrecorded number proves nothing.
    """

    __slots__ = (
        "_repeated",
        "_skipped",
        "began",
        "began_t",
        "complete",
        "ended_unseen",
        "first",
        "last",
        "name",
        "open",
        "regions",
    )

    def __init__(self, name: str, *, complete: bool = True) -> None:
        self.name = name
        self.complete = complete
        self.began = self.first = self.last = self.ended_unseen = 0
        self.began_t = LONG_AGO
        self.regions: tuple[str, ...] = ()
        self.open: dict[int, Publication] = {}
        self._skipped: tuple[tuple[int, int], ...] = ()
        self._repeated = NONE_REPEATED

    def was_invoked(self, seq: int) -> bool:
        """Return whether a publish of `seq` is on record; True also if the record is incomplete."""
        if seq in self.open or not self.complete:
            return True
        return 0 < seq < self.began or self._is_noted(seq)

    def _is_noted(self, seq: int) -> bool:
        return self.first <= seq <= self.last and not any(low <= seq <= high for low, high in self._skipped)

    def may_predate(self, seq: int) -> bool:
        """Return whether a record of `seq` may stem from an attempt before the record of the epoch, or in its hole."""
        return not self.complete or 0 < seq < max(self.began, self.ended_unseen + 1)

    def was_attempted_once(self, seq: int) -> bool:
        """Return whether exactly one attempt to publish a settled number is on record."""
        return self.complete and seq >= self.began and seq not in self._repeated and self.was_invoked(seq)

    def settle(self, publication: Publication, everybody: int) -> None:
        """Forget a publication whose outcome is known and that all subscriptions have received."""
        if not everybody or publication.received != everybody or publication.token is None:
            return
        if publication.attempts is not None:
            if publication.open:
                return
            if len(publication.attempts) > 1:
                self._repeat(publication.seq)
        self.open.pop(publication.seq, None)

    def note(self, seq: int) -> bool:
        """Note an invoked number; return True if it was settled before."""
        if not self.last:
            self.began = self.first = self.last = seq
        elif seq == self.last + 1:
            self.last = seq
        elif seq > self.last:
            self._skip(self.last + 1, seq - 1)
            self.last = seq
        elif seq < self.first:
            self._skip(seq + 1, self.first - 1)
            self.first = seq
        elif not self.complete or self._is_noted(seq):
            self._repeat(seq)
            return True
        else:
            self._fill(seq)
        return False

    def _repeat(self, seq: int) -> None:
        if len(self._repeated) < EXCEPTIONS_KEPT:
            self._repeated |= {seq}
        else:
            self.complete = False

    def _skip(self, low: int, high: int) -> None:
        if low > high:
            return
        if len(self._skipped) < EXCEPTIONS_KEPT:
            self._skipped += ((low, high),)
        else:
            self.complete = False

    def _fill(self, seq: int) -> None:
        low, high = next((hole for hole in self._skipped if hole[0] <= seq <= hole[1]), (seq, seq))
        self._skipped = tuple(hole for hole in self._skipped if hole != (low, high))
        self._skip(low, seq - 1)
        self._skip(seq + 1, high)
