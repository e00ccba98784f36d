"""Legal histories for the benchmark of the checker: easy ones, as of a healthy subscription, and hard ones.

Each is endless or long, and the same whenever it is made. Deliveries carry a publish time, as the service records it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

from prober.core.events import Acked, Closed, Delivered, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.rules import Mode

KEYS = 16
BURST = 20
STEP_S = 0.02
EPOCH_NS = 1_700_000_000_000_000_000


class History(NamedTuple):
    """A history: `events` creates it; `limited`: whether it is cut to the required number of events."""

    name: str
    mode: Mode
    events: Callable[[], Iterator[Event]]
    limited: bool = True


# --- one record -------------------------------------------------------------------------------------------------------------


def message_id(key: int, seq: int) -> str:
    """Return the service's id of a message."""
    return str(10_000_000_000_000_000 + key * 1_000_000_000 + seq)


def published(t: float, key: int, seqs: range) -> Iterator[Event]:
    """Yield a burst that is published and confirmed."""
    for seq in seqs:
        yield PublishInvoked(t, f"key-{key}", "e1", seq)
    for seq in seqs:
        yield Published(t + 0.004, f"key-{key}", "e1", seq, message_id(key, seq))


def delivered(t: float, session: str, key: int, seq: int) -> Event:
    """Return the delivery of a message."""
    return Delivered(t, "s", f"key-{key}", session, "e1", seq, message_id(key, seq), publish_time=EPOCH_NS + seq)


def acked(t: float, session: str, key: int, seq: int) -> Event:
    """Return the acknowledgement of a message."""
    return Acked(t, "s", f"key-{key}", session, message_id(key, seq))


def nacked(t: float, session: str, key: int, seq: int) -> Event:
    """Return the nack of a message."""
    return Nacked(t, "s", f"key-{key}", session, message_id(key, seq))


# --- easy: bursts on many keys, each delivered to its subscriber and acknowledged -------------------------------------------------


def bursts(deliveries: Callable[[float, int, range, int], Iterator[Event]]) -> Iterator[Event]:
    """Yield a burst on each key in turn; `deliveries` yields its deliveries by time, key, sequence numbers and turn."""
    seqs = [0] * KEYS
    for turn in count(1):
        t, key = STEP_S * turn, turn % KEYS
        burst = range(seqs[key] + 1, seqs[key] + 1 + BURST)
        seqs[key] += BURST
        yield from published(t, key, burst)
        yield from deliveries(t + 0.005, key, burst, turn)


def answered(t: float, session: str, key: int, seqs: range, *, refused: int = 0) -> Iterator[Event]:
    """Yield deliveries of messages at once, and their acknowledgements, except for the nacked `refused`."""
    for seq in seqs:
        yield delivered(t, session, key, seq)
    for seq in seqs:
        yield (nacked if seq == refused else acked)(t + 0.0002, session, key, seq)


def streaming(subscribers: int) -> Iterator[Event]:
    """Yield a history with one subscriber per key. Sometimes a subscriber nacks a message, and gets it again with all later ones."""
    for subscriber in range(subscribers):
        yield Opened(0.0, "s", f"stream-{subscriber}", f"client-{subscriber}")

    def deliveries(t: float, key: int, burst: range, turn: int) -> Iterator[Event]:
        session = f"stream-{key % subscribers}"
        refused = burst[BURST // 2] if turn % 50 == 0 else 0
        yield from answered(t, session, key, burst, refused=refused)
        if refused:
            yield from answered(t + 0.005, session, key, range(refused, burst.stop))

    yield from bursts(deliveries)


def pull() -> Iterator[Event]:
    """Yield a history with one pull response per burst."""

    def deliveries(t: float, key: int, burst: range, turn: int) -> Iterator[Event]:
        yield Opened(t, "s", f"pull-{turn}", f"pull-{turn}")
        yield from answered(t, f"pull-{turn}", key, burst)
        yield Closed(t + 0.0003, "s", f"pull-{turn}")

    return bursts(deliveries)


def push() -> Iterator[Event]:
    """Yield a history of single push requests, each sent after the response to the one before."""

    def deliveries(t: float, key: int, burst: range, turn: int) -> Iterator[Event]:
        for seq in burst:
            request, sent_t = f"request-{turn}-{seq}", t + 0.0005 * (seq - burst.start)
            yield Opened(sent_t, "s", request, request)
            yield from answered(sent_t, request, key, range(seq, seq + 1))
            yield Closed(sent_t + 0.0003, "s", request)

    return bursts(deliveries)


# --- hard: one key --------------------------------------------------------------------------------------------------------------


def long(messages: int = 20_000, streams: int = 2_000) -> Iterator[Event]:
    """Yield a history with a growing backlog in which every stream breaks, and each restarts with the unacknowledged messages."""
    each = messages // streams
    fresh, kept = each // 5, 3
    first = 1
    for stream in range(streams):
        t, session = 30.0 * stream, f"stream-{stream}"
        yield Opened(t, "s", session, "client")
        yield from published(t, 0, range(stream * each + 1, (stream + 1) * each + 1))
        unacked = first + fresh
        for seq in range(first, unacked + kept):
            yield delivered(t + 1.0, session, 0, seq)
        for seq in range(first, unacked):
            yield acked(t + 2.0, session, 0, seq)
        yield Closed(t + 20.0, "s", session)
        first = unacked


def alternating(rounds: int = 10, held: int = 1_000) -> Iterator[Event]:
    """Yield a history of two subscribers: one holds many messages and nacks the first.

    While more messages still reach it, the other one gets them all again.
    """
    for name in ("a", "b"):
        yield Opened(0.0, "s", name, name)
    for turn in range(rounds):
        t = 100.0 * turn
        own, other = ("a", "b") if turn % 2 == 0 else ("b", "a")
        first = 2 * held * turn + 1
        yield from published(t, 0, range(first, first + 2 * held))
        for seq in range(first, first + held):
            yield delivered(t + 0.1, own, 0, seq)
        yield nacked(t + 0.2, own, 0, first)
        for ahead in range(held):
            again_t = t + 0.3 + 0.001 * ahead
            yield delivered(again_t, other, 0, first + ahead)
            yield delivered(again_t, own, 0, first + held + ahead)
        yield from answered(t + 2.0, other, 0, range(first + held, first + 2 * held))
        for seq in range(first, first + held):
            yield acked(t + 3.0, other, 0, seq)


def unacked(messages: int) -> Iterator[Event]:
    """Yield a history without acknowledgements in which every message is delivered twice; it ends before a lease does."""
    yield Opened(0.0, "s", "stream", "client")
    for first in range(1, messages + 1, BURST):
        t, burst = 50.0 * first / messages, range(first, first + BURST)
        yield from published(t, 0, burst)
        for seq in burst:
            yield delivered(t + 0.005, "stream", 0, seq)
            yield delivered(t + 0.005, "stream", 0, seq)


HISTORIES = (
    History("one subscriber", Mode.STREAMING, lambda: streaming(1)),
    History("eight subscribers", Mode.STREAMING, lambda: streaming(8)),
    History("pull", Mode.PULL, pull),
    History("push", Mode.PUSH, push),
    History("long", Mode.STREAMING, long, limited=False),
    History("alternating", Mode.STREAMING, lambda: alternating(1), limited=False),
    History("unacked 8000", Mode.STREAMING, lambda: unacked(8_000), limited=False),
    History("unacked 32000", Mode.STREAMING, lambda: unacked(32_000), limited=False),
)
