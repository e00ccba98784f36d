"""How far the records that publishes returned have been received, by epoch and region: the state of `order`.

Each subscription goes through the publications of an epoch once, in the order of their invocations: `behind` is the last that it has come
past. What it passed without receiving it is `overtaken`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.findings import Facts
from prober.core.publications import EpochRecord, Publication
from prober.core.sessions import ANYWHERE, Arrival, Source

OVERTAKEN_MAX: Final = 4096
"""Overtaken sequence numbers remembered per epoch; no more are noted beyond that."""
FILTERED_MAX: Final = 256
"""The same where a filter may exclude them: beyond that the oldest is taken to be excluded."""
LATE_MAX: Final = 256
"""Republished ones that are waited for per epoch; no more are noted beyond that."""
GONE_MAX: Final = 256
"""Sequence numbers remembered per epoch that were dead-lettered before they were received."""

_NOTHING: Final[frozenset[int]] = frozenset()


class RealTime:
    """The latest publish invocation among the records learned so far in one region: when, whose, and which event delivered it when."""

    __slots__ = ("came_t", "epoch", "invoked_number", "number", "position", "region", "seq", "source", "t")

    def __init__(self, region: str) -> None:
        self.region = region
        self.position = 0
        self.t = LONG_AGO
        self.seq = 0
        self.epoch = ""
        self.number = 0
        self.came_t = LONG_AGO
        self.source = ANYWHERE
        self.invoked_number = 0

    def learn(self, publication: Publication, invoked_t: float, arrival: Arrival) -> None:
        """A record of that publication, invoked later than all before, at `invoked_t`, was delivered."""
        self.t = invoked_t
        self.position = arrival.position
        self.seq = publication.seq
        self.epoch = arrival.epoch
        self.number = arrival.number
        self.came_t = arrival.t
        self.source = arrival.track.session.source
        self.invoked_number = publication.invoked_number

    def inversion(self, publication: Publication, epoch: str) -> Facts:
        """What is to be told of a publication, of that epoch, that was confirmed before this one was invoked and came after it."""
        return {
            "seq": publication.seq,
            "epoch": epoch,
            "after": self.seq,
            "after_epoch": self.epoch,
            "confirmed_t": publication.confirmed_t,
            "invoked_t": self.t,
        }


class Primary(NamedTuple):
    """A primary that was received: where in the log, delivered and confirmed by which events, when handed over, of which epoch, where.

    `came_t`: when, inf where that is not known.
    """

    position: int
    seq: int
    number: int
    confirmed_number: int
    ordered_t: float
    epoch: str
    source: Source = ANYWHERE
    came_t: float = inf

    def inverts(self, other: Primary) -> bool:
        """Whether the two, of one epoch, break session order: the lower was handed over first, yet stands later in the log."""
        lower, higher = (self, other) if self.seq < other.seq else (other, self)
        return lower.position > higher.position and lower.ordered_t <= higher.ordered_t


BEFORE_ALL: Final = Primary(0, 0, 0, 0, inf, "")


@dataclass(slots=True)
class Overtaken:
    """A sequence number that had not been received when `by` was, at `t`.

    `bound`: it was confirmed and had to come first. Otherwise its outcome was open then, or it was republished later.
    """

    publication: Publication
    by: Primary
    t: float
    bound: bool
    reported_lost: bool = False


class EpochOrder:
    """How far the primaries of one epoch, published in one region, have been received on one subscription.

    index       small number that stands for the epoch and region in the learned log.
    behind      the last publication that was passed, None before the first; `passed` is its rank.
    settled     whether a baseline is known: always, unless it has to be adopted.
    last        the primary that stands furthest in the log: its publication, its position, and the event that delivered it.
    overtaken   publications that were passed and have not been received.
    late        overtaken publications that were republished behind what overtook them and confirmed: to come before what is handed over
                after that.
    highest     where the baseline is adopted: the highest sequence number received.
    lost_rank   up to here it was told that something of a later epoch had come first.
    gone        sequence numbers that were dead-lettered before they were received.
    """

    __slots__ = (
        "behind",
        "gone",
        "highest",
        "index",
        "last",
        "last_number",
        "last_position",
        "late",
        "lost_rank",
        "overtaken",
        "passed",
        "real_time",
        "record",
        "settled",
    )

    def __init__(self, index: int, record: EpochRecord, real_time: RealTime, *, settled: bool) -> None:
        self.index = index
        self.record = record
        self.real_time = real_time
        self.settled = settled
        self.behind: Publication | None = None
        self.passed = 0
        self.lost_rank = 0
        self.last: Publication | None = None
        self.last_position = 0
        self.last_number = 0
        self.overtaken: dict[int, Overtaken] = {}
        self.late: tuple[Publication, ...] = ()
        self.gone = _NOTHING
        self.highest = 0

    def pending(self) -> Iterator[Publication]:
        """The publications of the region that were not passed, in order."""
        region = self.real_time.region
        publication = self.behind.following if self.behind is not None else self.record.oldest
        while publication is not None and publication.region != region:
            self.come_past(publication)
            publication = publication.following
        while publication is not None:
            if publication.region == region:
                yield publication
            publication = publication.following

    def primary(
        self, publication: Publication, position: int, number: int, source: Source = ANYWHERE, came_t: float = inf
    ) -> Primary:
        """What is to be known of a primary that was received."""
        confirmed_number, ordered_t = publication.confirmed_number, publication.ordered_t
        return Primary(position, publication.seq, number, confirmed_number, ordered_t, self.record.name, source, came_t)

    @property
    def last_primary(self) -> Primary:
        """The primary that stands furthest in the log."""
        return BEFORE_ALL if self.last is None else self.primary(self.last, self.last_position, self.last_number)

    @property
    def last_seq(self) -> int:
        """Its sequence number, 0 if there is none."""
        return 0 if self.last is None else self.last.seq

    def come_past(self, publication: Publication) -> None:
        """Everything up to this publication has been passed."""
        self.behind = publication
        self.passed = publication.rank

    def is_next(self, publication: Publication, position: int) -> bool:
        """Whether a primary is the one that was invoked next, with the next number, and stands behind all others."""
        last = self.last
        return (
            last is not None
            and publication.rank == self.passed + 1
            and publication.seq == last.seq + 1
            and position > self.last_position
            and not self.overtaken
        )

    def awaits(self, publication: Publication) -> bool:
        """Whether the primary has not been received; False before a baseline is known."""
        if not self.settled or publication.seq in self.gone:
            return False
        return publication.rank > self.passed or publication.seq in self.overtaken

    def confirmed_pending(self, excused_until_t: float) -> Iterator[Publication]:
        """Confirmed publishes, invoked after `excused_until_t`, that nothing overtook and whose primary was not received.

        None before a baseline is known.
        """
        for publication in self.still_late():
            if publication.invoked_t > excused_until_t:
                yield publication
        if self.settled:
            yield from self.ahead(excused_until_t)

    def owes_first(self, excused_until_t: float) -> bool:
        """Whether any of those ahead is owed although no baseline is known.

        How long that may take cannot be said, for what was held, or refused, before is not on record.
        """
        return not self.settled and next(self.ahead(excused_until_t), None) is not None

    def ahead(self, excused_until_t: float) -> Iterator[Publication]:
        """The same of those that were not passed, whether a baseline is known or not."""
        if self.record.confirmed_rank > self.passed:
            for publication in self.pending():
                owed = publication.token is not None and publication.invoked_t > excused_until_t
                if owed and publication.seq not in self.gone and publication.seq not in self.overtaken:
                    yield publication

    def lost_before(self, before_t: float, expired_t: float) -> Iterator[Publication]:
        """Publishes that completed before, and have not been received, behind those that it was told of."""
        for earlier in self.confirmed_pending(expired_t):
            if earlier.invoked_t >= before_t:
                return
            if earlier.confirmed_t < before_t and earlier.rank > self.lost_rank:
                yield earlier

    def still_late(self) -> list[Publication]:
        """What was republished behind others and has not come."""
        if self.late:
            self.late = tuple(publication for publication in self.late if publication.seq in self.overtaken)
        return list(self.late)

    def await_late(self, publication: Publication) -> None:
        """If it is confirmed behind what overtook it, it still has to come; beyond `LATE_MAX` no more are waited for."""
        if publication.token is not None and len(self.late) < LATE_MAX:
            self.late += (publication,)

    def miss(self, publications: list[Publication]) -> None:
        """They had to come and did not: nobody waits for them any more."""
        self.late = tuple(one for one in self.late if one not in publications)
        for late in publications:
            del self.overtaken[late.seq]

    def dismiss(self, publication: Publication) -> None:
        """Its record left the subscription before it was received, or came before a baseline was known."""
        if self.awaits(publication) or not self.settled:
            self.overtaken.pop(publication.seq, None)
            self.gone = frozenset([publication.seq, *sorted(self.gone)[-GONE_MAX:]])

    def missing(self) -> Iterator[Overtaken]:
        """Confirmed publishes that had to come before what overtook them, and have not come."""
        return (overtaken for overtaken in self.overtaken.values() if overtaken.bound)

    def interrupt(self) -> None:
        """The record has a hole: the baseline is adopted anew, and nobody waits for what was published before."""
        if self.record.latest is not None:
            self.come_past(self.record.latest)
        self.settled = False
        self.last = None
        self.last_position = 0
        self.overtaken.clear()

    def overtake(self, publication: Publication, by: Primary, t: float, *, bound: bool) -> None:
        """Notes that a publication was overtaken; beyond `OVERTAKEN_MAX` no more are noted."""
        if len(self.overtaken) < OVERTAKEN_MAX:
            self.overtaken[publication.seq] = Overtaken(publication, by, t, bound)

    def overtake_filtered(self, publication: Publication, by: Primary, t: float) -> None:
        """The same where the filter may exclude it: beyond `FILTERED_MAX` the oldest is taken to be excluded."""
        self.overtaken[publication.seq] = Overtaken(publication, by, t, bound=False)
        if len(self.overtaken) > FILTERED_MAX:
            oldest = self.overtaken.pop(next(iter(self.overtaken)))
            self.record.give_up(oldest.publication)


class Awaited(NamedTuple):
    """Publishes of an epoch that had to come before `by`, a record of another epoch: until `due_t` they may yet come late."""

    due_t: float
    t: float
    order: EpochOrder
    by: Primary
    publications: tuple[Publication, ...]

    def has_come(self, tokens: Container[int]) -> bool:
        """Whether any that is still awaited is among these messages."""
        return any(one.token in tokens and self.order.awaits(one) for one in self.publications)
