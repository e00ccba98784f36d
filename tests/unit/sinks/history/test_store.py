"""Where a history is kept, and how long."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from prober.sinks.history.store import HistoryError, HistoryRetention, HistoryStore, Stored, end_of, enforce

HOUR = "events/date=2026-01-02/hour=03"
NAME = "events-p-00000001.parquet"


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return HistoryStore(str(tmp_path))


def put(store: HistoryStore, path: str, size: int = 1) -> None:
    store.write(path, pa.py_buffer(b"x" * size))


def names(store: HistoryStore) -> list[str]:
    return sorted(file.path for file in store.contents())


def test_what_is_written_is_there_and_nothing_else(store: HistoryStore, tmp_path: Path) -> None:
    put(store, f"{HOUR}/{NAME}", 3)
    put(store, f"{HOUR}/{NAME}", 5)
    assert list(store.contents()) == [Stored(f"{HOUR}/{NAME}", 5)]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [NAME]


def test_what_cannot_be_brought_to_the_disk_does_not_appear(
    store: HistoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="broken disk"):
        put(store, f"{HOUR}/{NAME}")
    assert names(store) == []


def test_what_is_not_ours_is_not_listed(store: HistoryStore, tmp_path: Path) -> None:
    put(store, f"{HOUR}/{NAME}")
    for other in (
        f"{HOUR}/.{NAME}.tmp",
        f"{HOUR}/part-0.parquet",
        "elsewhere/events-p-00000001.parquet",
        "_spool/p/00000001.spool",
    ):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).touch()
    assert names(store) == [f"{HOUR}/{NAME}"]
    assert store.folders("events") == ["events/date=2026-01-02"]
    assert store.folders("nowhere") == []


def test_deleting_leaves_no_empty_folders_and_may_be_repeated(store: HistoryStore, tmp_path: Path) -> None:
    put(store, f"{HOUR}/{NAME}")
    put(store, "runs/date=2026-01-02/runs-p-00000001.parquet")
    store.delete(f"{HOUR}/{NAME}")
    store.delete(f"{HOUR}/{NAME}")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    store.delete("runs/date=2026-01-02/runs-p-00000001.parquet")
    assert tmp_path.exists()


def test_a_file_location_is_a_folder(tmp_path: Path) -> None:
    put(HistoryStore(tmp_path.as_uri()), f"{HOUR}/{NAME}")
    assert (tmp_path / HOUR / NAME).exists()


@pytest.mark.parametrize("location", ["ftp://a/b", "s3://bucket/h?colour=red&region=x"])
def test_a_location_that_can_be_none_is_refused_in_one_line(location: str) -> None:
    with pytest.raises(HistoryError, match=r"^no history can be kept at [^\n]+$"):
        HistoryStore(location)


def test_object_stores_take_a_file_in_one_request_and_give_up_soon() -> None:
    bucket = HistoryStore("s3://bucket/h?region=x").files
    assert bucket.base_fs.type_name == "s3"
    assert bucket.base_fs.__reduce__()[1][0]["allow_delayed_open"]
    assert HistoryStore("gs://anonymous@bucket/h").files.base_path == "bucket/h/"


# --- retention ---------------------------------------------------------------------------------------------------------------

NOW = datetime(2026, 1, 10, 12, 30, tzinfo=UTC)
FOREVER = timedelta(days=1000)


def hour(day: int, hour: int, name: str = NAME) -> str:
    return f"events/date=2026-01-{day:02}/hour={hour:02}/{name}"


def test_folders_know_their_end() -> None:
    assert end_of("events/date=2026-01-02/hour=03") == datetime(2026, 1, 2, 4, tzinfo=UTC)
    assert end_of("events/date=2026-01-02/hour=23") == datetime(2026, 1, 3, tzinfo=UTC)
    assert end_of("runs/date=2026-01-31") == datetime(2026, 2, 1, tzinfo=UTC)
    assert [end_of(name) for name in ("events", "runs/date=2026-13-01", "runs/date=x", "a/date=2026-01-01/hour=24")] == [
        None,
        None,
        None,
        datetime(2026, 1, 2, 1, tzinfo=UTC),
    ]


def test_what_is_too_old_goes(store: HistoryStore) -> None:
    days = [f"{table}/date=2026-01-02/{table}-p-00000001.parquet" for table in ("messages", "runs")]
    for path in (hour(3, 11), hour(3, 12), hour(10, 12), *days):
        put(store, path)
    deleted = enforce(HistoryRetention(timedelta(days=7), 10**9), store, NOW)
    assert sorted(file.path for file in deleted) == [hour(3, 11), *days]
    assert names(store) == [hour(3, 12), hour(10, 12)]


def test_what_is_too_much_goes_oldest_first_but_never_the_current_hour(store: HistoryStore) -> None:
    for at in ((9, 1), (9, 2), (9, 3), (10, 12)):
        put(store, hour(*at), 10)
    enforce(HistoryRetention(FOREVER, 25), store, NOW)
    assert names(store) == [hour(9, 3), hour(10, 12)]
    enforce(HistoryRetention(FOREVER, 1), store, NOW)
    assert names(store) == [hour(10, 12)]


def test_what_is_not_ours_stays_and_does_not_count(store: HistoryStore, tmp_path: Path) -> None:
    put(store, hour(1, 1), 10)
    stranger = tmp_path / hour(1, 1, "theirs.parquet")
    stranger.write_bytes(b"x" * 1000)
    assert enforce(HistoryRetention(FOREVER, 10), store, NOW) == []
    enforce(HistoryRetention(timedelta(days=1), 10), store, NOW)
    assert stranger.exists()
    assert names(store) == []
