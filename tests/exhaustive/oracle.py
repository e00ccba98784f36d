"""A brute-force verifier of small histories: is there any legal way in which the service can have sent them?

It knows only the specification (sections 3.1 to 3.4) and tries every possibility. It shares no idea with the checker: no state that
is carried along, no frontier, no candidates for a predecessor, no verdict that is put off. Three questions are answered.

`step_legal(deliveries)`: the positions are given. Is there a total order of the sends that extends every session's order (D1) and
every certain precedence (D2: `received + eps < not_before` of the later one), begins at position 1 and never steps up by more than
one (D3)? The answer is exact: all orders are searched, and nothing else is asked for.

`record_legal(records, publishes, ids)`: the positions are *not* given. Is there an admissible log (L1 to L4) whose positions make the
deliveries legal? All permutations of the delivered records are tried. A record that was stored and never delivered may not lie below
a delivered one, because the sends would have to step over it (what was sent and lost was not acknowledged, hence is sent again before
its successors); so the log may be taken to be the delivered records followed by the rest, and this loses nothing.

`service_legal(history, limits)`: the holder rule (D4) as well. The service's side is searched: the order of the sends and, for
each, the time of the send. Every constraint on the time of a send is a lower bound that grows with the times of earlier sends (it
was not sent before `not_before`, nor before its predecessor, nor before every message of another owner was released), and the only
upper bound is the receipt. Sending each as early as possible is therefore optimal for a given order, and trying all orders makes
the search exact.
A message is released (section 3.3) by its acknowledgement (not before that is sent) or by a rewind to its position or below. A
rewind may have any reason or none, and may take the key to another owner: delivery is at least once, so the service may lose track of
everything that is held and start again at the lowest of it, or below. (So above something that is held nobody else is sent anything.)

With exactly-once delivery it may not. There a rewind that takes the key to another owner begins at or below a message that was
*dropped*, and a message that is held is not sent again, unless a rewind to something below it had dropped it. Dropped is:
negatively acknowledged, at the end of its lease (not before send + D0), or lost with its session (not before close -
Delta_close, and nothing is sent on that session later). One delivery is not both acknowledged, to let a successor go elsewhere,
and dropped, to restart below it, nor dropped twice; but its acknowledgement may be lost, or applied so late that it counts for
a later delivery of the same message (section 5.7), up to ack_lag after it was sent. In push an answer belongs to its request.

What was acknowledged on an earlier delivery has to be *sent* again in a run, not received: it may be sent into a stream that is
dead already, or closed before it arrives, and then need not be redelivered, since it is acknowledged. (With exactly-once delivery
nothing is sent again that was acknowledged.) So besides the sends that were received the search tries runs of such *lost*
sends, at the end of each stream that closes. What was not acknowledged is sent again by itself.

That a dropped message means a restart at or below it, before anybody else gets anything above it, is the reading of Lemma 1 ("by a
release, and then the run restarts at <= a"). Section 3.3 alone would also let a service drop 1 of A, move on to C with 2, and only
then take 1 to B; both receipts may then come in either order, and B seems to hold 1 while C gets 2.

**Which log?** `step_legal` needs positions, the checker learns them from first receipts. By Lemma 1 of the specification both agree on
every history that obeys D1 to D4; without D4 they need not (message 1 to one subscriber, 2 to another at once, 2 arrives first: D1 to
D3 are content). So the claims must be, and are, four:

* where messages are first received in log order (the n-th new message has position n), a history that `step_legal` accepts has no
  violation of order or redelivery;
* in a single session, where the send order is the order of arrival, `step_legal` and `record_legal` decide exactly: what they refuse
  must be found, what they accept must not be;
* any history, also one in which messages are first received out of order, that `service_legal` accepts has no violation at all.
  Running it over *all* sequences of positions also verifies Lemma 1: it accepts none that is first received out of log order (as long
  as every owner has one session);
* where all sessions are streams of one owner, they race, and the log may be first received in any order: there any history, also one
  that is first received out of log order, that `step_legal` accepts has no violation at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, permutations, product
from math import inf
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Receipt:
    """A delivery: `not_before` is the earliest moment at which it can have been sent (lo of section 3.2)."""

    session: str
    position: int
    received: float
    not_before: float


def predecessors(deliveries: Sequence[Receipt], clock_error: float = 0.0) -> list[int]:
    """For each delivery, as a bit set, the deliveries that provably were sent before it (D1 and D2)."""
    return [
        sum(
            1 << i
            for i, x in enumerate(deliveries)
            if (i < j and x.session == y.session) or (i != j and x.received + clock_error < y.not_before)
        )
        for j, y in enumerate(deliveries)
    ]


def step_legal(deliveries: Sequence[Receipt], clock_error: float = 0.0) -> bool:
    """Is there a send order that obeys D1, D2 and D3?"""
    before = predecessors(deliveries, clock_error)
    everything = (1 << len(deliveries)) - 1
    states = {(0, 0)}  # the deliveries sent so far, and the position of the last of them
    for _ in deliveries:
        states = {
            (sent | 1 << j, y.position)
            for sent, last in states
            for j, y in enumerate(deliveries)
            if not sent >> j & 1 and not before[j] & ~sent and 1 <= y.position <= last + 1
        }
    return any(sent == everything for sent, _ in states)


@dataclass(frozen=True, slots=True)
class Publish:
    """A publish of one sequence number; `primary` is the record that it was confirmed with."""

    seq: int
    invoked: float
    confirmed: float | None = None
    primary: str | None = None


def record_legal(records: Mapping[str, int], publishes: Sequence[Publish], ids: Sequence[str]) -> bool:
    """Is there an admissible log in which the deliveries `ids` of one session obey the step rule?

    `records` names the sequence number of every record that may exist.
    """
    return any(_steps(log, ids) for log in _admissible_logs(records, publishes, set(ids)))


def _steps(log: Sequence[str], ids: Sequence[str]) -> bool:
    position = {record: rank for rank, record in enumerate(log, 1)}
    last = 0
    for record in ids:
        if position[record] > last + 1:
            return False
        last = position[record]
    return True


def _admissible_logs(records: Mapping[str, int], publishes: Sequence[Publish], delivered: set[str]) -> Iterator[Sequence[str]]:
    by_seq = {publish.seq: publish for publish in publishes}
    primaries = [publish.primary for publish in publishes if publish.primary is not None]
    rest = [record for record in primaries if record not in delivered]
    for log in permutations(sorted(delivered)):
        if _admissible([*log, *rest], records, by_seq):
            yield log


def _admissible(log: Sequence[str], records: Mapping[str, int], publishes: Mapping[int, Publish]) -> bool:
    """L1, L3 and L4: appended after the invocation, primaries in session order, nothing before what had completed earlier."""
    last_primary, latest_invocation = 0, -inf
    for record in log:
        publish = publishes[records[record]]
        latest_invocation = max(latest_invocation, publish.invoked)
        if publish.primary != record:
            continue
        assert publish.confirmed is not None
        if publish.seq < last_primary or publish.confirmed < latest_invocation:
            return False
        last_primary = publish.seq
    return True


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement as the client sent it: it names a session and a message, not a delivery."""

    session: str
    position: int
    sent: float


