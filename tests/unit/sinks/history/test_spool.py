"""Frames on the disk: all of an append or none of it, whole ones only, and one owner at a time."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from prober.sinks.history.spool import Segment, Spool, SpoolFull, abandoned, bytes_below, read_frames, segments_in, set_aside

PLENTY = 10**9


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool", "p1", PLENTY)
    yield spool
    spool.close()


def content(root: Path) -> dict[str, list[bytes]]:
    return {str(path.relative_to(root)): read_frames(path)[0] for path in sorted(root.rglob("*.spool"))}


def test_what_is_appended_is_read(spool: Spool, tmp_path: Path) -> None:
    spool.append([b"one", b""])
    spool.append([b"two" * 1000])
    spool.end_segment()
    spool.append([b"three"])
    assert content(tmp_path / "spool") == {
        "p1/00000001.spool": [b"one", b"", b"two" * 1000],
        "p1/00000002.spool": [b"three"],
    }
    assert list(spool.ended) == [Segment(tmp_path / "spool/p1/00000001.spool", "p1", 1)]


def test_an_append_is_synced_before_it_returns(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    spool.append([b"one"])
    size = spool.length
    assert size > 0
    assert spool._file is not None
    assert synced[-1] == spool._file.fileno()


def test_an_append_that_fails_leaves_nothing_behind(spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append([b"one"])
    with monkeypatch.context() as nearly_full:

        def write(file: FileIO, data: bytes) -> None:
            file.write(data[:3])
            raise OSError(errno.ENOSPC, "full")

        nearly_full.setattr("prober.sinks.history.spool._write", write)
        with pytest.raises(OSError, match="full"):
            spool.append([b"two"])
    spool.append([b"three"])
    assert content(tmp_path / "spool") == {"p1/00000001.spool": [b"one", b"three"]}


class Broken(FileIO):
    """A file on a disk that does not even let itself be cut short."""

    def truncate(self, size: int | None = None) -> int:
        raise OSError(errno.EIO, "broken")


def test_if_it_cannot_be_taken_back_another_segment_begins(spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prober.sinks.history.spool.FileIO", Broken)
    spool.append([b"one"])
    with monkeypatch.context() as broken:

        def write(file: FileIO, data: bytes) -> None:
            file.write(data[:3])
            raise OSError(errno.EIO, "broken")

        broken.setattr("prober.sinks.history.spool._write", write)
        with pytest.raises(OSError, match="broken"):
            spool.append([b"two"])
    spool.append([b"three"])
    assert content(tmp_path / "spool") == {"p1/00000001.spool": [b"one"], "p1/00000002.spool": [b"three"]}
    assert [segment.number for segment in spool.ended] == [1]


def test_a_torn_end_is_left_out_and_measured(spool: Spool, tmp_path: Path) -> None:
    spool.append([b"one", b"two"])
    path = tmp_path / "spool/p1/00000001.spool"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert read_frames(path) == ([b"one"], len(whole) // 2 - 1)
    path.write_bytes(whole + bytes(40))  # blocks that the disk had reserved and not written
    assert read_frames(path) == ([b"one", b"two"], 40)
    path.write_bytes(whole[:-1] + b"?")
    assert read_frames(path) == ([b"one"], len(whole) // 2)


def test_a_full_spool_refuses_and_says_so(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "p1", 100)
    spool.append([b"x" * 50])
    with pytest.raises(SpoolFull, match="is full"):
        spool.append([b"x" * 50])
    spool.end_segment()
    spool.ended.popleft().path.unlink()
    spool.append([b"x" * 50])
    spool.close()


def test_names_are_used_once(spool: Spool, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="a name of its own"):
        Spool(tmp_path / "spool", "p1", PLENTY)


def test_what_lives_is_not_abandoned(spool: Spool, tmp_path: Path) -> None:
    spool.append([b"one"])
    with abandoned(tmp_path / "spool") as segments:
        assert segments == []


def test_what_is_abandoned_has_one_heir(tmp_path: Path) -> None:
    for process in ("b", "a"):
        dead = Spool(tmp_path, process, PLENTY)
        dead.append([process.encode()])
        dead.close()
    with abandoned(tmp_path) as segments, abandoned(tmp_path) as nothing:
        assert [(segment.process, segment.number) for segment in segments] == [("a", 1), ("b", 1)]
        assert nothing == []
        segments[0].path.unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_no_spool_is_no_inheritance(tmp_path: Path) -> None:
    (tmp_path / "not-a-spool").mkdir()
    with abandoned(tmp_path) as segments, abandoned(tmp_path / "nowhere") as nothing:
        assert segments == nothing == []


def test_what_is_set_aside_is_no_segment_any_more(spool: Spool, tmp_path: Path) -> None:
    spool.append([b"one"])
    spool.end_segment()
    aside = set_aside(spool.ended.popleft())
    assert aside.exists()
    assert segments_in(aside.parent) == []
    assert bytes_below(tmp_path) == aside.stat().st_size
