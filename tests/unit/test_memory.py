"""A trace file streams through the checker: more than three times the events do not take more memory."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator

from prober.core.events import Acked, Closed, Delivered, Event, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.traces.codec import encode_event
from prober.traces.header import TraceHeader, encode_header
from prober.traces.trace import read_trace
from prober.traces.verification import verify_trace

KEYS = 10
EVENTS_PER_MESSAGE = 4
MESSAGES_PER_SESSION = 50  # so many sessions that those which the checker remembers are there early
WINDOW = 64
GROWTH_BYTES_MAX = 1 << 18  # not 4 bytes for each of the 70,000 events more


class GeneratedFile(io.BytesIO):
    """A file that is never in memory as a whole: lines come from a generator."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        super().__init__()
        self._lines = lines

    def read1(self, size: int | None = -1, /) -> bytes:
        return next(self._lines, b"")


def traffic(messages: int) -> Iterator[Event]:
    """Messages to several keys, each published, delivered and acknowledged in turn; a new session every now and then."""
    for number in range(messages):
        t, key, seq, session = float(number), f"k{number % KEYS}", number // KEYS + 1, f"A{number // MESSAGES_PER_SESSION}"
        message_id = f"m{number}"
        if number % MESSAGES_PER_SESSION == 0:
            if number:
                yield Closed(t, "s", f"A{number // MESSAGES_PER_SESSION - 1}")
            yield Opened(t, "s", session, "A")
        yield PublishInvoked(t, key, "e", seq)
        yield Published(t + 0.05, key, "e", seq, message_id)
        yield Delivered(t + 0.1, "s", key, session, "e", seq, message_id)
        yield Acked(t + 0.15, "s", key, session, message_id)


def lines(messages: int) -> Iterator[bytes]:
    yield encode_header(TraceHeader("s", "k", Rules(window=WINDOW))) + b"\n"
    for event in traffic(messages):
        yield encode_event(event, "s", "k") + b"\n"


def peak_bytes(events: int) -> int:
    messages = events // EVENTS_PER_MESSAGE
    tracemalloc.start()
    try:
        trace = read_trace(GeneratedFile(lines(messages)), "generated")
        verification = verify_trace("generated", trace.header, trace)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert verification.events >= events
    assert verification.verdict is Verdict.PASS
    return peak


def test_memory_does_not_grow_with_the_file() -> None:
    """The checker tidies up now and then, so its size goes up and down; what each further event leaves behind would add up."""
    assert peak_bytes(100_000) - peak_bytes(30_000) < GROWTH_BYTES_MAX
