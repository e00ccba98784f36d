"""Files that a Cloud Storage subscription wrote, on this machine or in a bucket: Avro, or text with the data of one message per line.

The format is read from the first bytes, not from the name, which the subscription's suffix decides. Only reads: nothing is written to
the bucket.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple, cast
from urllib.parse import urlsplit

from google.api_core.exceptions import GoogleAPIError

from prober.exports.extra import google_errors, required
from prober.exports.message import ExportError, Row

AVRO_MAGIC: Final = b"Obj\x01"
BUCKET: Final = "gs"
LINE_BYTES_MAX: Final = 20_000_000  # twice what a message may have
_PATTERN: Final = frozenset("*?[")


class Place(NamedTuple):
    """A file of an export. `name`: its path, or its address in the bucket."""

    name: str
    bucket: str = ""
    blob: str = ""


def places(sources: Iterable[str]) -> list[Place]:
    """The files behind paths, patterns and `gs://` addresses, each once, by name. Raises `ExportError` if a source has none.

    An address of a bucket that is no pattern stands for all that begins with it.
    """
    found: dict[str, Place] = {}
    for source in sources:
        of_source = list(_in_bucket(source)) if urlsplit(source).scheme == BUCKET else list(_local(source))
        if not of_source:
            raise ExportError(f"{source}: there is no such file; a pattern needs quotes, such as 'export/*.avro'")
        found |= {place.name: place for place in of_source}
    return [found[name] for name in sorted(found)]


def rows(place: Place) -> Iterator[Row]:
    """What is in a file, row by row in its order. Raises `ExportError`."""
    with google_errors(place.name), _opened(place) as stream:
        start = stream.read(len(AVRO_MAGIC))
        stream.seek(0)
        yield from _avro(stream, place.name) if start == AVRO_MAGIC else _text(stream, place.name)


def _local(pattern: str) -> Iterator[Place]:
    names = glob.iglob(pattern, recursive=True) if _PATTERN & set(pattern) and not os.path.exists(pattern) else (pattern,)
    for name in names:
        if os.path.isdir(name):
            yield from (Place(os.path.join(folder, file)) for folder, _, files in os.walk(name) for file in files)
        elif os.path.exists(name):
            yield Place(name)


def _in_bucket(address: str) -> Iterator[Place]:
    # by hand: `?` and `#` may be part of an object's name
    bucket, _, path = address.removeprefix(f"{BUCKET}://").partition("/")
    wanted = {"match_glob": path} if _PATTERN & set(path) else {"prefix": path}
    with google_errors(address):
        storage = required("google.cloud.storage", "google-cloud-storage")
        for blob in storage.Client().list_blobs(bucket, **wanted):
            if not blob.name.endswith("/"):
                yield Place(f"{BUCKET}://{bucket}/{blob.name}", bucket, blob.name)


def _opened(place: Place) -> BinaryIO:
    if not place.bucket:
        return open(place.name, "rb")
    storage = required("google.cloud.storage", "google-cloud-storage")
    return cast(BinaryIO, storage.Client().bucket(place.bucket).blob(place.blob).open("rb"))


def _avro(stream: BinaryIO, name: str) -> Iterator[Row]:
    fastavro = required("fastavro", "fastavro")
    try:
        for row in fastavro.reader(stream):
            if not isinstance(row, dict):
                raise ExportError(f"{name}: its rows are no records, so that Pub/Sub did not write it")
            yield row
    except (ExportError, GoogleAPIError, OSError):
        raise
    except Exception as wrong:  # whatever its codecs say of a broken block
        raise ExportError(f"{name}: is not a whole Avro file: {wrong!r}") from None


def _text(stream: BinaryIO, name: str) -> Iterator[Row]:
    while line := stream.readline(LINE_BYTES_MAX + 1):
        if len(line) > LINE_BYTES_MAX:
            raise ExportError(f"{name}: a line is longer than any message, so that Pub/Sub did not write it")
        yield {"data": line.rstrip(b"\r\n")}
