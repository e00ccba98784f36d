"""The learned log of one key on one subscription: the record at each position.

Columns, one entry per position, the oldest forgotten first. A position whose order with the one before is uncertain is *joined* to it.
Joined positions form a group, inside which any order may be the true one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prober.core.events import LONG_AGO
from prober.core.names import RecordName

if TYPE_CHECKING:
    from prober.core.facts import Delivery
    from prober.core.key import KeyChecker
    from prober.core.publications import Publication

ACKED: Final = 1
"""An acknowledgement was sent."""
REMOVED: Final = 2
"""The record was sent to the dead-letter topic."""
PRIMARY: Final = 4
"""A confirmed publish named the record."""
UNPLACED: Final = 8
"""The record may have another place: the subscription's record may lack deliveries before it."""
JOINED: Final = 16
"""The order of the record and the position before is uncertain."""
SHARED: Final = 32
"""Another record has the same message id."""
ACK_CONFIRMED: Final = 64
"""An acknowledgement was confirmed (exactly-once delivery)."""
STAYED: Final = 128
"""No control operation has passed over the record.

It was received after the last operation had settled, or a seek provably restores it.
"""


SEEN_BYTES: Final = 64, 2048
"""Sizes of the filter for message ids that are definitely not in the log.

Powers of two, for short logs and for long ones; the filter has eight times as many bits.
"""
BITS: Final = bytes(1 << bit for bit in range(8))
EPOCHS_MAX: Final = 65_535
"""Largest number of epoch names that a column can distinguish."""
SEQ_MAX: Final = (1 << 63) - 1
"""Largest sequence number that a column can hold; a larger one is kept as this."""
SLACK: Final = 32
"""Number of positions kept beyond the window, so that the oldest are forgotten together."""
SHORT: Final = 64
"""Number of positions of a short log."""


