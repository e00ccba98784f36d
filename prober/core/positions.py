"""Positions of messages in the service's log, learned from message ids in first-delivery order.

The rule of this file: *the n-th distinct record that a subscriber receives for a key is the n-th record of that key's log.* A record is
a message id together with its publish time: the service's own retries store a message twice under one id, and then its two publish
times tell the records apart. Where publish times are not recorded the id alone decides.

Sequence numbers cannot serve as positions: when a client library retries a batch, the log holds 1, 2, 1', 2', 3, and a redelivery
has to bring all five. Message ids can: in an allowed history the order in which ids are first received is the order of the log
(Lemma 1 of the specification), because a service that sends b before a has skipped a, which no service may do. In a history that is
not allowed the learned order may differ from the log; then another rule fires at the first deviation.

Only the last `window` positions are kept. What has left the window is *retired*: a delivery of it can no longer be placed, so it
begins a run without being judged. Forgetting can therefore hide a violation and never invent one.

A position is kept in 31 bytes (39 with publish times, 8 more once numbers outgrow 32 bits): columns in arrays, and a chained hash
table over them. Chains lead from newer to older positions and simply end where the window ends, so nothing is ever deleted from them.
They hold positions modulo 2^16; a link so old that it points to a wrong position leads downwards, through tokens that do not match.
"""

from __future__ import annotations

from array import array
from math import inf
from typing import NamedTuple

from prober.core.columns import moved

ACKED = 1
"""An acknowledgement was sent for the position at some time, or may have been before the record; nothing is owed for it ever after."""
REMOVED = 2
"""The position left the subscription (dead-lettered): runs may pass over it."""
SHARED = 4
"""The message id of the position stands for other records too: an acknowledgement, which names the id alone, may be for any of them."""
RACED = 8
"""Received on one of several sessions that race each other: its place among its neighbours is not certain."""
STRANGE = 16
"""No recorded publish can have stored it."""
REFUSED = 32
"""A refusal was sent for the position at some time."""
PRIMARY = 64
"""Where sessions race: a confirmation names the position."""
OLDER = 128
"""The position may have been delivered, and acknowledged, before the record began."""
UNPROVEN = 256
"""Received while sessions race, and not known to be the primary then: what had to follow it did not wait for it."""
PLACELESS = 512
"""Received where nothing says before or behind which others it stands."""
SENT_BESIDE = 1024
"""May have been sent before others that were received first, on a stream that broke."""
STAYED = 2048
"""Delivered since the latest control operation had settled, which therefore has not passed over it."""

STRANGERS_KEPT = 64
"""Records that no publish can have stored remembered after they left the window; the oldest are forgotten beyond that."""

_LOW_16_BITS = 0xFFFF
_LOW_32_BITS = 0xFFFF_FFFF
_LOW_63_BITS = 0x7FFF_FFFF_FFFF_FFFF
_SMALLEST = 8

NO_STAMP = 0
"""Stands for the publish time of a delivery that does not state one."""
_NO_NUMBERS, _NO_SMALL_NUMBERS, _NO_TIMES = array("q"), array("H"), array("d")
"""Columns of a log that holds nothing, shared by all idle keys; never written to."""


class Confirmation(NamedTuple):
    """The event that confirmed an acknowledgement."""

    t: float
    number: int


