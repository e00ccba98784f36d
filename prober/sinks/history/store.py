"""Location and retention of a history.

The location is a local folder, or one in an object store (gs://, s3://, hdfs://), by pyarrow's file systems.

A file appears under its name complete, or never: on a file system it is written under a temporary name, brought to the disk and renamed;
object stores do the same by themselves at the end of an upload. Writing again replaces. Everything raises OSError when the place cannot be
reached or does not take what is given to it.

A history is kept until it is too old, or too big. Whole folders go, the oldest first.
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
"""The folder of a local history for what is not Parquet yet; readers of Parquet do not look there."""
_ATOMIC: Final = {"gs", "s3"}
_OPTIONS: Final = {"gs": "retry_limit_seconds=30", "s3": "allow_delayed_open=true"}
"""Unless the location says so: Google's client gives up after less than its quarter of an hour, Amazon's sends a file in one request."""


class HistoryError(ProberError):
    """A history cannot be used; the text says which, why and what to do."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of the history by its path below `HISTORY`, and its size in bytes."""

    path: str
    size: int

    @property
    def folder(self) -> str:
        """Its folder below `HISTORY`."""
        return self.path.rpartition("/")[0]


class HistoryStore:
    """The place of one history. `root` is its local folder, None if it is elsewhere."""

    def __init__(self, location: str) -> None:
        """Raises `HistoryError` if nothing can be at that location. Nothing is read or made yet."""
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
        """Puts a file there, durably; when this returns, the file is there whatever happens."""
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
        """Whether a prober has written anything here."""
        folders = [*TABLES, SPOOL_FOLDER]
        return any(found.type == fs.FileType.Directory for found in self.files.get_file_info(folders))

    def contents(self, folder: str = "") -> Iterator[Stored]:
        """The history's files below a folder, of any depth; anything else that may be there is left out."""
        for base in [folder] if folder else list(TABLES):
            for found in self.files.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True)):
                if found.type == fs.FileType.File and is_file_name(found.base_name):
                    yield Stored(found.path, found.size)

    def folders(self, folder: str) -> list[str]:
        """The folders right below a folder."""
        found = self.files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return sorted(one.path for one in found if one.type == fs.FileType.Directory)

    def delete(self, path: str) -> None:
        """Removes a file, and the folders that are empty then.

        A missing file is no error: another process was faster.
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
    """When the hour, or day, of a folder is over; None for a folder that is not one of a history."""
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
    """How long a history is kept, and how many bytes it may have."""

    retention: timedelta
    size_max: int


def enforce(policy: HistoryRetention, store: HistoryStore, now: datetime) -> list[Stored]:
    """Deletes the history's files in folders that ended longer ago than the retention, and then in the oldest that are left, until all
    files together have at most `size_max` bytes. Returns what was deleted. Raises OSError if the store does not let it.

    The folder of the current hour, or day, stays, however large. Only files that are a history's by name are counted or deleted.
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
