"""Google's publisher with a record of its publishes: the start and the end of each publish, its outcome, and its message id.

    publisher = recorded(PublisherClient(...), topic, "orders.publishes.jsonl")
    publisher.publish(topic, data, ordering_key=account)

Nothing is added to the messages: a message id connects a line of the record with a delivery. The record numbers the publishes of each key
itself, 1, 2, 3, ..., in the order of the calls of one thread: a *writer*, in the words of the checker an epoch. Two threads that publish on
one key at the same time are two writers, and their messages have no order, with one exception: a message that was confirmed before another
publish started must precede it.

A writer remembers at most `KEYS_MAX` keys; then it restarts as another writer.

A separate thread writes the record, so publishers do not wait for the disk. Events that cannot be written are dropped and counted: when
more than `QUEUED_MAX` events wait, when the file is full (`bytes_max`), or when the disk is full. An `interrupted` event replaces the
dropped ones, so that a reader of the file knows of the gap.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol, Self

from prober.clock import random_name, wall_s
from prober.core.events import Event, Interrupted, Published, PublishInvoked, PublishUnknown
from prober.traces.codec import encode_event
from prober.traces.header import TraceHeader, encode_header

KEYS_MAX: Final = 10_000
_RECORD_DIGITS: Final = 8
QUEUED_MAX: Final = 100_000
BYTES_MAX: Final = 1 << 30
CLOSE_TIMEOUT_S: Final = 5.0
STOP_TIMEOUT_S: Final = 60.0
_LINES_AT_ONCE: Final = 1_000


class GooglePublisher(Protocol):
    """The used part of google.cloud.pubsub_v1.PublisherClient."""

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **options: Any) -> Future[str]:
        """Publish a message; the result of the future is its id."""

    def stop(self) -> None:
        """Send the pending messages."""


class RecordedPublisher:
    """A publisher with a record; calls and attributes without a record pass to the publisher unchanged. For any thread."""

    def __init__(self, publisher: GooglePublisher, topic: str, file: RecordFile, region: str) -> None:
        self._publisher, self._topic, self._file, self._region = publisher, topic, file, region
        self._record = random_name(_RECORD_DIGITS)
        self._here = threading.local()
        self._pending, self._settled = 0, threading.Condition()

    @property
    def dropped(self) -> int:
        """The number of dropped events of the record: too many were waiting, or the file could not be written."""
        return self._file.dropped

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **options: Any) -> Future[str]:
        """Publish like the publisher, with the same result and the same errors."""
        if topic != self._topic or not ordering_key or not isinstance(data, bytes):
            return self._publisher.publish(topic, data, ordering_key=ordering_key, **options)
        epoch, seq = self._number(ordering_key)
        self._file.record(lambda t: PublishInvoked(t, ordering_key, epoch, seq, size=len(data), region=self._region))
        try:
            future = self._publisher.publish(topic, data, ordering_key=ordering_key, **options)
        except BaseException:
            self._file.record(lambda t: PublishUnknown(t, ordering_key, epoch, seq))
            raise
        with self._settled:
            self._pending += 1
        future.add_done_callback(partial(self._ended, ordering_key, epoch, seq))
        return future

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the publisher, and close the record after the pending publishes have ended, at most `timeout_s` seconds later.

        The publisher of Google ends pending publishes when it stops, with a confirmation or an error, and does not wait for that.
        """
        self._publisher.stop()
        with self._settled:
            self._settled.wait_for(lambda: not self._pending, timeout_s)
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._publisher, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _number(self, key: str) -> tuple[str, int]:
        """Return the writer of this thread, and the number of its next publish on a key."""
        here = self._here
        numbers: dict[str, int] | None = getattr(here, "numbers", None)
        if numbers is None or (len(numbers) >= KEYS_MAX and key not in numbers):
            numbers = here.numbers = {}
            here.writer = f"{self._record}-{random_name(_RECORD_DIGITS)}"
        numbers[key] = number = numbers.get(key, 0) + 1
        return here.writer, number

    def _ended(self, key: str, epoch: str, seq: int, future: Future[str]) -> None:
        failed = future.cancelled() or future.exception() is not None
        message_id = "" if failed else future.result()
        self._file.record(lambda t: Published(t, key, epoch, seq, message_id) if message_id else PublishUnknown(t, key, epoch, seq))
        with self._settled:
            self._pending -= 1
            self._settled.notify_all()


def recorded(
    publisher: GooglePublisher, topic: str, path: str | os.PathLike[str], *, region: str = "", bytes_max: int = BYTES_MAX
) -> RecordedPublisher:
    """Return a publisher that records its publishes on ordering keys of one topic, `projects/PROJECT/topics/NAME`, in a trace file.

    No publish waits for the record or fails because of it: events that cannot be written are dropped and counted (`dropped`). The file
    grows to `bytes_max` bytes at most; an existing file is continued. `region`: the publishing region, if the publisher publishes in one
    region and others do not. Call `stop` at the end. Raises OSError if the file cannot be opened for writing.
    """
    return RecordedPublisher(publisher, topic, RecordFile(path, topic, bytes_max=bytes_max), region)


class RecordFile:
    """A growing trace file. Any thread may call `record`, which never waits or raises; the rest is for one thread."""

    def __init__(self, path: str | os.PathLike[str], name: str, *, bytes_max: int = BYTES_MAX) -> None:
        """Create the file, or continue an existing one. `name`: the topic. Raises OSError if it cannot be written."""
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
        """The number of events that were not and will not be written."""
        return self._unqueued + self._unwritten

    def record(self, event: Callable[[float], Event]) -> None:
        """Record an event of now, created with the time in seconds since 1970, which never goes back in the file."""
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
        """Write the pending events, for at most `CLOSE_TIMEOUT_S`, and close the file. Later events are dropped."""
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
        """Return the next queued event without waiting, else None; leave the end mark in the queue."""
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
        """Write whole lines, or none of them."""
        try:
            if len(lines) > self._room:
                raise OSError("the file is full")
            self._room -= self._stream.write(lines)
        except OSError:
            self._unwritten += events
            self._room = 0  # a line may be half written: later lines would be appended to it
