"""Location and retention of a history.

The location is a local folder, or one in an object store or HDFS (gs://, s3://, hdfs://), by pyarrow's file systems.

A file is never visible before it is complete. On a file system it is written under a temporary name, synced to a local disk and renamed;
object stores show an object only at the end of its upload. Writing a file again replaces it. All operations raise OSError if the location
is unreachable or does not accept data.

A history is kept within a maximum age and size. Whole folders are deleted, the oldest first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
from pyarrow import fs

from prober.errors import ProberError
from prober.sinks.history.schema import TABLES, is_file_name

SPOOL_FOLDER: Final = "_spool"
"""Folder of a local history for records that are not Parquet yet; readers of Parquet skip it."""
_ATOMIC: Final = {"gs", "s3"}
_OPTIONS: Final = {"gs": "retry_limit_seconds=30", "s3": "allow_delayed_open=true"}
"""Default options of a location: Google's client retries for 30 seconds, not 15 minutes; Amazon's sends a file in one request."""


class HistoryError(ProberError):
    """A history cannot be used; the text states which, why and what to do."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of the history: its path below `HISTORY`, and its size in bytes."""

    path: str
    size: int

    @property
    def folder(self) -> str:
        """Folder of the file below `HISTORY`."""
        return self.path.rpartition("/")[0]


class HistoryStore:
    """Files of one history. `root` is its local folder, None if the location is not local."""

    def __init__(self, location: str) -> None:
        """Select the file system, without reading or creating any file. Raises `HistoryError` for an unusable location."""
        self.location = location
        scheme = urlsplit(location).scheme
        if scheme in ("", "file"):
            self.root: Path | None = Path(urlsplit(location).path if scheme else location).absolute()
            system, path = fs.LocalFileSystem(), str(self.root)
        else:
            self.root = None
            system, path = _connected(location, scheme)
        self._atomic = scheme in _ATOMIC
        self.files: fs.FileSystem = fs.SubTreeFileSystem(path, system)

    def write(self, path: str, content: pa.Buffer) -> None:
        """Write a file durably: after the return it survives a crash."""
        folder, slash, name = path.rpartition("/")
        written = path if self._atomic else f"{folder}{slash}.{name}.tmp"
        if folder and not self._atomic:
            self.files.create_dir(folder)
        with self.files.open_output_stream(written) as stream:
            stream.write(content)
        if not self._atomic:
            self._sync(written)
            self.files.move(written, path)
            self._sync(folder)

    def is_used(self) -> bool:
        """Return whether a prober has written to the location."""
        folders = [*TABLES, SPOOL_FOLDER]
        return any(found.type == fs.FileType.Directory for found in self.files.get_file_info(folders))

    def contents(self, folder: str = "") -> Iterator[Stored]:
        """Yield the history's files below a folder, at any depth, without foreign files."""
        for base in [folder] if folder else list(TABLES):
            for found in self.files.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True)):
                if found.type == fs.FileType.File and is_file_name(found.base_name):
                    yield Stored(found.path, found.size)

    def folders(self, folder: str) -> list[str]:
        """Return the folders directly below a folder."""
        found = self.files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return sorted(one.path for one in found if one.type == fs.FileType.Directory)

    def delete(self, path: str) -> None:
        """Delete a file, and its local folders that are then empty.

        A missing file is no error: another process has deleted it.
        """
        with suppress(FileNotFoundError):
            self.files.delete_file(path)
        if self.root is not None:
            folder = (self.root / path).parent
            with suppress(OSError):
                while folder != self.root:
                    folder.rmdir()
                    folder = folder.parent

    def _sync(self, path: str) -> None:
        if self.root is not None:
            descriptor = os.open(self.root / path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _connected(location: str, scheme: str) -> tuple[fs.FileSystem, str]:
    given = urlsplit(location).query
    option = _OPTIONS.get(scheme, "")
    if option and option.partition("=")[0] not in parse_qs(given):
        location += ("&" if given else "?") + option
    try:
        system, path = fs.FileSystem.from_uri(location)
    except (OSError, ValueError, pa.ArrowException) as wrong:
        raise HistoryError(f"no history can be kept at {location}: {str(wrong).splitlines()[0]}") from wrong
    return system, path


# --- retention ---------------------------------------------------------------------------------------------------------------


_FOLDER: Final = re.compile(r"\w+/date=(\d{4}-\d\d-\d\d)(?:/hour=(\d\d))?")


def end_of(folder: str) -> datetime | None:
    """Return the end of the hour, or day, of a folder; None for a folder that is not part of a history."""
    found = _FOLDER.fullmatch(folder)
    if found is None:
        return None
    try:
        begin = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
        return begin + (timedelta(days=1) if found[2] is None else timedelta(hours=int(found[2]) + 1))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class HistoryRetention:
    """Maximum age of a history, and its maximum size in bytes."""

    retention: timedelta
    size_max: int


def enforce(policy: HistoryRetention, store: HistoryStore, now: datetime) -> list[Stored]:
    """Delete files of a history that is too old or too large; return the deleted files. Raises OSError if the store fails.

    First go the files in folders that ended longer ago than the retention, then those in the oldest remaining folders, until all files
    together have at most `size_max` bytes. The folder of the current hour, or day, stays, however large. Only files with names of a history
    are counted or deleted.
    """
    folders: dict[tuple[datetime, str], list[Stored]] = {}
    for file in store.contents():
        if (end := end_of(file.folder)) is not None:
            folders.setdefault((end, file.folder), []).append(file)
    size = sum(file.size for files in folders.values() for file in files)
    deleted = []
    for (end, _), files in sorted(folders.items()):
        if end > now - policy.retention and (size <= policy.size_max or end > now):
            continue
        for file in files:
            store.delete(file.path)
        deleted += files
        size -= sum(file.size for file in files)
    return deleted