@dataclass(frozen=True, slots=True)
class Sent:
    """A delivery with everything that may end its hold, as the client knows it; `inf` stands for never.

    `ack` is the acknowledgement that counts for it, in one of the possibilities that are tried. `lost`: it was never received, and had
    been acknowledged on an earlier delivery, so that it need not be redelivered when its stream is gone.
    """

    receipt: Receipt
    owner: str
    nacked: float = inf
    closed: float = inf
    ack: Ack | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of the holder rule, and how the subscription is consumed."""

    lease: float
    delay: float = 1.0
    ack_lag: float = 0.0
    close_detection: float = 0.0
    one_session_per_owner: bool = False  # pull and push: no rewind inside a session, hence no rewind by the same owner
    exactly_once: bool = False
    one_message_at_a_time: bool = False  # push: what was not answered with success is sent again before anything above it


def service_legal(history: Sequence[Sent], acks: Sequence[Ack], limits: Limits) -> bool:
    """Is there an order and a timing of the sends that obeys D1 to D4?"""
    fates = [_fated(history, acks, fate) for fate in product(*[_fates(history, ack, limits) for ack in acks])]
    if any(_Search(fated, limits).run() for fated in fates):
        return True
    return any(_Search([*fated, *lost], limits).run() for lost in _losses(history, acks, limits) for fated in fates)


def _losses(history: Sequence[Sent], acks: Sequence[Ack], limits: Limits) -> Iterator[list[Sent]]:
    """Every run of acknowledged messages that may have been sent again on a stream at its end, and been lost with it."""
    closed = {sent.receipt.session: sent for sent in history if sent.closed < inf and not limits.exactly_once}
    for session, one in closed.items():
        for first, last in combinations_with_replacement(sorted({ack.position for ack in acks}), 2):
            run = [_lost(session, one, position, acks, limits) for position in range(first, last + 1)]
            if all(sent.receipt.not_before <= one.closed for sent in run):
                yield run


def _lost(session: str, one: Sent, position: int, acks: Sequence[Ack], limits: Limits) -> Sent:
    acked = min((ack.sent for ack in acks if ack.position == position), default=inf)
    not_before = max(acked, one.closed - limits.close_detection - limits.delay)
    return Sent(Receipt(session, position, one.closed, not_before), one.owner, closed=one.closed, lost=True)


def _fates(history: Sequence[Sent], ack: Ack, limits: Limits) -> list[int | None]:
    """Which delivery an acknowledgement counts for: one that it was sent for, another one of the same message, or none."""
    return [
        None,
        *(
            place
            for place, sent in enumerate(history)
            if sent.receipt.position == ack.position and (_may_answer(ack, sent.receipt) or not limits.one_message_at_a_time)
        ),
    ]


def _may_answer(ack: Ack, receipt: Receipt) -> bool:
    return (ack.session, ack.position) == (receipt.session, receipt.position) and receipt.received <= ack.sent


def _fated(history: Sequence[Sent], acks: Sequence[Ack], fate: Sequence[int | None]) -> list[Sent]:
    fated = list(history)
    for ack, target in zip(acks, fate, strict=True):
        if target is not None:
            fated[target] = replace(fated[target], ack=ack)
    return fated


Order: TypeAlias = tuple[int, ...]
Times: TypeAlias = tuple[float, ...]


class _Search:
    """Depth-first search over the orders of the sends, each send as early as it can be."""

    def __init__(self, history: Sequence[Sent], limits: Limits) -> None:
        self._history = history
        self._limits = limits
        self._before = predecessors([sent.receipt for sent in history])

    def run(self) -> bool:
        return self._extend((), ())

    def _extend(self, order: Order, times: Times) -> bool:
        if len(order) == len(self._history):
            return True
        sent = sum(1 << i for i in order)
        for j in range(len(self._history)):
            if sent >> j & 1 or self._before[j] & ~sent or not self._step(order, j):
                continue
            time = self._earliest(order, times, j)
            if time <= self._history[j].receipt.received and self._extend((*order, j), (*times, time)):
                return True
        return False

    def _step(self, order: Order, j: int) -> bool:
        y = self._history[j].receipt
        last = self._history[order[-1]].receipt if order else Receipt("", 0, 0, 0)
        if self._limits.one_session_per_owner and any(self._history[i].receipt.session == y.session for i in order):
            return last.session == y.session and y.position == last.position + 1
        return y.position <= last.position + 1

    def _earliest(self, order: Order, times: Times, j: int) -> float:
        z = self._history[j]
        earliest = max(z.receipt.not_before, times[-1] if times else -inf)
        holds = list(self._foreign_holds(order, z.owner))
        for place in holds:
            earliest = max(earliest, self._released(order, times, holds, place, j))
        if self._limits.exactly_once:
            earliest = max(earliest, self._not_outstanding(order, times, j))
        if self._limits.one_message_at_a_time and order:
            earliest = max(earliest, self._answered(order, times, j))
        return earliest

    def _not_outstanding(self, order: Order, times: Times, j: int) -> float:
        """Exactly-once: when the latest send of the same message can be over, unless a rewind to below it had dropped it before."""
        position = self._history[j].receipt.position
        for place in range(len(order) - 1, -1, -1):
            earlier = self._history[order[place]].receipt.position
            if earlier == position:
                return min(self._acknowledged(order, times, place), self._dropped(order, times, place, j))
            if earlier < position:
                break
        return -inf

    def _foreign_holds(self, order: Order, owner: str) -> Iterator[int]:
        """The places of the sends whose holds must be over before `owner` is sent anything.

        Those before the last change of owner were over at that change, and a rewind of the same owner dropped what lay above it.
        """
        rewound_to = inf
        for place in range(len(order) - 1, -1, -1):
            y = self._history[order[place]]
            if y.owner == owner or y.owner != self._history[order[-1]].owner:
                return
            if y.receipt.position < rewound_to:
                yield place
            rewound_to = min(rewound_to, y.receipt.position)

    def _released(self, order: Order, times: Times, holds: list[int], place: int, j: int) -> float:
        """The earliest time at which the hold begun at `place` can be over for the sake of send `j` of another owner."""
        y, z = self._history[order[place]], self._history[j]
        if not self._limits.exactly_once:
            return -inf if z.receipt.position <= y.receipt.position else self._acknowledged(order, times, place)
        restarts = (
            self._dropped(order, times, cause, j)
            for cause in ([place] if self._limits.one_message_at_a_time else holds)
            if z.receipt.position <= self._history[order[cause]].receipt.position <= y.receipt.position
        )
        return min(self._acknowledged(order, times, place), min(restarts, default=inf))

    def _acknowledged(self, order: Order, times: Times, place: int) -> float:
        """When the acknowledgement that counts for this delivery can have been applied.

        It was sent for this delivery, or for one that was sent before and comes late (section 5.7), up to ack_lag after it was sent.
        """
        y, time = self._history[order[place]], times[place]
        if y.lost:
            return max(time, y.closed - self._limits.close_detection)
        if y.ack is None or time > y.ack.sent + self._limits.ack_lag:
            return inf
        answered = any(_may_answer(y.ack, self._history[i].receipt) for i in order[: place + 1])
        return max(time, y.ack.sent) if answered else inf

    def _dropped(self, order: Order, times: Times, place: int, j: int) -> float:
        """The earliest time at which the service can have given up the send at `place`, which it cannot once it is acknowledged."""
        x = self._history[order[place]]
        if x.ack is not None:
            return inf
        unsent = (sent for i, sent in enumerate(self._history) if i not in order)
        lost = inf if any(u.receipt.session == x.receipt.session for u in unsent) else x.closed - self._limits.close_detection
        return min(x.nacked, times[place] + self._limits.lease, lost)

    def _answered(self, order: Order, times: Times, j: int) -> float:
        """Push: nothing above an unanswered or refused message is sent, at no time."""
        x, z = self._history[order[-1]], self._history[j]
        return self._acknowledged(order, times, len(order) - 1) if z.receipt.position > x.receipt.position else -inf
