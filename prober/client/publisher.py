"""Google's publisher with a record of what it publishes: when each publish began, when and how it ended, and its message id.

    publisher = recorded(PublisherClient(...), topic, "orders.publishes.jsonl")
    publisher.publish(topic, data, ordering_key=account)

Nothing is added to the messages: a message id is what ties a line of the record to a delivery. The record numbers the publishes of each
key itself, 1, 2, 3, ..., in the order of the calls of one thread: a *writer*, in the words of the checker an epoch. Two threads that
publish on one key at the same time are two writers, and nothing is said about the order between them save that what was confirmed before
another publish began must come before it.

A writer remembers at most `KEYS_MAX` keys; then it begins anew, as another one.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self

from prober.client.record_file import BYTES_MAX, RecordFile
from prober.clock import chance_name
from prober.core.events import Published, PublishInvoked, PublishUnknown

KEYS_MAX: Final = 10_000
_RECORD_DIGITS: Final = 8


class Publisher(Protocol):
    """What is used of google.cloud.pubsub_v1.PublisherClient."""

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **options: Any) -> Future[str]:
        """Takes a message; the future has its id."""

    def stop(self) -> None:
        """Sends what waits."""


class RecordedPublisher:
    """A publisher with a record; whatever it is not asked to record goes to the publisher as it is. For any thread."""

    def __init__(self, publisher: Publisher, topic: str, file: RecordFile, region: str) -> None:
        self._publisher, self._topic, self._file, self._region = publisher, topic, file, region
        self._record = chance_name(_RECORD_DIGITS)
        self._here = threading.local()

    @property
    def dropped(self) -> int:
        """How many events of the record were dropped: more than could be written waited, or the file could not be written."""
        return self._file.dropped

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **options: Any) -> Future[str]:
        """As that of the publisher, with the same result and the same errors."""
        if topic != self._topic or not ordering_key or not isinstance(data, bytes):
            return self._publisher.publish(topic, data, ordering_key=ordering_key, **options)
        epoch, seq = self._number(ordering_key)
        self._file.record(lambda t: PublishInvoked(t, ordering_key, epoch, seq, size=len(data), region=self._region))
        try:
            future = self._publisher.publish(topic, data, ordering_key=ordering_key, **options)
        except BaseException:
            self._file.record(lambda t: PublishUnknown(t, ordering_key, epoch, seq))
            raise
        future.add_done_callback(partial(self._ended, ordering_key, epoch, seq))
        return future

    def stop(self) -> None:
        """Stops the publisher, which sends what waits, and ends the record."""
        self._publisher.stop()
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._publisher, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _number(self, key: str) -> tuple[str, int]:
        """The writer that this thread is, and the number of its next publish on a key."""
        here = self._here
        numbers: dict[str, int] | None = getattr(here, "numbers", None)
        if numbers is None or (len(numbers) >= KEYS_MAX and key not in numbers):
            numbers = here.numbers = {}
            here.writer = f"{self._record}-{chance_name(_RECORD_DIGITS)}"
        numbers[key] = number = numbers.get(key, 0) + 1
        return here.writer, number

    def _ended(self, key: str, epoch: str, seq: int, future: Future[str]) -> None:
        """A publish ended, in whatever thread."""
        failed = future.cancelled() or future.exception() is not None
        message_id = "" if failed else future.result()
        self._file.record(lambda t: Published(t, key, epoch, seq, message_id) if message_id else PublishUnknown(t, key, epoch, seq))


def recorded(
    publisher: Publisher, topic: str, path: str | os.PathLike[str], *, region: str = "", bytes_max: int = BYTES_MAX
) -> RecordedPublisher:
    """A publisher that records what it publishes on ordering keys of one topic, `projects/PROJECT/topics/NAME`, into a trace file.

    No publish waits for the record or fails because of it: what cannot be written is dropped and counted (`dropped`). The file grows to
    `bytes_max` bytes at most; one that is there is continued. `region`: where the publisher publishes, if it publishes in one region and
    others do not. Call `stop` at the end. Raises OSError if the file cannot be written at all.
    """
    return RecordedPublisher(publisher, topic, RecordFile(path, topic, bytes_max=bytes_max), region)