class LearnedLog:
    """The learned log of one key on one subscription: `frontier` is the highest position, positions at or below `floor` are gone.

    Message ids are held as 64-bit tokens (`hash(message_id)`), never as text, and publish times as 64-bit stamps in the same way.
    """

    __slots__ = (
        "_attempts",
        "_attempts_max",
        "_confirmations",
        "_epochs",
        "_flags",
        "_heads",
        "_invoked",
        "_links",
        "_mask",
        "_numbers",
        "_raced_to",
        "_retired",
        "_room",
        "_seqs",
        "_stamps",
        "_strangers",
        "_tokens",
        "_window",
        "_wrap",
        "floor",
        "frontier",
    )

    def __init__(self, window: int, attempts_max: int = 0) -> None:
        """`attempts_max` is the dead-letter policy's limit, 0 without a policy."""
        self._window = window
        self._attempts_max = attempts_max
        self.frontier = 0
        self.floor = 0
        self._raced_to = 0
        self._tokens: array[int]
        self._seqs: array[int]
        self._numbers: array[int]
        self._epochs: array[int]
        self._stamps: array[int]
        self._heads: array[int]
        self._links: array[int]
        self._flags: array[int]
        self._invoked: array[float]
        self._retired: dict[int, int] = {}
        self._strangers: dict[int, None] | None = None
        self._attempts: dict[int, int] | None = None
        self._confirmations: dict[int, Confirmation] | None = None
        self._empty()

    def forget(self) -> None:
        """Gives up every position kept: all become retired."""
        for position in range(self.floor + 1, self.frontier + 1):
            self._retire(position)
        self.floor = self.frontier
        self._attempts = None
        self._confirmations = None
        self._empty()

    def find(self, token: int) -> int:
        """The newest position of a message id's token, or 0 when it is unknown or has left the window."""
        if not self._room:
            return 0
        mask = self._mask
        frontier = self.frontier
        floor = self.floor
        position = frontier - ((frontier - self._heads[token & mask]) & self._wrap)
        while position > floor:
            slot = position & mask
            if self._tokens[slot] == token:
                return position
            back = self._links[slot]
            if not back:
                return 0
            position -= back
        return 0

    def find_record(self, position: int, token: int, stamp: int) -> int:
        """The position, at or below one that `find` returned, of the record with that stamp; 0 if there is none.

        A delivery or a record that does not state its publish time is taken to be the one that is there.
        """
        if stamp == NO_STAMP or not self._stamps:
            return position
        mask = self._mask
        while position > self.floor:
            slot = position & mask
            if self._tokens[slot] == token and self._stamps[slot] in (stamp, NO_STAMP):
                return position
            back = self._links[slot]
            if not back:
                return 0
            position -= back
        return 0

    def positions_of(self, position: int) -> list[int]:
        """All positions that share the message id of one that `find` returned, this one first."""
        if not self.flags(position) & SHARED:
            return [position]
        token = self.token(position)
        return [other for other in range(position, self.floor, -1) if self.token(other) == token]

    def learn(self, token: int, stamp: int, epoch: int, seq: int, number: int, invoked_t: float) -> int:
        """Appends a record seen for the first time and returns its position.

        `epoch` is a small index, `number` the event that delivered it; `invoked_t` is when its publish was invoked.
        """
        position = self.frontier + 1
        if position - self.floor > self._room:
            self._make_room()
        self.frontier = position
        slot = position & self._mask
        self._link(position, token)
        self._tokens[slot] = token
        try:
            self._epochs[slot] = epoch
            self._seqs[slot] = seq
            self._numbers[slot] = number
        except OverflowError:
            self._widen()
            self._epochs[slot] = epoch
            self._seqs[slot] = seq & _LOW_63_BITS
            self._numbers[slot] = number
        if stamp != NO_STAMP or self._stamps:
            self._stamp(slot, stamp)
        self._invoked[slot] = invoked_t
        self._flags[slot] = 0
        return position

    def _link(self, position: int, token: int) -> None:
        """Puts a position at the head of its chain."""
        mask, heads = self._mask, self._heads
        bucket = token & mask
        back = (position - heads[bucket]) & self._wrap
        self._links[position & mask] = back if back <= mask else 0
        heads[bucket] = position & self._wrap

    def holds(self, position: int) -> bool:
        """Whether the position is still inside the window."""
        return self.floor < position <= self.frontier

    def token(self, position: int) -> int:
        """The id token at a position inside the window."""
        return self._tokens[position & self._mask]

    def epoch(self, position: int) -> int:
        """The epoch index at a position inside the window."""
        return self._epochs[position & self._mask]

    def seq(self, position: int) -> int:
        """The sequence number at a position inside the window."""
        return self._seqs[position & self._mask]

    def number(self, position: int) -> int:
        """The number of the event that first delivered a position inside the window."""
        return self._numbers[position & self._mask]

    def invoked_t(self, position: int) -> float:
        """When the publish of a position inside the window was first invoked."""
        return self._invoked[position & self._mask]

    def flags(self, position: int) -> int:
        """The flags of a position inside the window."""
        return self._flags[position & self._mask]

    def flags_of(self, token: int) -> int:
        """The flags of the newest position of a message id's token; none if it is unknown or has left the window."""
        position = self.find(token)
        return self._flags[position & self._mask] if position else 0

    def mark(self, position: int, flag: int) -> None:
        """Sets a flag on a position inside the window."""
        self._flags[position & self._mask] |= flag

    def unmark(self, flag: int) -> None:
        """Takes a flag from all positions."""
        for slot, flags in enumerate(self._flags):
            self._flags[slot] = flags & ~flag

    def race(self, position: int) -> None:
        """The place of a position, which may have left the window, is not certain."""
        if self.holds(position):
            self.mark(position, RACED)
        else:
            self._raced_to = max(self._raced_to, position)

    def has_raced(self, position: int) -> bool:
        """Whether the place of a position is not certain; of those that have left the window the highest is known, for all of them."""
        return bool(self.flags(position) & RACED) if self.holds(position) else position <= self._raced_to

    def retire(self, epoch: int, seq: int) -> None:
        """Notes that a record of this sequence number, or of one above it, can no longer be placed."""
        if seq > self._retired.get(epoch, -1):
            self._retired[epoch] = seq

    def is_retired(self, token: int, epoch: int, seq: int) -> bool:
        """Whether an unknown id of this sequence number may be one that has left the window."""
        if self._strangers and token in self._strangers:
            return True
        return seq <= self._retired.get(epoch, -1)

    def forget_epoch(self, epoch: int) -> None:
        """An epoch is not judged any more: what of it has left the window need not be told apart."""
        self._retired.pop(epoch, None)

    def count_attempt(self, position: int, attempt: int) -> None:
        """With a dead-letter policy: notes one more delivery of a position.

        `attempt` is the service's own count, which may run ahead of ours.
        """
        if not self._attempts_max:
            return
        attempts = self._attempts = self._attempts or {}
        attempts[position] = max(attempts.get(position, 0) + 1, attempt)
        if len(attempts) > 2 * self._window:
            self._attempts = {p: n for p, n in attempts.items() if p > self.floor}

    def may_be_dead_lettered(self, position: int, lost: float = 0) -> bool:
        """Whether a position was delivered so often, and `lost` so often, that the dead-letter policy may have removed it unseen."""
        return self._attempts is not None and self._attempts.get(position, 0) + lost >= self._attempts_max - 1

    def between(self, after: int, upto: int, expired_t: float = -inf) -> list[int]:
        """The positions strictly between two that are still in the subscription, as far as the window reaches.

        What was published before `expired_t` may be older than the retention, and is not counted.
        """
        lowest, highest = max(after, self.floor) + 1, min(upto, self.frontier + 1)
        there = [position for position in range(lowest, highest) if not self.flags(position) & REMOVED]
        return there if expired_t == -inf else [position for position in there if self.invoked_t(position) >= expired_t]

    def may_follow(self, position: int, after: int) -> bool:
        """Whether `position` may be sent right after `after`: it is the next one, an earlier one, or all between may be gone."""
        return position <= after + 1 or all(self.may_be_dead_lettered(passed) for passed in self.between(after, position))

    def confirm(self, position: int, t: float, number: int) -> None:
        """Exactly-once: notes that event `number` confirmed the acknowledgement of a position."""
        confirmations = self._confirmations = self._confirmations or {}
        confirmations.setdefault(position, Confirmation(t, number))
        if len(confirmations) > 2 * self._window:
            self._confirmations = {p: kept for p, kept in confirmations.items() if p > self.floor}

    def confirmation(self, position: int) -> Confirmation | None:
        """The first confirmation of a position's acknowledgement, if there was one."""
        return self._confirmations.get(position) if self._confirmations else None

    def forget_confirmations(self) -> None:
        """A seek makes acknowledged messages unacknowledged again."""
        self._confirmations = None

    def _make_room(self) -> None:
        if self._room < self._window:
            self._grow()
        else:
            self._retire(self.floor + 1)
            self.floor += 1

    def _retire(self, position: int) -> None:
        slot = position & self._mask
        if self._flags[slot] & RACED:
            self._raced_to = position
        if not self._flags[slot] & STRANGE:
            self.retire(self._epochs[slot], self._seqs[slot])
            return
        strangers = self._strangers = self._strangers or {}
        strangers[self._tokens[slot]] = None
        if len(strangers) > STRANGERS_KEPT:
            del strangers[next(iter(strangers))]

    def _grow(self) -> None:
        """Twice the room. The columns are moved as they are; the chains are made anew."""
        slots = 2 * (self._mask + 1)
        if not slots:
            self._allocate(_SMALLEST)
            return
        kept = range(self.floor + 1, self.frontier + 1)
        tokens = self._tokens = moved(self._tokens, kept, slots)
        self._epochs = moved(self._epochs, kept, slots)
        self._seqs = moved(self._seqs, kept, slots)
        self._numbers = moved(self._numbers, kept, slots)
        self._invoked = moved(self._invoked, kept, slots)
        self._flags = moved(self._flags, kept, slots)
        if self._stamps:
            self._stamps = moved(self._stamps, kept, slots)
        self._make_chains(slots)
        for position in kept:
            self._link(position, tokens[position & self._mask])

    def _stamp(self, slot: int, stamp: int) -> None:
        """Keeps a publish time; most histories state all or none."""
        if not self._stamps:
            self._stamps = array("q", bytes(8 * len(self._tokens)))
        self._stamps[slot] = stamp

    def _widen(self) -> None:
        """Makes room for more than 256 epochs, and for sequence and event numbers beyond 32 bits."""
        self._epochs = array("I", self._epochs)
        self._seqs = array("q", self._seqs)
        self._numbers = array("q", self._numbers)

    def _empty(self) -> None:
        self._room = 0
        self._mask = -1
        self._wrap = 0
        self._tokens = self._seqs = self._numbers = self._stamps = _NO_NUMBERS
        self._heads = self._links = self._epochs = self._flags = _NO_SMALL_NUMBERS
        self._invoked = _NO_TIMES

    def _make_chains(self, slots: int) -> None:
        self._room = min(slots, self._window)
        self._mask = slots - 1
        wide = 2 * slots > _LOW_16_BITS
        self._wrap = _LOW_32_BITS if wide else _LOW_16_BITS
        small, size = ("I", 4) if wide else ("H", 2)
        self._heads = array(small, bytes(size * slots))
        self._links = array(small, bytes(size * slots))

    def _allocate(self, slots: int) -> None:
        self._make_chains(slots)
        self._tokens = array("q", bytes(8 * slots))
        self._epochs = array("B", bytes(slots))
        self._seqs = array("I", bytes(4 * slots))
        self._numbers = array("I", bytes(4 * slots))
        self._stamps = _NO_NUMBERS
        self._invoked = array("d", bytes(8 * slots))
        self._flags = array("H", bytes(2 * slots))
