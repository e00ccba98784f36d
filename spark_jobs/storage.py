"""Files and folders below one root, on this machine or in a store, through the file systems that Spark itself uses.

Guarantees of file systems: on a local disk and on HDFS a rename is atomic, of a file and of a folder. In an object store (gs://, s3a://) a
file appears complete and immediately, but a rename is a copy and a deletion, and a folder's rename is many of both. Code that relies on a
rename documents the state after an interruption.
"""

from __future__ import annotations

import os
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


class JobError(Exception):
    """Failure of a job. The text is one line with the problem and its solution."""


Failure: TypeAlias = Py4JJavaError
"""Error of the virtual machine."""
FAILURES: Final = (Failure, PySparkException)
"""Errors of the computation of a frame."""


class Storage:
    """One root, a path or URI. Paths are relative to it, with `/` between their parts. Raises `JobError` for an unreachable root."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        if urlsplit(root).scheme and urlsplit(root).query:
            raise JobError(
                f"{root}: remove what follows the ?, which is for the service; Spark has options of its own, spark.hadoop.fs..."
            )
        root = hadoop_uri(root)
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        try:
            path = jvm.org.apache.hadoop.fs.Path(root)
            self._files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
            self._root = self._files.makeQualified(path)
        except Failure as error:
            raise JobError(f"{root} cannot be used: {reason_of(error)}") from error
        self._local = self._files.getScheme() == "file"
        if self._local:
            self._files.setWriteChecksum(False)  # no other reader or writer of these files keeps them up to date

    def uri(self, path: str = "") -> str:
        """Return the path in the form that Spark reads."""
        return str(self._path(path).toString())

    def names(self, folder: str = "", *, of_folders: bool = False) -> list[str]:
        """Return the names in a folder, or of its folders only; none if it does not exist. Raises JobError if it cannot be read."""
        try:
            found = self._files.listStatus(self._path(folder))
        except Failure as error:
            if "FileNotFoundException" in error.java_exception.getClass().getName():
                return []
            raise JobError(f"{self.uri(folder)} cannot be read: {reason_of(error)}") from error
        return sorted(one.getPath().getName() for one in found if one.isDirectory() or not of_folders)

    def exists(self, path: str) -> bool:
        """Return whether a file or folder of that name exists."""
        return bool(self._files.exists(self._path(path)))

    def read_text(self, path: str) -> str:
        """Return the content of a small file."""
        stream = self._files.open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Write or replace a small file."""
        stream = self._files.create(self._path(path), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder to a free name, durably; create the parent folder if necessary.

        Raises JobError if the rename fails, for example because the name is in use.
        """
        self._files.mkdirs(self._path(target).getParent())
        if not self._files.rename(self._path(source), self._path(target)):
            raise JobError(f"{self.uri(source)} cannot be renamed to {self.uri(target)}; is something else working there?")
        self.sync(target.rpartition("/")[0])

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with its content. A missing file is no error."""
        self._files.delete(self._path(path), True)

    def sync(self, path: str) -> None:
        """Flush a local file, or the names in a local folder, to the disk. Other file systems do that by themselves."""
        if self._local:
            descriptor = os.open(self._path(path).toUri().getPath(), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root


def hadoop_uri(location: str) -> str:
    """Return a path or URI in the notation of Hadoop and Spark."""
    return f"s3a{location[2:]}" if location.startswith("s3://") else location


def reason_of(error: Failure | PySparkException) -> str:
    """Return the reason of an error in the virtual machine, in one line."""
    if isinstance(error, PySparkException):
        return str(error).partition("\n")[0]
    cause = error.java_exception
    while cause.getCause() is not None and "awaitResult" in str(cause.getMessage()):  # it only reports another thread
        cause = cause.getCause()
    return str(cause.getMessage() or cause.getClass().getSimpleName()).partition("\n")[0]
