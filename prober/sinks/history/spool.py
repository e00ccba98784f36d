"""The spool: local storage of new records, so that a killed process loses only the records after its last flush.

A spool is a folder of numbered segments, each a file to which frames are appended. A frame is

    magic (4 bytes) | length of the payload (4) | CRC-32 of the payload (4) | payload

with little-endian numbers. `append` returns when all its frames are on the disk. A crash can leave any prefix of the last append, or
garbage in its place: reading stops at the first incomplete frame. A failed append is rolled back.

Every process has its own spool, in a folder that is named after it and locked during its life. `abandoned` returns the segments of dead
processes.

A `Shipper` writes ended segments, those of its process and of dead processes, to the location of the history as Parquet files. It deletes a
segment only after all files of the segment are written. Until then every step can be repeated, so an unreachable store causes a delay, and
no loss before the spool is full.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Final
from zlib import crc32

from prober.errors import ProberError
from prober.sinks.history.encoding import files_of
from prober.sinks.history.store import HistoryRetention, HistoryStore, enforce

_MAGIC: Final = b"OKP1"
_HEAD: Final = struct.Struct("<4sII")
_SUFFIX: Final = ".spool"
_LOCK: Final = "lock"
_UNREADABLE: Final = ".unreadable"
RETENTION_EVERY_S: Final = 600.0
ABANDONED_EVERY_S: Final = 60.0
_log = logging.getLogger(__name__)


class SpoolFull(OSError):
    """The spool has reached its size limit, since its segments cannot be shipped."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a spool: the process that wrote it and its number, together unique."""

    path: Path
    process: str
    number: int


