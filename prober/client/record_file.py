"""The trace file that a publisher's record is written to, by a thread of its own: whoever records waits for no disk.

What cannot be written is dropped and counted: when more than `QUEUED_MAX` events wait, when the file is full (`bytes_max`), when the disk
is. Behind what was dropped stands `interrupted`, so that a reader of the file knows of the hole.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import BinaryIO, Final

from prober.clock import wall_s
from prober.core.events import Event, Interrupted
from prober.traces.codec import encode_event
from prober.traces.header import TraceHeader, encode_header

QUEUED_MAX: Final = 100_000
BYTES_MAX: Final = 1 << 30
CLOSE_TIMEOUT_S: Final = 5.0
_LINES_AT_ONCE: Final = 1_000


class RecordFile:
    """A trace file that grows. `record` may be called from any thread, never waits and raises nothing; the rest is for one thread."""

    def __init__(self, path: str | os.PathLike[str], name: str, *, bytes_max: int = BYTES_MAX) -> None:
        """Begins the file, or goes on with the one that is there. `name`: the topic. Raises OSError if it cannot be written."""
        self._stream: BinaryIO = open(path, "ab", buffering=0)  # noqa: SIM115  # the thread closes it
        self._room = bytes_max - self._stream.tell()
        self._queue: SimpleQueue[Event | None] = SimpleQueue()
        self._lock = Lock()
        self._latest_t = 0.0
        self._unqueued = self._unwritten = 0
        self._holed = self._closed = False
        header = encode_header(TraceHeader("", "", name=name)) + b"\n"
        self._write(header if not self._stream.tell() else b"\n", 0)  # a line that a killed process left unfinished ends here
        self._thread = Thread(target=self._work, name="publisher's record", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def dropped(self) -> int:
        """How many events are not in the file, and never will be."""
        return self._unqueued + self._unwritten

    def record(self, event: Callable[[float], Event]) -> None:
        """Takes the event that happens now; it is made with the time, in seconds since 1970, which never goes back in the file."""
        with self._lock:  # held for as long as it takes to read a clock
            if self._closed or self._queue.qsize() >= QUEUED_MAX:
                self._unqueued += 1
                self._holed = True
                return
            self._latest_t = max(self._latest_t, wall_s())
            if self._holed:
                self._holed = False
                self._queue.put(Interrupted(self._latest_t))
            self._queue.put(event(self._latest_t))

    def close(self) -> None:
        """Writes what waits, for at most `CLOSE_TIMEOUT_S`, and ends. What is recorded after it is dropped."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        self._queue.put(None)
        self._thread.join(CLOSE_TIMEOUT_S)

    def _work(self) -> None:
        with self._stream:
            while (event := self._queue.get()) is not None:
                events = [event]
                while len(events) < _LINES_AT_ONCE and (more := self._next()) is not None:
                    events.append(more)
                self._write(b"".join(map(self._line, events)), len(events))

    def _next(self) -> Event | None:
        """What waits, without waiting for it; the end is left where it is."""
        try:
            event = self._queue.get_nowait()
        except Empty:
            return None
        if event is None:
            self._queue.put(None)
        return event

    def _line(self, event: Event) -> bytes:
        try:
            return encode_event(event, "", "") + b"\n"
        except Exception:  # text that is no Unicode: the publisher refuses it too
            self._unwritten += 1
            return b""

    def _write(self, lines: bytes, events: int) -> None:
        """Writes whole lines, or none of them."""
        try:
            if len(lines) > self._room:
                raise OSError("the file is full")
            self._room -= self._stream.write(lines)
        except OSError:
            self._unwritten += events
            self._room = 0  # a line may be half written: what follows would hang on to it
