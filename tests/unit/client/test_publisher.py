"""What a publisher's record says, and that it never is in the publisher's way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from prober.client import publisher as module
from prober.client import recorded
from prober.core.events import Event, Interrupted, Published, PublishInvoked, PublishUnknown
from prober.traces.trace import read_trace

TOPIC = "projects/p/topics/orders"


class Publishing:
    """Stands in for Google's publisher: its futures are ended by the test."""

    def __init__(self) -> None:
        self.futures: list[Future[str]] = []
        self.published: list[tuple[str, bytes, str, dict[str, Any]]] = []
        self.stopped = False
        self.project = "p"

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **options: Any) -> Future[str]:
        if data == b"too large":
            raise ValueError("too large")
        self.published.append((topic, data, ordering_key, options))
        self.futures.append(Future())
        return self.futures[-1]

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "publishes.jsonl"


@pytest.fixture
def theirs() -> Publishing:
    return Publishing()


@pytest.fixture
def ours(theirs: Publishing, path: Path) -> Iterator[module.RecordedPublisher]:
    with recorded(theirs, TOPIC, path) as publisher:
        yield publisher
        for future in theirs.futures:
            future.cancel()


def read(path: Path) -> list[Event]:
    with read_trace(path) as reader:
        assert reader.header.name == TOPIC
        return list(reader)


def test_a_record_of_what_became_of_each(ours: module.RecordedPublisher, theirs: Publishing, path: Path) -> None:
    for key in ("a", "a", "b", "a"):
        ours.publish(TOPIC, b"12345", ordering_key=key, account="7", timeout=3)
    theirs.futures[0].set_result("101")
    theirs.futures[2].set_exception(TimeoutError())
    theirs.futures[3].cancel()
    ours.stop(0.0)
    assert theirs.stopped
    assert theirs.published[0] == (TOPIC, b"12345", "a", {"account": "7", "timeout": 3})
    events = read(path)
    assert [(event.key, event.seq, event.size) for event in events if isinstance(event, PublishInvoked)] == [
        ("a", 1, 5),
        ("a", 2, 5),
        ("b", 1, 5),
        ("a", 3, 5),
    ]
    assert [(event.key, event.seq, event.message_id) for event in events if isinstance(event, Published)] == [("a", 1, "101")]
    assert [(event.key, event.seq) for event in events if isinstance(event, PublishUnknown)] == [("b", 1), ("a", 3)]
    assert len({event.epoch for event in events if isinstance(event, PublishInvoked)}) == 1
    assert ours.dropped == 0


def test_errors_are_the_publisher_s(ours: module.RecordedPublisher, path: Path) -> None:
    with pytest.raises(ValueError, match="too large"):
        ours.publish(TOPIC, b"too large", ordering_key="a")
    ours.stop(0.0)
    assert [type(event) for event in read(path)] == [PublishInvoked, PublishUnknown]


def test_what_is_on_no_key_or_another_topic_is_left_alone(ours: module.RecordedPublisher, theirs: Publishing, path: Path) -> None:
    ours.publish(TOPIC, b"")
    ours.publish("projects/p/topics/other", b"", ordering_key="a")
    ours.publish(TOPIC, "text", ordering_key="a")  # type: ignore[arg-type]
    ours.stop(0.0)
    assert len(theirs.published) == 3
    assert read(path) == []


def test_all_else_is_the_publisher_s(ours: module.RecordedPublisher) -> None:
    assert ours.project == "p"
    with pytest.raises(AttributeError):
        _ = ours.nothing


def test_each_thread_is_a_writer(ours: module.RecordedPublisher, path: Path) -> None:
    for _ in range(2):
        thread = threading.Thread(target=ours.publish, args=(TOPIC, b"", "a"))
        thread.start()
        thread.join()
    ours.publish(TOPIC, b"", "a")
    ours.stop(0.0)
    begun = [event for event in read(path) if isinstance(event, PublishInvoked)]
    assert len({event.epoch for event in begun}) == 3
    assert {event.seq for event in begun} == {1}


def test_a_writer_of_many_keys_begins_anew(ours: module.RecordedPublisher, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEYS_MAX", 2)
    for key in ("a", "b", "a", "c", "a"):
        ours.publish(TOPIC, b"", key)
    ours.stop(0.0)
    begun = [event for event in read(path) if isinstance(event, PublishInvoked)]
    assert [(event.key, event.seq) for event in begun] == [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("a", 1)]
    assert begun[2].epoch != begun[4].epoch


def test_time_never_goes_back(ours: module.RecordedPublisher, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5.0, 3.0, 7.0])
    monkeypatch.setattr(module, "wall_s", lambda: next(times))
    for _ in range(3):
        ours.publish(TOPIC, b"", "a")
    ours.stop(0.0)
    assert [event.t for event in read(path)] == [5.0, 5.0, 7.0]


def test_a_record_is_continued_also_behind_half_a_line(theirs: Publishing, path: Path) -> None:
    for _ in range(2):
        publisher = recorded(theirs, TOPIC, path)
        publisher.publish(TOPIC, b"", "a")
        publisher.stop(0.0)
        with path.open("ab") as file:
            file.write(b'{"t": 1')
    unread = []
    with read_trace(path) as reader:
        events = list(reader.readable(lambda: unread.append(1)))
    assert [type(event) for event in events] == [PublishInvoked] * 2
    assert len(unread) == 2


def test_what_cannot_be_queued_is_counted_and_leaves_a_mark(
    ours: module.RecordedPublisher, theirs: Publishing, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUEUED_MAX", 0)
    ours.publish(TOPIC, b"", "a")
    assert ours.dropped == 1
    assert len(theirs.published) == 1
    monkeypatch.setattr(module, "QUEUED_MAX", 10)
    ours.publish(TOPIC, b"", "a")
    ours.stop(0.0)
    ours.publish(TOPIC, b"", "a")
    assert ours.dropped == 2
    assert [type(event) for event in read(path)] == [Interrupted, PublishInvoked]


def test_a_full_file_is_counted(theirs: Publishing, path: Path) -> None:
    publisher = recorded(theirs, TOPIC, path, bytes_max=1_000)
    for _ in range(100):
        publisher.publish(TOPIC, b"", "a")
    publisher.stop(0.0)
    assert publisher.dropped == 100 - len(read(path))
    assert path.stat().st_size <= 1_000
    assert len(theirs.published) == 100


def test_what_has_no_form_in_a_file_is_counted(ours: module.RecordedPublisher, path: Path) -> None:
    ours.publish(TOPIC, b"", "\ud800")
    ours.publish(TOPIC, b"", "a")
    ours.stop(0.0)
    assert ours.dropped == 1
    assert len(read(path)) == 1


def test_a_file_that_cannot_be_written_is_reported_at_once(theirs: Publishing, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no"):
        recorded(theirs, TOPIC, tmp_path / "no" / "file")


def test_the_record_ends_when_pending_publishes_have_ended(ours: module.RecordedPublisher, theirs: Publishing, path: Path) -> None:
    ours.publish(TOPIC, b"12345", ordering_key="a")
    stopping = threading.Thread(target=ours.stop)
    stopping.start()
    theirs.futures[0].set_result("101")
    stopping.join()
    assert [event.message_id for event in read(path) if isinstance(event, Published)] == ["101"]