class Log:
    """The learned log. Positions count from 1. `window` of them are kept; `floor` are forgotten.

    frontier    the last position.
    final   the positions up to this one keep their places, except for the order inside their groups.
    """

    __slots__ = (
        "_epoch",
        "_epoch_index",
        "_full_at",
        "_mask",
        "_names",
        "_seen",
        "_seen_from",
        "_window",
        "answered",
        "epochs",
        "final",
        "flags",
        "floor",
        "frontier",
        "invoked",
        "numbers",
        "seqs",
        "stamps",
        "tokens",
    )

    def __init__(self, window: int) -> None:
        self._window = window
        self._full_at = window + SLACK
        self._seen = bytearray(SEEN_BYTES[0])
        self._mask = 8 * SEEN_BYTES[0] - 1
        self._seen_from = 0
        self.floor = self.final = self.frontier = 0
        self.tokens = array("q")
        self.stamps = array("I")
        self.numbers = array("Q")
        self.seqs = array("q")
        self.invoked = array("d")
        self.answered = array("d")
        self.epochs = array("H")
        self.flags = array("B")
        self._names: list[str] = []
        self._epoch: str | None = None
        self._epoch_index = 0

    def append(self, token: int, stamp: int, number: int, epoch: str, seq: int, invoked_t: float, flags: int) -> int:
        """Append the record of a first delivery; return its position."""
        if epoch != self._epoch:
            self._begin(epoch)
        slot = token & self._mask
        self._seen[slot >> 3] |= BITS[slot & 7]
        self.tokens.append(token)
        self.stamps.append(stamp)
        self.numbers.append(number)
        try:
            self.seqs.append(seq)
        except OverflowError:  # a damaged message may carry any number
            self.seqs.append(SEQ_MAX)
        self.invoked.append(invoked_t)
        self.answered.append(LONG_AGO)
        self.epochs.append(self._epoch_index)
        self.flags.append(flags)
        position = self.frontier = self.frontier + 1
        count = position - self.floor
        if count >= self._full_at:
            self._forget(count - self._window)
        elif count == SHORT:
            self._see_again()
        return position

    def _begin(self, epoch: str) -> None:
        """Start another epoch with the next record."""
        if epoch not in self._names:
            if len(self._names) >= EPOCHS_MAX:
                self._names.clear()
                self._forget(len(self.tokens))
            self._names.append(epoch)
        self._epoch, self._epoch_index = epoch, self._names.index(epoch)

    def _forget(self, count: int) -> None:
        for column in self._columns():
            del column[:count]
        self.floor += count
        if self.floor - self._seen_from > self._window:
            self._see_again()

    def _see_again(self) -> None:
        """Rebuild the filter without the message ids that left the log."""
        self._seen, self._seen_from = bytearray(SEEN_BYTES[len(self.tokens) >= SHORT]), self.floor
        self._mask = 8 * len(self._seen) - 1
        for token in self.tokens:
            slot = token & self._mask
            self._seen[slot >> 3] |= BITS[slot & 7]

    def truncate(self, frontier: int) -> None:
        """Remove the positions after `frontier`."""
        for column in self._columns():
            del column[max(0, frontier - self.floor) :]
        self.frontier = self.floor + len(self.tokens)

    def _columns(self) -> tuple[array[int] | array[float], ...]:
        return self.tokens, self.stamps, self.numbers, self.seqs, self.invoked, self.answered, self.epochs, self.flags

    def find(self, token: int, stamp: int) -> int:
        """Return the position of a record, 0 if it is unknown. Without a publish time the id alone decides."""
        for index in self._indices_of(token) if self.may_have(token) else ():
            if not stamp or not self.stamps[index] or self.stamps[index] == stamp:
                return self.floor + index + 1
        return 0

    def may_have(self, token: int) -> bool:
        """Return whether a record of a message id may be in the log; False is definite."""
        slot = token & self._mask
        return self._seen[slot >> 3] & BITS[slot & 7] != 0

    def positions_of(self, token: int) -> list[int]:
        """Return the positions of all records of a message id."""
        return [self.floor + index + 1 for index in self._indices_of(token)] if self.may_have(token) else []

    def _indices_of(self, token: int) -> Iterator[int]:
        """Yield the column indices of a message id: searching bytes takes a twentieth of the time of searching numbers."""
        size = self.tokens.itemsize
        column, wanted = self.tokens.tobytes(), array("q", (token,)).tobytes()
        at = column.find(wanted)
        while at >= 0:
            if at % size == 0:
                yield at // size
            at = column.find(wanted, at + 1)

    def has_another(self, epoch: str, seq: int, token: int) -> bool:
        """Return whether another record of a sequence number of an epoch is known."""
        found = (self.floor + index + 1 for index, one in enumerate(self.seqs) if one == seq and self.tokens[index] != token)
        return any(self.epoch(position) == epoch for position in found)

    def holds(self, position: int) -> bool:
        """Return whether a position is known and not forgotten."""
        return self.floor < position <= self.floor + len(self.tokens)

    def mark(self, position: int, flag: int) -> None:
        """Set a flag of a position."""
        if position > self.floor:
            self.flags[position - self.floor - 1] |= flag

    def unmark(self, flag: int, position: int = 0) -> None:
        """Clear a flag of a position, or of all positions if it is 0."""
        indices = range(len(self.flags)) if not position else range(position - self.floor - 1, position - self.floor)
        for index in indices:
            if index >= 0:
                self.flags[index] &= ~flag

    def join(self, first: int, last: int) -> None:
        """Mark the order of the positions from `first` to `last` as uncertain."""
        for index in range(max(first - self.floor, 0), last - self.floor):
            self.flags[index] |= JOINED

    def flagged(self, position: int, flag: int) -> bool:
        """Return whether a position has one of the flags."""
        index = position - self.floor - 1
        return 0 <= index < len(self.flags) and bool(self.flags[index] & flag)

    def between(self, after: int, before: int) -> Iterator[int]:
        """Return an iterator over the known positions strictly between two."""
        return iter(range(max(after, self.floor) + 1, min(before, self.frontier + 1)))

    # --- as the view of a send: see `model.Send` ---

    def skipped(self, after: int, before: int) -> list[int]:
        """Return the positions between two that are still to be delivered: not dead-lettered, and not unplaced."""
        return [one for one in self.between(after, before) if self.may_be_pending(one)]

    def may_be_pending(self, position: int) -> bool:
        """Return whether a position has its place and is still in the subscription."""
        return not self.flagged(position, REMOVED | UNPLACED)

    def acked(self, position: int, by_t: float, since_t: float = LONG_AGO) -> bool:
        """Return whether an acknowledgement that may refer to a position was sent by a time, which is not before the last event."""
        del by_t
        return self.flagged(position, ACKED) and self.answered_t(position) > since_t

    def ack_confirmed(self, position: int, by_t: float) -> bool:
        """Return whether an acknowledgement of a position was confirmed by a time, which is not before the last event."""
        del by_t
        return self.flagged(position, ACK_CONFIRMED)

    def provably_confirmed(self, position: int, by_t: float) -> bool:
        """Return whether an acknowledgement of a position was confirmed by a time, which is not before the last event."""
        return self.ack_confirmed(position, by_t)

    def stays(self, position: int) -> bool:
        """Return whether no control operation has passed over a position, although its publish precedes the end of the operation."""
        return self.flagged(position, STAYED)

    def low(self, position: int) -> int:
        """Return the first position of the group of a position."""
        while position - 1 > self.floor and self.flagged(position, JOINED):
            position -= 1
        return position

    def high(self, position: int) -> int:
        """Return the last position of the group of a position."""
        while position < self.frontier and self.flagged(position + 1, JOINED):
            position += 1
        return position

    def is_open(self, one: int, other: int) -> bool:
        """Return whether the order of two final positions is uncertain."""
        return one != other and max(one, other) <= self.final and self.low(one) == self.low(other)

    def flags_at(self, position: int) -> int:
        """Return all flags of a position, 0 if it is forgotten."""
        return self.flags[position - self.floor - 1] if self.holds(position) else 0

    def token(self, position: int) -> int:
        """Return the hashed message id at a position, 0 if it is forgotten."""
        return self.tokens[position - self.floor - 1] if self.holds(position) else 0

    def seq(self, position: int) -> int:
        """Return the sequence number at a position, 0 if it is forgotten."""
        return self.seqs[position - self.floor - 1] if self.holds(position) else 0

    def epoch(self, position: int) -> str:
        """Return the epoch at a position, empty if it is forgotten."""
        return self._names[self.epochs[position - self.floor - 1]] if self.holds(position) else ""

    def redelivered(self, upto: int, after: int, before: int) -> None:
        """Return None: in the order of arrival no redelivery was sent at another time."""

    def named(self, position: int) -> RecordName:
        """Return the name of the record at a position; message ids are not kept."""
        stamp = self.stamps[position - self.floor - 1] if self.holds(position) else 0
        return RecordName(self.epoch(position), self.seq(position), self.token(position), stamp)

    def number(self, position: int) -> int:
        """Return the event number of the first delivery of a position, 0 if it is forgotten."""
        return self.numbers[position - self.floor - 1] if self.holds(position) else 0

    def invoked_t(self, position: int) -> float:
        """Return when the publish of a position was invoked; `LONG_AGO` if that is not known."""
        return self.invoked[position - self.floor - 1] if self.holds(position) else LONG_AGO

    def record(self, position: int) -> tuple[int, int]:
        """Return the record at a position: its message id and publish time, as hashes."""
        index = position - self.floor - 1
        return self.tokens[index], self.stamps[index]

    def state(self, position: int) -> tuple[int, float]:
        """Return the flags of a position, and the time of its last answer."""
        index = position - self.floor - 1
        return self.flags[index], self.answered[index]

    def answer(self, position: int, flag: int, t: float) -> None:
        """Set a flag of a position and the time of an answer to any of its deliveries, which ends its holds."""
        index = position - self.floor - 1
        if 0 <= index < len(self.flags):
            self.flags[index] |= flag
            self.answered[index] = t

    def answered_t(self, position: int) -> float:
        """Return when the last answer to any delivery of a position was sent; `LONG_AGO` if none was."""
        return self.answered[position - self.floor - 1] if self.holds(position) else LONG_AGO


