"""The files and tables of export subscriptions, and their messages. They are only read, never written.

Files of a Cloud Storage subscription, on this machine or in a bucket, are Avro, or text with the data of one message per line. The first
bytes determine the format, not the name, which depends on the subscription's suffix. One query reads only the needed columns of the table
of a BigQuery subscription. The libraries for both are an optional extra, imported on demand; their errors become one line.

With metadata Pub/Sub writes the subscription, the message id and the publish time into separate fields, and everything else, the
ordering key included, into `attributes` (`CloudStorageConfig.AvroConfig` and `BigQueryConfig` in Pub/Sub's API). Without metadata an export
contains only the data, which must then contain key and number.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit

from google.api_core.exceptions import Forbidden, GoogleAPIError, NotFound, Unauthorized
from google.auth.exceptions import GoogleAuthError

from prober.errors import ConfigError, ProberError

Row: TypeAlias = Mapping[str, Any]
"""A row as it was written: columns or fields by name."""

KEY_ATTRIBUTE: Final = "ordering_key"
_NUMBER_LENGTH_MAX: Final = 30
AVRO_MAGIC: Final = b"Obj\x01"
BUCKET: Final = "gs"
LINE_BYTES_MAX: Final = 20_000_000  # twice the largest message
_PATTERN: Final = frozenset("*?[")
SCHEME: Final = "bigquery:"
METADATA: Final = ("subscription_name", "message_id", "publish_time", "attributes")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.:-]*\.[\w-]+\.[\w-]+")
_PAGE: Final = 10_000
_LENGTH_MAX: Final = 300


class ExportError(ProberError):
    """An export cannot be read; the text states the place, the cause and the remedy, on one line."""


class ExportedMessage(NamedTuple):
    """A message in an export.

    source        the file or table that contains it; `row`: its row there, from 1.
    stream        its ordering key and, if several subscriptions write to one place, the subscription that wrote it.
    message_id    empty if unknown. `published_s`: seconds since 1970, by Pub/Sub's clock; None if unknown.
    number        the publisher's number, which grows along the key; None if it has none.
    """

    source: str
    row: int
    subscription: str
    key: str
    message_id: str
    published_s: float | None
    number: int | None


@dataclass(frozen=True, slots=True)
class ValuePath:
    """The place of a value in a message: an attribute, a field of its JSON data, or a column. `path`: the part after the colon."""

    place: str
    path: tuple[str, ...]

    def find(self, row: Row) -> Any:
        """Return the value; None if the row does not contain it."""
        if self.place == "attribute":
            return _mapping(row.get("attributes")).get(self.path[0])
        value: Any = _mapping(row.get("data")) if self.place == "json" else row
        for name in self.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


def field_path(text: str) -> ValuePath:
    """Parse `attribute:NAME`, `json:FIELD.FIELD` or `column:NAME`. Raises ConfigError."""
    place, colon, rest = text.partition(":")
    if not colon or not rest or place not in ("attribute", "json", "column"):
        raise ConfigError(f"{text!r} names no field: write attribute:NAME, json:FIELD (in data that is JSON) or column:NAME")
    return ValuePath(place, (rest,) if place == "attribute" else tuple(rest.split(".")))


@dataclass(frozen=True, slots=True)
class MessageFields:
    """The places of the ordering key and of the publisher's number; no `number`: messages have none."""

    key: ValuePath = ValuePath("attribute", (KEY_ATTRIBUTE,))
    number: ValuePath | None = None

    def message(self, row: Row, source: str, place: int) -> ExportedMessage:
        """Return the message of a row. Raises `ExportError` for a number that is not valid."""
        key = self.key.find(row)
        number = None if self.number is None else self.number.find(row)
        try:
            return ExportedMessage(
                source,
                place,
                str(row.get("subscription_name") or ""),
                "" if key is None else str(key),
                str(row.get("message_id") or ""),
                _seconds(row.get("publish_time")),
                None if number is None else _whole(number),
            )
        except ValueError as wrong:
            raise ExportError(f"{source}, row {place}: {wrong}") from None


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a map, or the map in a JSON text; empty for anything else."""
    if isinstance(value, str | bytes):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _seconds(value: Any) -> float | None:
    """Return a point in time as seconds since 1970; a whole number is in microseconds, as in Avro. Raises ValueError."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value / 1e6
    time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def _whole(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or len(text) > _NUMBER_LENGTH_MAX or not text.removeprefix("-").isdecimal():
        raise ValueError(f"{text[:_NUMBER_LENGTH_MAX]!r} is not a whole number: choose another field with --number")
    return int(text)


class ExportFile(NamedTuple):
    """A file of an export. `name`: its path, or its address in the bucket."""

    name: str
    bucket: str = ""
    blob: str = ""


def places(sources: Iterable[str]) -> list[ExportFile]:
    """Return the files of paths, patterns and `gs://` addresses, each once, by name. Raises `ExportError` for a source without files.

    An address of a bucket without a pattern is a prefix.
    """
    found: dict[str, ExportFile] = {}
    for source in sources:
        of_source = list(_in_bucket(source)) if urlsplit(source).scheme == BUCKET else list(_local(source))
        if not of_source:
            raise ExportError(f"{source}: there is no such file; a pattern needs quotes, such as 'export/*.avro'")
        found |= {place.name: place for place in of_source}
    return [found[name] for name in sorted(found)]


def rows(place: ExportFile) -> Iterator[Row]:
    """Yield the rows of a file, in its order. Raises `ExportError`."""
    with google_errors(place.name), _opened(place) as stream:
        start = stream.read(len(AVRO_MAGIC))
        stream.seek(0)
        yield from _avro(stream, place.name) if start == AVRO_MAGIC else _text(stream, place.name)


def _local(pattern: str) -> Iterator[ExportFile]:
    names = glob.iglob(pattern, recursive=True) if _PATTERN & set(pattern) and not os.path.exists(pattern) else (pattern,)
    for name in names:
        if os.path.isdir(name):
            yield from (ExportFile(os.path.join(folder, file)) for folder, _, files in os.walk(name) for file in files)
        elif os.path.exists(name):
            yield ExportFile(name)


def _in_bucket(address: str) -> Iterator[ExportFile]:
    # by hand: `?` and `#` may be part of an object's name
    bucket, _, path = address.removeprefix(f"{BUCKET}://").partition("/")
    wanted = {"match_glob": path} if _PATTERN & set(path) else {"prefix": path}
    with google_errors(address):
        storage = required("google.cloud.storage", "google-cloud-storage")
        for blob in storage.Client().list_blobs(bucket, **wanted):
            if not blob.name.endswith("/"):
                yield ExportFile(f"{BUCKET}://{bucket}/{blob.name}", bucket, blob.name)


def _opened(place: ExportFile) -> BinaryIO:
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


def is_table(source: str) -> bool:
    """Return whether a source is a table, not files."""
    return source.startswith(SCHEME)


def table_rows(source: str, fields: MessageFields, since: float | None, until: float | None) -> Iterator[Row]:
    """Yield the rows of `bigquery:PROJECT.DATASET.TABLE` published in a period, in no order; times in seconds since 1970.

    Raises `ExportError`.
    """
    name = source.removeprefix(SCHEME).lstrip("/")
    if not _NAME.fullmatch(name):
        raise ExportError(f"{source}: is no table; write {SCHEME}PROJECT.DATASET.TABLE")
    project = name.rsplit(".", 2)[0]
    with google_errors(source):
        bigquery = required("google.cloud.bigquery", "google-cloud-bigquery")
        client = bigquery.Client(project=project)
        columns = _columns(client.get_table(name), fields)
        asked = bigquery.QueryJobConfig(query_parameters=_parameters(bigquery, since, until))
        for row in client.query_and_wait(_query(name, columns, since, until), job_config=asked, page_size=_PAGE):
            yield dict(row.items())


def _columns(table: Any, fields: MessageFields) -> list[str]:
    paths = (fields.key, fields.number)
    wanted = {*METADATA, *(path.path[0] for path in paths if path is not None and path.place == "column")}
    wanted |= {"data"} if any(path is not None and path.place == "json" for path in paths) else set()
    found = [column.name for column in table.schema if column.name in wanted]
    if not found:
        raise ExportError(
            f"{table.reference}: has none of the columns {', '.join(sorted(wanted))}: was it written without metadata?"
        )
    return found


def _query(name: str, columns: list[str], since: float | None, until: float | None) -> str:
    limits = ["publish_time >= @since"] * (since is not None) + ["publish_time < @until"] * (until is not None)
    where = f" WHERE {' AND '.join(limits)}" if limits else ""
    return f"SELECT {', '.join(f'`{column}`' for column in columns)} FROM `{name}`{where}"


def _parameters(bigquery: Any, since: float | None, until: float | None) -> list[Any]:
    given = (("since", since), ("until", until))
    return [
        bigquery.ScalarQueryParameter(name, "TIMESTAMP", datetime.fromtimestamp(at, UTC)) for name, at in given if at is not None
    ]


def required(module: str, distribution: str) -> Any:
    """Import a library. Raises `ExportError` if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise ExportError(f"{distribution} is not installed: pip install {distribution}") from None


@contextmanager
def google_errors(where: str) -> Iterator[None]:
    """Convert errors of Google's libraries and of the system within this context to an `ExportError` with the remedy."""
    try:
        yield
    except (Forbidden, Unauthorized) as error:
        roles = "roles/storage.objectViewer for a bucket, roles/bigquery.dataViewer and roles/bigquery.jobUser for a table"
        raise ExportError(f"{where}: no permission to read it ({_line(error)}); it takes {roles}") from None
    except NotFound as error:
        raise ExportError(f"{where}: does not exist ({_line(error)})") from None
    except GoogleAuthError as error:
        raise ExportError(f"{where}: no credentials ({_line(error)}); try: gcloud auth application-default login") from None
    except (GoogleAPIError, OSError) as error:
        raise ExportError(f"{where}: cannot be read ({_line(error)})") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:_LENGTH_MAX]
