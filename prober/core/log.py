"""The log of one key on one subscription, as far as it was learned: which record stands at which position.

Columns, one entry per position, the oldest forgotten first. A position whose order with the one before is not certain is *joined* to
it; positions that are joined form a group, inside which any order may be the true one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from prober.core.names import RecordName

ACKED: Final = 1
"""An acknowledgement was sent."""
REMOVED: Final = 2
"""It went to the dead-letter topic."""
PRIMARY: Final = 4
"""It is the record that a confirmed publish named."""
UNPLACED: Final = 8
"""It may stand elsewhere: it came where something may be missing from the record."""
JOINED: Final = 16
"""Its order with the position before is not certain."""
SHARED: Final = 32
"""Another record has the same message id."""
ACK_CONFIRMED: Final = 64
"""With exactly-once delivery: an acknowledgement was confirmed."""
STAYED: Final = 128
"""No control operation has passed over it: it came when the last one had settled, or a seek back certainly brings it."""


SEEN_BYTES: Final = 64, 2048
"""Eight times as many bits tell which message ids are certainly not in the log: a power of two, for a short log and for a long one."""
SLACK: Final = 32
"""Positions that may be kept beyond the window, so that the oldest are forgotten together."""
SHORT: Final = 64
"""Positions of a short log."""


class Log:
    """Positions count from 1. `window` of them are kept; `floor` are forgotten.

    final   the positions up to this one keep their places, but for the order inside their groups.
    """

    __slots__ = (
        "_seen",
        "_seen_from",
        "_window",
        "answered",
        "epochs",
        "final",
        "flags",
        "floor",
        "invoked",
        "names",
        "numbers",
        "seqs",
        "stamps",
        "tokens",
    )

    def __init__(self, window: int) -> None:
        self._window = window
        self._seen = bytearray(SEEN_BYTES[0])
        self._seen_from = 0
        self.floor = self.final = 0
        self.tokens = array("q")
        self.stamps = array("I")
        self.numbers = array("Q")
        self.seqs = array("q")
        self.invoked = array("d")
        self.answered = array("d")
        self.epochs = array("H")
        self.flags = array("B")
        self.names: list[str] = []

    @property
    def frontier(self) -> int:
        """The last position."""
        return self.floor + len(self.tokens)

    def append(self, token: int, stamp: int, number: int, epoch: str, seq: int, invoked_t: float, flags: int) -> int:
        """A record is sent for the first time; its position."""
        self._seen[(token >> 3) & (len(self._seen) - 1)] |= 1 << (token & 7)
        self.tokens.append(token)
        self.stamps.append(stamp)
        self.numbers.append(number)
        self.seqs.append(seq)
        self.invoked.append(invoked_t)
        self.answered.append(float("-inf"))
        names = self.names
        self.epochs.append(len(names) - 1 if names and names[-1] == epoch else self._name(epoch))
        self.flags.append(flags)
        if len(self.tokens) >= self._window + SLACK:
            self._forget(len(self.tokens) - self._window)
        elif len(self.tokens) == SHORT:
            self._see_again()
        return self.floor + len(self.tokens)

    def _name(self, epoch: str) -> int:
        names = self.names
        if epoch in names:
            return names.index(epoch)
        if len(names) >= 65_535:
            names.clear()
            self.forget()
        names.append(epoch)
        return len(names) - 1

    def _forget(self, count: int) -> None:
        for column in self._columns():
            del column[:count]
        self.floor += count
        if self.floor - self._seen_from > self._window:
            self._see_again()

    def _see_again(self) -> None:
        """Forgets the message ids that left the log."""
        self._seen, self._seen_from = bytearray(SEEN_BYTES[len(self.tokens) >= SHORT]), self.floor
        for token in self.tokens:
            self._seen[(token >> 3) & (len(self._seen) - 1)] |= 1 << (token & 7)

    def forget(self) -> None:
        """Forgets all positions; the numbering goes on."""
        self._forget(len(self.tokens))

    def truncate(self, frontier: int) -> None:
        """Takes back what was learned above a position."""
        for column in self._columns():
            del column[max(0, frontier - self.floor) :]

    def _columns(self) -> tuple[array[int] | array[float], ...]:
        return self.tokens, self.stamps, self.numbers, self.seqs, self.invoked, self.answered, self.epochs, self.flags

    def find(self, token: int, stamp: int) -> int:
        """The position of a record, 0 if it is not known. Without a publish time the id alone decides."""
        for index in self._indices_of(token):
            if not stamp or not self.stamps[index] or self.stamps[index] == stamp:
                return self.floor + index + 1
        return 0

    def may_have(self, token: int) -> bool:
        """Whether a record of a message id may be in the log; False is certain."""
        return bool(self._seen[(token >> 3) & (len(self._seen) - 1)] & 1 << (token & 7))

    def positions_of(self, token: int) -> list[int]:
        """The positions of all records of a message id."""
        return [self.floor + index + 1 for index in self._indices_of(token)]

    def _indices_of(self, token: int) -> Iterator[int]:
        """Where a message id stands in the columns: searching bytes takes a twentieth of the time of searching numbers."""
        if not self.may_have(token):
            return
        size = self.tokens.itemsize
        column, wanted = self.tokens.tobytes(), array("q", (token,)).tobytes()
        at = column.find(wanted)
        while at >= 0:
            if at % size == 0:
                yield at // size
            at = column.find(wanted, at + 1)

    def has_another(self, epoch: str, seq: int, token: int) -> bool:
        """Whether another record of a sequence number of an epoch is known."""
        found = (self.floor + index + 1 for index, one in enumerate(self.seqs) if one == seq and self.tokens[index] != token)
        return any(self.epoch(position) == epoch for position in found)

    def holds(self, position: int) -> bool:
        """Whether a position is known and not forgotten."""
        return self.floor < position <= self.floor + len(self.tokens)

    def mark(self, position: int, flag: int) -> None:
        """Sets a flag of a position."""
        if position > self.floor:
            self.flags[position - self.floor - 1] |= flag

    def unmark(self, flag: int, position: int = 0) -> None:
        """Takes a flag back, from all positions unless one is stated."""
        indices = range(len(self.flags)) if not position else range(position - self.floor - 1, position - self.floor)
        for index in indices:
            if index >= 0:
                self.flags[index] &= ~flag

    def join(self, first: int, last: int) -> None:
        """The order of the positions from `first` to `last` is not certain."""
        for index in range(max(first - self.floor, 0), last - self.floor):
            self.flags[index] |= JOINED

    def flagged(self, position: int, flag: int) -> bool:
        """Whether a position has one of the flags."""
        index = position - self.floor - 1
        return 0 <= index < len(self.flags) and bool(self.flags[index] & flag)

    def between(self, after: int, before: int) -> Iterator[int]:
        """The positions strictly between two, as far as they are known."""
        return iter(range(max(after, self.floor) + 1, min(before, self.frontier + 1)))

    # --- as the view of a send: see `model.View` ---

    def skipped(self, after: int, before: int) -> list[int]:
        """The positions between two that are still to be delivered."""
        return [one for one in self.between(after, before) if self.may_be_pending(one)]

    def may_be_pending(self, position: int) -> bool:
        """Whether a position has its place and is still in the subscription."""
        return not self.flagged(position, REMOVED | UNPLACED)

    def acked(self, position: int, by_t: float, since_t: float = float("-inf")) -> bool:
        """Whether an acknowledgement that may have meant a position was sent by a time, which is not before the last event."""
        del by_t
        return self.flagged(position, ACKED) and self.answered_t(position) > since_t

    def ack_confirmed(self, position: int, by_t: float) -> bool:
        """Whether an acknowledgement of a position was confirmed by a time, which is not before the last event."""
        del by_t
        return self.flagged(position, ACK_CONFIRMED)

    def provably_confirmed(self, position: int, by_t: float) -> bool:
        """Whether an acknowledgement of a position was confirmed by a time, which is not before the last event."""
        return self.ack_confirmed(position, by_t)

    def stays(self, position: int) -> bool:
        """Whether no control operation has passed over a position, though it was published before that had settled."""
        return self.flagged(position, STAYED)

    def low(self, position: int) -> int:
        """The first position of the group of a position."""
        while position - 1 > self.floor and self.flagged(position, JOINED):
            position -= 1
        return position

    def high(self, position: int) -> int:
        """The last position of the group of a position."""
        while position < self.frontier and self.flagged(position + 1, JOINED):
            position += 1
        return position

    def is_open(self, one: int, other: int) -> bool:
        """Whether two positions that are final may have changed places."""
        return one != other and max(one, other) <= self.final and self.low(one) == self.low(other)

    def flags_at(self, position: int) -> int:
        """All flags of a position, 0 if it is forgotten."""
        return self.flags[position - self.floor - 1] if self.holds(position) else 0

    def token(self, position: int) -> int:
        """The message id at a position, 0 if it is forgotten."""
        return self.tokens[position - self.floor - 1] if self.holds(position) else 0

    def seq(self, position: int) -> int:
        """The sequence number at a position, 0 if it is forgotten."""
        return self.seqs[position - self.floor - 1] if self.holds(position) else 0

    def epoch(self, position: int) -> str:
        """The epoch at a position, empty if it is forgotten."""
        return self.names[self.epochs[position - self.floor - 1]] if self.holds(position) else ""

    def redelivered(self, upto: int, after: int, before: int) -> None:
        """None: what is sent in the order of arrival was sent at no other time."""

    def named(self, position: int) -> RecordName:
        """What the record at a position is called; message ids are not kept."""
        stamp = self.stamps[position - self.floor - 1] if self.holds(position) else 0
        return RecordName(self.epoch(position), self.seq(position), self.token(position), stamp)

    def number(self, position: int) -> int:
        """The event of the first delivery of a position, 0 if it is forgotten."""
        return self.numbers[position - self.floor - 1] if self.holds(position) else 0

    def invoked_t(self, position: int) -> float:
        """When the publish of a position was invoked; long ago if that is not known."""
        return self.invoked[position - self.floor - 1] if self.holds(position) else float("-inf")

    def record(self, position: int) -> tuple[int, int]:
        """The record at a position: its message id and publish time, as hashes."""
        index = position - self.floor - 1
        return self.tokens[index], self.stamps[index]

    def state(self, position: int) -> tuple[int, float]:
        """The flags of a position, and when it was answered last."""
        index = position - self.floor - 1
        return self.flags[index], self.answered[index]

    def answer(self, position: int, t: float) -> None:
        """An answer to any delivery of a position was sent."""
        if self.holds(position):
            self.answered[position - self.floor - 1] = t

    def answered_t(self, position: int) -> float:
        """When the last answer to any delivery of a position was sent; long ago if none was."""
        return self.answered[position - self.floor - 1] if self.holds(position) else float("-inf")