# --- an adopted start: messages that may be older than the subscription (docs/model.md, section 10) ---------------------------


def adopt(key: KeyChecker, one: Delivery) -> None:
    """Adopt the first delivery as the baseline: earlier publications may be older than the subscription.

    The first delivery may be a copy that the service stored later under the same id. The subscription existed when one of its sessions was
    open.
    """
    key.adopts = False
    publication, eps = one.publication, key.rules.clock_error_s
    seen_t = min(key.subscription.first_seen_t, one.t) + eps
    if publication is None or not one.primary:
        key.baseline_t = one.t + eps  # the time at which the service stored it is unknown
    else:
        key.baseline_t = max(publication.ordered_t, seen_t) if one.stamp else publication.ordered_t
    stored_again = one.stamp and (publication is None or publication.ordered_t < seen_t)
    key.baseline = None if stored_again else one
    for lane in key.lanes.values():
        for other in [other for other in lane.pending if may_predate(key, other) and other.token != one.token]:
            del lane.pending[other]
            key.excuse(other)


def may_predate(key: KeyChecker, publication: Publication) -> bool:
    """Return whether a publication may be older than the subscription; publications after the first delivered message are not (L3)."""
    first = key.baseline
    behind = first is not None and first.primary and publication.epoch.name == first.epoch and publication.seq > first.seq
    return publication.invoked_t <= key.baseline_t and not behind