class Spool:
    """Spool of this process, for one thread. Raises OSError if the disk does not accept data.

    ended   complete segments, oldest first, for another thread to take.
    """

    def __init__(self, root: Path, process: str, bytes_max: int) -> None:
        """Create a folder below `root` that is named after the process; raise FileExistsError if it exists.

        `append` raises `SpoolFull` if the files below `root` would exceed `bytes_max`.
        """
        self.ended: deque[Segment] = deque()
        self._root = root
        self._folder = root / process
        self._bytes_max = bytes_max
        self._number = 0
        self._file: FileIO | None = None
        self._length = 0
        self._lock = _locked_folder(self._folder)

    @property
    def length(self) -> int:
        """Size of the current segment, in bytes."""
        return self._length

    def append(self, frames: Iterable[bytes]) -> None:
        """Write frames to the disk, all or none of them; start a segment if there is none.

        Blocks until the frames are on the disk. Raises SpoolFull if they would exceed the size limit, and OSError if they cannot be
        written.
        """
        data = b"".join(_framed(payload) for payload in frames)
        if bytes_below(self._root) + len(data) > self._bytes_max:
            raise SpoolFull(f"the spool {self._root} is full ({self._bytes_max:,} bytes)")
        file = self._current() or self._begin()
        try:
            _write(file, data)
            os.fsync(file.fileno())
        except OSError:
            self._take_back(file)
            raise
        self._length += len(data)

    def end_segment(self) -> None:
        """End the current segment, if there is one; the next append starts another."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._length = 0
            self.ended.append(Segment(self._path(self._number), self._folder.name, self._number))

    def close(self) -> None:
        """End the current segment and unlock the folder; remove it if no segment is left."""
        self.end_segment()
        _remove_if_done(self._folder)
        os.close(self._lock)

    def _current(self) -> FileIO | None:
        if self._file is not None and os.fstat(self._file.fileno()).st_nlink == 0:
            self._file.close()  # a person or another program deleted it
            self._file = None
        return self._file

    def _begin(self) -> FileIO:
        if not self._folder.exists():  # deleted too
            os.close(self._lock)
            self._lock = _locked_folder(self._folder)
        self._file = FileIO(self._path(self._number + 1), "xb")
        self._number += 1
        self._length = 0
        _sync_folder(self._folder)
        return self._file

    def _take_back(self, file: FileIO) -> None:
        try:
            file.truncate(self._length)
            file.seek(self._length)
        except OSError:  # reading stops at the torn frame, so the next append needs another segment
            self.end_segment()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}{_SUFFIX}"


def _write(file: FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:  # a nearly full disk accepts only a part
        rest = rest[file.write(rest) :]


def bytes_below(root: Path) -> int:
    """Return the size of all files below a folder in bytes; files that vanish meanwhile count as 0."""
    total = 0
    for path in root.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def read_frames(path: Path) -> tuple[list[bytes], int]:
    """Return the payloads before the first incomplete frame of a segment, and the number of bytes after them. Raises OSError."""
    data = path.read_bytes()
    frames = list(_frames(data))
    return frames, len(data) - sum(_HEAD.size + len(payload) for payload in frames)


def _frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + _HEAD.size <= len(data):
        magic, length, checksum = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if magic != _MAGIC or len(payload) < length or crc32(payload) != checksum:
            return
        yield payload
        at += _HEAD.size + length


def _framed(payload: bytes) -> bytes:
    return _HEAD.pack(_MAGIC, len(payload), crc32(payload)) + payload


def segments_in(folder: Path) -> Sequence[Segment]:
    """Return the segments of one process, oldest first."""
    paths = sorted(path for path in folder.glob(f"*{_SUFFIX}") if path.stem.isdigit())
    return [Segment(path, folder.name, int(path.stem)) for path in paths]


def set_aside(segment: Segment) -> Path:
    """Rename a segment that cannot be read, so that the others can be shipped; return the new path. Raises OSError."""
    aside = segment.path.with_suffix(_UNREADABLE)
    segment.path.rename(aside)
    return aside


# --- spools of dead processes ------------------------------------------------------------------------------------------------


@contextmanager
def abandoned(root: Path) -> Iterator[Sequence[Segment]]:
    """Lock the spools of dead processes against other processes and yield their segments, oldest first.

    On exit, unlock them and remove folders without segments.
    """
    claimed = [(folder, lock) for folder in _folders(root) if (lock := _claim(folder)) is not None]
    try:
        yield [segment for folder, _ in claimed for segment in segments_in(folder)]
    finally:
        for folder, lock in claimed:
            _remove_if_done(folder)
            os.close(lock)


def _folders(root: Path) -> Sequence[Path]:
    if not root.is_dir():
        return ()
    return sorted(path for path in root.iterdir() if not path.name.startswith(".") and (path / _LOCK).is_file())


def _claim(folder: Path) -> int | None:
    """Lock a folder and return the descriptor of the lock; None if its process lives, or it has just been removed."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _locked_folder(folder: Path) -> int:
    """Create a folder that is locked before another process sees it; return the descriptor of the lock."""
    if folder.exists():
        raise FileExistsError(f"{folder} exists: every process needs a name of its own")
    hidden = folder.with_name(f".{folder.name}")
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir(parents=True, mode=0o700)
    lock = os.open(hidden / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        hidden.rename(folder)
    except OSError:
        os.close(lock)
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    with suppress(OSError):
        _sync_folder(folder.parent)
    return lock


def _remove_if_done(folder: Path) -> None:
    with suppress(OSError):
        if all(path.name == _LOCK for path in folder.iterdir()):
            (folder / _LOCK).unlink()
            folder.rmdir()


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Shipper:
    """Writes segments to the store. For one thread.

    error   reason for the failure of the latest attempt, in one line; empty if it succeeded. Any thread may read it.
    """

    def __init__(self, location: str, spool_root: Path, policy: HistoryRetention, failed: Callable[[], None]) -> None:
        self.error = ""
        self._location = location
        self._root = spool_root
        self._policy = policy
        self._failed = failed
        self._store: HistoryStore | None = None
        self._abandoned_due_t = self._retention_due_t = float("-inf")

    def ship(self, spool: Spool | None, now_t: float, wall_s: float) -> bool:
        """Ship all ended segments; at intervals also those of dead processes, and enforce retention.

        Return False if the store, or the disk, failed: the remaining segments wait for the next call. `now_t` is the monotonic clock,
        `wall_s` seconds since 1970.
        """
        try:
            self._ship(spool, now_t, wall_s)
        except (OSError, ProberError) as error:
            problem = str(error).partition("\n")[0] or repr(error)
            if problem != self.error:
                _log.warning("the history cannot be written to its location and waits in the spool: %s", problem)
            self.error = problem
            self._failed()
            return False
        self.error = ""
        return True

    def _ship(self, spool: Spool | None, now_t: float, wall_s: float) -> None:
        store = self._store = self._store or HistoryStore(self._location)
        if now_t >= self._abandoned_due_t:
            with abandoned(self._root) as segments:
                for segment in segments:
                    self._bring(segment, store)
            self._abandoned_due_t = now_t + ABANDONED_EVERY_S
        while spool is not None and spool.ended:
            self._bring(spool.ended[0], store)
            spool.ended.popleft()
        if now_t >= self._retention_due_t:
            enforce(self._policy, store, datetime.fromtimestamp(wall_s, UTC))
            self._retention_due_t = now_t + RETENTION_EVERY_S

    def _bring(self, segment: Segment, store: HistoryStore) -> None:
        """Write the files of a segment and delete it from the spool."""
        try:
            frames, torn = read_frames(segment.path)
        except FileNotFoundError:
            self._failed()
            _log.warning("%s was deleted before it was written to the history; its events are lost", segment.path)
            return
        if torn:
            _log.warning("%s: the last %d bytes are incomplete and left out", segment.path, torn)
        try:
            for file in files_of(frames, segment.process, segment.number):
                store.write(file.path, file.content)
        except OSError:
            raise
        except Exception:  # internal error or damage: do not block later segments
            self._failed()
            _log.exception("internal error: segment %s cannot be read; it is kept as %s", segment.path, set_aside(segment))
            return
        with suppress(FileNotFoundError):
            segment.path.unlink()
